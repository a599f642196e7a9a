#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpifdo with a real daemon: branches of a program go the ways that its source says, those of a JIT's routine the ways
# that dcpix counts; llvm-bolt, llvm-profgen, clang and gcc take what it writes, where they are installed.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
fdo() { "$DCPI_BIN/dcpifdo" -db "$db" "$@"; }

cd "$work"
cp "$DCPI_SRC/tests/support/fdo_known.c" .
cc -O1 -g -fno-pie -no-pie -fcf-protection=none -Wl,--emit-relocs -Wl,--build-id -o known fdo_known.c
cat >hot.calc <<-'END'
	func steps(n: int): int {
	    var x = 1;
	    for var i = 0; i < n; i += 1 {
	        if i % 8 == 0 { x = x * 3 + 1; } else { x = x + i; }
	        if x > 1000000 { x = x - 1000000; }
	    }
	    return x;
	}
	func main() {
	    var sum = 0;
	    for var k = 0; k < ROUNDS; k += 1 { sum += steps(2000); }
	    print(sum, "\n");
	}
END
sed 's/ROUNDS/20/' hot.calc >short.calc
sed 's/ROUNDS/200/' hot.calc >long.calc

# edges FILE: FROM TO COUNT of conditional branches, by their offsets in the procedure.
edges()
{
	awk '/"procedure":/ { n++ }
		{ gsub(/[",]/, ""); split($1, w, ":"); v[w[1]] = w[2] }
		/^ *kind:/ { kind = $0; sub(/.*kind:/, "", kind) }
		/^ *count:/ && (kind == "taken" || kind == "not taken") { print v["from"], v["to"], w[2] }' "$1"
}
# profile: of both programs in this epoch, the JIT's by its pid.
profile()
{
	"$work/known" 3 >/dev/null
	"$DCPI_BIN/calc" -time 3 long.calc >/dev/null &
	pid=$!
	wait $pid || fail "calc: $?"
	"$DCPI_BIN/dcpiflush" >/dev/null
	fdo -json ./known known >known.json
	edges known.json >known.edges
	fdo -json "calc[$pid]" steps >jit.json || : >jit.json
	edges jit.json | sort -n >jit.edges
}
# Code is translated when it was met, which a busy machine may do late: as often as it takes, each time in a new epoch.
start_daemon -vwindows 1 -rate 2000
for try in 1 2 3 4 5 6; do
	profile
	awk '{ n[FILENAME] += $3 } END { exit !(n["known.edges"] > 5000 && n["jit.edges"] > 5000) }' known.edges jit.edges && break
	[ $try = 6 ] || "$DCPI_BIN/dcpictl" epoch >/dev/null
done

# ---- a program ------------------------------------------------------------------------------------
cat known.edges
# The loop's branches: one in eight goes the rare way, 15 or 16 of 16 or 17 turns go on.
awk '{ n[$1] += $3; if ($3 > most[$1]) most[$1] = $3 }
	END { for (b in n) { all++; if (n[b] > 100 && most[b] / n[b] < 0.75) bad = 1; if (n[b] > 1000) loop++ }
		exit bad || all < 3 || loop < 2 }' known.edges || fail "the branches of known"

fdo -bolt -o known.pa ./known 2>said
cat said
grep -q ' 0 edges\|fit no instruction' said && fail "edges fit no instruction"
# A branch leads to where as many ranges begin, or more.
fdo -llvm_unsymbolized -o known.ranges ./known
awk -F '[->:]+' '/->/ { to[$2] += $3; next } NF == 3 { from[$1] += $3 }
	END { for (a in to) if (from[a] < to[a]) { print a, to[a], from[a]; bad = 1 } exit bad }' known.ranges ||
	fail "branches and ranges do not agree"

# The next build, which has not run: its profile is that of this one.
mkdir next
cc -O1 -g -fno-pie -no-pie -fcf-protection=none -DNEXT -Wl,--emit-relocs -Wl,--build-id -o next/known fdo_known.c
fdo -bolt -versions -o next.pa ./next/known 2>said || fail "-versions: $(cat said)"
cat said
awk '/ edges are found in this one/ { for (i = 1; i < NF; i++) if ($(i + 1) == "%") part = $i } END { exit part < 70 }' said ||
	fail "less than 70 % of the edges are found in the next build"

# ---- a JIT's routine ------------------------------------------------------------------------------
[ -s jit.edges ] || fail "no edges of steps: $("$DCPI_BIN/dcpiprof" -db "$db" -i -no_header | grep -i calc)"
"$DCPI_BIN/calc" short.calc >said.usual
"$DCPI_BIN/calc" -profile jit.json short.calc >said.laid-out || fail "calc -profile: $?"
cmp said.usual said.laid-out || fail "the profile's layout changes what the program prints"
# valgrind does not run what is built with a sanitizer.
if command -v valgrind >/dev/null && ! nm -D "$DCPI_BIN/calc" | grep -q __asan_init; then
	"$DCPI_BIN/dcpix" -quiet -o short "$DCPI_BIN/calc" short.calc >/dev/null || fail "dcpix: $?"
	python3 "$DCPI_SRC/tests/support/fdo_exact.py" jit.edges short.xct || fail "the branches of steps"
	# taken XCT: how many branches and jumps of code made at run time were taken.
	taken() { awk '$1 == "image" { in_jit = $2 == "process" || $2 == "dynamic" }
		in_jit && $1 == "e" && $3 != "-" { n += $4 } END { print n + 0 }' "$1"; }
	"$DCPI_BIN/dcpix" -quiet -o laid-out "$DCPI_BIN/calc" -profile jit.json short.calc >/dev/null || fail "dcpix: $?"
	before=$(taken short.xct) after=$(taken laid-out.xct)
	echo "taken branches of calc's code: $before, laid out by the profile $after"
	[ "$after" -gt 0 ] && [ $((10 * after)) -lt $((7 * before)) ] || fail "the profile's layout takes $after branches of $before"
fi

# ---- those that read it ---------------------------------------------------------------------------
for bolt in llvm-bolt-22 llvm-bolt-19 llvm-bolt-16 llvm-bolt; do
	command -v "$bolt" >/dev/null || continue
	"$bolt" known -o known.bolt -p known.pa -pa -reorder-blocks=ext-tsp >bolt.log 2>&1 || fail "$bolt: $(cat bolt.log)"
	grep -q 'traces mismatching disassembled function contents: 0' bolt.log || fail "$bolt: $(grep mismatch bolt.log)"
	./known.bolt 0.1 >/dev/null || fail "the program of $bolt"
	"$bolt" next/known -o next.bolt -p next.pa -pa -reorder-blocks=ext-tsp >bolt.log 2>&1 || fail "$bolt: $(cat bolt.log)"
	grep -q 'traces mismatching disassembled function contents: 0' bolt.log || fail "$bolt: $(grep mismatch bolt.log)"
	./next.bolt 0.1 >/dev/null || fail "the next program of $bolt"
done
for profgen in llvm-profgen-22 llvm-profgen-19 llvm-profgen-16; do
	command -v "$profgen" >/dev/null || continue
	"$profgen" --use-offset=0 --format=text --unsymbolized-profile=known.ranges --binary=known --output=known.text \
		>profgen.log 2>&1 || fail "$profgen: $(cat profgen.log)"
	grep -q '^known:' known.text || fail "$profgen: $(cat known.text)"
done
fdo -llvm -o known.prof ./known
grep -q '^known:' known.prof || fail "known.prof: $(cat known.prof)"
if command -v clang >/dev/null; then
	clang -O2 -g -fprofile-sample-use=known.prof -o used fdo_known.c 2>clang.log || fail "clang: $(cat clang.log)"
	[ ! -s clang.log ] || fail "clang: $(cat clang.log)"
fi
fdo -gcc -o known.afdo ./known
if gcc -dumpversion 2>/dev/null | awk '{ exit $1 < 12 }'; then
	gcc -O2 -Wall -fauto-profile=known.afdo -fdump-tree-optimized-details=dump -c fdo_known.c 2>gcc.log || fail "gcc: $(cat gcc.log)"
	[ ! -s gcc.log ] || fail "gcc: $(cat gcc.log)"
	grep -q '^;; Function known .*(hot)' dump || fail "gcc has no counts: $(grep '^;; Function' dump)"
fi
stop_daemon
