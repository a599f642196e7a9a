#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpitopcounts: instructions and lines of a program with DWARF, a stripped library, a pseudo-image, a kernel
# without bytes; samples between instructions, in no image, in one that is gone; sums; a source that not everybody may
# read, of another user's program.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

lib=$DCPI_SRC/tests/data/stripped/libapp.so
"$mkdb" lib <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/libapp.so $lib
	event cpu-clock 1000000
	event imiss 4096
	at hot+22 60 0
	at hot+24 30 2
	at 0x2e7 10 5
	at 0x2ca 7 0
	at 0x323 3 9
	finish
END
"$mkdb" foreign </dev/null
mkdir -m 700 private
echo "a secret" >private/key
"$DCPI_BIN/../tests/mkjob" foreign/dyn/cxx.box.2.dyn >/dev/null <<-END
	image 62 cxx 4712 box /opt/cxx 4711
	run 0x7f0000001000 0 0x1000
	file private/key
	line 0 1 0
	routine 0x7f0000001040 one 89f801c0c3
END
"$mkdb" foreign <<-END
	platform box
	epoch 1700000000
	profile dynamic cxx.box.2.dyn
	event cpu-clock 1000000
	at one 40
	finish
END
{
	run dcpitopcounts -n 8
	run dcpitopcounts -no_header
	run dcpitopcounts -s imiss
	run dcpitopcounts -no_header -n 3 hi
	run dcpitopcounts -json -n 2 app lib.so
	run dcpitopcounts -db lib -p "$lib" | sed "s,$lib,LIB,"
	run dcpitopcounts -db lib -p "$lib" -s imiss -n 1 -no_header libapp.so | sed "s,$lib,LIB,"
	run dcpitopcounts -db lib -no_header -n 2
	run dcpitopcounts -event nothing
	run dcpitopcounts no_such_image
	run dcpitopcounts -n 0
	# Source lines: of all images, of one, of several; what has no line stands by procedure.
	run dcpitopcounts -lines
	run dcpitopcounts -lines -no_header -n 2 -s imiss
	run dcpitopcounts -lines -no_header app
	run dcpitopcounts -lines -json -n 2 app hi
	mkdir -p moved && mv app.c moved
	run dcpitopcounts -lines -no_header -n 1 app
	run dcpitopcounts -lines -no_header -n 1 -source-path moved app
	mv moved/app.c .
	# A user names a file of others as the source.
	run dcpitopcounts -db foreign -lines -no_header
} >out
compare dcpitopcounts

for n in 1 2 3 5 100 "100 -lines" "3 -lines"; do
	# shellcheck disable=SC2086 # two words
	"$DCPI_BIN/dcpitopcounts" -no_header -n $n 2>/dev/null | awk '
		/ total / { total = $1; next } { sum += $1 } END { exit !(sum == 214 && total == 214) }'
done
