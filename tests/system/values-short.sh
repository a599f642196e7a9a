#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Values of a program that lives 20 ms, 200 times: it has ended long before dcpid hears of what passed in it,
# and yet they are known, with the places that they were called from.
# VALUES_TIMES: how often it runs (200).
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
[ "$(uname -m)" = x86_64 ] || {
	echo "skip: windows are followed on x86-64 only"
	exit 77
}
times=${VALUES_TIMES:-200}

# r8 is 0x222 where mix was called by left, three times, and 0x444 where by right, once. A value of mix's first
# instruction is of a window that began sixteen instructions before it at least, so before the call; and no
# window is so long that it sees it come back: where that is only the process's mappings tell.
cat >"$work/brief.c" <<'END'
#include <time.h>

void left(void);
void right(void);

__asm__(".text\n"
	".macro routine name\n .globl \\name\n .type \\name, @function\n \\name:\n .endm\n"
	".macro routine_end name\n .size \\name, . - \\name\n .endm\n"
	".macro caller name argument\n"
	"routine \\name\n .rept 60\n add $1, %rax\n .endr\n mov $\\argument, %edi\n call mix\n"
	"after_\\name: ret\n routine_end \\name\n"
	".endm\n"
	"routine mix\n lea (%rdi,%rdi), %r8\n mov $60, %ecx\n"
	"1: add %r8, %rax\n dec %ecx\n jnz 1b\n ret\n routine_end mix\n"
	"caller left 0x111\n"
	"caller right 0x222\n");

int main(void)
{
	while (clock() < CLOCKS_PER_SEC / 50)
		for (int i = 0; i < 1000; i++) {
			__asm__ volatile("call left\n call left\n call left\n call right"
					 : : : "rax", "rcx", "rdi", "r8", "cc", "memory");
		}
	return 0;
}
END
cc -O1 -fcf-protection=none -mno-red-zone -o "$work/brief" "$work/brief.c"

# Offsets of a profile are the file's; here they are its addresses less a constant.
offset_of()
{
	local text
	text=$(readelf -SW "$work/brief" | awk '{ sub(/^ *\[ *[0-9]+\] */, "") } $1 == ".text" { print "0x" $3, "0x" $4 }')
	printf '0x%012x\n' $((0x$(nm "$work/brief" | awk -v n="$1" '$3 == n { print $1 }') - ${text% *} + ${text#* }))
}

start_daemon -rate 2000 -vprof -vcontext -vwindows 1
# On a busy machine values' process has little time: more of them.
nr_of_mix()
{
	"$DCPI_BIN/dcpivcat" -image brief -profiler values >"$work/values" 2>/dev/null || return 0
	awk -v at="$(offset_of mix)" '$1 == at { n += $4 } END { print n + 0 }' "$work/values"
}
for ((round = 0; round < 8 * times / 50; round++)); do
	for ((i = 0; i < 50; i++)); do
		"$work/brief"
	done
	"$DCPI_BIN/dcpiflush" >/dev/null
	[ $((round + 1)) -lt $((times / 50)) ] || [ "$(nr_of_mix)" -le 400 ] || break
done

# Each window received is stored, or lost by one name.
"$DCPI_BIN/dcpictl" status -json >"$work/status"
read -r received accounted <<<"$(tr ',{}' '\n\n\n' <"$work/status" | awk -F: '
	{ gsub(/"/, "", $1) }
	$1 == "window_losses" { inside = 1; next }
	$1 == "window_ends" { inside = 0 }
	inside && $2 != "" { sum += $2 }
	$1 == "windows_received" { received = $2 + 0 }
	$1 == "windows_stored" || $1 == "windows_pending" { sum += $2 }
	END { print received, sum + 0 }')"
echo "windows: received $received, accounted for $accounted"
[ "$received" = "$accounted" ] || fail "windows are missing"
stop_daemon

"$DCPI_BIN/dcpivcat" -image brief -profiler values >"$work/values"
awk -v at="$(offset_of mix)" -v left="$(offset_of after_left)" -v right="$(offset_of after_right)" '
	function plain(hex) { sub(/^0x0*/, "0x", hex); return hex }
	$1 == "context" { image[$2] = $4 }
	$1 != at { next }
	{
		n += $4
		split($2, from, "+")
		caller = image[from[1]] ~ /(^|\/)brief$/ ? plain(from[2]) : ""
		if (caller == plain(left)) who = "left"
		else if (caller == plain(right)) who = "right"
		else who = "unknown"
		calls[who] += $4
		if ((who == "left" && (NF != 7 || $7 !~ /^0x222:/)) || (who == "right" && (NF != 7 || $7 !~ /^0x444:/)))
			wrong = wrong "\n" $0
	}
	END {
		printf "values %d: called by left %d, by right %d, from nobody knows where %d\n", n, calls["left"], calls["right"], calls["unknown"]
		if (wrong) print "another caller\047s:" wrong
		print n + 0, calls["right"] + 0, calls["unknown"] + 0, wrong != "" >"/dev/stderr"
	}' "$work/values" 2>"$work/sums"
read -r n right unknown wrong <"$work/sums"
[ "$n" -gt 300 ] || { cat "$work/values" >&2; fail "only $n values of mix"; }
[ "$wrong" = 0 ] || fail "a value has a caller that is not its own"
# A life whose end was lost with others' events could not be followed.
[ "$unknown" -le $((n / 50)) ] || fail "of $unknown of $n values it is not known who called"
# A quarter, in windows drawn by time from two routines of the same code: five standard deviations.
within "share of right" "$(awk -v r="$right" -v n="$n" -v u="$unknown" 'BEGIN { print 100 * r / (n - u) }')" 25 \
	"$(awk -v n="$n" 'BEGIN { printf "%.1f", 216 / sqrt(n) }')"
