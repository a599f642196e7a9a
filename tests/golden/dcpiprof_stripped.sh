#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A stripped library: exported names, stubs by what they jump to, the rest by address from .eh_frame.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
strip=$DCPI_SRC/tests/data/strip
mkdir -p root/.build-id/57
cp "$strip/strip.so" root/.build-id/57/12000000000000000000000000000000000001

# step is [0x2b0, 0x2c1); 5 samples stand behind it, where nothing does.
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

{
	run dcpiprof -db strip -no_header
	run dcpilist -db strip -asm -no_header 0x2b0 strip.so
	run dcpilist -db strip -asm -no_header 0x2b9
	run dcpilist -db strip -asm -no_header twice@plt
	run dcpilist -db strip -asm -no_header 0x2c4
} >out
compare dcpiprof_stripped
