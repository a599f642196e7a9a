#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpicalc: frequencies and costs of a program, a stripped library, a pseudo-image; by time, by instructions, by
# counts; what there is nothing to estimate from.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
. "$DCPI_SRC/tests/support/stall-db.sh"

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
	run dcpicalc -db events -conf_low -cutoff 5 warm app
	run dcpicalc -db events -conf_low -event cycles warm app | sed -n '/^summary/,$p'
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
