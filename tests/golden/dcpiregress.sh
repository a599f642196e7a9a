#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpiregress: slower, faster, new, vanished and renamed routines; replicates; exit codes.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

# Eight routines; build b has others at other places: r6 is named other, r7 is gone, r8 is new.
build()
{
	local name=$1 r
	for r in "${@:2}"; do
		echo ".globl ${r%:*}; .type ${r%:*},@function; ${r%:*}: .byte 0xb8; .long ${r#*:}; ret"
		echo ".balign 16, 0x90; .size ${r%:*}, .-${r%:*}"
	done >"$name.s"
	mkdir -p "$name"
	cc -shared -nostdlib -Wl,--build-id=sha1 -o "$name/prog" "$name.s"
}
build a r1:1 r2:2 r3:3 r4:4 r5:5 r6:6 r7:7
build b r8:8 r5:5 r4:4 other:6 r3:3 r2:2 r1:1

# A compiler that puts a hash into its names: "demo::work" is there once in build c, twice in d.
work() { echo "_ZN4demo4work17h${1}E"; }
build c r1:1 r2:2 r3:3 $(work 0123456789abcdef):4
build d r1:1 r2:2 r3:3 $(work 1111111111111111):4 $(work 2222222222222222):5

# profile BUILD PLACE=COUNT …
profile()
{
	echo "profile file $PWD/$1/prog $PWD/$1/prog"
	echo "event cpu-clock 1000000"
	printf 'at %s\n' "${@:2}" | tr '=' ' '
	echo finish
}
"$mkdb" runs </dev/null
{
	echo platform box
	echo epoch 1700000000
	profile a r1=100000 r2=50000 r3=30000 r4=20000 r5=10000 r6=9000 r7=8000
	echo epoch 1700000060
	profile b r1=200200 r2=108000 r3=60100 r4=36000 r5=20100 other=18050 r8=700
	echo epoch 1700000120
	profile b r1=100200 r2=50100 r3=29900 r4=20100 r5=10050 other=8950 r8=350
} | "$mkdb" runs
# Two hosts of other load in four epochs: each routine varies by up to 3 %, and r2 gets slower by a third.
# varied BASE NUMBER: its samples on $host in epoch number $at.
varied() { echo $((load * $1 * (100 + (host * 2 + at * 3 + $2 * $2 * (at + host)) % 7 - 3) / 100)); }
"$mkdb" hosts </dev/null
for host in 1 2; do
	load=$((host * 3 - 2))
	{
		echo platform host$host
		for at in {0..3}; do
			echo epoch $((1700000000 + 60 * at))
			profile a r1=$(varied 100000 1) r2=$(varied $((at > 1 ? 80000 : 60000)) 2) r3=$(varied 30000 3) \
				r4=$(varied 20000 4) r5=$(varied 10000 5) r6=$(varied 9000 6) r7=$(varied 8000 7)
		done
	} | "$mkdb" hosts
done
# In the second run the second instruction of r3 takes longer, and its first one less long.
"$mkdb" insns </dev/null
{
	echo platform box
	echo epoch 1700000000
	profile a r1=100000 r2=50000 r3=30000 r3+5=30000 r4=20000 r5=10000 r5+5=9000
	echo epoch 1700000060
	profile b r1=100200 r2=50100 r3=26000 r3+5=33900 r4=20100 r5=10050 r5+5=9020
} | "$mkdb" insns
# The copies take as long as the one did, together; first in one epoch, then in two.
"$mkdb" copies </dev/null
{
	echo platform box
	for epoch in 1700000000 1700000060; do
		echo epoch $epoch
		profile c r1=100000 r2=50000 r3=30000 $(work 0123456789abcdef)=20000
	done
	for epoch in 1700000120 1700000180; do
		echo epoch $epoch
		profile d r1=100000 r2=50000 r3=30000 $(work 1111111111111111)=12000 $(work 2222222222222222)=8000
	done
} | "$mkdb" copies
# More hosts than a set has replicates.
"$mkdb" many </dev/null
for host in {1..70}; do
	{
		echo platform host$host
		for epoch in 1700000000 1700000060; do
			echo epoch $epoch
			profile a r1=$((1000 + host % 9 * 4)) r2=$((600 - host % 7 * 3)) r3=400 r4=300
		done
	} | "$mkdb" many
done
# So few samples that they do not tell how replicates vary.
"$mkdb" few </dev/null
{
	echo platform box
	for epoch in 1700000000 1700000060 1700000120 1700000180; do
		echo epoch $epoch
		profile a r1=$((epoch / 60 % 5 + 12)) r2=9 r3=8
	done
} | "$mkdb" few
export DCPIDB=runs
one=202311142213 two=202311142214 three=202311142215 four=202311142216
{
	run dcpiregress -set -epoch $one -set -epoch $two
	run dcpiregress -no_header -every -set -epoch $one -set -epoch $three
	run dcpiregress -no_header -least 10 -set -epoch $one -set -epoch $two
	run dcpiregress -json -set -epoch $one -set -epoch $two
	run dcpiregress -db hosts -set -epoch $one..$two -set -epoch $three..$four
	run dcpiregress -no_header -db insns -set -epoch $one -set -epoch $two
	run dcpiregress -no_header -insns -db insns -set -epoch $one -set -epoch $two
	run dcpiregress -no_header -insns -set -epoch $one -set -epoch $three
	run dcpiregress -json -insns -db insns -set -epoch $one -set -epoch $two
	run dcpiregress -no_header -every -db copies -set -epoch $one -set -epoch $three
	run dcpiregress -no_header -every -db copies -set -epoch $one..$two -set -epoch $three..$four
	run dcpiregress -db many -set -epoch $one -set -epoch $two
	run dcpiregress -every -db few -set -epoch $one..$two -set -epoch $three..$four
	run dcpiregress -set -epoch $one
	run dcpiregress prog -set -set
	run dcpiregress -set -epoch $one no_such_image -set
	run dcpiregress -rate 0 -set -set
} 2>&1 | sed "s,$PWD/,,g" >out
compare dcpiregress
