# SPDX-License-Identifier: BSD-2-Clause
# Sourced by bench/values: what windows cost, and how many of them reach their end. It wants $tool, $bin,
# $db, $bench_work, $pids and bench/lib.sh.
#   window     run time of the window program for 64 instructions, by the kernel's account, that of the
#              program that counts alone taken off: four programs on a long input
#   interrupt  the median gap that a spinning real-time thread sees at 25 kHz, with an empty program
#   step       of ptrace, both processes on one CPU
#   daemon     CPU time of dcpid with a window at one sample in ten of 1000 a second, beside the
#              compute load, that of dcpid without taken off; from two run lengths each
#   full       of the windows of dcpid -vwindows while a program runs, those that reached their end

VALUES_ROUNDS=3 VALUES_HZ=4000
values_input=$bench_work/input

values_prepare()
{
	local i
	accuracy_prepare "$values_input"
	# What is started anew has nothing translated, which is another question.
	for ((i = 0; i < 12; i++)); do cat "$values_input/text.A"; done >"$values_input/long"
	cc -O2 -D_GNU_SOURCE -o "$bench_work/repeat" bench/support/repeat.c
}

values_command() # the array "command": PROGRAM on the long input
{
	local file=$values_input/long
	accuracy_command "$1" A "$values_input"
	case $1 in
	gzip | xz) command[-1]=$file ;;
	lua | python) command[-1]=$file ;;
	*) return 1 ;;
	esac
}

# window_time LOG: ns of a window, into window_ns_LOG.
window_time()
{
	local program round command ns plain windows full sum=0 nr=0
	for ((round = 0; round < VALUES_ROUNDS; round++)); do
		sum=0 nr=0
		for program in gzip xz lua python; do
			values_command $program
			"$tool/window_cost" "$1" $VALUES_HZ 2 "${command[@]}" >"$bench_work/cost"
			read -r ns plain windows full <"$bench_work/cost"
			need_number "window of $program" "$ns"
			echo "window of $program, $1: $(calc "$ns - $plain") ns, $full of $windows reached their end"
			sum=$(calc "$sum + $ns - $plain") nr=$((nr + 1))
		done
		put "window_ns_$1" "$(calc "$sum / $nr")"
	done
}

interrupt_time()
{
	local round
	for ((round = 0; round < VALUES_ROUNDS; round++)); do
		"$tool/bpf_time" -empty 25000 1000 >/dev/null &
		sampler=$!
		pids="$pids $sampler"
		sleep 1
		put interrupt_ns "$("$tool/spinner" $(($(nproc) - 1)) 1 | cut -d' ' -f2)"
		kill $sampler
		wait $sampler 2>/dev/null || :
		put step_ns "$("$tool/single_step" 20000)"
	done
	echo "interrupt: $(median interrupt_ns), single step: $(median step_ns) (ns, 95 % interval, rounds)"
}

# daemon_time NAME ARG…: percent of each CPU, into daemon_pct_NAME.
daemon_time()
{
	local name=$1 short long load
	shift
	"$tool/compute_load" 60 >/dev/null &
	load=$!
	pids="$pids $load"
	rm -rf "$db"
	short=$("$tool/run_for" 3 8 15 "$bin/dcpid" -source bpf -event cpu-clock -rate 1000 "$@" -quiet "$db" 3>&1 >/dev/null)
	rm -rf "$db"
	long=$("$tool/run_for" 3 38 15 "$bin/dcpid" -source bpf -event cpu-clock -rate 1000 "$@" -quiet "$db" 3>&1 >/dev/null)
	kill $load # still there
	wait $load 2>/dev/null || :
	put "daemon_pct_$name" "$(calc "100 * ($long - $short) / 30e9 / $(nproc)")"
	echo "daemon, $name: $(mid "daemon_pct_$name") % of each CPU"
}

# ends: "FULL ALL" of the windows so far.
ends()
{
	"$bin/dcpictl" status -json | python3 -c '
import json, sys
def find(o):
    if isinstance(o, dict):
        if "window_ends" in o:
            return o["window_ends"]
        o = list(o.values())
    for e in o if isinstance(o, list) else []:
        r = find(e)
        if r is not None:
            return r
e = find(json.load(sys.stdin))
print(e["full"], sum(e.values()))'
}

full_windows()
{
	local program command full all more_full more_all
	rm -rf "$db"
	"$bin/dcpid" -source bpf -event cpu-clock -rate 1000 -vwindows 1 -quiet "$db" &
	sampler=$!
	pids="$pids $sampler"
	sleep 2
	for program in $ACCURACY_PROGRAMS; do
		[ $program != num ] || continue
		accuracy_command $program A "$values_input"
		read -r full all < <(ends)
		"$bench_work/repeat" 8 "${command[@]}" >/dev/null 2>&1
		sleep 1
		read -r more_full more_all < <(ends)
		put full_pct "$(calc "100 * ($more_full - $full) / ($more_all - $all)")"
		echo "full windows of $program: $(tail -n 1 "$raw/full_pct") % of $((more_all - all))"
	done
	kill -TERM $sampler
	wait $sampler || :
}

values_cost()
{
	values_prepare
	interrupt_time
	window_time path
	window_time reads
	daemon_time without -vwindows 0
	daemon_time with -vwindows 10
	full_windows
}

values_cost_figures()
{
	local ns
	# With what is needed to run them again, which costs more.
	ns=$(mid window_ns_reads)
	figure window64_ratio_interrupt "$(calc "$ns / $(mid interrupt_ns)")" ratio 0.5
	figure ratio_singlestep "$(calc "$ns / 64 / $(mid step_ns)")" ratio 0.01
	figure cpu_pct_100 "$(calc "$ns * 100 / 1e7 + $(mid daemon_pct_with) - $(mid daemon_pct_without)")" % 0.1
	figure full_windows_pct "$(awk '{ s += $1 } END { print s / NR }' "$raw/full_pct")" % 85 '>='
}
