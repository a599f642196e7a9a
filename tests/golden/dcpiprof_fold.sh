#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpiprof: profiles of processes whose pseudo-images were folded into one lead to the right routines
# of that one, whose processes count once.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

old1=1111111111111111111111111111111111111111 old2=2222222222222222222222222222222222222222
"$mkdb" f </dev/null
# serve was at 0x40 in all of them; at 0x80 the first had parse, the second plan: that found room behind.
"$DCPI_BIN/../tests/mkjob" f/dyn/worker.box.fold.dyn >/dev/null <<-END
	image 62 worker 100 box /opt/worker
	run 0x7f0000001000 0 0x1000
	instance 200
	instance 300
	moved $old1 0x40 0x40 0x80
	moved $old2 0x80 0xc0 0x40
	routine 0x7f0000001040 serve 89f8c3
	routine 0x7f0000001080 parse 01c289d0c3
	routine 0x7f00000010c0 plan b805000000c3
END
"$DCPI_BIN/../tests/mkjob" f/dyn/worker.box.400.dyn >/dev/null <<-END
	image 62 worker 400 box /opt/worker
	run 0x7f0000009000 0 0x1000
	routine 0x7f0000009040 serve 89f8c3
END
"$mkdb" f <<-END
	platform box
	epoch 1700000000
	profile dynamic worker.box.100.dyn $work/f/dyn/worker.box.fold.dyn
	id $old1
	event cpu-clock 1000000
	at 0x40 1
	at 0x80 2
	profile dynamic worker.box.200.dyn $work/f/dyn/worker.box.fold.dyn
	id $old2
	event cpu-clock 1000000
	at 0x80 10
	profile dynamic worker.box.fold.dyn
	event cpu-clock 1000000
	at plan 100
	profile dynamic worker.box.400.dyn
	event cpu-clock 1000000
	at serve 1000
	finish
END
export DCPIDB=f
{
	run dcpiprof -no_header
	run dcpiprof -i -no_header
	run dcpiprof -i -pids -no_header
	run dcpilist -no_header serve
	run dcpidiff -no_header -set -set
	"$DCPI_BIN/dcpiprof" -json | grep -E '"(label|images|processes)"'
	"$DCPI_BIN/dcpiprof" -i -json | grep -E '"(images|processes)"'
} >out
compare dcpiprof_fold
