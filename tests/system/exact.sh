#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpix under a real valgrind: every block and edge of a program with known counts, its child included; what
# the program does stays as it is; JIT code by process, and by routine where a daemon keeps it; what
# cannot be done is said.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
[ "$(uname -m)" = x86_64 ] || {
	echo "skip: the program with known counts is x86-64 code"
	exit 77
}
program=$DCPI_BUILD/tests/exact_counts
cd "$work"

# flat FILE PATH: "n OFFSET COUNT" of each instruction and the edges of one image, offsets in decimal.
flat()
{
	awk -v path="$2" '
		function hex(s,   v, i) {
			v = 0
			for (i = 1; i <= length(s); i++) v = v * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1
			return v
		}
		$1 == "image" { on = 0 }
		$1 == "path" && substr($0, 6) == path { on = 1 }
		!on { next }
		$1 == "n" {
			at = hex($2); print "n", at, $3
			for (i = 4; i <= NF; i++) { at += hex($i); print "n", at, $3 }
		}
		$1 == "e" { print "e", hex($2), ($3 == "-" ? $3 : hex($3)), $4 }' "$1"
}

# ---- known counts ---------------------------------------------------------------------------------
status=0
echo in | "$DCPI_BIN/dcpix" -o known "$program" >truth 2>err || status=$?
cat err
[ $status = 5 ] || fail "exit status $status, not the program's"
grep -q 'instructions of 2 processes are in' err || fail "not two processes"
# Offsets of labels: the segment of .text begins at some offset and address.
read -r offset vaddr < <(readelf -lW "$program" | awk '$1 == "LOAD" && $0 ~ / R E / { print $2, $3; exit }')
nm "$program" | awk '{ print $3, $1 }' >labels
flat known.xct "$program" >flat
at()
{
	local address
	address=$(awk -v name="$1" '$1 == name { print $2 }' labels)
	echo $((16#$address - vaddr + offset))
}
blocks=0 edges=0
while read -r kind from to count; do
	case $kind in
	block)
		got=$(awk -v at="$(at "$from")" '$1 == "n" && $2 == at { print $3 }' flat)
		[ "$got" = "$to" ] || fail "block $from: $got, not $to"
		blocks=$((blocks + 1))
		;;
	edge)
		got=$(awk -v from="$(at "$from")" -v to="$(at "$to")" '$1 == "e" && $2 == from && $3 == to { print $4 }' flat)
		[ "${got:-0}" = "$count" ] || fail "edge $from to $to: $got, not $count"
		edges=$((edges + 1))
		;;
	esac
done <truth
[ $blocks -ge 24 ] && [ $edges -ge 16 ] || fail "$blocks blocks, $edges edges"
echo "$blocks blocks and $edges edges as they are known"
grep -q ' work$' known.tab || fail "known.tab does not name 'work'"

"$DCPI_BIN/dcpisumxct" known.xct known.xct -o sum.xct
flat sum.xct "$program" >flat2
diff <(awk '{ $NF *= 2; print }' flat) flat2 >/dev/null || fail "dcpisumxct does not double"

# ---- what the program does is its own --------------------------------------------------------------
echo input | "$DCPI_BIN/dcpix" -quiet -o cat cat >out 2>err
[ "$(cat out)" = input ] && [ ! -s err ] || fail "cat: $(cat out err)"
status=0
# Some programs start others with SIGCHLD ignored: the end is known all the same.
env --ignore-signal=CHLD "$DCPI_BIN/dcpix" -quiet -o killed sh -c 'kill -TERM $$' 2>err || status=$?
[ $status = 143 ] || fail "ended by TERM, but $status"
# One process is three programs in turn, each of which forks.
"$DCPI_BIN/dcpix" -quiet -o chain sh -c 'true & wait; exec sh -c "/bin/true; exec /bin/echo end"' >out
[ "$(cat out)" = end ] || fail "a chain of programs: $(cat out)"
grep -qx 'path .*/echo' chain.xct || fail "the end of the chain was not counted"
status=0
PATH=/nonexistent "$DCPI_BIN/dcpix" /bin/true 2>err || status=$?
[ $status = 125 ] && grep -q 'package valgrind' err || fail "without valgrind: $status, $(cat err)"

# ---- JIT code --------------------------------------------------------------------------------------
if nm -D "$DCPI_BIN/calc" | grep -q __asan_init; then
	echo "calc is built with a sanitizer: not run under valgrind"
	exit 0
fi
calc=("$DCPI_BIN/calc" "$DCPI_SRC/tests/support/exact_known.calc")
"$DCPI_BIN/dcpix" -quiet -o alone "${calc[@]}" >alone.out
# 7 calls, 700 rounds, 707 comparisons, whatever the instructions are.
for n in 7 700 707; do
	grep -q "^n [0-9a-f]* $n " <(sed -n '/^image process/,/^image [^p]/p' alone.xct) || fail "no instruction of the JIT ran $n times"
done
[ "$(id -u)" = 0 ] || exit 0
start_daemon
"$DCPI_BIN/dcpix" -quiet -db "$db" -o jit "${calc[@]}" >jit.out
stop_daemon
cmp alone.out jit.out
read -r start len < <(awk '$1 == "procedure" && $NF == "rounds" { print $2, $3 }' jit.tab)
[ -n "$start" ] || fail "jit.tab does not name 'rounds'"
flat jit.xct calc | awk -v start=$((16#$start)) -v end=$((16#$start + 16#$len)) '
	$1 == "n" && $2 >= start && $2 < end { seen[$3]++; nr++ }
	END { exit !(nr > 10 && seen[7] && seen[700] && seen[707] && seen[7] + seen[700] + seen[707] == nr) }' ||
	fail "rounds: $(flat jit.xct calc)"
! grep -q '^image process' jit.xct || fail "code of the JIT is in no image"
echo "a JIT's routine as it is known"
