#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Labels of a recorded stream: what a process executes next, and all that comes of it, has profiles
# of its own; -label chooses them, in every tool, and without it all are summed.
set -eu
export LC_ALL=C TZ=UTC
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

w=id=01010101010101010101 lib=id=03030303
run() # time, pid, label, samples: a shell's child that labels itself, runs w, which forks
{
	local t=$1 pid=$2 child=$(($2 + 1))
	cat <<-END
		fork t=$t pid=$pid ppid=10
		exec t=$((t + 1)) pid=$pid path=dcpilabel
		mmap t=$((t + 2)) pid=$pid addr=0x7f0000000000 len=0x4000 $lib path=/opt/lib.so
		label t=$((t + 3)) pid=$pid path=$3
		count t=$((t + 4)) pid=$pid addr=0x7f0000000010
		exec t=$((t + 5)) pid=$pid path=w
		mmap t=$((t + 6)) pid=$pid addr=0x400000 len=0x3000 off=0x1000 $w path=/opt/w
		mmap t=$((t + 7)) pid=$pid addr=0x7f0000000000 len=0x4000 $lib path=/opt/lib.so
		count t=$((t + 8)) pid=$pid addr=0x400010 n=$4
		fork t=$((t + 9)) pid=$child ppid=$pid
		count t=$((t + 10)) pid=$child addr=0x7f0000000010 n=$4
		count t=$((t + 11)) pid=$child addr=0x999990
		count t=$((t + 12)) pid=$child mode=kernel addr=0xffffffff81000020
		exit t=$((t + 13)) pid=$child
		exit t=$((t + 14)) pid=$pid
	END
}
{
	cat <<-END
		dcpi-replay 1
		utc 1700000000
		event cpu-clock 1000000
		comm pid=10 path=sh
		mmap pid=10 addr=0x7f0000000000 len=0x4000 $lib path=/opt/lib.so
		count t=10 pid=10 addr=0x7f0000000010 n=1000
	END
	run 1000 100 a 2
	run 2000 200 b/2.0 20
	run 3000 300 a 300
} >stream
"$DCPI_BIN/dcpid" -quiet -replay stream -platform test -record again db
diff stream again
export DCPIDB=db
prof() { "$DCPI_BIN/dcpiprof" -i -no_header "$@" 2>/dev/null; }

{
	for file in db/2*/test/*.*; do echo "${file##*/}"; done
	echo

	for labels in "" "-label a" "-label b/2.0" "-label a -label b/2.0"; do
		echo "== $labels"
		# shellcheck disable=SC2086
		prof $labels
	done
	"$DCPI_BIN/dcpiprof" -i -label a -label b/2.0 2>/dev/null | sed -n '2,4p'
	"$DCPI_BIN/dcpiprof" -i -json -label a 2>/dev/null | grep -A2 '"labels"'
	"$DCPI_BIN/dcpiprof" -label c 2>&1 || echo "exit $?"
	# One that is given twice, also by a set to what all sets have, is there.
	prof -label a -label a
	"$DCPI_BIN/dcpistats" -i -no_header -label a -set -label a -set 2>/dev/null
	echo

	# The sets of a comparison choose each their own.
	"$DCPI_BIN/dcpidiff" -no_header -set -label a -set -label b/2.0 2>/dev/null
	"$DCPI_BIN/dcpistats" -i -label a -set -set -label b/2.0 2>/dev/null
	# Sets that are an image each share them; what is freed twice shows in the allocator's lists.
	GLIBC_TUNABLES=glibc.malloc.tcache_count=127 "$DCPI_BIN/dcpistats" -i -label a w lib.so 2>/dev/null

	# In the original's form the label is a line of the header; a sum over several has none.
	"$DCPI_BIN/dcpid" -quiet -replay stream -platform test -format 0.07 old
	sed -n '/^samples/q;/^label/p' old/2*/test/w.file.*_a+cpu-clock | tr -d '\0'
	"$DCPI_BIN/dcpiprof" -db old -i -no_header -label a 2>/dev/null
	"$DCPI_BIN/dcpicat" db/2*/test/w.file.*_a
	"$DCPI_BIN/dcpicat" -output sum db/2*/test/w.file.*
	"$DCPI_BIN/dcpicat" sum
} >out
[ ! "${DCPI_UPDATE:-}" ] || cp out "$DCPI_SRC/tests/golden/label.expected"
diff -u "$DCPI_SRC/tests/golden/label.expected" out
