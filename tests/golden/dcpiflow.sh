#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpiflow: blocks, edges and samples of a program, a stripped library, a pseudo-image; what has no
# samples, no bytes or no name. Then dcpisource and dcpi2ps on what it printed.
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
# A program where it was profiled, and a copy of one that is not there any more.
mkdir here
cp "$app/app" here/prog
ln -s prog here/link
cp "$strip/strip.so" here
cp "$app/app" here/copy
"$mkdb" here/db <<-END
	platform box
	epoch 1700000000
	profile file $work/here/prog $app/app
	id 0000000000000000000000000000000000000001
	event cpu-clock 1000000
	at hot+17 3
	profile file /opt/app/gone $app/app
	event cpu-clock 1000000
	at hot+17 5
END

{
	run dcpiflow hot app
	run dcpiflow -event imiss hot app
	run dcpiflow -samesize triple
	run dcpiflow _start app
	run dcpiflow -db strip 0x2b9
	run dcpiflow -db strip 0x2c4
	run dcpiflow 0x40015d app
	run dcpiflow hot vmlinux-6.1.0
	run dcpiflow hot
	run dcpiflow nothing_like_it app
	run dcpiflow
	run dcpiflow -json leaf 'hi[4711]'
	# Files that the user names: without samples, by other ways to where they were, with another identity, by
	# theirs, and what is none.
	run dcpiflow 0x2b0 here/strip.so
	run dcpiflow hot "$app/app"
	export DCPI_DEBUG_PATH=
	run dcpiflow -db here/db hot here/link
	run dcpiflow -db here/db hot here/../here/prog
	run dcpiflow -db here/db hot here/copy
	run dcpiflow -db here/db hot copy
	run dcpiflow -db here/db hot ./app.c
	run dcpiflow nothing_like_it here/strip.so
	run dcpilist 0x2b0 here/strip.so
	run dcpicalc -cutoff 100 entry here/strip.so
} >out
sed -i "s|$work|WORK|g; s|$DCPI_SRC/||" out
compare dcpiflow
