#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Counts handed on: clang takes dcpi2bb's profile, and what it then knows of a program is what its source says.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail()
{
	echo "FAILED: $*" >&2
	exit 1
}
cp "$DCPI_SRC/tests/support/feedback.c" "$work"
cd "$work"
clang -O2 -g -fdebug-info-for-profiling -o feedback feedback.c
status=0
"$DCPI_BIN/dcpix" -quiet -o feedback ./feedback >out || status=$?
[ "$status" -le 1 ] && [ -s out ] || fail "the program: $status"

# ---- a compiler's ----------------------------------------------------------------------------------
"$DCPI_BIN/dcpi2bb" -xct feedback.xct -o feedback.prof ./feedback
cat feedback.prof
llvm-profdata show -sample feedback.prof >shown
grep -q '^Function: work: ' shown || fail "llvm-profdata: $(cat shown)"
clang -O2 -gline-tables-only -fprofile-sample-use=feedback.prof -S -emit-llvm -o used.ll feedback.c
# what NAME: the text of the metadata that a line of used.ll refers to behind "!prof".
metadata()
{
	local n
	n=$(sed -n "s/.*$1.*!prof !\([0-9]*\).*/\1/p" used.ll | sed -n 1p)
	[ -n "$n" ] && sed -n "s/^!$n = //p" used.ll
}
# LLVM adds one to each. It was called once, "plus" 1,000 times.
[ "$(metadata 'define.*@work(')" = '!{!"function_entry_count", i64 2}' ] || fail "work: $(metadata 'define.*@work(')"
[ "$(metadata 'define.*@plus(')" = '!{!"function_entry_count", i64 1001}' ] || fail "plus: $(metadata 'define.*@plus(')"
# Of 0 to 999, 63 are divided by 16; the branch was inlined.
grep -qE '"branch_weights", i32 (64, i32 938|938, i32 64)\}' used.ll || fail "weigh's branch: $(grep branch_weights used.ll)"
# The one target that the indirect call had is called directly.
grep -q 'call .*@plus(' used.ll || fail "the call of plus is not a direct one"

# A C++ routine that was inlined goes by the name that the linker would know.
cat >named.cc <<-'END'
	struct item { int n; int twice(int x) { return x * 2 + n; } };
	int main(int argc, char **) { item i = { argc }; int sum = 0;
		for (int k = 0; k < 100; k++) sum += i.twice(sum);
		return sum & 1; }
END
clang++ -O1 -g -fdebug-info-for-profiling -o named named.cc
"$DCPI_BIN/dcpix" -quiet -o named ./named || :
"$DCPI_BIN/dcpi2bb" -xct named.xct -o named.prof ./named main
grep -q '^ [0-9.]*: _ZN4item5twiceEi:' named.prof || fail "named.prof: $(cat named.prof)"
