#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Values of a real daemon: a load whose values are known by their shares; relations between the values of
# one window, by a profiler of the test's own; a JIT that puts other constants at one address every 10 ms,
# whose process is gone when its values and arguments are read.
# VALUES_SECONDS: how long each program runs (2).
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
[ "$(uname -m)" = x86_64 ] || {
	echo "skip: windows are followed on x86-64 only"
	exit 77
}
seconds=${VALUES_SECONDS:-2}

cat >"$work/shares.c" <<'END'
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static uint64_t values[200], sink[8];

/* What it loads is 0x11 in 60 % of its turns, 0x22 in 25, 0x33 in 10, 0x44 in 5. */
__attribute__((noinline)) void draw(uint64_t n)
{
	static uint64_t s = 88172645463325252u;

	for (; n; n--) {
		s ^= s << 13;
		s ^= s >> 7;
		s ^= s << 17;
		__asm__ volatile("mov (%0, %1, 8), %%r12\n\t"
				 "lea (%%r12, %%r12, 2), %%r13\n\t"
				 "mov %%r13, (%2)"
				 : : "r"(values), "r"((s >> 20) % 200), "r"(sink + n % 8)
				 : "r12", "r13", "memory");
	}
}

int main(int argc, char **argv)
{
	clock_t end = atof(argv[argc - 1]) * CLOCKS_PER_SEC;

	for (int i = 0; i < 200; i++)
		values[i] = i < 120 ? 0x11 : i < 170 ? 0x22 : i < 190 ? 0x33 : 0x44;
	while (clock() < end)
		draw(10000);
	return 0;
}
END
cc -O2 -fcf-protection=none -o "$work/shares" "$work/shares.c"

# Nobody else may be able to write what the daemon loads.
cp "$DCPI_BUILD/tests/vp_relations.so" "$work"
chmod 755 "$work" "$work/vp_relations.so"
start_daemon -rate 2000 -vprof -vtrace "$work/vp_relations.so" -vwindows 1
# How many values of its load the program has shown, and which of the JIT's routines have some of both.
nr_of_load()
{
	"$DCPI_BIN/dcpivlst" -no_freq -vcutoff 0 draw shares >"$work/draw" || return 0
	sed -nE 's/.* movq +\(.*%r12 +([0-9]+) .*/\1/p' "$work/draw"
}
all_routines()
{
	for i in 0 1 2 3 4 5 6 7; do
		"$DCPI_BIN/dcpivlst" -no_freq -no_header c_$i values >"$work/c_$i" || return 1
		[ "$(grep -c ' 1  e[ad]x: (' "$work/c_$i")" = 2 ] || return 1
	done
}

# On a busy machine windows come late, or values' process has no time: more of both.
for i in 1 2 3 4 5 6 7 8; do
	"$work/shares" "$seconds"
	"$DCPI_BIN/dcpiflush" >/dev/null
	n=$(nr_of_load)
	[ "${n:-0}" -le 2000 ] || break
done
for i in 1 2 3 4 5 6 7 8; do
	"$DCPI_BUILD/tests/jit_values" 10 $((100 * seconds))
	"$DCPI_BIN/dcpiflush" >/dev/null
	! all_routines || break
done
# Of values the status says what became of them, as of samples.
"$DCPI_BIN/dcpictl" status | tee "$work/status" | grep '^values  *windows answered [1-9][0-9]*, waiting [0-9]*, lost [0-9]*; values stored [1-9]' ||
	{ cat "$work/status" >&2; fail "the status does not tell of values"; }
stop_daemon

# shares_of TEXT: "VALUE PERCENT" of a line "… register: (60.0% 0x11) (25.0% 0x22) …".
shares_of()
{
	sed 's/^[^(]*([^%]*[^(]*$//' | grep -o '([0-9.]*% [0-9a-fx]*)' | tr -d '(%)' | awk '{ print $2, $1 }'
}

# Values are independent of one another and of time. Of n the greatest standard deviation of a share is
# 50/sqrt(n) points; five of these, and half a point for what slow paths hide.
grep ' movq  *(.*%r12' "$work/draw" | sed 's/.*r12: //' >"$work/load"
cat "$work/load"
[ "${n:-0}" -gt 2000 ] || { cat "$work/draw" >&2; fail "only '$n' values of the load"; }
bound=$(awk -v n="$n" 'BEGIN { printf "%.2f", 0.5 + 250 / sqrt(n) }')
for known in 0x11:60 0x22:25 0x33:10 0x44:5; do
	share=$(shares_of <"$work/load" | awk -v v=${known%:*} '$1 == v { print $2 }')
	within "share of ${known%:*}" "${share:-0}" ${known#*:} "$bound"
done

# Every instruction of the loop that has a result has values, if only some of which none stands out.
awk '/ (shlq|shrq|movq|leaq|xorq|imulq|subq|addq|andl|decq|jne) / && !/ [0-9]+ +[0-9]+ +[0-9]+  [a-z0-9]+: / { none = none "\n" $0 }
	END { if (none || NR < 20) { print NR " instructions, without values:" none; exit 1 } }' <(sed -n '/shlq/,/ jne /p' "$work/draw") ||
	fail "instructions of the loop have no values"

# Each relation holds, in thousands of windows.
"$DCPI_BIN/dcpivcat" -image shares -profiler vp-relations >"$work/relations" ||
	fail "dcpivcat"
awk '$4 ~ /^[0-9]+$/ { sum += $4; if ($0 !~ / 0x1:[0-9]+:[0-9]+$/ || $6 != 1) broken++ }
	END { print "relations: " sum + 0 ", at instructions where one is broken: " broken + 0; exit !(sum > 5000 && !broken) }' \
	"$work/relations" || { cat "$work/relations" >&2; fail "relations between values"; }

# No constant of one routine in another; no instruction of theirs without. And what each was called with.
"$DCPI_BIN/dcpivarg" -arg_terse -no_header values >"$work/args"
for i in 0 1 2 3 4 5 6 7; do
	"$DCPI_BIN/dcpivlst" -no_freq -no_header c_$i values >"$work/c_$i"
	for constant in eax:$((0x1000 * (i + 1))) edx:$((0x1000 * (i + 1) + 1 + 7 * i + 1000)); do
		want="$(printf '%s: (100.0%% %#x)' "${constant%:*}" "${constant#*:}")"
		grep -q " 1  $want\$" "$work/c_$i" || { cat "$work/c_$i" >&2; fail "c_$i has not '$want' alone"; }
	done
	grep -q " c_$i(rdi 100.0% $(printf '%#x' $((7 * i + 1000)))" "$work/args" ||
		{ cat "$work/args" >&2; fail "the argument of c_$i"; }
done
cat "$work/args"
