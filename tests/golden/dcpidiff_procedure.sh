#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpidiff of one procedure: by basic block where the code is the same (a program with DWARF, a
# stripped library, a JIT's routine at another address), else by source line.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

lib=$DCPI_SRC/tests/data/stripped/libapp.so
mkdir -p root/opt/app
cp "$lib" root/opt/app/libapp.so
# The routine of another run stands elsewhere; in the third it adds 4 in the place of 3.
jit()
{
	"$DCPI_BIN/../tests/mkjob" "runs/dyn/hi.box.$1.dyn" >/dev/null <<-END
		image 62 hi $1 box /opt/hi
		run ${2}000 0 0x1000
		file ./triple.hi
		line 0 1 0
		line 7 2 0
		line 17 4 0
		line 19 3 0
		line 26 5 0
		routine ${2}040 triple 85ff7e198d0c7fb800000000ba0000000001c283c00${3}39c875f789d0c3ba00000000ebf6
	END
}
"$mkdb" runs </dev/null
jit 100 0x7f0000001 3
jit 200 0x7f0000002 3
jit 300 0x7f0000003 4
counts()
{
	cat <<-END
		epoch $1
		profile dynamic hi.box.$2.dyn
		event cpu-clock 1000000
		at triple $3
		at triple+17 $4
		at triple+24 $5
		profile file /opt/app/app $app/app
		event cpu-clock 1000000
		event imiss 4096
		at hot+17 $4 1
		at hot+19 $5 2
		at hot+26 $3 0
		at warm 5 0
		profile file /opt/app/libapp.so $lib
		event cpu-clock 1000000
		at hot+17 $4
		at hot+29 $3
		finish
	END
}
{
	echo platform box
	counts 1700000000 100 10 60 30
	counts 1700000060 200 30 60 10
	counts 1700000120 300 10 70 20
} | "$mkdb" runs
export DCPIDB=runs
one="-set -epoch 202311142213" two="-set -epoch 202311142214" three="-set -epoch 202311142215"
{
	# Blocks of hot: the loop's 60+30 and 60+10 samples; its end's 10 and 30.
	run dcpidiff hot $one app $two app
	run dcpidiff -no_header -source_line hot $one app $two app
	run dcpidiff -no_header -event imiss hot $one app $two app
	run dcpidiff -no_header hot $one libapp.so $two libapp.so
	# The routine at another address, then with other code.
	run dcpidiff -no_header triple $one hi $two hi
	run dcpidiff triple $one hi $three hi
	# A program against the library made of the same source.
	run dcpidiff -no_header hot $one app $two libapp.so
	run dcpidiff -json 0x400127 $one app $two app
	run dcpidiff hot $one $two
	run dcpidiff nothing $one app $two app
	run dcpidiff hot -changed $one app $two app
	run dcpidiff hot $one app libapp.so $two app
	run dcpidiff -source_line $one $two
	run dcpidiff hot $one app
} >out
compare dcpidiff_procedure
