# SPDX-License-Identifier: BSD-2-Clause
# Sourced by system tests of copies of a program that differ in the slot in which they work (slot.h),
# after daemon.sh.

# in_slots IMAGE: "SAMPLES OTHERS", those in its own slot, which its name ends with, and in the others.
in_slots()
{
	local name=${1##*/}
	name=${name%.so}
	"$DCPI_BIN/dcpiprof" -epoch all "$1" 2>>"$work/err" | awk -v own="slot_${name##*_}" '
		$4 == own { right += $1; next }
		$4 ~ /^slot_/ { wrong += $1 }
		END { print right + 0, wrong + 0 }'
}

# bucket NAME: samples under that name in the database.
bucket()
{
	"$DCPI_BIN/dcpiprof" -epoch all -i 2>>"$work/err" |
		awk -v name="$1" 'index($0, name) && substr($0, length($0) - length(name) + 1) == name { sum += $1 } END { print sum + 0 }'
}

# judge_slots TRUTH IMAGE…: no image has a sample of a slot that never ran there, and each has its part of
# the samples, by the CPU time in TRUTH ("IMAGE TIME" lines), within five standard deviations of the
# sampling and one percent. Sets $all, the samples in slots.
judge_slots()
{
	local truth=$1 image right wrong
	shift
	: >"$work/slots"
	for image in "$@"; do
		read -r right wrong <<<"$(in_slots "$image")"
		[ "$wrong" = 0 ] || fail "$wrong samples of '$image' are not its own"
		echo "$image $right" >>"$work/slots"
	done
	all=$(awk '{ sum += $2 } END { print sum + 0 }' "$work/slots")
	[ "$all" -gt 0 ] || fail "no samples in any slot"
	awk '
		NR == FNR { time[$1] += $2; total += $2; next }
		{ samples[$1] = $2; sum += $2 }
		END {
			for (i in samples) {
				p = time[i] / total
				reach = 5 * sqrt(sum * p * (1 - p)) + sum / 100
				off = samples[i] - sum * p
				printf "%s: %d samples, %.0f by its clock (within %.0f)\n", i, samples[i], sum * p, reach
				bad += off > reach || -off > reach
			}
			exit bad
		}' "$truth" "$work/slots" || fail "shares of samples are not those of CPU time"
}
