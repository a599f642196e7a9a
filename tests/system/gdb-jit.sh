#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# GDB's JIT interface: lli as it comes, with no switch at all, lists what it compiles for a debugger, which
# nobody is. Everything is read after the process is gone.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/runtime.sh"
need_root
need_runtime lli
need_runtime clang

cd "$work" || exit 1
clang -O1 -g -emit-llvm -c -o hot.bc "$DCPI_SRC/tests/support/llvm_hot.c" || fail "clang"
llc -filetype=obj -o hot.o hot.bc || fail "llc"
start_daemon -unknown
HOME=$work lli hot.bc >"$work/truth" || fail "lli"
rm hot.bc
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
shares_hold lli "$work/truth"
mostly_named lli "lli: dynamic, unnamed" 98
as_compiled hot_a lli hot.o 20
as_compiled hot_b lli hot.o 8
dyn=$(echo "$db"/dyn/lli-*.dyn)
eu-elflint --gnu-ld "$dyn" >"$work/lint" || fail "eu-elflint: $(cat "$work/lint")"
addr=$(nm "$dyn" | awk '$3 == "hot_b" { print $1 }')
addr2line -f -e "$dyn" "0x$addr" >"$work/line"
grep -q '^hot_b$' "$work/line" || fail "addr2line: $(cat "$work/line")"
grep -q 'llvm_hot\.c:[1-9]' "$work/line" || fail "addr2line: $(cat "$work/line")"

# The same code told by two, jitdump and this: one routine, by the one that knows the times.
clang -O1 -g -emit-llvm -c -o hot.bc "$DCPI_SRC/tests/support/llvm_hot.c" || fail "clang"
"$DCPI_BIN/dcpiepoch" || fail "dcpiepoch"
JITDUMPDIR=$work lli --jit-kind=mcjit hot.bc >"$work/truth" || fail "lli"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
shares_hold lli "$work/truth"
mostly_named lli "lli: dynamic, unnamed" 98
for file in "$db"/dyn/lli-*.dyn; do
	nm "$file" | awk '$3 ~ /^hot_/ { n[$3]++ } END { exit n["hot_a"] != 1 || n["hot_b"] != 1 }' || {
		nm "$file" >&2
		fail "a routine is there twice"
	}
done
stop_daemon
