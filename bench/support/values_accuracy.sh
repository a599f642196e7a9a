# SPDX-License-Identifier: BSD-2-Clause
# Sourced by bench/values: how near frequencies from windows come to exact counts, within procedures. It
# wants $tool, $bin, $bench_work, $raw, $pids, bench/lib.sh and bench/support/accuracy_programs.sh.
# The programs of bench/accuracy but cc1, whose code is as wide as it is flat, and four that nothing was chosen
# by; each run again and again under a live dcpid until 30,000 windows at least are in its profiles, and
# judged by dcpix's counts of the same input. Shares are of samples, those of edges of executions.
# DCPI_ACCURACY_DIR keeps the exact counts there, and takes what is there already.

VALUES_PROGRAMS="${ACCURACY_PROGRAMS/cc1 /} $UNSEEN_PROGRAMS" VALUES_WINDOWS=30000 VALUES_SECONDS=11 VALUES_WARM=5
values_data=${DCPI_ACCURACY_DIR:-$bench_work/data}

# long_command PROGRAM DIR: the same work over and over in one process, in the array "command": starts are not what
# is counted. Sort's work has no part that repeats, and num's is short: these are started anew.
long_command()
{
	local dir=$2 file i work=$PWD/bench/support/accuracy_work
	accuracy_command "$1" A "$dir"
	file=${command[-1]}
	case $1 in
	gzip | bzip2 | xz | zstd | jq) for ((i = 0; i < 60; i++)); do command+=("$file"); done ;;
	perl) command=(/usr/bin/perl -e "for (1 .. 60) { @ARGV = ('$file'); do '$work.pl'; die \$@ if \$@ }") ;;
	lua) command=(/usr/bin/lua5.4 -e "arg = { '$file' } for i = 1, 300 do dofile('$work.lua') end") ;;
	python) command=(/usr/bin/python3.11 -I -c "
import runpy, sys
sys.argv = ['x', '$file']
for i in range(60): runpy.run_path('$work.py', run_name='__main__')") ;;
	lex) command[-1]=300 ;;
	bc) command=(/usr/bin/bc -lq); for ((i = 0; i < 2000; i++)); do command+=("$dir/pi.again.bc"); done
		grep -v quit "$file" >"$dir/pi.again.bc" ;;
	esac
}

# windows_of PROGRAM: into $bench_work/PROGRAM.db; in its last epoch, those from when most was translated.
windows_of()
{
	local program=$1 command db=$bench_work/$1.db sampler running
	long_command "$program" "$values_data/input"
	DCPI_RUN=$bench_work/run.$program "$bin/dcpid" -source bpf -event cpu-clock -rate 10000 -vwindows 1 -quiet "$db" &
	sampler=$!
	pids="$pids $sampler"
	until DCPI_RUN=$bench_work/run.$program "$bin/dcpictl" status >/dev/null 2>&1; do
		kill -0 $sampler
		sleep 0.1
	done
	DCPI_RUN=$bench_work/run.$program "$bin/dcpilabel" judged timeout "$VALUES_SECONDS" "$bench_work/repeat" "$VALUES_SECONDS" "${command[@]}" \
		>/dev/null 2>"$bench_work/repeated" </dev/null &
	running=$!
	sleep $VALUES_WARM
	DCPI_RUN=$bench_work/run.$program "$bin/dcpictl" epoch >/dev/null
	wait $running || [ $? = 124 ]
	kill -TERM $sampler
	wait $sampler
}

values_accuracy()
{
	local program
	mkdir -p "$values_data"
	ACCURACY_INPUTS=A ACCURACY_SECONDS=0 bench/support/accuracy_collect "$values_data" $VALUES_PROGRAMS
	cp "$values_data/repeat" "$bench_work/repeat"
	for program in $VALUES_PROGRAMS; do
		windows_of "$program"
		ACCURACY_EPOCH=latest ACCURACY_LABEL=judged "$tool/accuracy" judge "$program" "$bench_work/$program.db" "$values_data/$program.A.xct" >>"$raw/windows_judged"
		rm -rf "${bench_work:?}/$program.db"
	done
	values_accuracy_table
}

# mean_window FIELD: of the programs, procedure scale. Fields: 4 5 6 7 blocks within 5, 10, 15 %, 2x; 8 edges.
mean_window()
{
	awk -v f="$1" '$2 == "flow" && $3 == "procedure" { n++; sum += $f } END { printf "%.2f\n", sum / n }' "$raw/windows_judged"
}

# high_window FIELD OF: sum over programs in percent, procedure scale.
high_window()
{
	awk -v f="$1" -v of="$2" '$2 == "high" && $3 == "procedure" { a += $f; b += $of }
		END { printf "%.2f\n", b ? 100 * a / b : 0 }' "$raw/windows_judged"
}

values_accuracy_table()
{
	echo "percent of samples within 5, 10, 15 %, 2x; of edges within 10 %; called high, of these within 10 %; windows"
	awk -v least="$VALUES_WINDOWS" -v unseen=" $UNSEEN_PROGRAMS " '
		$2 == "flow" && $3 == "procedure" { row = sprintf("%5.1f %5.1f %5.1f %5.1f  %5.1f", $4, $5, $6, $7, $8); ten = $5 }
		$2 == "high" && $3 == "procedure" { row = row sprintf("  %5.1f %5.1f", 100 * $5 / $4, $5 ? 100 * $6 / $5 : 0) }
		$2 == "about" {
			printf "  %-8s%s %7d%s\n", $1, row, $9, (index(unseen, " " $1 " ") ? " (unseen)" : "")
			if ($9 < least) few = few " " $1
		}
		END { if (few) print "too few windows:" few; exit few != "" }' "$raw/windows_judged"
}

values_accuracy_figures()
{
	figure window_10 "$(mean_window 5)" % 58 '>='
	figure window_15 "$(mean_window 6)" % 68 '>='
	figure window_2x "$(mean_window 7)" % 93 '>='
	figure window_edges_10 "$(mean_window 8)" % 58 '>='
	figure window_high_within_10 "$(high_window 6 5)" % 88 '>='
	figure window_high_coverage "$(high_window 5 4)" % 30 '>='
}
