#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Code that the kernel made and dropped again: a BPF program is shown by name, with its share and its
# instructions, after it is gone; so are the kernel's own routines. No file tells where the kernel lies.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
need_root

# addresses FILE: of the kernel's routines, as they would stand in its bytes, the last of which are ff.
addresses()
{
	od -An -v -tx1 "$1" | awk '
		NR == FNR { known[$1] = 1; next }
		{
			for (i = 1; i <= NF; i++) {
				last = substr(last $i, length(last) < 16 ? 1 : 3)
				if ($i != "ff" || substr(last, 9) != "ffffffff")
					continue
				at = "ffffffff"
				for (k = 7; k >= 1; k -= 2)
					at = at substr(last, k, 2)
				if (at in known)
					print at
			}
		}' /proc/kallsyms - | sort -u
}

# extent first|last: where the kernel begins and ends, its own symbols tell.
extent()
{
	awk -v which="$1" '
		$3 == "_text" { first = $1; last = $1 }
		first && NF == 3 && "x" $1 > "x" last { last = $1 }
		END { print which == "first" ? first : last }' /proc/kallsyms
}

# operands FILE: addresses of the kernel that its instructions take, as the processor extends them.
# In 32 bits, or computed otherwise, it is a number; so is how far a place is from the symbol before it.
operands()
{
	objdump -d --no-show-raw-insn "$1" | awk -v from="$(extent first)" -v to="$(extent last)" '
		{ gsub(/<[^>]*>/, "") }
		$2 ~ /^(imul|and|or|xor|test|adc|sbb)/ { next }
		match($0, /0xffffffff[0-9a-f]+/) && RLENGTH == 18 {
			at = substr($0, RSTART + 2, 16)
			if ("x" at >= "x" from && "x" at < "x" to)
				print
		}'
}

# ms FILE: of a CPU that a bpf_burn took.
ms()
{
	awk '$1 == "seconds" { printf "%d\n", 1000 * $2 }' "$work/$1"
}

unknown_kernel()
{
	"$DCPI_BIN/dcpiprof" -i 2>>"$work/notes" | awk '/unknown kernel/ { n = $1 } END { print n + 0 }'
}

start_daemon -rate 1000
# What was dropped before it came is nobody's work here.
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
before=$(unknown_kernel)
"$DCPI_BIN/../tests/bpf_burn" 3 >"$work/truth" || { cat "$work/truth"; echo "skip: BPF programs cannot be loaded"; exit 77; }
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
name=bpf_prog_$(truth "$work/truth" tag)_dcpi_burn
"$DCPI_BIN/dcpiprof" | grep -q " $name " || fail "no '$name' in $("$DCPI_BIN/dcpiprof")"
got=$(samples "$name")
# It took that much of a CPU, all but a little of it in its loop.
within "milliseconds of $name" "$got" "$(ms truth)" $((150 + $(missed)))

unknown=$(($(unknown_kernel) - before))
[ $unknown -lt $((got / 50)) ] || fail "$unknown samples in kernel code that nobody knows"

account_holds "after the flush"

# Again, loaded four times, another beside it: one image, since it is one program.
"$DCPI_BIN/../tests/bpf_burn" 1 >"$work/truth2" &
"$DCPI_BIN/../tests/bpf_burn" 1 3 >"$work/truth3" || fail "bpf_burn"
wait $!
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
[ "$(ls "$db"/dyn/$name-*.dyn | wc -l)" = 1 ] || fail "images: $(ls "$db/dyn")"
# Where it lay at several places within one another's in one interval, nobody can tell which.
within "milliseconds after the second round" "$(($(samples "$name") + $(unknown_kernel) - before))" "$(($(ms truth) + $(ms truth2) + $(ms truth3)))" $((400 + $(missed)))
stop_daemon

# Disassembled, though it is gone: the multiplication and its loop, calls by name, no addresses.
"$DCPI_BIN/dcpilist" -asm "$name" >"$work/list" || fail "dcpilist"
cat "$work/list"
for what in 'imulq *\$3' "jne *$name\\+" 'callq *bpf_ktime_get_ns' 'movabsq *\$0,'; do
	grep -qE "$what" "$work/list" || fail "no '$what' in the listing"
done
file=$(echo "$db"/dyn/$name-*.dyn)
[ "$(stat -c %a "$file")" = 640 ] || fail "mode of '$file'"
eu-elflint --gnu-ld "$file" || fail "eu-elflint"
gdb -nx -batch -ex "disassemble $name" "$file" 2>&1 | grep -q 'Dump of assembler' || fail "gdb"

# The kernel's own: a routine of the machine's hottest has its instructions.
code=$(echo "$db"/kernel/vmlinux-*.code)
[ -s "$code" ] || fail "the kernel's routines are without instructions"
[ "$(stat -c %a "$code")" = 640 ] || fail "mode of '$code'"
"$DCPI_BIN/dcpiprof" -no_header | awk '$NF ~ /^vmlinux/ { print $(NF - 1), $NF }' | head -n 8 >"$work/hottest"
nm "$db"/kernel/vmlinux-*.elf | awk '{ print $NF }' | sort | uniq -d >"$work/several"
rounds=0
while read -r routine image; do
	# A name that several routines have needs an address.
	! grep -qxF -- "$routine" "$work/several" || continue
	"$DCPI_BIN/dcpilist" -asm "$routine" "$image" >"$work/list" || fail "dcpilist $routine"
	grep -qE '[+]0x[0-9a-f]+ +[a-z]+' "$work/list" || { cat "$work/list"; fail "'$routine' without instructions"; }
	rounds=$((rounds + 1))
done <"$work/hottest"
[ "$rounds" -ge 3 ] || fail "only $rounds routines of the kernel were looked at"
for f in "$db"/kernel/*.elf "$db"/kernel/*.code "$file"; do
	[ -s "$f" ] || fail "no '$f'"
	[ -z "$(addresses "$f")" ] || fail "'$f' holds addresses: $(addresses "$f" | head -n 3)"
done
[[ "$(extent last)" > "$(extent first)" ]] || fail "nothing tells where the kernel lies"
for f in "$db"/kernel/*.code "$file"; do
	objdump -d "$f" | grep -q ret || fail "'$f' cannot be disassembled"
	[ -z "$(operands "$f")" ] || fail "'$f' holds addresses: $(operands "$f" | head -n 3)"
done
