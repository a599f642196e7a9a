#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Small files of a real perf 6.1, replayed on any machine: two events with periods of their own, packed
# records, a pipe, a clock of its own, stacks behind the samples, one that perf did not finish.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$DCPI_SRC"/tests/fuzz/corpus/perfdata/{two,packed,pipe,mono,stack,unfinished}.data "$work"
cd "$work"
touch -d @1700000000 ./*.data

for name in two packed pipe mono stack unfinished; do
	echo "== $name"
	"$DCPI_BIN/dcpid" -replay $name.data -platform test $name 2>&1 || true
	for file in "$name"/2*/test/*.*; do
		"$DCPI_BIN/dcpicat" "$file" | sed 's/^/	/'
	done
done >out 2>&1 || { cat out; exit 1; }
diff -u "$DCPI_SRC/tests/golden/perfdata.expected" out

# Recorded while it is replayed, it is a stream that gives the same counts (names of threads are not in it).
"$DCPI_BIN/dcpid" -quiet -replay two.data -platform test -record stream one
"$DCPI_BIN/dcpid" -quiet -replay stream -platform test again
for file in one/2*/test/*.*; do
	"$DCPI_BIN/dcpicat" "$file" >counts
	"$DCPI_BIN/dcpicat" "again${file#one}" | diff -u counts -
done

# What perf lost is said at the end: an event of 64 bytes of attributes, and a record of 5 losses.
{
	printf 'PERFILE2\x10\0\0\0\0\0\0\0'
	printf '\x40\0\0\0\0\0\x48\0' && printf '\x01\0\0\0\x40\0\0\0' && head -c 56 /dev/zero
	printf '\x02\0\0\0\0\0\x18\0' && head -c 8 /dev/zero && printf '\x05\0\0\0\0\0\0\0'
} >lost.data
"$DCPI_BIN/dcpid" -replay lost.data -platform test lost 2>err
grep -qx "warning: 5 samples were lost: ring-full" err

# A file of perf's that is no file of perf's. refused FILE: as a file to be replayed.
refused()
{
	if "$DCPI_BIN/dcpid" -replay "$1" -platform test bad 2>err; then
		echo "$1 was not refused"
		exit 1
	fi
}
printf 'PERFILE2' >bad.data
refused bad.data
grep -qx "dcpid: cannot replay 'bad.data': offset 0: the file ends in the midst" err
mkfifo fifo.data
refused fifo.data
grep -qx "dcpid: cannot replay 'fifo.data': not a regular file" err
grep -qx "hint: a pipe is read as '-': standard input" err
refused - < <(cat two.data)
grep -qx "dcpid: cannot replay '-': a perf.data file does not come through a pipe" err
