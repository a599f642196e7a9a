#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Counts handed on: clang takes dcpi2bb's profile, and what it then knows of a program is what its source says;
# callgrind_annotate opens dcpi2pix's file, and shows by source line what dcpix counted.
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

# ---- callgrind's -----------------------------------------------------------------------------------
"$DCPI_BIN/dcpi2pix" -callgrind -xct feedback.xct -o feedback.callgrind ./feedback
callgrind_annotate --auto=yes --threshold=100 --context=1000 --show-percs=no feedback.callgrind >annotated ||
	fail "callgrind_annotate: $(cat annotated)"

# offset and address of the code, then executions of each instruction of the image, by address
read -r offset vaddr < <(readelf -lW feedback | awk '$1 == "LOAD" && $0 ~ / R E / { print $2, $3; exit }')
awk -v path="$(readlink -f feedback)" -v move=$((vaddr - offset)) '
	function hex(s,   v, i) {
		v = 0
		for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1
		return v
	}
	$1 == "image" { on = 0 }
	$1 == "path" && substr($0, 6) == path { on = 1 }
	on && $1 == "n" {
		at = hex($2); printf("0x%x %d\n", at + move, $3)
		for (i = 4; i <= NF; i++) { at += hex($i); printf("0x%x %d\n", at + move, $3) }
	}' feedback.xct >truth
[ "$(wc -l <truth)" -gt 20 ] || fail "the truth: $(cat truth)"
total=$(awk '{ sum += $2 } END { print sum }' truth)
grep -q "^$(printf "%'d" "$total" | tr -d ,) .*PROGRAM TOTALS" <(tr -d , <annotated) || fail "totals: not $total: $(grep TOTALS annotated)"

# By line of feedback.c, from both; awk's numbers of lines are those of the source.
cut -d ' ' -f 1 truth | addr2line -e feedback | paste -d ' ' - <(cut -d ' ' -f 2 truth) |
	awk '$1 ~ /\/feedback\.c:[0-9]/ { sub(/.*:/, "", $1); n[$1] += $NF } END { for (l in n) print l, n[l] }' | sort -n >by-line
awk '/^-- .*source: .*feedback\.c/ { on = 1; next }
	on && /^---/ { if (rules++) exit; next }
	on && !source { source = $0 == ""; next }
	on { line++; gsub(",", "", $1); if ($1 ~ /^[0-9]+$/) print line, $1 }' annotated >shown-lines
diff by-line shown-lines || { cat annotated; fail "lines differ"; }
[ "$(wc -l <by-line)" -ge 8 ] || fail "few lines: $(cat by-line)"
echo "$(wc -l <by-line) lines and $total executions as dcpix counted them"
