#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A program without symbols and .eh_frame: procedures where its code leads to, said to be guessed; the same
# from the index; a library of which one procedure is exported.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
export XDG_CACHE_HOME=$work/cache
strip --strip-all -o bare "$app/app"
cp bare root/.build-id/01/23456789abcdef0123456789abcdef01234567
# Of strip.so 0x2b0 is called (40 samples, and 5 in the padding behind it), "entry" (30) is exported, the stubs have names.
strip=$DCPI_SRC/tests/data/strip
mkdir -p root/.build-id/57
objcopy -R .eh_frame -R .eh_frame_hdr "$strip/strip.so" root/.build-id/57/12000000000000000000000000000000000001
"$mkdb" strip <<-END
	platform box
	epoch 1700000000
	profile file /opt/lib/strip.so $strip/strip.so
	event cpu-clock 1000000
	at entry 20
	at entry+0x10 10
	at 0x2b4 30
	at 0x2c0 10
	at 0x2c4 5
	at 0x2a0 15
	at 0x296 10
END
# Called: 0x40010c, where code begins too, 0x400116 and 0x40015b. 0x400159 is the entry. 0x40013a (20 samples)
# and 0x40015f are called by nobody: they stand in 0x400116 (50 samples of its own) and 0x40015b.
{
	run dcpiprof -no_header app
	find db/index -type f
	# As it is read from there, the file's head tells of a guess as well.
	run dcpiprof -no_header app
	run dcpiprof -json app
	run dcpilist -asm -no_header 0x40015b app
	run dcpitopcounts -no_header -n 5 app
	run dcpiflow 0x400159 app
	run dcpidis bare
	run dcpidis -json bare 0x400159
	# Where not even sections are told, the file's head is taken for code as well.
	cp bare headless
	dd if=/dev/zero of=headless bs=1 seek=40 count=8 conv=notrunc 2>/dev/null
	dd if=/dev/zero of=headless bs=1 seek=60 count=4 conv=notrunc 2>/dev/null
	run dcpidis -no_header headless 0x40015b
	"$DCPI_BIN/dcpidis" headless | grep '^section' || :
	# Named by tables alone are 0x310 to 0x340; labels of "run" in one are none.
	for library in tables tables-compact; do
		echo "$library"
		"$DCPI_BIN/dcpidis" -no_header "$DCPI_SRC/tests/data/tables/$library.so" | grep '^[^ ].*:$'
	done
	run dcpiprof -db strip -no_header
	run dcpilist -db strip -asm -no_header 0x2c4
} >out
compare guessed
