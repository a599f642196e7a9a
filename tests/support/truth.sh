# SPDX-License-Identifier: BSD-2-Clause
# Sourced by system tests whose JITs are made with truth_jit.h, after daemon.sh, and by bench/reuse.
tests=${tests:-$DCPI_BIN/../tests}

# judge_samples FACILITY…: dyn_truth's answer in $work/judged, its first numbers in $total, $unnamed, $wrong,
# $bytes, $lines and $images.
judge_samples()
{
	"$tests/dyn_truth" "$db" "$@" >"$work/judged" || fail "dyn_truth"
	read -r total unnamed wrong bytes lines images <<<"$(awk '
		$1 ~ /^(total|unnamed|wrong|bytes|lines|images)$/ { v[$1] = $2 }
		END { print v["total"], v["unnamed"], v["wrong"], v["bytes"], v["lines"], v["images"] }' "$work/judged")"
}

# truth_log WHICH: log lines of samples at the addresses of these programs that are under a bucket's name
# (dcpid -unknown), those of process $truth_pid if that is set: "unsure" ones, and the rest. All that are made with
# truth_jit.h have code at these addresses, and other tests may run some: only programs called $truth_programs (a
# regular expression) count, and processes of which dcpid does not know what they run.
truth_log()
{
	awk -v which="$1" -v of=" of pid $truth_pid" -v at="[(](${truth_programs:-.*})?[)] at 0x20000000" '
		$0 ~ at && index($0, of) {
			unsure = /: reused, time unknown: / || /: dynamic, generation unknown: /
			if (unsure == (which == "unsure")) print
		}' "$work/log"
}
truth_pid='' truth_programs=''

# sort_out WHAT: judge_samples has been called. $unsure: samples of which nothing tells who lived there;
# $lost: those of which nothing is known, though nobody runs code that it has not told of.
sort_out()
{
	local sum='{ sub(/.*: /, ""); s += $1 } END { print s + 0 }'
	unsure=$(truth_log unsure | awk "$sum")
	lost=$((unnamed + $(truth_log lost | awk "$sum")))
	echo "$1: $total samples in $images images, unsure $unsure, lost $lost"
	[ "$lost" = 0 ] || truth_log lost | tail -n 20
	[ "$total" -gt 0 ] || fail "$1: no sample has a routine"
}

# none_wrong WHAT: no sample is charged to a routine that did not live, and each routine that has one is
# whole.
none_wrong()
{
	[ "$wrong" = 0 ] || fail "$1: $wrong of $total samples went to routines that did not live"
	[ "$bytes" = 0 ] || fail "$1: $bytes of $total samples are in routines with other bytes"
	[ "$lines" = 0 ] || fail "$1: $lines of $total samples have not their line"
}

# worst_sigma TRUTH [each]: how far the farthest routine's samples are from its CPU time in TRUTH ("ROUTINE SECONDS"
# lines), in standard deviations. With "each", the parts are those of a thread's time (the routines of one are called
# THREAD_NUMBER): the tick comes when the scheduler acts, and can give a thread that shares its CPU half as many
# samples a second as another one.
#
# Were each sample an independent draw, the number n of a routine's would be binomial: mean N p, variance
# N p (1 - p), p its part of the time. A sampler with a period is steadier than that: of a stay of L periods,
# which begins at a random phase, it sees L rounded up or down, a variance of at most 1/4 a stay (binomial:
# (1 - p) L). So this is a bound from above, and of the routines of a run with long stays one
# beyond 3.5 has a chance of less than 4.7e-4. Where stays are much shorter than a period and a routine has few
# samples, the count is Poisson's, whose tail is longer: 50 routines of 14 samples each have one beyond 4 in
# one run of a hundred. Those tests ask for 6: with means of 3 to 30, one run in some thousands.
worst_sigma()
{
	awk -v each="${2:-}" '
		function thread(routine) { if (each) sub(/_[^_]*$/, "", routine); else routine = ""; return routine }
		NR == FNR { time[$1] += $2; all[thread($1)] += $2; next }
		$1 == "routine" { n[$2] = $3; sum[thread($2)] += $3; some = 1 }
		END {
			if (!some) { print "inf"; exit }
			for (i in n)
				if (!(i in time)) { print "inf"; exit }
			for (i in time) {
				t = thread(i)
				if (!sum[t] || !all[t]) { print "inf"; exit }
				p = time[i] / all[t]
				if (p <= 0) { if (n[i]) { print "inf"; exit }; continue }
				if (p >= 1) continue
				z = (n[i] - sum[t] * p) / sqrt(sum[t] * p * (1 - p))
				if (z < 0) z = -z
				if (z > worst) worst = z
			}
			printf "%.2f\n", worst
		}' "$1" "$work/judged"
}

# at_most WHAT VALUE LIMIT
at_most()
{
	awk -v v="$2" -v l="$3" 'BEGIN { exit !(v != "" && v != "inf" && v + 0 <= l) }' ||
		fail "$1: $2, at most $3"
	echo "$1: $2 (at most $3)"
}
