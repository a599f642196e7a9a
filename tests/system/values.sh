#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Values of a real daemon: loads whose values are known by their shares, in a program and in code that it makes
# while it runs; relations between the values of one window, by a profiler of the test's own; a JIT that puts
# other constants at one address every 10 ms. Their processes are gone when values and arguments are read.
# VALUES_SECONDS: how long each program runs (2). DCPI_COUNT: relations to check (5000; "scripts/test --long values"
# checks 100,000, with 30,000 values of each load of the program, and 10,000 of the made code: within 2 and 3 points).
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
[ "$(uname -m)" = x86_64 ] || {
	echo "skip: windows are followed on x86-64 only"
	exit 77
}
seconds=${VALUES_SECONDS:-2} count=${DCPI_COUNT:-5000}
declare -A least=([shares]=$((count * 3 / 10)) [drawn]=$((count / 10))) # values of each load

cat >"$work/shares.c" <<'END'
#include <dbgdyn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct state {
	uint64_t random, values[200], ways[2], sink[8];
};

/* Each in a section of its own, and free of addresses, to be copied. */
#define LOOP(name) __attribute__((noinline, section(#name "_code"))) void name(uint64_t n, struct state *s)
#define DRAW(s) (s->random ^= s->random << 13, s->random ^= s->random >> 7, s->random ^= s->random << 17)

/* What it loads is 0x11 in 60 % of its turns, 0x22 in 25, 0x33 in 10, 0x44 in 5. */
LOOP(draw)
{
	for (; n; n--) {
		DRAW(s);
		__asm__ volatile("mov (%0, %1, 8), %%r12\n\t"
				 "lea (%%r12, %%r12, 2), %%r13\n\t"
				 "mov %%r13, (%2)"
				 : : "r"(s->values), "r"((s->random >> 20) % 200), "r"(s->sink + n % 8)
				 : "r12", "r13", "memory");
	}
}

/* What it loads is 0x55 in half of its turns, but those take most of the time. */
LOOP(choose)
{
	for (; n; n--) {
		uint64_t way = DRAW(s) >> 20 & 1;

		__asm__ volatile("mov (%0, %1, 8), %%r12" : : "r"(s->ways), "r"(way) : "r12", "memory");
		if (way)
			s->sink[0] = s->sink[0] / (n | 3) / (n | 5) / (n | 7) + n;
		else
			s->sink[0] += n;
	}
}

typedef void loop(uint64_t n, struct state *s);

/* A copy of it, announced. */
static loop *made(dbgdyn_context context, unsigned char *at, const char *name, const unsigned char *code,
		  const unsigned char *end)
{
	struct dbgdyn_routine r = { .size = sizeof(r), .name = { name, strlen(name) },
				    .code = at, .code_len = (size_t)(end - code) };

	memcpy(at, code, r.code_len);
	dbgdyn_register(context, &r, NULL);
	return (loop *)(void *)at;
}

extern const unsigned char __start_draw_code[], __stop_draw_code[], __start_choose_code[], __stop_choose_code[];

int main(int argc, char **argv)
{
	unsigned char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	clock_t end = atof(argv[argc - 1]) * CLOCKS_PER_SEC;
	struct state s = { .random = 88172645463325252u, .ways = { 0x66, 0x55 } };
	dbgdyn_context context;
	loop *loops[4] = { draw, choose };

	if (at == MAP_FAILED || dbgdyn_begin("drawn", 5, NULL, &context) < 0)
		return 1;
	loops[2] = made(context, at, "draw", __start_draw_code, __stop_draw_code);
	loops[3] = made(context, at + 4096, "choose", __start_choose_code, __stop_choose_code);
	for (int i = 0; i < 200; i++)
		s.values[i] = i < 120 ? 0x11 : i < 170 ? 0x22 : i < 190 ? 0x33 : 0x44;
	/* More of what was made: it waits for its translation in each process. */
	for (int i = 0; clock() < end; i++)
		loops[i % 4]((i % 2 ? 2000 : 10000) << (i & 2) / 2, &s);
	return dbgdyn_end(context) < 0;
}
END
cc -O2 -fcf-protection=none -I"$DCPI_SRC/include" -o "$work/shares" "$work/shares.c" -L"$DCPI_BUILD/lib" -ldbgdyn \
	-Wl,-rpath,"$DCPI_BUILD/lib"

