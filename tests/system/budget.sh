#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# One user's processes whose memory answers late, and a crowd with many facilities each: the daemon loses no load
# event, answers as it did before, names every sample of an honest JIT of another user, and says whose budget is spent.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
need_root
tests=$DCPI_BIN/../tests
reachable_programs

# answers WHEN: how many times the daemon tells its status while hello runs for three seconds of CPU time beside programs
# that begin and end all the time. Sets $answers, in ten seconds.
answers()
{
	local honest storm began=$EPOCHREALTIME
	"$DCPI_BIN/examples/hello" 3 >"$work/truth" 8>&- &
	honest=$!
	while [ -d "$work" ]; do /bin/true; done 8>&- &
	storm=$!
	answers=0
	while lives $honest; do
		"$DCPI_BIN/dcpictl" status >"$work/answer" || fail "$1: the daemon does not answer"
		answers=$((answers + 1))
		sleep 0.05
	done
	kill $storm
	wait $honest || fail "$1: hello"
	answers=$((answers * 10 / (SECONDS - began + 1)))
	echo "$1: $answers answers"
}

# untouched WHEN PART: nothing was lost by the daemon, the honest one has its names, and there were at least so
# small a part of the answers without it.
untouched()
{
	local name
	account_holds "$1"
	[ "$(status_field lost_load_events)" = $before ] || fail "$1: $(status_field lost_load_events) load events lost"
	[ "$answers" -ge $((quiet / $2)) ] || fail "$1: $answers answers, $quiet without it"
	"$DCPI_BIN/dcpiflush" || fail "$1: dcpiflush"
	for name in sixty thirty ten; do
		within "$1: share of $name" "$(share $name hello)" "$(truth "$work/truth" $name)" 10
	done
	within "$1: share without a name" "$(share '(no' hello)" 0 2
	"$DCPI_BIN/dcpictl" epoch >"$work/flushed" || fail "$1: epoch"
}

# tried WHEN PART [COMMAND…]: such a phase, beside a command, is untouched. Where other programs have the CPUs, both threads
# that empty rings may wait for one longer than a ring lasts, and an answer may take as long: one of three must be.
tried()
{
	local try beside
	for try in 1 2 3; do
		if [ $# -gt 2 ]; then
			"${@:3}" >"$work/beside" 2>&1 &
			beside=$!
		fi
		answers "$1"
		[ $# = 2 ] || wait $beside || fail "$1: $(cat "$work/beside")"
		[ $try -lt 3 ] || break
		[ "$(status_field lost_load_events)" != $before ] || [ "$answers" -lt $((quiet / $2)) ] || break
		before=$(status_field lost_load_events)
		echo "$1: $before load events lost, $answers answers"
		"$DCPI_BIN/dcpictl" epoch >"$work/flushed" || fail "$1: epoch"
	done
	untouched "$1" "$2"
}

# bucket NAME: its samples.
bucket()
{
	"$DCPI_BIN/dcpictl" status -json | grep -o "\"$1\":[0-9]*" | cut -d: -f2
}

start_daemon
before=0 # load events, before what is tried
quiet=0
tried quiet 4
quiet=$answers

mkdir "$work/slow.fs"
exec 7> >(exec "$tests/fuse_hang" "$work/slow.fs" read >"$work/fuse" 2>&1)
fuse=$!
while [ ! -s "$work/fuse" ]; do lives $fuse || fail "fuse_hang"; sleep 0.05; done
! grep '^skip' "$work/fuse" || exit 77
exec 8> >(exec "$tests/bad_client" slow 24 "$work/slow.fs/fuse/tmp/memory" >"$work/slow" 2>&1 7>&-)
slow=$!
tried "slow memory" 4
[ "$(cat "$work/slow")" = "24 of 24" ] || fail "bad_client slow: $(cat "$work/slow")"
# They go on, and may have had little of the CPUs.
for ((i = 0; i < 60; i++)); do
	[ "$(bucket 'dynamic, over budget')" = 0 ] || break
	sleep 1
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
done
[ "$(bucket 'dynamic, over budget')" -gt 0 ] || fail "no sample is over the budget"
[ "$(status_field users_over_budget)" -ge 1 ] || fail "no user is over the budget"
grep -q 'user 65534 has taken' "$work/log" || fail "the log does not tell whose budget is spent"
exec 8>&- 7>&-
wait $slow $fuse

# A hundred processes that begin at once take the CPUs, too.
tried crowd 10 "$tests/bad_client" crowd 100
stop_daemon
