#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpi2pix: pixie's files and callgrind's of a program with DWARF, a stripped library, a pseudo-image; by samples
# and by counts. Sums of callgrind's are what the counts add up to.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
strip=$DCPI_SRC/tests/data/strip
mkdir -p root/.build-id/57
cp "$strip/strip.so" root/.build-id/57/12000000000000000000000000000000000001
cp "$app/app" .
"$mkdb" strip <<-END
	platform box
	epoch 1700000000
	profile file /opt/lib/strip.so $strip/strip.so
	event cpu-clock 1000000
	at 0x2b4 30
	at 0x2c0 10
	at 0x2c4 5
END
# Two processes, of which one's pseudo-image goes.
"$mkdb" gone </dev/null
cp db/dyn/hi.box.1.dyn gone/dyn
"$DCPI_BIN/../tests/mkjob" gone/dyn/hi.box.2.dyn >/dev/null <<-END
	image 62 hi 4712 box /opt/hi
	run 0x7f0000001000 0 0x1000
	routine 0x7f0000001080 leaf 89f8c3
END
"$mkdb" gone <<-END
	platform box
	epoch 1700000000
	profile dynamic hi.box.1.dyn
	event cpu-clock 1000000
	at leaf+2 40
	profile dynamic hi.box.2.dyn
	event cpu-clock 1000000
	at leaf+2 50
END
rm gone/dyn/hi.box.2.dyn
# Counts of "triple" in another run's pseudo-image, where it stood 0x100 further on: 2076 executions.
cat >jit.xct <<'END'
dcpi-xct 1
image dynamic 00000000000000000000000000000000000000ab
path hi
n 140 11 2
n 144 10 3 5
n 151 500 2 3 2
n 15a 11 2
n 15d 1 5
e 142 15d 1
e 158 151 490
e 162 15a 1
crc32c aa016435
END
cat >jit.tab <<'END'
dcpi-tab 1
image dynamic 00000000000000000000000000000000000000ab
path hi
procedure 140 24 7efefbe94ada04ef8beaef09b9629985007dde1c 7efefbe94ada04ef8beaef09b9629985007dde1c triple
crc32c 5732c9c9
END
pixie() # pixie NAME: the files' words
{
	paste <(od -An -v -t x1 -w8 "$1.Addrs") <(od -An -v -t x1 -w8 "$1.Counts")
}
{
	run dcpi2pix app
	pixie app
	run dcpi2pix -conf_low -o low app hot
	pixie low
	run dcpi2pix -xct "$app/app.xct" -o counted app
	pixie counted
	run dcpi2pix -callgrind -xct "$app/app.xct" app
	run dcpi2pix -callgrind -xct "$app/app.xct" -o app.callgrind app
	# Executions of instructions in app.xct, and in what was made of it.
	awk '$1 == "n" { sum += (NF - 2) * $3 } END { print sum }' "$app/app.xct"
	awk '/^0x/ { sum += $3 } /^summary/ { print $2 } END { print sum }' app.callgrind
	run dcpi2pix -json -callgrind -xct "$app/app.xct" app
	run dcpi2pix -json -xct "$app/app.xct" -o told app
	cmp told.Addrs counted.Addrs
	cmp told.Counts counted.Counts
	run dcpi2pix -json -conf_low -o low app hot
	run dcpi2pix -callgrind -conf_low app
	run dcpi2pix -callgrind -conf_high app
	run dcpi2pix -callgrind -conf_low 'hi[4711]'
	run dcpi2pix -callgrind -conf_low -db strip strip.so
	run dcpi2pix -callgrind -conf_low -db gone hi
	run dcpi2pix -callgrind -conf_low -db gone hi.box.2.dyn
	# With costs of "hot" alone: what is written are executions, as the others are not known well enough.
	run dcpicosts "$app/app.xct"
	run dcpi2pix -callgrind app
	run dcpi2pix -callgrind -conf_low app
	run dcpi2pix -callgrind -xct jit.xct -tab jit.tab db/dyn/hi.box.1.dyn
	run dcpi2pix -callgrind -xct jit.xct db/dyn/hi.box.1.dyn
	run dcpi2pix -o nowhere/x app
	run dcpi2pix -xct "$app/app.xct" "$strip/strip.so"
	run dcpi2pix -xct "$app/app.xct" -epoch latest "$app/app"
	run dcpi2pix -xct "$app/app.xct" -p "$app/app" "$app/app"
	run dcpi2pix app missing
	run dcpi2pix -callgrind nowhere
	run dcpi2pix
} >out 2>&1
sed -i "s|$DCPI_SRC/||g; s|dcpi2pix-[0-9.]*|dcpi2pix-VERSION|" out
compare dcpi2pix
