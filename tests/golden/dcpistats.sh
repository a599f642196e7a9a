#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpistats: what varied between sets, by procedure and by image; sets of other length; one set for
# each image; what is left out is one line.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

# Three runs. The program with DWARF, the same in a stripped copy, a JIT's routine.
lib=$DCPI_SRC/tests/data/stripped/libapp.so
{
	echo platform box
	while read -r epoch hot warm jit none; do
		cat <<-END
			epoch $epoch
			profile file /opt/app/app $app/app
			event cpu-clock 1000000
			event imiss 4096
			at hot $hot 3
			at warm $warm 0
			profile file /opt/app/libapp.so $lib
			event cpu-clock 1000000
			at hot $none
			at 0x2e0 $none
			profile dynamic hi.box.1.dyn
			event cpu-clock 1000000
			at triple $jit
			finish
		END
	done <<-END
		1700000000 100 50 10 4
		1700000060 130 50 0 4
		1700000120 115 44 30 5
	END
} >runs.txt
"$mkdb" runs </dev/null
cp db/dyn/hi.box.1.dyn runs/dyn
"$mkdb" runs <runs.txt
mkdir -p root/opt/app
cp "$lib" root/opt/app/libapp.so
export DCPIDB=runs
one=202311142213 two=202311142214 three=202311142215
all="-set -epoch $one -set -epoch $two -set -epoch $three"
{
	run dcpistats $all
	run dcpistats -no_header -norm -show_images $all
	run dcpistats -no_header -i $all
	run dcpistats -no_header -cutoff 50 $all
	run dcpistats -no_header -keep 60 $all
	run dcpistats -no_header -keep 62.5 -set -epoch $one app hi -set -epoch $one app hi # hot alone has as many
	run dcpistats -set -epoch $one app -set -epoch $two -factor 1.25 app
	run dcpistats -epoch $one -event imiss -no_header -set -set app
	run dcpistats -no_header -set -epoch $one -event imiss app -set -epoch $two -event cpu-clock app
	# What a set chooses is no other's: the second is of the newest epoch.
	run dcpistats -no_header -set -epoch $one -factor 2 app -set app
	run dcpistats -epoch $one app hi
	run dcpistats -set -epoch $one..$two app hi -set -epoch $three app
	run dcpistats -json -keep 60 -set -epoch $one app hi -set -epoch $two app
	run dcpistats -json -i -cutoff 50 -set -epoch $one -set -epoch $two -factor 0.5
	run dcpistats -set -epoch $one
	run dcpistats app -set -set
	run dcpistats app no_such_image
	run dcpistats -set -epoch $one -event imiss app -set -db db -event nothing
	run dcpistats -factor 0 -set -set
	run dcpistats
} 2>&1 | sed "s,$PWD/,,g" >out
compare dcpistats
