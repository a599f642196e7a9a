#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpifdo: a program's traces for llvm-bolt, llvm-profgen, clang and gcc; a JIT's edges by name; advice; what is wrong
# with an image or with its traces.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
"$mkdb" db <<-END
	platform box
	epoch 1700003600
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	at hot+17 30
	at hot+22 8
	at warm 20
	move warm - warm 20 20
	move warm warm+6 warm+8 20 10
	move warm warm+6 warm+0x1a 0 10
	move warm warm+8 hot 20 10
	move warm hot+2 hot+4 20 10
	move warm hot+0x18 hot+0x11 400 200
	move warm hot+0x18 hot+0x1a 10 10
	move warm hot+0x13 - 10 0
	move warm hot+0x1c 0x147 10 10
	move warm 0x14b 0x10c 10 10
	move warm 0x115 0x150 10 10
	move warm 0x158 - 10 20
	move hot hot hot+2 1 0
	profile dynamic hi.box.1.dyn
	event cpu-clock 1000000
	at triple 2
	at triple+17 40
	move triple - triple+17 3 3
	move triple triple+24 triple+17 30 30
	move triple triple+24 triple+26 1 0
	profile file /opt/gone/lib.so $app/app
	id ffffffffffffffffffffffffffffffffffffffff
	event cpu-clock 1000000
	at 0x10 30
	move - - 0x10 1 1
	finish
	epoch 1700007200
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	at hot+17 3
	move hot - hot+0x11 1 1
	move hot hot+0x18 hot+0x11 1 1
	profile file /opt/app/app $app/app
	id 0123456789abcdef0123456789abcdef01234568
	event cpu-clock 1000000
	at 0x116 3
	move hot - 0x116 1 0
END
cp "$app/next" .
# One day after them, and two: the program, and its next version.
"$mkdb" db <<-END
	platform box
	epoch 1700090000
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	at hot+17 30
	move hot - hot+0x11 400 400
	move hot hot+0x18 hot+0x11 400 400
	finish
	epoch 1700176400
	profile file /opt/app/app $app/next
	event cpu-clock 1000000
	at 0x11c 30
	move 0x11c - 0x11c 10 10
	move 0x11c 0x122 0x12b 10 10
END
{
	run dcpifdo -epoch 202311142313 -bolt -raw app
	run dcpifdo -epoch 202311142313 -llvm_unsymbolized -raw app
	run dcpifdo -epoch 202311142313 -llvm app
	run dcpifdo -epoch 202311142313 -gcc -o app.afdo app
	od -A n -t x4 app.afdo
	run dcpifdo -epoch 202311142313 -bolt -json -o app.pa app
	run dcpifdo -epoch 202311142313 -gcc -json -o app.afdo app
	run dcpifdo -epoch 202311142313 -json -raw 'hi[4711]' triple
	run dcpifdo -epoch 202311142313 -json -raw app warm
	run dcpifdo -epoch 202311142313 -json app other
	run dcpifdo -epoch 202311142313 -advise
	run dcpifdo -epoch 202311142313 -advise -json
	run dcpifdo -epoch 202311142313 -bolt lib.so
	run dcpifdo -epoch all -bolt -raw 0123456789abcdef0123456789abcdef01234567
	run dcpifdo -epoch all -bolt app
	run dcpifdo -epoch 202311142213 -bolt app
	run dcpifdo -epoch 202311142213 -advise
	run dcpifdo -epoch 202311142213 -llvm app
	run dcpifdo -epoch 202311142313.. -bolt -raw -versions ./next
	run dcpifdo -epoch 202311142313.. -llvm_unsymbolized -raw -versions -age 1 ./next
	run dcpifdo -epoch 202311142313.. -json -raw -versions ./next lukewarm
	run dcpifdo -epoch 202311142313..202311162313 -bolt -raw -age 0.5 0123456789abcdef0123456789abcdef01234567
	run dcpifdo -epoch all -llvm -versions app
	# The bias of where traces begin is corrected.
	run dcpifdo -epoch 202311142313 -bolt app
	run dcpifdo -bolt nowhere
	run dcpifdo -bolt -llvm app
	run dcpifdo app
	run dcpifdo -bolt
	run dcpifdo -bolt app hot
	run dcpifdo -advise app
	run dcpifdo -gcc app
} >out 2>&1
sed -i "s|$DCPI_SRC/||g; s|^# dcpifdo [0-9.]*|# dcpifdo VERSION|" out
compare dcpifdo
