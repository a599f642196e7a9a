#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpilist: how often instructions ran, and what they cost, of a program with DWARF, a stripped
# library, a pseudo-image; from time alone, and from instructions counted by samples; with -freq and
# without.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

lib=$DCPI_SRC/tests/data/stripped/libapp.so
mkdir -p root/opt/app
cp "$lib" root/opt/app/libapp.so
# The loop of hot: 4 instructions, 250 samples of instructions each, one for 1000 executions.
counts()
{
	cat <<-END
		event cycles 1000
		event instructions 1000
		at $1 1 4
		at $1+4 1 1
		at $1+17 30 250
		at $1+19 12 250
		at $1+22 8 250
		at $1+24 500 250
		at $1+26 5 1
	END
}
{
	printf 'platform box\nepoch 1700000000\nprofile file /opt/app/app %s\n' "$app/app"
	counts hot
	printf 'profile file /opt/app/libapp.so %s\n' "$lib"
	counts hot
	echo finish
} >counted.txt
"$mkdb" counted <counted.txt
# The same program for a machine whose code nobody here can read, under a build-id of its own.
mkdir -p root/.build-id/02
other=root/.build-id/02/23456789abcdef0123456789abcdef01234567
LC_ALL=C sed 's/\x01\x23\x45\x67\x89\xab/\x02\x23\x45\x67\x89\xab/' "$app/app" >$other
printf '\026' | dd of=$other bs=1 seek=18 conv=notrunc status=none
"$mkdb" other <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/other $other
	event cpu-clock 1000000
	at hot+17 30
	finish
END
# An hour with 800 traces of hot, in each of which its loop goes back nine times; and the next hour.
traced()
{
	cat <<-END
		epoch $1
		profile file /opt/app/app $app/app
		event cpu-clock 1000000
		at hot 20
		at hot+0x11 400
		at hot+0x1a 20
		move hot - hot 400 400
		move hot hot+0x18 hot+0x11 3600 3600
		move hot hot+0x18 hot+0x1a 400 400
		move hot hot+0x1c - 400 400
		workload app comm=app exe=/opt/app/app
		w app cpu-clock 10 200 hot+0x11@app
		w app cpu-clock 40 20 hot@app
		w app cpu-clock 40 200 hot+0x11@app
		w app cpu-clock 40 20 hot+0x1a@app
		finish
	END
}
{
	echo platform box
	traced 1700002800
	traced 1700006400
} | "$mkdb" traced
# Most of the time is in a block that no equation ties to the others.
"$mkdb" low <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	at hot 300
	at hot+4 60
	at hot+17 60
	at hot+26 90
	finish
END
{
	# Where less than half is known, the head says so, and what to turn on.
	run dcpilist -freq -source -db low hot
	run dcpilist -source -db low hot
	# 250 samples * 1000 = 250,000 times around; 500 cycles samples * 1000 on the branch: 2.0 each.
	run dcpilist -freq -both -db counted hot app
	run dcpilist -freq -asm -no_header -db counted hot libapp.so
	# Time alone: the loop's 50 samples of 1,000,000 ns over 4 instructions.
	run dcpilist -freq hot app
	run dcpilist -freq -order -no_header triple
	run dcpilist -freq -no_header hot vmlinux-6.1.0
	run dcpilist -freq -event imiss hot app
	# Not asked for, it is no error.
	run dcpilist -event imiss hot app
	run dcpilist -source -db counted hot app
	run dcpilist -source -no_freq -db counted hot app
	run dcpilist -no_freq -freq hot app
	run dcpilist -asm -db other hot other
	run dcpilist -freq -db other hot other
	# Traces have no minutes: those of the second hour say nothing about both.
	run dcpilist -asm -db traced -epoch all hot app
	TZ=UTC run dcpilist -asm -db traced -since '2023-11-14 23:30' hot app
	# Line 16: 250,000 times, 522 samples of 1000 cycles: 2.088 cycles each.
	"$DCPI_BIN/dcpilist" -json -db counted hot app >json
	sed -n '/"estimate"/,/}/p; /"lines"/,$p' json
	echo
	run dcpilist -freq -json leaf
} >out
compare dcpilist_freq
