# SPDX-License-Identifier: BSD-2-Clause
# Sourced by system tests of copies of a program that differ in the slot in which they work (slot.h),
# after daemon.sh.

# in_slots IMAGE: "OWN SHARED OTHERS", samples in its own slot, which its name ends with, in the shared
# routine, and in slots that never ran there.
in_slots()
{
	local name=${1##*/}
	name=${name%.so}
	"$DCPI_BIN/dcpiprof" -epoch all "$1" 2>>"$work/err" | awk -v own="slot_${name##*_}" '
		NF > 1 && $(NF - 1) == own { right += $1; next }
		NF > 1 && $(NF - 1) == "shared" { shared += $1 }
		NF > 1 && $(NF - 1) ~ /^slot_/ { wrong += $1 }
		END { print right + 0, shared + 0, wrong + 0 }'
}

# told BUCKET PROGRAM: samples of programs so named that are under that name (dcpid -unknown logs them).
told()
{
	awk -v bucket=": $1: " -v program="($2" '
		index($0, bucket) && index($0, program) { sub(/.*: /, ""); sum += $1 }
		END { print sum + 0 }' "$work/log"
}

# count_slots IMAGE…: into $work/slots, "IMAGE OWN SHARED" lines; $all becomes their sum. No image has a
# sample of a slot that never ran there.
count_slots()
{
	local image own shared wrong
	: >"$work/slots"
	all=0
	for image in "$@"; do
		read -r own shared wrong <<<"$(in_slots "$image")"
		[ "$wrong" = 0 ] || fail "$wrong samples of '$image' are not its own"
		echo "$image $own $shared" >>"$work/slots"
		all=$((all + own + shared))
	done
}

# judge_slots TRUTH: each image has its part of the samples in $work/slots, by the CPU time in TRUTH
# ("IMAGE TIME" lines), in slots and in the shared routine, within five standard deviations of the sampling
# and one percent.
judge_slots()
{
	awk '
		NR == FNR { time[$1] += $2; total += $2; next }
		{ own[$1] = $2; shared[$1] = $3; sum_own += $2; sum_shared += $3 }
		function judge(what, got, sum, p) {
			reach = 5 * sqrt(sum * p * (1 - p)) + sum / 100
			printf "%s: %d samples %s, %.0f by its clock (within %.0f)\n", name, got, what, sum * p, reach
			bad += !sum || got - sum * p > reach || sum * p - got > reach
		}
		END {
			for (i in own) {
				name = i
				sub(/.*\//, "", name)
				judge("in its slot", own[i], sum_own, time[i] / total)
				judge("shared", shared[i], sum_shared, time[i] / total)
			}
			exit bad
		}' "$1" "$work/slots" || fail "samples are not as CPU time is"
}
