#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpid counting in the kernel, dcpid reading samples, the tick and perf record see the same program
# alike, by image and by procedure.
#
# Each share is compared with the program's own clock in that very run: of n samples a share p is
# binomial with variance p(1-p)/n, so X2 = sum (seen - np)^2 / (np) over the five routines is
# chi-squared with 4 degrees of freedom. 27.9 is exceeded once in 77,000 runs by chance. (Samples are
# spread more evenly than by chance, so the real X2 is smaller.) With n = 3000 a routine of 5 % that
# is seen as 8 % gives X2 > 50, so wrong attribution shows. Over the two images that the routines
# stand in, one degree of freedom, 18.9 is exceeded as rarely.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
command -v perf >/dev/null || fail "no perf: scripts/packages.sh lists linux-perf"
shares=$DCPI_BUILD/tests/shares

# judge WHO WHAT REACH: X2 of $work/seen (COUNT NAME) against $work/truth (NAME PERCENT).
judge()
{
	awk -v who="$1, by $2" -v reach="$3" '
		NR == FNR { truth[$1] = $2 / 100; next }
		$2 in truth { seen[$2] += $1; n += $1 }
		END {
			for (r in truth) {
				e = n * truth[r]
				x += (seen[r] - e) ^ 2 / e
				printf "%s %s %.2f %% (own clock %.2f %%)\n", who, r, 100 * seen[r] / n, 100 * truth[r]
			}
			printf "%s: %d samples, X2 %.1f\n", who, n, x
			exit !(n > 1000 && x < reach)
		}' "$work/truth" "$work/seen" || fail "$1 does not agree with the program's own clock"
}

# judge_images WHO: of $work/seen by image; from here on $work/truth is that of the images.
judge_images()
{
	awk '{ n[$1 ~ /_[de]$/ ? "libshares.so" : "shares"] += $2 }
		END { for (i in n) print i, n[i] }' "$work/truth" >"$work/images"
	mv "$work/images" "$work/truth"
	judge "$1" image 18.9
}

# image_share WHO COUNT HZ: of both images: the program ran 6 s of CPU time. What comes late is little beside 5 %, and
# what was missed is known; sampling itself gives under 2 %. Ticks are few, and come where the scheduler takes turns.
image_share()
{
	local percent=5
	[ "$3" -ge 1000 ] || percent=15
	within "$1: samples of both images" "$2" $((6 * $3)) $((6 * $3 * percent / 100 + $(missed)))
}

with_dcpid() # WHO OPTION…
{
	local who=$1 hz
	shift
	start_daemon -epoch "$@"
	hz=$((1000000000 / $(status_field period)))
	"$shares" 6 >"$work/truth"
	"$DCPI_BIN/dcpiflush" >/dev/null
	"$DCPI_BIN/dcpiprof" -no_header shares libshares.so >"$work/table" 2>/dev/null
	awk '{ print $1, $(NF - 1) }' "$work/table" >"$work/seen"
	[ "$(status_field balanced)" = true ] || fail "$who: the account is not balanced"
	judge "$who" routine 27.9
	"$DCPI_BIN/dcpiprof" -i -no_header shares libshares.so 2>/dev/null |
		awk '{ sub(/.*\//, "", $NF); print $1, $NF }' >"$work/seen"
	judge_images "$who"
	image_share "$who" "$(awk '$NF == "total" { print $1 }' "$work/table")" "$hz"
	stop_daemon
}

with_dcpid "dcpid, bpf" -source bpf -event cpu-clock
with_dcpid "dcpid, perf" -source perf -event cpu-clock
with_dcpid "dcpid, tick" -event tick

# Without --buildid-mmap this perf trusts a mark that the kernel sets for others who ask for build-ids.
perf record -q -a --buildid-mmap -e cpu-clock -c 1000000 -o "$work/perf" -- "$shares" 6 >"$work/truth" 2>"$work/err"
of_perf()
{
	perf report -i "$work/perf" --stdio -n -q --comm shares --sort "$1" 2>/dev/null |
		awk '$2 ~ /^[0-9]+$/ { print $2, $NF }' >"$work/seen"
}
of_perf sym
judge "perf record" routine 27.9
of_perf dso
judge_images "perf record"
