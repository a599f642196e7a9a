#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpilist: source, instructions, both; ambiguous and unknown names; samples that fit no instruction.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

{
	run dcpilist hot app
	run dcpilist -both hot app
	run dcpilist -asm -bytes hot app
	run dcpilist -both -event cpu-clock -no_header warm
	run dcpilist -both triple
	run dcpilist -order triple
	run dcpilist -both -order -no_header -bytes hot app
	run dcpilist -bytes -no_header triple
	run dcpilist -bytes -source triple
	run dcpilist -order -no_header 0x40015d app
	run dcpilist -order -asm triple
	run dcpilist leaf 'hi[4711]'
	run dcpilist -asm hot vmlinux-6.1.0
	run dcpilist -asm -no_header 0x40015d app
	run dcpilist hot
	run dcpilist helper app
	run dcpilist tripple
	run dcpilist nothing_like_it app
	run dcpilist hot no_such_image
	run dcpilist '(idle)'
	run dcpilist -asm -both hot
	run dcpilist
	mv app.c gone.c
	run dcpilist -both -no_header hot app
	mv gone.c app.c
	run dcpilist -json triple
	# Rows with samples, and their neighbours.
	run dcpilist -hot -no_header hot app
	run dcpilist -hot -no_header -asm hot app
	run dcpilist -hot -no_header -both hot app
	run dcpilist -hot -no_header -order -event imiss hot app
	run dcpilist -hot -no_header -asm -event imiss triple
	# Sources that were moved: the longest end of the name that is there counts.
	mkdir -p moved/src other/deep
	mv app.c moved/src
	run dcpilist -source -no_header -source-path other:moved/src hot app
	echo "/* another text */" >other/app.c
	run dcpilist -source -no_header -source-path moved/src:other hot app
	mv moved/src/app.c .
	run dcpilist -source -no_header -source-path other hot app
	run dcpilist -source -no_header -source-path :nowhere: hot app
} >out
compare dcpilist
"$DCPI_BIN/dcpilist" -json triple >json
"$DCPI_BIN/dcpilist" -json -bytes triple | diff json -

# The sources of Rust's and Java's libraries are where packages put them.
rust=usr/lib/rustlib/src/rust/library/core/src java=usr/lib/jvm/jdk-21/lib/src/java.base/java/lang
mkdir -p "root/$rust" "root/$java"
echo "/* a line of Rust's library */" >"root/$rust/iter.rs"
echo "/* a line of Java's library */" >"root/$java/String.java"
"$mkdb" std </dev/null
"$DCPI_BIN/../tests/mkjob" std/dyn/std.box.1.dyn >/dev/null <<-END
	image 62 std 4711 box /opt/std
	run 0x7f0000001000 0 0x1000
	file /rustc/0123456789abcdef/library/core/src/iter.rs
	file java/lang/String.java
	line 0 1 0
	line 2 1 1
	routine 0x7f0000001080 leaf 89f8c3
END
printf 'platform box\nepoch 1700000000\nprofile dynamic std.box.1.dyn\nevent cpu-clock 1000000\nat leaf 5\nfinish\n' |
	"$mkdb" std
"$DCPI_BIN/dcpilist" -db std -source -no_header leaf >std.out
[ "$(grep -c 'a line of .* library' std.out)" = 2 ] || { cat std.out; exit 1; }
