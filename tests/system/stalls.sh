#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Loops that wait for memory, mispredicted branches, divisions and instruction fetch: dcpicalc and dcpiwhatcg name
# the true cause first, by time samples alone, and their summaries add up; most of what
# dcpitopstalls lists may have waited for it, in the loop itself.
#
# The likely share of the true cause must be the greatest. By hand it was 99, 73, 92 and 100 % of 2,000 samples
# (two seconds of CPU time), and the next cause had at most 8 %: far from any doubt by chance, the standard error of a
# share being at most 1.1 points.
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
	whole "$@"
	top "$@"
}

# whole NAME CAUSE: of the whole program, what it does before its loop and time that cannot be told included
whole()
{
	"$DCPI_BIN/dcpiwhatcg" -conf_low stall_kernels >"$work/whole" || fail "dcpiwhatcg"
	sed -n '/^where/,$p' "$work/whole" | tee "$work/summary"
	sed -n 2p "$work/summary" | grep -q "^. $2 " || fail "$1: dcpiwhatcg has not '$2' first"
	awk '
		/^  total stall|^where/ { next }
		/^  total tallied/ { tallied = $NF; rest = 1; next }
		/^  total/ { total = $NF; next }
		rest { beside += $NF; next }
		{ sub(/^..[a-z ]+/, ""); gsub(/%/, ""); sum += NF == 3 ? $2 : $1 }
		END {
			share = total ? 100 * tallied / total : 0
			printf "%s of %s tallied, %s beside; together %.2f %%\n", tallied, total, beside, sum
			exit !(total > 0 && tallied + beside == total && sum > share - 0.1 && sum < share + 0.1)
		}' "$work/summary" || fail "$1: the parts of dcpiwhatcg do not add up"
}

# top NAME CAUSE LETTER. A single instruction need not show it: where the front end is waited for, all have as many.
# A processor that joins the branch with its load has the load beside it.
top()
{
	"$DCPI_BIN/dcpitopstalls" -conf_low -no_header -n 100000 stall_kernels >"$work/top"
	head -3 "$work/top"
	awk -v want="^stall_$1 $3\$" '
		NF > 4 { for (i = 5; $i !~ /^0x/; i++) ; sum[$(i + 1) " " $(i - 1)] += $3 }
		END {
			for (blame in sum)
				if (sum[blame] > sum[most])
					most = blame
			print "most: " most ", " sum[most]
			exit (most !~ want)
		}' "$work/top" || fail "$1: dcpitopstalls has another procedure or cause first"
}

first memory memory d
first branch "branch misprediction" "d?p"
first divide division v
first front_end "front end" I
