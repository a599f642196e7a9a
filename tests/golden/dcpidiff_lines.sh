#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpidiff of one procedure in two versions of its source: lines match by code where it is the same; else by function
# and text, or function and distance; never by number.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

# Version 2 begins two lines later, has a line more in the loop, and another text in one; "step" is inlined.
mkdir -p v1 v2
cat >v1/triple.hi <<-END
	fun step(s)
	  return s + 3
	fun triple(n)
	  sum = 0
	  loop n times
	    sum = step(sum)
	  return sum
END
cat >v2/triple.hi <<-END
	# Triples.

	fun step(s)
	  return s + 4
	fun triple(n)
	    sum = 0
	  loop n times
	    check(sum)
	    sum = step(sum)
	  return sum
END
# run_of PID ADDRESS FOLDER IMMEDIATE LINES: the routine's lines are its first, of the loop, of the sum, of the call,
# of the end, and of what is inlined.
run_of()
{
	read -r begin loop sum call end step <<<"$5"
	"$DCPI_BIN/../tests/mkjob" "runs/dyn/hi.box.$1.dyn" >/dev/null <<-END
		image 62 hi $1 box /opt/hi
		run ${2}000 0 0x1000
		file $3triple.hi
		file step
		inline 0 17 2 1 0 $call
		line 0 $begin 0
		line 7 $sum 0
		line 12 $loop 0
		line 17 $step 0
		line 19 $call 0
		line 26 $end 0
		routine ${2}040 triple 85ff7e198d0c7fb800000000ba0000000001c283c00${4}39c875f789d0c3ba00000000ebf6
	END
}
"$mkdb" runs </dev/null
run_of 100 0x7f0000001 v1/ 3 "3 5 4 6 7 2"
run_of 200 0x7f0000002 v2/ 4 "5 7 6 9 10 4"
run_of 300 0x7f0000003 v1/ 4 "5 7 6 9 10 4"
run_of 400 0x7f0000004 v2/ 3 "5 7 6 9 10 4"
# Long ones: the third has a line more than the first, the second no line of it.
mkdir -p l1 l2 l3
seq 1 6000 >l1/triple.hi
seq 10001 16000 >l2/triple.hi
sed '1a more' l1/triple.hi >l3/triple.hi
run_of 500 0x7f0000005 l1/ 3 "1 2 3 4 5000 5001"
run_of 600 0x7f0000006 l2/ 4 "1 2 3 4 5000 5001"
run_of 700 0x7f0000007 l3/ 4 "1 3 4 5 5001 5002"
counts()
{
	cat <<-END
		epoch $1
		profile dynamic hi.box.$2.dyn
		event cpu-clock 1000000
		at triple $3
		at triple+7 5
		at triple+12 5
		at triple+17 $4
		at triple+19 $5
		at triple+26 5
		finish
	END
}
{
	echo platform box
	counts 1700000000 100 10 60 30
	counts 1700000060 200 30 60 10
	counts 1700000120 300 30 60 10
	counts 1700000180 400 30 60 10
	counts 1700000240 500 10 60 30
	counts 1700000300 600 30 60 10
	counts 1700000360 700 30 60 10
} | "$mkdb" runs
export DCPIDB=runs
one="-set -epoch 202311142213" two="-set -epoch 202311142214" three="-set -epoch 202311142215"
four="-set -epoch 202311142216" five="-set -epoch 202311142217" six="-set -epoch 202311142218"
seven="-set -epoch 202311142219"
{
	run dcpidiff triple $one $two
	"$DCPI_BIN/dcpidiff" -json triple $one $two | grep '"line'
	# One path is one version of the source; with folders of their own it is two.
	run dcpidiff triple $one $three
	run dcpidiff triple $one -source-path v1 $three -source-path v2
	run dcpidiff -compare frequency triple $one $two
	# One file is one version of the source, whatever led there.
	run dcpidiff -source-path v2 triple $one $two | grep -v '^[a-qs-z]'
	run dcpidiff triple $one -source-path n1 $three -source-path n2 | grep -v '^[a-qs-z]'
	# The same code matches by itself; its blocks are where they were.
	run dcpidiff -source_line triple $one $four | grep -v '^[a-qs-z]'
	run dcpidiff -no_header triple $one $four
	# Lines that differ are bounded in number, lines that are the same are not.
	run dcpidiff triple $five $six | grep -v '^[a-qs-z]'
	run dcpidiff triple $five $seven | grep -v '^[a-qs-z]'
	mv v2 gone
	run dcpidiff triple $one $two
} >out
compare dcpidiff_lines
