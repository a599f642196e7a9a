#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpicosts: costs from samples and counts of one run are kept, and dcpicalc uses them; again, they add up.
# So do those of a stripped library and of a routine that a JIT made. Where samples are missing, nothing is kept.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
strip=$DCPI_SRC/tests/data/strip
mkdir -p root/.build-id/57 three
cp "$strip/strip.so" root/.build-id/57/12000000000000000000000000000000000001
# Beside "app" and the JIT, "0x2b0" has 40 samples in its one block, and 5 behind it; "entry" has 60 in its loop,
# 3 after it.
"$mkdb" three </dev/null
cp db/dyn/hi.box.1.dyn three/dyn
"$mkdb" three <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	at hot+17 30
	at hot+19 20
	at warm 20
	profile file /opt/lib/strip.so $strip/strip.so
	event cpu-clock 1000000
	at 0x2b4 30
	at 0x2c0 10
	at 0x2c4 5
	at 0x2ea 60
	at 0x2f1 3
	profile dynamic hi.box.1.dyn
	event cpu-clock 1000000
	at triple 2
	at triple+17 40
	at triple+19 10
	at triple+20 1
	at triple+24 7
	at leaf+2 1
	at 0xffe 3
END
# Of all three, in flows that add up; ten of eleven calls of "hot" and "triple" come to their loop.
cat >three.xct <<'END'
dcpi-xct 1
run 1700000000 2 0 by-hand app, hi
image file 0123456789abcdef0123456789abcdef01234567
path /opt/app/app
n 116 11 2
n 11a 10 3 5
n 127 100 2 3 2
n 130 11 2
n 133 1 5
e 118 133 1
e 12e 127 90
e 138 130 1
image file 5712000000000000000000000000000000000001
path /opt/lib/strip.so
n 2a0 100
n 2b0 100 4 5 4 3
n 2d0 1 2 1 1 2 2 3 2 2
n 2e0 100 2 3 5 2 3
n 2f1 1 2 1 1 2
e 2b4 2a0 100
e 2e5 2b0 100
e 2ef 2e0 99
image dynamic 548d55ea56b9d142f1088afac3be17e74a5b61de
path hi
n 40 11 2
n 44 10 3 5
n 51 500 2 3 2
n 5a 11 2
n 5d 1 5
e 42 5d 1
e 58 51 490
e 62 5a 1
crc32c e14ccc09
END
{
	run dcpicosts "$app/app.xct"
	cat db/costs/*
	run dcpicalc hot app
	run dcpicosts "$app/app.xct"
	cat db/costs/*
	run dcpicosts app.c
	run dcpicosts -epoch 1 "$app/app.xct"
	run dcpicosts -db three three.xct
	cat three/costs/*
	run dcpicosts -db three -json three.xct "$app/app.xct"
	# By these costs "triple" ran as it was counted, and so did the library's procedures.
	run dcpicalc -db three triple | grep -E '^\$|^; FREQ|^block'
	run dcpicalc -db three entry strip.so | grep -E '^\$|^; FREQ|^block'
	run dcpicalc -db three 0x2b0 strip.so | grep -E '^\$|^; FREQ|^block'
	run dcpicosts -p app.c "$app/app.xct"
	# Half of the run's samples are on another platform, in a profile that is cut.
	for platform in box other; do
		"$mkdb" halves <<-END
			platform $platform
			epoch 1700000000
			profile file /opt/app/app $app/app
			event cpu-clock 1000000
			at hot+17 25
		END
	done
	truncate -s 100 halves/*/other/app.*
	run dcpicosts -db halves "$app/app.xct"
	run dcpicosts -db halves -json "$app/app.xct"
	ls halves/costs 2>&1 || :
	run dcpicosts -db halves -platform box "$app/app.xct"
} >out
sed -i "s|$DCPI_SRC/||" out
compare dcpicosts
