#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpicoverage: lines of a program with DWARF, of a pseudo-image; a stripped library and a kernel,
# which have none; what a block's samples say of others.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

lib=$DCPI_SRC/tests/data/stripped/libapp.so
"$mkdb" lib <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/libapp.so $lib
	event cpu-clock 1000000
	at hot+22 60
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	at hot+29 1
	finish
END
"$mkdb" eval </dev/null
for pid in 7 8; do
	"$DCPI_BIN/../tests/mkjob" eval/dyn/js.box.$pid.dyn >/dev/null <<-END
		image 62 js $pid box /opt/js
		run 0x7f0000001000 0 0x1000
		routine 0x7f00000010${pid}0 [eval] 89f8c3
	END
done
"$mkdb" eval <<-END
	platform box
	epoch 1700000000
	profile dynamic js.box.8.dyn
	event cpu-clock 1000000
	at [eval]+2 20
	profile dynamic js.box.7.dyn
	event cpu-clock 1000000
	at [eval]+2 10
	finish
END
{
	run dcpicoverage app
	run dcpicoverage -no_header hi
	run dcpicoverage -no_header app warm helper
	run dcpicoverage -no_header -event imiss app
	run dcpicoverage -no_header vmlinux-6.1.0
	run dcpicoverage -no_header -db lib -p "$lib" libapp.so | sed "s,$lib,LIB,"
	run dcpicoverage -no_header -db eval js
	rm eval/dyn/js.box.8.dyn # of two
	run dcpicoverage -no_header -db eval js
	run dcpicoverage -no_header -db eval js.box.8.dyn
	# The way around the loop was taken, and so its end.
	run dcpicoverage -no_header -db lib app hot
	run dcpicoverage -json app hot
	run dcpicoverage app no_such_procedure
	run dcpicoverage no_such_image
	run dcpicoverage lib.so
	run dcpicoverage
} >out
compare dcpicoverage
