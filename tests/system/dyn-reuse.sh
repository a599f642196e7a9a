#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Law 2: one address, two routines in turn. No sample goes to the wrong one (each works in its own half
# of the block, so that a wrong one shows), and next to none is "reused, time unknown": the source bpf brings
# generations, the source perf times.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
need_root

# right ROUTINE OFFSETS: its samples, all at instructions whose offset matches.
right()
{
	"$DCPI_BIN/dcpilist" -asm -no_freq "$1" reuse >"$work/list" || fail "dcpilist $1"
	awk -v where="$2" '
		$1 ~ /^[0-9]+$/ && $3 ~ /^0x/ { sum += $1; if ($4 !~ where) wrong += $1 }
		END { print sum + 0, wrong + 0 }' "$work/list" | {
		read -r sum wrong
		[ "$wrong" = 0 ] || { cat "$work/list" >&2; fail "$wrong of $sum samples of '$1' are not its own"; }
		echo "$sum"
	}
}

reused()
{
	"$DCPI_BIN/dcpiprof" -i | awk '/reused, time unknown/ { sum += $1 } END { print sum + 0 }'
}

try()
{
	start_daemon -source "$1"
	# Three times as long as between two looks: errors are made where the routines change.
	"$DCPI_BIN/../tests/jit_reuse" 750 4 || fail "jit_reuse"
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	low=$(right low '^[+]0x[0-5]$') || exit 1
	high=$(right high '^[+]0x(0|2[0-5])$') || exit 1
	echo "slow turns: low $low, high $high, reused $(reused)"
	[ "$low" -gt 1000 ] && [ "$high" -gt 1000 ] || fail "too few samples could be told apart"
	[ "$(reused)" = 0 ] || fail "$(reused) samples are unsure"

	# Turns much shorter than the time between two looks.
	"$DCPI_BIN/dcpiepoch" >/dev/null || fail "dcpiepoch"
	"$DCPI_BIN/../tests/jit_reuse" 20 150 || fail "jit_reuse"
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	echo "fast turns: reused $(reused), told apart $("$DCPI_BIN/dcpiprof" reuse | awk '$NF == "total" { print $1 }')"
	[ "$(reused)" -lt 30 ] || fail "fast turns: $(reused) samples are unsure"
	for routine in "low ^[+]0x[0-5]\$" "high ^[+]0x(0|2[0-5])\$"; do
		set -- $routine
		! "$DCPI_BIN/dcpiprof" reuse | grep -q " $1 " || right "$1" "$2" >/dev/null || exit 1
	done
	stop_daemon
	rm -rf "$db"
}

for source in bpf perf; do
	echo "with the source $source:"
	try $source
done
