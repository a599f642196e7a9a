#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpikdiff: the running kernel's code is kept without true addresses and found by the tools; where the kernel
# patches itself, and where a file of it differs, is told, to the procedure and the byte.
set -eu -o pipefail
fail()
{
	echo "FAILED: $*" >&2
	exit 1
}
[ "$(id -u)" = 0 ] || {
	echo "skip: needs root to read the kernel"
	exit 77
}
work=$(mktemp -d)
knob=/proc/sys/kernel/bpf_stats_enabled
before=$(cat $knob 2>/dev/null || echo none)
trap '[ "$before" = none ] || echo "$before" >$knob; rm -rf "$work"' EXIT
export DCPIDB=$work/$'db\e[31m' # a terminal would obey
kdiff=$DCPI_BIN/dcpikdiff
"$DCPI_BIN/../tests/mkdb" "$DCPIDB" </dev/null
[ "$before" = none ] || echo 0 >$knob
"$kdiff" >"$work/out" 2>"$work/err" || {
	grep -q 'cannot read the kernel' "$work/err" || fail "$(cat "$work/err")"
	echo "skip: the kernel's memory cannot be read here"
	exit 77
}
cat "$work/out"
! grep -q $'\e' "$work/out" || fail "control characters of a name"
grep -q '^compared   with nothing' "$work/out" || fail "compared with what?"
text=$(ls "$DCPIDB"/kernel/vmlinux-*.text)
[ "$(stat -c %a "$text")" = 640 ] || fail "mode of the code"

# No true address of a routine stands in it, wherever.
awk '$2 ~ /^[tT]$/ && n++ < 300 { print $1 }' /proc/kallsyms |
	sed -E 's/(..)(..)(..)(..)(..)(..)(..)(..)/\\x\8\\x\7\\x\6\\x\5\\x\4\\x\3\\x\2\\x\1/' | sort -u >"$work/addresses"
[ "$(wc -l <"$work/addresses")" -gt 100 ] || fail "no addresses to look for"
any=$(paste -sd '|' "$work/addresses")
printf "$(head -n 1 "$work/addresses")" | LC_ALL=C grep -caP "$any" >/dev/null || fail "an address is not found"
! LC_ALL=C grep -qaP "$any" "$text" || fail "true addresses are in it"

# The tools disassemble it, offsets instead of addresses.
"$DCPI_BIN/dcpidis" "$text" schedule >"$work/dis"
grep -q 'ret\|jmp\|b ' "$work/dis" || fail "no code: $(head -n 5 "$work/dis")"

# bytes PROCEDURE: in what was printed.
bytes() { awk -v name="$1" '$2 == name { n += $1 } END { print n + 0 }' "$work/out"; }

# Statistics of BPF programs are behind a static key, in each place that runs one.
if [ "$before" != none ]; then
	echo 1 >$knob
	"$kdiff" -n >"$work/out"
	[ "$(bytes bpf_prog_test_run_syscall)" -gt 0 ] || fail "no patch: $(cat "$work/out")"
	grep -q ' bpf_prog_test_run_syscall  *static key 1$' "$work/out" || fail "the cause: $(cat "$work/out")"
	[ "$(bytes schedule)" = 0 ] || fail "schedule differs: $(cat "$work/out")"
	echo "$(bytes total) bytes were patched"
	echo 0 >$knob
fi

# A file of the kernel: what was kept with its build-id, and one byte of it changed. (Shown twice, a few routines with
# data between their code differ: so only those two that have none are looked at.)
id=$(sed -n 's/.*build-id //p' "$work/out")
printf '\4\0\0\0\24\0\0\0\3\0\0\0GNU\0' >"$work/note"
echo "$id" | sed 's/../\\x&/g' | xargs -0 -I{} printf '{}' | head -c 20 >>"$work/note"
cp "$text" "$work/vmlinux"
"$kdiff" -n -k "$work/vmlinux" 2>"$work/err" && fail "another build-id is taken"
grep -q 'not the running kernel' "$work/err" || fail "$(cat "$work/err")"
objcopy --update-section ".note.gnu.build-id=$work/note" "$text" "$work/vmlinux" 2>/dev/null
# The first byte of schedule becomes another.
symbol=0x$(readelf -sW "$work/vmlinux" | awk '$8 == "schedule" { at = $2 } END { print at }')
seek=
while read -r _ off vaddr _ size _; do
	[ $((symbol)) -lt $((vaddr)) ] || [ $((symbol)) -ge $((vaddr + size)) ] || seek=$((off + symbol - vaddr))
done < <(readelf -lW "$work/vmlinux" | grep '^  LOAD')
[ "$seek" ] || fail "no place of schedule"
byte=$(od -An -tu1 -j $seek -N 1 "$work/vmlinux")
printf "\\x$(printf %02x $(((byte + 1) % 256)))" | dd of="$work/vmlinux" bs=1 seek=$seek conv=notrunc 2>/dev/null
(unset DCPIDB && "$kdiff" -n -k "$work/vmlinux") >"$work/out" || fail "-k"
[ "$(bytes schedule)" -gt 0 ] || fail "the changed byte is not seen: $(cat "$work/out")"
[ "$(bytes bpf_prog_test_run_syscall)" = 0 ] || fail "another routine differs: $(cat "$work/out")"

# Without rights it says so.
chmod 755 "$work"
if setpriv --reuid 65534 --regid 65534 --clear-groups "$kdiff" -n 2>"$work/err" >&2; then
	fail "anybody can read the kernel"
fi
cat "$work/err"
grep -q '^hint: ' "$work/err" || fail "no hint: $(cat "$work/err")"
