#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpicalc: frequencies and costs of a program, a stripped library, a pseudo-image; by time, by instructions, by
# counts; what there is nothing to estimate from.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
strip=$DCPI_SRC/tests/data/strip
mkdir -p root/.build-id/57
cp "$strip/strip.so" root/.build-id/57/12000000000000000000000000000000000001
"$mkdb" strip <<-END
	platform box
	epoch 1700000000
	profile file /opt/lib/strip.so $strip/strip.so
	event cpu-clock 1000000
	at 0x2b4 30
	at 0x2c0 10
	at 0x2c4 5
END
# "hot" as its counts in app.xct have it, 1,000 times: an instruction in 100,000 is sampled.
"$mkdb" insns <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/app $app/app
	event instructions 100
	event cycles 1000
	at hot 110 22
	at hot+2 110 0
	at hot+4 100 0
	at hot+7 100 20
	at hot+0xc 100 0
	at hot+0x11 1000 100
	at hot+0x13 1000 0
	at hot+0x16 1000 900
	at hot+0x18 1000 0
	at hot+0x1a 110 5
	at hot+0x1c 110 6
	at hot+0x1d 10 0
	at hot+0x22 10 0
END
# "warm" waits: at its entry, behind its calls and for what it pops.
"$mkdb" waits <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	at warm 40
	at warm+1 30
	at warm+0xd 50
	at warm+0xf 20
	at warm+0x1d 60
	at warm+0x1e 5
	finish
END
# The end of "warm" waits behind "pop %rbx". A data miss may take 600 of 10 events, 6 samples: 10 of them 109 at
# most. That no instruction miss (60) was sampled says that the front end did not take 600.
"$mkdb" events <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/app $app/app
	event cycles 1000
	event dmiss 10
	event imiss 100
	at warm+0x1a 100 0 0
	at warm+0x1d 500 10 0
	finish
END

{
	run dcpicalc hot app
	run dcpicalc -conf_low triple
	run dcpicalc -db strip 0x2b0
	run dcpicalc -db insns -cutoff 3 -print_opcode hot app
	run dcpicalc -xct "$app/app.xct" hot app
	run dcpicalc -procedures leaf triple -- 'hi[4711]'
	run dcpicalc -db waits warm app
	for how in selective pessimistic; do
		run dcpicalc -db waits -cross_procedure $how -cutoff 50 warm app
	done
	run dcpicalc -cross_procedure so hot app
	run dcpicalc -event imiss hot app
	run dcpicalc hot vmlinux-6.1.0
	run dcpicalc -xct "$app/app.xct" warm app
	run dcpicalc -xct "$app/app.xct" triple
	run dcpicalc -db events -cutoff 5 warm app
	run dcpicalc -db events -event cycles warm app | sed -n '/^summary/,$p'
	run dcpicalc -xct app.c hot app
	run dcpicalc hot
	run dcpicalc hot app more
	run dcpicalc -procedures hot
	run dcpicalc -tab x hot app
	run dcpicalc -conf_low -conf_high hot app
	run dcpicalc -json -cutoff 50 hot app
	"$DCPI_BIN/dcpicalc" -conf_low triple | "$DCPI_BIN/dcpisource" >with-source
	grep -n '|' with-source
	"$DCPI_BIN/dcpi2ps" -format svg -o picture.svg with-source
	grep -c '<svg' picture.svg
} >out
sed -i "s|$DCPI_SRC/||" out
compare dcpicalc
