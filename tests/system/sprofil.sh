#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The example profiles itself: its shares agree with those of its turns within sampling error, and all
# ticks together with its CPU time. Needs no root.
set -u
out=$(mktemp)
trap 'rm -f "$out"' EXIT
for _ in 1 2 3 4 5 6 7 8 9 10; do
	"$DCPI_BIN/examples/hot" 0.8 >>"$out" || { echo "hot failed"; exit 1; }
done
# On a busy machine one sample can stand for many ticks (sprofil(3), LIMITATIONS), so the sampling
# error is not binomial but taken from the ten runs: a share's error over them, by Student's t with
# nine degrees of freedom, exceeds 6 standard errors once in 5,000. No run can have more ticks than
# CPU time (one of slack for the first, some for rounding); at the end of each what came since the last
# tick is open.
awk '
	/^a tick/ { tick = $4 / 1000; run++ }
	/turns/ { got[run, $1] = $2; truth[run, $1] = $(NF - 1); cpu[run] += $(NF - 1); name[$1] }
	/turns|^the rest/ { n[run] += ($1 == "the") ? $3 : $2 }
	END {
		if (run != 10 || tick <= 0)
			exit 1
		for (i = 1; i <= run; i++)
			all += n[i]
		for (p in name) {
			sum = square = share = 0
			for (i = 1; i <= run; i++) {
				d = 100 * (got[i, p] / n[i] - truth[i, p] / cpu[i])
				sum += d
				square += d * d
				share += 100 * truth[i, p] / cpu[i] / run
			}
			mean = sum / run
			error = sqrt((square - run * mean * mean) / (run - 1) / run)
			# Ten runs may agree by chance; it is no smaller than that of as many samples taken at random.
			least = sqrt(share * (100 - share) / all)
			error = error < least ? least : error
			printf "%s: %.1f %% by its turns, %+.2f by ticks, standard error %.2f\n", p,
				share, mean, error
			if (mean > 6 * error || mean < -6 * error)
				bad = 1
		}
		for (i = 1; i <= run; i++) {
			if (n[i] > cpu[i] / tick * 1.02 + 5)
				bad = 1
			expected += cpu[i] / tick
		}
		printf "all: %d ticks, %.1f by its clock\n", all, expected
		exit bad || !expected || all < 0.6 * expected
	}' "$out"
