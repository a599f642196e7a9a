#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# How often instructions ran, and their cost, where the hardware tells which sampled operations retired (AMD IBS that
# counts operations, Arm SPE): as written into the file, to the digit. Samples by a count of cycles do not tell it.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
support=$DCPI_SRC/tests/support
python3 "$support/insn_files.py" . "$app/app" measured
touch -d @1700000000 ./*.data
for name in ops trace filtered cycles; do
	"$DCPI_BIN/dcpid" -quiet -replay $name.data -platform test $name
done
{
	for name in ops trace; do
		"$DCPI_BIN/dcpilist" -db $name -json hot app >$name.list
		python3 "$support/insn_check.py" ran ran.json $name.list
	done
	run dcpilist -db ops -asm -freq hot app
	run dcpilist -db trace -both -pm '!retired,:inflight/count' hot app
	run dcpilist -db cycles -asm hot app
	run dcpicalc -db ops hot app
	run dcpiwhatcg -db trace
	run dcpi2bb -db ops app hot
	run dcpiprof -db ops -pm count,taken,:inflight/count
	run dcpiprof -db trace -i -csl -pm bycount^retired,bycount^!retired -keep 50
	run dcpiprof -db filtered -no_header -pm bycount,!bycount
	run dcpicat trace/202311142213/test/app.*
} >out
compare measured
