#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Clients that lie, flood, hang or never answer: the daemon goes on sampling, answers at once, counts what
# it refused, and an honest JIT beside them loses nothing. A queue that somebody else made is no obstacle.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
need_root
tests=$DCPI_BIN/../tests
reachable_programs
cp "$tests/bad_client" "$work/bin"
hung=${DCPI_COUNT:-300} # processes

# prompt WHEN: it is there, answers (at once, but for a machine that is busy), and no sample is missing.
prompt()
{
	local before=$SECONDS
	account_holds "$1"
	[ $((SECONDS - before)) -le 60 ] || fail "$1: it took $((SECONDS - before)) seconds to answer"
	[ "$(status_field pid)" = "$daemon" ] || fail "$1: the daemon is another one"
}

# honest WHEN FACILITY: a JIT that behaves is known by routine. The truth is that of the last run, the share
# is of all of them: ten points are five standard deviations of 600 samples.
honest()
{
	local name before
	before=$(samples hello)
	"$DCPI_BIN/examples/hello" 1.5 >"$work/truth" || fail "$1: hello"
	"$DCPI_BIN/dcpiflush" || fail "$1: dcpiflush"
	for name in sixty thirty ten; do
		within "$1: share of $name" "$(share $name hello)" "$(truth "$work/truth" $name)" 10
	done
	[ "$(samples hello)" -gt $((${before:-0} + 300)) ] || fail "$1: $(samples hello) samples, $before before"
	within "$1: share without a name" "$(share '(no' hello)" 0 0.01
}

# Somebody else's queue, of another form, full of messages that nobody reads.
"$tests/bad_client" queue 3 || fail "the other's queue"
start_daemon
! grep -s 'going on without' "$work/log" || fail "the queue is somebody else's"
honest "another's queue"

"$tests/bad_client" bells 200000 || fail "bells"
prompt "forged bells"
# Code of machines that no image can be written for: each is refused alone, with its reason told, and
# its samples have a name.
for number in 0 3 22 65535; do
	setpriv --reuid 65534 --regid 65534 --clear-groups "$work/bin/bad_client" machine $number >"$work/machine" ||
		fail "machine $number"
	[ "$(cat "$work/machine")" = "attached 0" ] || fail "the registry of machine $number is attached"
	"$DCPI_BIN/dcpictl" flush >"$work/flushed" || fail "flush beside machine $number"
done
prompt "registries of other machines"
grep -q "cannot attach the registry of process .*: not supported on this machine" "$work/log" ||
	fail "the reason is not told"
"$DCPI_BIN/dcpictl" epoch >"$work/flushed" || fail "epoch beside other machines"
[ "$("$DCPI_BIN/dcpiprof" -epoch all 'bad_client: dynamic, unnamed' | awk '$NF == "total" { print $1 }')" -gt 1000 ] ||
	fail "the samples of other machines' code have no name"
honest "registries of other machines"

"$tests/bad_client" sockets 3000 || fail "sockets"
prompt "forged hand-overs"
[ "$(status_field registries_refused)" -gt 0 ] || fail "what was refused is not counted"
honest "forged hand-overs"

# Another user's sockets that linger for an hour when they are closed, more in a message than a receiver expects.
setpriv --reuid 65534 --regid 65534 --clear-groups "$work/bin/bad_client" lingering 100 >"$work/lingering" &
lingering=$!
for _ in {1..300}; do
	[ ! -s "$work/lingering" ] || break
	sleep 0.1
done
[ -s "$work/lingering" ] || fail "bad_client lingering"
timeout 300 "$DCPI_BIN/dcpiflush" >/dev/null || fail "dcpid waits for sockets that linger"
prompt "sockets that linger"
for _ in {1..300}; do
	open=$(ls "/proc/$daemon/fd" | wc -l)
	[ "$open" -gt 300 ] || break
	sleep 0.1
done
[ "$open" -le 300 ] || fail "$open descriptors stay open"
honest "sockets that linger"
kill $lingering
wait $lingering

"$tests/bad_client" hang "$hung" <"$work/log" >/dev/null || fail "those that end"
sleep 100 | "$tests/bad_client" hang "$hung" >"$work/hang" &
for _ in {1..600}; do
	[ ! -s "$work/hang" ] || break
	sleep 0.1
done
echo "$(cat "$work/hang") of $hung"
[ "$(cat "$work/hang")" = "hang $hung" ] || fail "only $(cat "$work/hang") of $hung could announce"
sleep 1
prompt "$hung that hang"
honest "$hung that hang"
kill $(jobs -p) 2>/dev/null

"$tests/bad_client" silent 4 >"$work/silent" &
silent=$!
sleep 1.5
for _ in {1..600}; do
	[ ! -s "$work/silent" ] || break
	sleep 0.1
done
[ -s "$work/silent" ] || fail "bad_client silent"
prompt "memory that never answers"
honest "memory that never answers"
wait $silent || fail "bad_client silent"
[ "$("$DCPI_BIN/dcpiprof" -epoch all silent | awk '$NF == "total" { print $1 }')" -gt 300 ] ||
	fail "the routines of the one that never answers are lost"
stop_daemon
