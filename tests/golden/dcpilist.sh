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
} >out
compare dcpilist
"$DCPI_BIN/dcpilist" -json triple >json
"$DCPI_BIN/dcpilist" -json -bytes triple | diff json -
