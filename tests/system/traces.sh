#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Windows of a real daemon: the way of programs whose way is known, one of them code made at run time
# whose process is gone when its moves are read; and that each window received is accounted for.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
[ "$(uname -m)" = x86_64 ] || {
	echo "skip: windows are followed on x86-64 only"
	exit 77
}

cat >"$work/ways.c" <<'END'
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

volatile uint64_t sink = 1;

#define WAY(name) __attribute__((noinline)) void name(uint64_t x)
WAY(one) { sink += x; }
WAY(two) { sink -= x; }
WAY(three) { sink ^= x; }
WAY(fast) { sink += x; }
/* Most of the time is spent here: time says nothing of how often. */
WAY(slow) { sink = sink / (x | 3) / (x | 5) / (x | 7) + x; }

/* One after the other, always. */
__attribute__((noinline)) void in_turn(uint64_t n)
{
	for (; n; n--) {
		one(n);
		two(n);
		three(n);
	}
}

/* One or the other, by a bit that nobody can foresee. */
__attribute__((noinline)) void by_chance(uint64_t n)
{
	static uint64_t s = 88172645463325252u;

	for (; n; n--) {
		s ^= s << 13;
		s ^= s >> 7;
		s ^= s << 17;
		if (s & 0x100)
			slow(n);
		else
			fast(n);
	}
}

int main(int argc, char **argv)
{
	clock_t end = atof(argv[argc - 1]) * CLOCKS_PER_SEC;

	while (clock() < end) {
		in_turn(2000);
		by_chance(2000);
	}
	return 0;
}
END
cc -O1 -fcf-protection=none -o "$work/ways" "$work/ways.c"

# moves_from ROUTINE NAME…: "SYMBOL COUNT" of the moves that led from within the routine to the first
# instruction of each. Offsets of a profile are the file's; here they are its addresses less a constant.
moves_from()
{
	local text
	text=$(readelf -SW "$work/ways" | awk '{ sub(/^ *\[ *[0-9]+\] */, "") } $1 == ".text" { print $3, $4 }')
	"$DCPI_BUILD/tests/moves" "$db" ways >"$work/moves"
	nm -S "$work/ways" | awk -v text="$text" -v of="$1" -v names="${*:2}" '
		function number(hex,  i, v) {
			for (i = 1; i <= length(hex); i++)
				v = v * 16 + index("0123456789abcdef", substr(hex, i, 1)) - 1
			return v
		}
		BEGIN { split(text, t, " "); less = number(t[1]) - number(t[2]) }
		NR == FNR && NF == 4 {
			at[$4] = number($1) - less
			if ($4 == of) { from = at[of]; end = from + number($2) }
			next
		}
		NR != FNR && $2 != "-" && $3 != "-" && number($2) >= from && number($2) < end { to[number($3)] += $4 + $5 }
		END { n = split(names, name, " "); for (i = 1; i <= n; i++) print name[i], to[at[name[i]]] + 0 }
	' - "$work/moves"
}

# traces_hold: each trace received is stored, or lost by one name. Sets $windows, the stored ones.
traces_hold()
{
	"$DCPI_BIN/dcpictl" status -json | tr ',{}' '\n\n\n' | awk -F: '
		{ gsub(/"/, "", $1) }
		$1 == "window_losses" { inside = 1; next }
		$1 == "window_ends" { inside = 0 }
		inside && $2 != "" { lost += $2 }
		$1 ~ /^windows_/ { v[$1] = $2 }
		END { print v["windows_received"] + 0, v["windows_stored"] + 0, v["windows_pending"] + 0, lost + 0 }' >"$work/account"
	read -r received windows pending lost <"$work/account"
	echo "windows: received $received, stored $windows, pending $pending, lost $lost"
	[ "$received" = $((windows + pending + lost)) ] || fail "windows are missing"
}

start_daemon -vwindows 1 -rate 2000
"$work/ways" 1.5
"$DCPI_BIN/examples/hello" 1 >/dev/null
"$DCPI_BIN/dcpiflush" >/dev/null
traces_hold
# 6000 samples of CPU time; on a busy machine a part of it is others'.
[ "$windows" -gt 1000 ] || fail "only $windows windows"

# Each is called as often as the others. A window has several turns of the loop; where it begins or ends
# within one, it tells of one routine more than of another: with 64 instructions to 20 a turn that is at
# most one in three, and evenly spread over the turn a few in a hundred.
moves_from in_turn one two three >"$work/turn"
cat "$work/turn"
awk '{ n[$1] = $2; sum += $2 }
	END { for (i in n) if (n[i] < sum / 3 * 0.85 || n[i] > sum / 3 * 1.15) exit 1; exit sum < 300 }' "$work/turn" ||
	fail "the way in turn"

# Half of the calls, though all but all of the time is the slow one's. Of n calls the share has a standard
# deviation of 50/sqrt(n) points, and calls of one window are of one stretch of time: 500 calls or more
# give 2.3 points at most. Four of these are 9.
moves_from by_chance slow fast >"$work/chance"
cat "$work/chance"
calls=$(awk '{ sum += $2 } END { print sum }' "$work/chance")
[ "$calls" -gt 500 ] || fail "only $calls calls"
within "share of the slow one" "$(awk '$1 == "slow" { s = $2 } { sum += $2 } END { print 100 * s / sum }' "$work/chance")" 50 9

# hello has ended. Its routines are one loop each: of what moves within their image, all but all is from
# the branch at offset 3 of a routine back to its start.
"$DCPI_BUILD/tests/moves" "$db" hello >"$work/dyn"
awk '$2 != "-" && $3 != "-" {
		sum += $4 + $5
		if (substr($2, length($2)) == "3" && substr($3, length($3)) == "0") back += $4 + $5
	}
	END { print "dynamic: " back " of " sum " moves go round"; exit !(sum > 1000 && back > 0.99 * sum) }' "$work/dyn" ||
	fail "the way of dynamic code"
stop_daemon
