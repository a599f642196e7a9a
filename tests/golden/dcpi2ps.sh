#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpi2ps: what is drawn, in graphviz's language; and that PostScript, PDF and SVG come out whole, with
# every block in them. How it is laid out is graphviz's.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
cp "$DCPI_SRC/tests/fuzz/corpus/graph/full" full.graph
"$DCPI_BIN/dcpiflow" hot app | "$DCPI_BIN/dcpisource" >hot.graph
sed 1d hot.graph | cat full.graph - >two.graph

# 500 blocks in a row, of which one in 50 was sampled; each third may be left out.
awk 'BEGIN {
	print "dcpi-graph 1\n; PROC many\n; IMAGE /opt/many\n; EVENT cycles 65536\n; SAMPLES 100"
	for (i = 0; i < 500; i++) {
		n = i % 50 ? 0 : 10
		printf "block %d 0x%x..0x%x samples %d\n", i, 4096 + 4 * i, 4100 + 4 * i, n
		if (i == 0)
			print "  from outside"
		print i < 499 ? "  to " i + 1 " fall" : "  to outside"
		if (i % 3 == 0 && i < 497)
			print "  to " i + 2 " taken"
		printf "  Addr Instruction Samples\n  0x%x nop %d\n", 4096 + 4 * i, n
	}
}' >many.graph

# table N: a jump through a table of N blocks.
table()
{
	awk -v n="$1" 'BEGIN {
		print "dcpi-graph 1\n; PROC jump\n; IMAGE /opt/jump\n; EVENT cycles 65536"
		print "block 0 0x1000..0x1004 samples 0"
		for (i = 1; i <= n; i++)
			print "  to " i " table"
		print "  Addr Instruction Samples\n  0x1000 jmp 0"
		for (i = 1; i <= n; i++)
			printf "block %d 0x%x..0x%x samples 0 omitted\n", i, 4096 + 4 * i, 4100 + 4 * i
	}'
}

{
	run dcpi2ps -format dot hot.graph
	"$DCPI_BIN/dcpiflow" triple | run dcpi2ps -format dot
	"$DCPI_BIN/dcpiflow" hot "$DCPI_SRC/tests/data/stripped/libapp.so" | sed "s|$DCPI_SRC/||" | run dcpi2ps -format dot
	run dcpi2ps -format dot -cutoff 10 full.graph
	run dcpi2ps -format dot -samesize full.graph
	run dcpi2ps -json -format svg two.graph
	run dcpi2ps -json -format dot -o two.dot two.graph
	run dcpi2ps -json -format dot -o many.dot many.graph
	run dcpi2ps -format gif full.graph
	run dcpi2ps -format svg two.graph
	run dcpi2ps app.c
	printf 'dcpi-graph 1\n' >none.graph
	run dcpi2ps none.graph
} >out
compare dcpi2ps

# names NUMBER FILE: the name of each of so many blocks from 0x1000 on stands in it.
names()
{
	awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "%d: %06x\n", i, 4096 + 4 * i }' | sort >names.want
	grep -aoE '[0-9]+: [0-9a-f]{6}' "$2" | sort -u | comm -23 names.want - >names.missing
	[ ! -s names.missing ] || {
		echo "$2 has no block $(head -n 1 names.missing)"
		exit 1
	}
}

# 10 blocks are drawn, the others stand in boxes together; as is told.
"$DCPI_BIN/dcpi2ps" -format dot many.graph >plain.dot
cmp plain.dot many.dot
[ "$(grep -c '^b[0-9]* \[fontsize' many.dot)" = 10 ]
names 500 many.dot

# The lines of a small table are drawn, of a large one it is said that they are there.
table 16 | "$DCPI_BIN/dcpi2ps" -format dot >small.dot
[ "$(grep -c -e '->' small.dot)" = 16 ]
[ "$(grep -c 'table' small.dot)" = 0 ]
table 300 | "$DCPI_BIN/dcpi2ps" -format dot >large.dot
grep -q 'to&#160;300&#160;blocks&#160;by&#160;a&#160;table' large.dot
[ "$(grep -c -e '->' large.dot)" = 0 ]
[ "$(grep -c '^b[0-9]* \[' large.dot)" = 2 ] # the jump, and one box of all that no line leads to
names 301 large.dot
command -v dot >/dev/null || { echo "graphviz is not here"; exit 77; }

# Some programs start others with SIGCHLD ignored: how dot ended is known all the same.
env --ignore-signal=CHLD "$DCPI_BIN/dcpi2ps" <many.graph >many.ps
head -c 4 many.ps | grep -q '%!PS'
tail -n 1 many.ps | grep -q '%%EOF'
names 500 many.ps
"$DCPI_BIN/dcpi2ps" -T svg -o many.svg many.graph
head -n 1 many.svg | grep -q '^<?xml'
tail -n 1 many.svg | grep -q '</svg>'
names 500 many.svg
"$DCPI_BIN/dcpi2ps" -T pdf -o many.pdf many.graph
head -c 5 many.pdf | grep -q '%PDF-'
tail -n 1 many.pdf | grep -q '%%EOF'

# Three procedures: three pages, or three files.
"$DCPI_BIN/dcpi2ps" -o two.ps two.graph
[ "$(grep -c '^%%Page:' two.ps)" = 3 ]
# Each as large as its picture. What they all need is there until the end, which is one.
[ "$(grep -c '^<< /PageSize \[[0-9 ]*\] >> setpagedevice$' two.ps)" = 3 ]
for line in %!PS-Adobe-3.0 %%Trailer '%%Pages: 3' end restore %%EOF; do
	[ "$(grep -cx "$line" two.ps)" = 1 ] || { echo "two.ps: not one line '$line'"; exit 1; }
done
[ "$(sed -n '/^%%Trailer/,$p' two.ps | grep -c '^%%Page:')" = 0 ]
"$DCPI_BIN/dcpi2ps" -json -T svg -o two.svg two.graph >told
grep -q '"two-3.svg"$' told
grep -q smooth_ two.svg
grep -q empty two-2.svg
grep -q '2: 400127' two-3.svg

# Nobody reads it: an end without words, as other programs have. Nowhere to write to: a failure.
exec 3> >(:)
wait $!
code=0
"$DCPI_BIN/dcpi2ps" full.graph >&3 2>err || code=$?
exec 3>&-
[ ! -s err ]
[ "$code" = 141 ]
if "$DCPI_BIN/dcpi2ps" full.graph >&- 2>err; then
	exit 1
fi

# Without dot; the emulator, where there is one, is found by the path too.
mkdir only
[ -z "${DCPI_EMULATOR:-}" ] || ln -s "$(command -v "$DCPI_EMULATOR")" only/
code=0
PATH=$PWD/only "$DCPI_BIN/dcpi2ps" full.graph 2>err || code=$?
[ "$code" = 1 ]
grep -q "cannot run 'dot'" err
grep -q '^hint: install graphviz' err

# A dot that fails leaves no file.
mkdir bin
printf '#!/bin/sh\necho half a picture\nexit 3\n' >bin/dot
chmod +x bin/dot
if PATH=$PWD/bin:$PATH "$DCPI_BIN/dcpi2ps" -o failed.ps full.graph 2>err; then
	exit 1
fi
grep -q "'dot' failed with status 3" err
[ ! -e failed.ps ]
