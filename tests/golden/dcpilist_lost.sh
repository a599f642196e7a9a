#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Code that nobody could read any more stands as zeros in a pseudo-image: no tool takes these for instructions.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

"$mkdb" lost </dev/null
"$DCPI_BIN/../tests/mkjob" lost/dyn/jit.box.7.dyn >/dev/null <<-END
	image 62 jit 7 box /opt/jit
	run 0x7f0000001000 0 0x1000
	routine 0x7f0000001040 lost 000000000000000000000000
	routine 0x7f0000001080 kept 00000000c3
END
"$mkdb" lost <<-END
	platform box
	epoch 1700000000
	profile dynamic jit.box.7.dyn
	event cpu-clock 1000000
	at lost+2 10
	at lost+7 20
	at kept+2 40
	finish
END
export DCPIDB=lost
{
	run dcpilist -no_header -asm lost
	run dcpilist -no_header -no_freq -asm kept
	run dcpicalc lost
	run dcpitopcounts -no_header
} >out
compare dcpilist_lost
