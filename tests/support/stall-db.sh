# SPDX-License-Identifier: BSD-2-Clause
# Sourced by golden tests after app-db.sh: more databases with code that waits.

strip=$DCPI_SRC/tests/data/strip
mkdir -p root/.build-id/57 root/.build-id/ab
cp "$strip/strip.so" root/.build-id/57/12000000000000000000000000000000000001
# 5 samples are in no procedure.
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
# 8 samples in a program for another machine (PowerPC); 9 in "skip", which jumps over two bytes (6 there).
"$mkdb" odd </dev/null
"$DCPI_BIN/../tests/mkjob" odd/dyn/odd.box.1.dyn >/dev/null <<-END
	image 62 odd 4712 box /opt/odd
	run 0x7f0000001000 0 0x1000
	routine 0x7f0000001040 skip eb02cccc89f8c3
END
other=root/.build-id/ab/23456789abcdef0123456789abcdef01234567
cp "$app/app" $other
printf '\x15' | dd of=$other bs=1 seek=$((0x12)) conv=notrunc status=none
printf '\xab' | dd of=$other bs=1 seek=$((0xf8)) conv=notrunc status=none
"$mkdb" odd <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/other $other
	event cpu-clock 1000000
	at 0x120 8
	profile dynamic odd.box.1.dyn
	event cpu-clock 1000000
	at skip+2 5
	at skip+3 1
	at skip+4 3
	finish
END
