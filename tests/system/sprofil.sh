#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The example profiles itself: shares agree with its own clock within sampling error, and all ticks
# together with its CPU time. Needs no root.
set -u
out=$(mktemp)
trap 'rm -f "$out"' EXIT
"$DCPI_BIN/examples/hot" 8 >"$out" || { echo "hot failed"; exit 1; }
cat "$out"
# Of n ticks a share p gets np with a standard deviation of sqrt(np(1 - p)) where ticks fall at random
# (the pieces have random lengths; that they are longer than a tick makes it no larger): allow four.
# All ticks: its CPU time in ticks; at the end what came since the last one is open, a few
# where the machine is busy.
awk '
	/^a tick/ { tick = $4 / 1000 }
	/clock/ { name[++k] = $1; got[k] = $2; truth[k] = $(NF - 1); n += $2; cpu += $(NF - 1) }
	/^the rest/ { n += $3 }
	END {
		if (k != 3 || tick <= 0)
			exit 1
		for (i = 1; i <= k; i++) {
			p = truth[i] / cpu
			bound = 4 * sqrt(n * p * (1 - p))
			printf "%s: %d ticks, %.1f by its clock, bound %.1f\n", name[i], got[i], n * p, bound
			if (got[i] < n * p - bound || got[i] > n * p + bound)
				bad = 1
		}
		printf "all: %d ticks, %.1f by its clock\n", n, cpu / tick
		exit bad || n > cpu / tick * 1.01 + 5 || n < cpu / tick - 25
	}' "$out"
