#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# LLVM as it is, by lli: the jitdump that its listener writes is followed while it runs. Everything is read
# after the process is gone and its files are removed.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/runtime.sh"
need_root
need_runtime lli
need_runtime clang

cd "$work" || exit 1
clang -O1 -g -emit-llvm -c -o hot.bc "$DCPI_SRC/tests/support/llvm_hot.c" || fail "clang"
start_daemon -unknown
mkdir "$work/dumps"
JITDUMPDIR=$work/dumps lli --jit-kind=mcjit hot.bc >"$work/truth" || fail "lli"
sleep 1
rm -rf "$work/dumps"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
shares_hold lli "$work/truth"
mostly_named lli "lli: dynamic, unnamed" 98

# "OFFSET BYTES LINE" of each instruction of hot_a: as lli ran it, and as the same compiler puts it into a
# file (there are no addresses in it that could differ).
"$DCPI_BIN/dcpilist" -asm -bytes -no_header hot_a lli | awk '
	/ ; / { sub(/.*:/, ""); line = $1 }
	match($0, /0x[0-9a-f]+ [+]0x/) { $0 = substr($0, RSTART); sub(/^[+]0x/, "", $2); print $2, $3, line }' >"$work/listed"
llc -filetype=obj -o hot.o hot.bc || fail "llc"
begin=$(nm hot.o | awk '$3 == "hot_a" { print $1 }')
objdump -d -l --insn-width=16 --disassemble=hot_a hot.o | awk -v begin="$begin" '
	function hex(s, i, n) {
		for (i = 1; i <= length(s); i++) n = 16 * n + index("0123456789abcdef", substr(s, i, 1)) - 1
		return n
	}
	/:[0-9]+$/ { sub(/.*:/, ""); line = $1 }
	/^ +[0-9a-f]+:\t/ {
		split($0, part, "\t")
		gsub(/[ :]/, "", part[1])
		gsub(/ /, "", part[2])
		printf "%x %s %s\n", hex(part[1]) - hex(begin), part[2], line
	}' | head -n "$(wc -l <"$work/listed")" >"$work/compiled"
echo "hot_a: $(wc -l <"$work/listed") instructions"
[ "$(wc -l <"$work/listed")" -gt 20 ] || fail "hot_a has no instructions"
diff "$work/listed" "$work/compiled" || fail "not the instructions and lines that the compiler made"
dyn=$(echo "$db"/dyn/lli-*.dyn)
nm "$dyn" | grep -q ' hot_b$' || fail "nm does not show hot_b"
stop_daemon
