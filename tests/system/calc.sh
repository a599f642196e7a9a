#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A JIT with known truth: calc runs three routines that do 60, 30 and 10 % of its work, and says what
# share of its time that was (the same loop at another address can be slower by a fifth). After it
# is gone dcpiprof shows these shares within 3 points; of its own samples fewer than 1 % are unknown,
# of the machine's fewer than 3 %; and received = stored + lost to the sample.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root

start_daemon -unknown
"$DCPI_BIN/calc" -time 5 -shares "$DCPI_SRC/examples/jit/calc/shares.calc" >"$work/said" || fail "calc"
"$DCPI_BIN/dcpictl" flush || fail "flush"
"$DCPI_BIN/dcpictl" status >"$work/status"
stop_daemon
cat "$work/said"

# At 1,000 samples a second on the CPU that calc keeps busy, 5 s give about 5,000 samples, so the
# standard deviation of a share is at most sqrt(0.6 * 0.4 / 5000) = 0.7 points: 3 points are 4 of them.
# A virtual CPU whose timer comes late gives fewer; 2,500 still leave 3 standard deviations.
"$DCPI_BIN/dcpiprof" -no_header calc >"$work/calc"
cat "$work/calc"
share() { awk -v p="$1" '$NF ~ /^calc\[/ && $(NF - 1) == p { n += $1 } $NF == "total" { t = $1 } END { print t ? 100 * n / t : "" }' "$work/calc"; }
awk '$NF == "total" { exit $1 < 2500 }' "$work/calc" || fail "too few samples to judge"
for routine in sixty thirty ten; do
	within $routine "$(share $routine)" "$(awk -v p=$routine '$1 == "share" && $2 == p { print $3 }' "$work/said")" 3
done

# Samples in no image: calc's own by its pid from the log, the machine's from the profile.
"$DCPI_BIN/dcpiprof" -no_header >"$work/all"
pid=$(sed -nE 's/.* calc\[([0-9]+)\]$/\1/p' "$work/calc" | sed -n 1p)
own=$(awk -v p="$pid" '/ samples of pid / && $0 ~ " pid " p " " { for (i = 2; i <= NF; i++) if ($i == "samples") n += $(i - 1) }
	END { print n + 0 }' "$work/log")
unknown=$(awk '/\(unknown|\(dynamic, unknown|\(reused/ { n += $1 } END { print n + 0 }' "$work/all")
total=$(awk '$NF == "total" { print $1 }' "$work/all")
calc=$(awk '$NF == "total" { print $1 }' "$work/calc")
echo "unknown: $own beside $calc in calc's routines, $unknown of $total on the machine"
[ $((own * 100)) -lt "$calc" ] || fail "unknown samples reach 1 % of calc's"
[ $((unknown * 100)) -lt $((total * 3)) ] || fail "unknown samples reach 3 % of the machine's"

# The law, as the daemon stood after the flush (pending is what came since).
grep '^samples ' "$work/status"
awk '$1 == "samples" { exit !($3 > 2500 && $3 == $6 + $9 + $12) }' "$work/status" || fail "samples do not sum"

# The pseudo-image: every tool that reads ELF shows the routine, its bytes and lines.
image=$(echo "$db"/dyn/calc-*.dyn)
eu-elflint --gnu-ld "$image"
readelf -SsW "$image" >"$work/readelf" 2>&1
! grep -i warning "$work/readelf" || fail "readelf warns"
addr=$(awk '$NF == "sixty" { print $2 }' "$work/readelf")
size=$(awk '$NF == "sixty" { print $3 }' "$work/readelf")
addr2line -f -e "$image" "0x$addr" | tee "$work/line" | grep -c '^sixty$' >/dev/null || fail "addr2line"
grep -q 'shares.calc:[0-9]' "$work/line" || fail "addr2line knows no line"
objdump -d "$image" >"$work/objdump"
grep -q '<sixty>:' "$work/objdump" || fail "objdump"
gdb -batch -ex 'disassemble sixty' "$image" >"$work/gdb" 2>&1
grep -q 'End of assembler dump' "$work/gdb" || fail "gdb does not disassemble sixty"
gdb -batch -ex 'info line sixty' "$image" 2>&1 | grep -c 'shares.calc' >/dev/null || fail "gdb knows no line"
echo "sixty: $size bytes at 0x$addr, $(grep -c '^ .*<+' "$work/gdb") instructions in gdb"

"$DCPI_BIN/dcpilist" -both sixty calc >"$work/list"
grep -q 'x = x \* 3 + i' "$work/list" || fail "dcpilist shows no source"
