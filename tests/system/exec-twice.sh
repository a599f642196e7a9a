#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Law 2: ten thousand processes with four pids between them, each of which executes two programs within
# one interval of draining. The programs are copies of one, at the same addresses; no sample goes to
# one in which that code did not run, and each has its part of the samples. Nor does one where load
# events are lost.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/slots.sh"
need_root
programs=("$DCPI_BUILD"/tests/spin_slot_{0,1,2})

# unknown_processes: samples under that name of the four pids that exec_twice takes; others come and go too.
unknown_processes()
{
	awk -v first="$(($(cat /proc/sys/kernel/pid_max) - 5))" '
		/: unknown process: / && match($0, / of pid [0-9]+ /) {
			pid = substr($0, RSTART + 8, RLENGTH - 8) - first
			sub(/.*: /, "")
			if (pid >= 0 && pid < 4)
				sum += $1
		}
		END { print sum + 0 }' "$work/log"
}

try()
{
	local source=$1 unknown
	shift
	start_daemon -unknown -rate 4000 "$@"
	"$DCPI_BUILD/tests/exec_twice" 10000 500000 25 "${programs[@]}" >"$work/spun" 2>"$work/said" ||
		fail "exec_twice: $(cat "$work/said")"
	echo "$source: $(cat "$work/said")"
	account_holds "$source, before the flush"
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	account_holds "$source"
	awk -v base="$DCPI_BUILD/tests/spin_slot_" '{ print base $1, $2 }' "$work/spun" >"$work/truth"
	count_slots "${programs[@]}"
	judge_slots "$work/truth"
	# What is not known is named, and little.
	unknown=$(($(unknown_processes) + $(told "ambiguous mapping" spin_slot) + $(told unknown spin_slot)))
	echo "$source: $all samples in the programs, $unknown of unknown processes or mappings," \
		"$(status_field lost_load_events) load events lost"
	awk -v u=$unknown -v a="$all" 'BEGIN { exit !(u <= a / 50) }' || fail "$unknown samples are not known"
	stop_daemon
	rm -rf "$db" "$work/log"
}

try perf -source perf
try bpf -source bpf -drain 60000

# Rings of one page, that nobody reads while most of the processes run: by the events that are left, the
# four pids still have the programs of earlier ones.
start_daemon -unknown -rate 4000 -source bpf -drain 60000 -ring 1
"$DCPI_BUILD/tests/exec_twice" 400 500000 25 "${programs[@]}" >"$work/spun" 2>"$work/said" &
spinning=$!
while [ "$(wc -l <"$work/spun")" -lt 100 ] && kill -0 $spinning 2>/dev/null; do
	sleep 0.02
done
kill -STOP "$daemon"
wait $spinning
spun=$?
kill -CONT "$daemon"
[ $spun = 0 ] || fail "exec_twice: $(cat "$work/said")"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
account_holds "events lost"
count_slots "${programs[@]}"
lost=$(status_field lost_load_events) unknown=$(unknown_processes)
echo "events lost: $lost, $all samples in the programs, $unknown of unknown processes"
[ "$lost" -gt 0 ] || fail "no load event was lost"
[ "$unknown" -gt 0 ] || fail "nothing could have gone to the wrong program"
stop_daemon