# Nobody else may be able to write what the daemon loads.
cp "$DCPI_BUILD/tests/vp_relations.so" "$work"
chmod 755 "$work" "$work/vp_relations.so"
start_daemon -rate 2000 -vprof -vtrace "$work/vp_relations.so" -vwindows 1
# The loops of the program, and of its code that it made: what was seen there, and how many values of their loads.
loops="draw/shares choose/shares draw/drawn choose/drawn"
list_loop() { "$DCPI_BIN/dcpivlst" -no_freq -vcutoff 0 "${1%/*}" "${1#*/}" >"$work/${1/\//-}"; }
nr_of_load() { sed -nE 's/.* movq +\(.*%r12 +([0-9]+) .*/\1/p' "$work/${1/\//-}"; }
nr_of_relations()
{
	for image in shares drawn; do
		"$DCPI_BIN/dcpivcat" -image "$image" -profiler vp-relations || return 1
	done >"$work/relations"
	awk '$4 ~ /^[0-9]+$/ { sum += $4 } END { print sum + 0 }' "$work/relations"
}
enough()
{
	local loop n
	for loop in $loops; do
		list_loop "$loop" || return 1
		n=$(nr_of_load "$loop")
		[ "${n:-0}" -ge "${least[${loop#*/}]}" ] || return 1
	done
	n=$(nr_of_relations) || return 1
	[ "$n" -ge "$count" ]
}
# Which of the other JIT's routines have some of both.
all_routines()
{
	for i in 0 1 2 3 4 5 6 7; do
		"$DCPI_BIN/dcpivlst" -no_freq -no_header c_$i values >"$work/c_$i" || return 1
		[ "$(grep -c ' 1  e[ad]x: (' "$work/c_$i")" = 2 ] || return 1
	done
}

# On a busy machine windows come late, values' process has no time, and new code waits for its translation: more, and
# in longer runs.
for i in 1 2 3 4 5 6; do
	"$work/shares" $((seconds * i))
	"$DCPI_BIN/dcpiflush" >/dev/null
	! enough || break
done
for i in 1 2 3 4 5 6 7 8; do
	"$DCPI_BUILD/tests/jit_values" 10 $((100 * seconds))
	"$DCPI_BIN/dcpiflush" >/dev/null
	! all_routines || break
done
# Of values the status says what became of them, as of samples.
"$DCPI_BIN/dcpictl" status | tee "$work/status" | grep '^values  *traces answered [1-9][0-9]*, waiting [0-9]*, lost [0-9]*; values stored [1-9]' ||
	{ cat "$work/status" >&2; fail "the status does not tell of values"; }
stop_daemon

# shares_of TEXT: "VALUE PERCENT" of a line "… register: (60.0% 0x11) (25.0% 0x22) …".
shares_of()
{
	sed 's/^[^(]*([^%]*[^(]*$//' | grep -o '([0-9.]*% [0-9a-fx]*)' | tr -d '(%)' | awk '{ print $2, $1 }'
}

# shares_hold LOOP VALUE:PERCENT…: values are independent of one another and of time. Of n the greatest standard
# deviation of a share is 50/sqrt(n) points; five of these, and half a point for what slow paths hide.
shares_hold()
{
	local loop=$1 n known share bound
	shift
	n=$(nr_of_load "$loop")
	[ "${n:-0}" -ge "${least[${loop#*/}]}" ] || { cat "$work/${loop/\//-}" >&2; fail "only '$n' values of the load in $loop"; }
	grep ' movq  *(.*%r12' "$work/${loop/\//-}" | sed 's/.*r12: //' >"$work/load"
	bound=$(awk -v n="$n" 'BEGIN { printf "%.2f", 0.5 + 250 / sqrt(n) }')
	for known; do
		share=$(shares_of <"$work/load" | awk -v v="${known%:*}" '$1 == v { print $2 }')
		within "$loop, share of ${known%:*} in $n" "${share:-0}" "${known#*:}" "$bound"
	done
}

# Every instruction of a loop that has a result has values, if only some of which none stands out.
all_have_values()
{
	awk -v least="$2" '
		/ (shlq|shrq|movq|leaq|xorq|imulq|subq|addq|andl|decq|jne) / && !/ [0-9]+ +[0-9]+ +[0-9]+  [a-z0-9]+: / { none = none "\n" $0 }
		END { if (none || NR < least) { print NR " instructions, without values:" none; exit 1 } }' \
		<(sed -n '/shlq/,/ jne /p' "$work/${1/\//-}") || fail "instructions of $1 have no values"
}

for image in shares drawn; do
	shares_hold draw/$image 0x11:60 0x22:25 0x33:10 0x44:5
	all_have_values draw/$image 20
	shares_hold choose/$image 0x55:50 0x66:50
	all_have_values choose/$image 10
done

# Each relation holds, in thousands of windows.
nr=$(nr_of_relations) || fail "dcpivcat"
broken=$(awk '$4 ~ /^[0-9]+$/ && ($0 !~ / 0x1:[0-9]+:[0-9]+$/ || $6 != 1)' "$work/relations")
echo "relations: $nr, at instructions where one is broken: $(echo -n "$broken" | grep -c '')"
[ "$nr" -ge "$count" ] && [ -z "$broken" ] || { cat "$work/relations" >&2; fail "relations between values"; }

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
