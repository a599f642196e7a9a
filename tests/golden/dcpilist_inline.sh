#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpilist -asm, dcpiprof -inlined: routines that a compiler put into others, in a routine that a JIT told of.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

# outer calls cube in line 30 of a.c (bytes 3-9), cube calls square(int) in line 5 (bytes 3-5), which is in
# b.c.
"$mkdb" in </dev/null
"$DCPI_BIN/../tests/mkjob" in/dyn/jit.box.7.dyn >/dev/null <<-END
	image 62 jit 7 box /opt/jit
	run 0x7f0000001000 0 0x1000
	file a.c
	file b.c
	file cube
	file _Z6squarei
	inline 0 3 7 2 0 30
	inline 1 3 3 3 0 5
	line 0 28 0
	line 3 12 1
	line 6 6 0
	line 10 31 0
	routine 0x7f0000001040 outer 4889f80fafc001c201c283c003c3
END
"$mkdb" in <<-END
	platform box
	epoch 1700000000
	profile dynamic jit.box.7.dyn
	event cpu-clock 1000000
	at outer+3 10
	at outer+6 20
	at outer+10 30
	finish
END
export DCPIDB=in
{
	run dcpilist -asm outer
	run dcpilist -no_header -mangled -asm outer
	run dcpilist -no_header -both outer
	run dcpilist -json outer
	# Inlined functions have rows of their own, with names that dcpilist takes.
	run dcpiprof -inlined
	run dcpiprof -inlined -no_header -mangled -keep 60
	"$DCPI_BIN/dcpiprof" -inlined -json | sed -n '/^  "rows"/,/^  \]/p'
	run dcpiprof -inlined -total
	run dcpilist -no_header -hot 'outer (inlined square(int))'
	run dcpitopcounts -lines -no_header
} >out
compare dcpilist_inline
