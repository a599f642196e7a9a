#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Three daemons on one database at once, each in a network namespace and under a host name of its own, while epochs
# are turned by two of them: all are in the same epoch after their next flush, and the sums hold for each. Two are one
# platform by the hosts file: its members, with a folder each, and one sum. A second daemon of a host is refused. Six
# turns; "scripts/test --long two-machines" asks for minutes of them (DCPI_COUNT).
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
count=${DCPI_COUNT:-6}
mkdir "$db"
printf '# the second machine has a platform of another name\nsecond  machine-b machine-c\n' >"$db/hosts"
declare -A pid=()
at_end 'kill "${pid[@]}" 2>/dev/null'

# on MACHINE COMMAND…: with its host name, network, run folder and queue.
on()
{
	local machine=$1
	shift
	DCPI_RUN=$work/run-$machine DCPI_QUEUE=/dcpi-test-$$-$machine unshare --net --uts -- \
		bash -c 'hostname "$1" && shift && exec "$@"' on "machine-$machine" "$@"
}
ctl() { DCPI_RUN=$work/run-$1 "$DCPI_BIN/dcpictl" "${@:2}"; }
field() { DCPI_RUN=$work/run-$1 status_field "$2"; }

# start MACHINE [OPTION…]
start()
{
	on "$1" "$DCPI_BIN/dcpid" -background -event cpu-clock -flush 1 -log "$work/log-$1" "${@:2}" "$db" || fail "dcpid $1"
	pid[$1]=$(field "$1" pid)
	[ -n "${pid[$1]}" ] || fail "$1 names no pid"
}

# refused MACHINE OPTION…: a daemon there does not start, and says whose the platform is.
refused()
{
	! on "$@" "$db" 2>"$work/refused" || fail "a second daemon came up: $*"
	cat "$work/refused"
	grep -q "platform 'second' of database '$db' is in use by another daemon: host 'machine-b', pid ${pid[b]}" "$work/refused" ||
		fail "refused with other words"
}

# disk PLATFORM: its samples in all epochs.
disk() { "$DCPI_BIN/dcpiprof" -db "$db" -epoch all -platform "$1" -i -no_header 2>>"$work/err" | awk '$NF == "total" { print $1 }'; }

# quit MACHINE PLATFORM: all that it says it stored ($said), before and after the epochs turned, is in the database.
quit()
{
	ctl "$1" quit || fail "quit $1"
	wait_for_end "${pid[$1]}" || fail "$1 does not end"
	unset "pid[$1]"
	! grep 'do not balance' "$work/log-$1" || fail "the accounts of $1"
	said=$(sed -nE 's/.* finished: ([0-9]+) samples? stored/\1/p' "$work/log-$1" | awk '{ sum += $1 } END { print sum }')
	on_disk=$(disk "$2")
	echo "$2: $said samples stored, $on_disk on disk"
	[ "$said" -gt 500 ] && [ $((said + both)) = "$on_disk" ] || fail "the sums of $2"
}
both=0 # samples of the platform's other member

# meet BEFORE: all in one other epoch, and no further one open; a minute.
meet()
{
	local i a
	for ((i = 0; i < 300; i++)); do
		a=$(field a epoch)
		[ "${a:-$1}" = "$1" ] || [ "$a" != "$(field b epoch)" ] || [ "$a" != "$(field c epoch)" ] || [ "$(find "$db" -name .open | wc -l)" != 3 ] || return 0
		sleep 0.2
	done
	return 1
}

start a
start b
[ "$(field a platform) $(field b platform)" = "machine-a second" ] || fail "platforms"
[ "$(field a epoch)" = "$(field b epoch)" ] || fail "b did not come into a's epoch"
refused b "$DCPI_BIN/dcpid" -nodaemon -run "$work/run-x" -queue "/dcpi-test-$$-x" # the same host
start c
[ "$(field c platform) $(field c epoch)" = "second+2 $(field a epoch)" ] || fail "c is no member of b's platform"
"$DCPI_BUILD/tests/shares" "$count" >/dev/null &
load=$!
order=(a b a b b a) turns=0 together=0
while [ $turns -lt "$count" ]; do
	who=${order[turns % 6]}
	before=$(field a epoch)
	ctl "$who" epoch >"$work/said" || fail "dcpictl epoch"
	turns=$((turns + 1))
	meet "$before" || fail "two epochs for a minute: a is in $(field a epoch), b in $(field b epoch), c in $(field c epoch), before $before"
	[ "$(field "$who" epoch)" = "$(sed 's/^epoch \([0-9]*\).*/\1/' "$work/said")" ] || fail "$who said: $(cat "$work/said")"
	sleep 1.2 # a flush of each in it
	together=$((together + 1))
done
wait $load || :
for machine in a b c; do
	DCPI_RUN=$work/run-$machine account_holds "$machine"
done
quit a machine-a
quit c second+2
both=$said
quit b second
[ "$(find "$db" -name .open | wc -l)" = 0 ] || fail "an epoch is left open"
[ "$(ls "$db" | grep -c '^2')" = $((count + 1)) ] || fail "epochs: $(ls "$db")"
[ "$(disk machine-a | cat)" -gt 0 ]
echo "$turns turns, $together followed; $(total_on_disk) samples of all"
[ "$(total_on_disk)" = $(($(disk machine-a) + $(disk second))) ] || fail "all together"
