#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpi2bb: a program's lines by samples of time, by samples of instructions and costs that were measured, by counts;
# images without lines; what cannot be done.
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
	at 0x2c4 5
END

{
	run dcpi2bb app
	run dcpi2bb -conf_med app
	run dcpi2bb app warm
	run dcpi2bb -xct "$app/app.xct" app
	run dcpisumxct -o twice.xct "$app/app.xct" "$app/app.xct"
	run dcpi2bb -xct "$app/app.xct" -xct twice.xct -o app.prof app hot
	cat app.prof
	run dcpi2bb -json -xct "$app/app.xct" -o json.prof app hot
	run dcpi2bb -xct "$app/app.xct" -o plain.prof app hot
	cmp json.prof plain.prof
	run dcpi2bb -json app
	run dcpicosts "$app/app.xct"
	run dcpi2bb app hot
	run dcpi2bb 'hi[4711]'
	run dcpi2bb -db strip strip.so
	run dcpi2bb -db strip -xct "$app/app.xct" "$strip/strip.so"
	run dcpi2bb -xct "$app/app.xct" app warm
	run dcpi2bb -xct "$app/app.xct" -epoch all "$app/app"
	run dcpi2bb -xct "$app/app.xct" -platform box "$app/app"
	run dcpi2bb -xct "$app/app.xct" -event cpu-clock "$app/app"
	run dcpi2bb -xct "$app/app.xct" -since 10:00 "$app/app"
	run dcpi2bb -xct "$app/app.xct" -until now "$app/app"
	run dcpi2bb -xct "$app/app.xct" -label x "$app/app"
	run dcpi2bb -xct "$app/app.xct" -m none "$app/app"
	run dcpi2bb app missing
	run dcpi2bb vmlinux-6.1.0
	run dcpi2bb nowhere
	run dcpi2bb -event imiss app
	run dcpi2bb -xct app.c app
	run dcpi2bb -xct "$app/app.xct" nowhere
	run dcpi2bb -tab x app
	run dcpi2bb -conf_low -conf_high app
	run dcpi2bb
} >out 2>&1
sed -i "s|$DCPI_SRC/||g; s|^# dcpi2bb [0-9.]*|# dcpi2bb VERSION|" out
compare dcpi2bb
