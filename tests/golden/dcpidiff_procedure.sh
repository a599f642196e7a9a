#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpidiff of one procedure: by basic block where the code is the same (a program with DWARF, a
# stripped library, a JIT's routine at another address), else by source line; by samples, and by cycles,
# frequencies and stalls where samples of instructions tell executions.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
. "$DCPI_SRC/tests/support/stall-db.sh"

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
# The loop of hot (4 instructions): 20,000 samples of each, one for 1,000, are 20 million rounds; 1,000 samples of
# 100,000 cycles are 1.25 cycles an instruction. Then 40 million rounds and 800 samples: 0.5. Its end (2 instructions)
# 100,000 times, 50 cycles each, then 150. The last block of warm: 2,400 samples, then 4,400, 100,000 times: 2,400
# and 4,400 cycles, behind loads.
counted()
{
	cat <<-END
		epoch $1
		profile file /opt/app/app $app/app
		event cycles 100000
		event instructions 1000
		at hot 20 100
		at hot+2 10 100
		at hot+4 0 100
		at hot+7 0 100
		at hot+0xc 0 100
		at hot+0x11 $2 $3
		at hot+0x13 10 $3
		at hot+0x16 10 $3
		at hot+0x18 10 $3
		at hot+0x1a $4 100
		at hot+0x1c 0 100
		at warm 100 100
		at warm+0x1 0 100
		at warm+0x2 0 100
		at warm+0x4 0 100
		at warm+0x6 0 100
		at warm+0x8 0 100
		at warm+0xd 0 100
		at warm+0xf 0 100
		at warm+0x11 0 100
		at warm+0x16 0 100
		at warm+0x1a 100 100
		at warm+0x1c 100 100
		at warm+0x1d $5 100
		at warm+0x1e 100 100
		finish
	END
}
{
	echo platform box
	counted 1700000000 970 20000 100 2100
	counted 1700000060 770 40000 300 4100
} | "$mkdb" counted
# went START N TIMES: 2 * N windows, in each of which the loop goes back so often.
went()
{
	cat <<-END
		move $1 - $1 $2 $2
		move $1 hot+0x18 hot+0x11 $(($2 * $3)) $(($2 * $3))
		move $1 hot+0x18 hot+0x1a $2 $2
		move $1 hot+0x1c - $2 $2
	END
}
# 800 windows: the loop goes back 7,200 times and ends 800 times, which is 10 rounds each time that hot runs; then
# 31,200 times, which is 40.
windowed()
{
	cat <<-END
		epoch $1
		profile file /opt/app/app $app/app
		event cpu-clock 1000000
		at hot 20
		at hot+0x11 400
		at hot+0x1a 20
		$(went hot 200 "$2")
		move hot hot+0x2 hot+0x4 200 200
		$(went hot+0x11 100 "$2")
		$(went hot+0x18 100 "$2")
		finish
	END
}
{
	echo platform box
	windowed 1700000000 9
	windowed 1700000060 39
} | "$mkdb" windowed
# The same program for a machine whose code nobody here can read, under a build-id of its own.
mkdir -p root/.build-id/02
other=root/.build-id/02/23456789abcdef0123456789abcdef01234567
LC_ALL=C sed 's/\x01\x23\x45\x67\x89\xab/\x02\x23\x45\x67\x89\xab/' "$app/app" >$other
printf '\026' | dd of=$other bs=1 seek=18 conv=notrunc status=none
"$mkdb" other <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/other $other
	event cpu-clock 1000000
	at hot+17 30
	finish
	epoch 1700000060
	profile file /opt/app/other $other
	event cpu-clock 1000000
	at hot+17 60
	finish
END
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
	run dcpidiff -db counted hot $one app $two app
	run dcpidiff -db counted -no_header -source_line -compare cpi hot $one app $two app
	run dcpidiff -db counted -compare all -verbose hot $one app $two app
	run dcpidiff -db counted -no_header -compare samples,static_stalls,dynamic_stalls warm $one app $two app
	run dcpidiff -db counted -event instructions -compare all hot $one app $two app
	run dcpidiff -db windowed -compare frequency -verbose hot $one app $two app
	run dcpidiff -db windowed -compare frequency -no_header -conf_high hot $one app $two app
	"$DCPI_BIN/dcpidiff" -db windowed -json hot $one app $two app | grep -A 4 '"freq'
	# A hint is enough where one says so; what came from outside may be what warm waits for.
	run dcpidiff -no_header -compare frequency -verbose -conf_low hot $one app $two app
	for how in optimistic pessimistic; do
		run dcpidiff -db waits -no_header -compare static_stalls,dynamic_stalls -cross_procedure $how warm -set app -set app
	done
	run dcpidiff -conf_low $one app $two app
	run dcpidiff -conf_low -conf_high hot $one app $two app
	run dcpidiff -cross_procedure sometimes hot $one app $two app
	run dcpidiff -no_header -compare all hot $one app $two app
	run dcpidiff -event imiss -no_header -compare frequency,cpi hot $one app $two app
	# One measure, and no header: what is not known is said.
	run dcpidiff -no_header -compare cpi hot $one app $two app
	run dcpidiff -db other -source_line hot $one other $two other
	# Of code that nobody here can read there are no blocks.
	run dcpidiff -db other hot $one other $two other
	run dcpidiff -db other -source_line -compare cpi hot $one other $two other
	"$DCPI_BIN/dcpidiff" -db counted -json -compare frequency,cpi hot $one app $two app >json
	sed -n '/"measures"/,/^  \],/p' json
	echo
	"$DCPI_BIN/dcpidiff" -json -source_line hot $one app $two app >json
	sed -n '/^  "by"/,$p' json
	echo
	run dcpidiff hot $one $two
	run dcpidiff -compare cycles hot $one app $two app
	run dcpidiff -compare cpi $one $two
	run dcpidiff -verbose $one $two
	run dcpidiff nothing $one app $two app
	run dcpidiff hot -changed $one app $two app
	run dcpidiff hot $one app libapp.so $two app
	run dcpidiff -source_line $one $two
	run dcpidiff hot $one app
} >out
compare dcpidiff_procedure
