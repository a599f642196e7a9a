#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Loops that wait for memory, mispredicted branches, divisions and instruction fetch: dcpicalc names the true
# cause first, by time samples alone, and its summary adds up.
#
# The likely share of the true cause must be the greatest. By hand it was 99, 65, 92 and 100 % of 5,000 to 8,000
# samples; so one of two seconds (2,000 samples) is far from any doubt by chance: the standard error of a share
# is at most 1.1 points.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DCPIDB=$work/db

fail()
{
	echo "FAILED: $*" >&2
	exit 1
}

# first NAME CAUSE
first()
{
	rm -rf "$work/db"
	"$DCPI_BIN/dcpirun" -db "$work/db" "$DCPI_BUILD/tests/stall_kernels" "$1" 2 2>"$work/err" || {
		cat "$work/err" >&2
		fail "dcpirun stall_kernels $1"
	}
	"$DCPI_BIN/dcpicalc" "stall_$1" stall_kernels >"$work/graph" || fail "dcpicalc stall_$1"
	sed -n '/^summary/,$p' "$work/graph" | tee "$work/summary"
	sed -n 3p "$work/summary" | grep -q "^  . $2 " || fail "$1: '$2' is not the first cause"
	awk '
		/total tallied/ { exit }
		/where the time has gone|^summary/ { next }
		{ sub(/^ *[a-zA-Z?]? [a-z ]+/, ""); gsub(/%/, ""); sum += NF == 3 ? $2 : $1 }
		END { printf "together %.2f %%\n", sum; exit !(sum > 99.9 && sum < 100.1) }' "$work/summary" ||
		fail "$1: the parts do not add up"
}

first memory memory
first branch "branch misprediction"
first divide division
first front_end "front end"
