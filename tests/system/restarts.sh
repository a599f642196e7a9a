#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Daemon killed by SIGKILL and restarted under load (every CPU busy, a JIT whose routines come and go, and
# others that come and go): each time every live routine is known again, and pseudo-images written before
# stay readable. Five times; "scripts/test --long restarts" asks for others (DCPI_FROM, DCPI_COUNT, DCPI_SEED).
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
. "$DCPI_SRC/tests/support/truth.sh"
truth_programs=jit_kids
need_root
from=${DCPI_FROM:-0} count=${DCPI_COUNT:-5}
RANDOM=$((${DCPI_SEED:-1} + from))
elf=0 all_lost=0 all_unsure=0

# readable: every image there is.
readable()
{
	local file
	for file in "$db"/dyn/*.dyn; do
		[ -f "$file" ] || continue
		lint_image "$file"
		elf=$((elf + 1))
	done
}

# It outlives the test, which ends it, however slow the machine is.
"$tests/jit_kids" live $((count * 30 + 300)) >"$work/truth" &
jit=$!
truth_pid="$jit " # of others the daemon knows nothing that ended while it started
while :; do "$tests/jit_kids" work 1 50; done >/dev/null 2>&1 &
others=$!
at_end 'kill $jit $others 2>/dev/null'
before=0
for ((i = 0; i < count; i++)); do
	start_daemon -unknown
	sleep "$(awk -v r=$RANDOM 'BEGIN { printf "%.3f", 0.5 + r / 32768 }')"
	# Of a CPU that others have too: 100 samples may take a while.
	for ((tries = 0; tries < 60; tries++)); do
		"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
		judge_samples live
		none_wrong "life $i"
		[ "$total" -le $((before + 100)) ] || break
		sleep 1
	done
	readable
	sort_out "life $i"
	[ "$total" -gt $((before + 100)) ] || fail "life $i: $total samples, $before before"
	before=$total
	all_lost=$((all_lost + lost))
	all_unsure=$((all_unsure + unsure))
	# In the middle of whatever it does.
	sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
	kill -KILL "$daemon"
	wait_for_end "$daemon" || fail "a killed daemon does not end"
	daemon=
	: >"$work/log"
	readable
done
kill $others
wait $others 2>/dev/null
start_daemon -unknown
readable
"$DCPI_BIN/dcpiprof" -epoch all live >/dev/null || fail "dcpiprof"
echo "sums: restarts $count samples $total images $elf unsure $all_unsure lost $all_lost"
[ "$all_lost" = 0 ] || fail "$all_lost samples have no routine"
stop_daemon
