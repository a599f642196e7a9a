#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpix -from: what callgrind wrote becomes counts by image and offset, of a program with DWARF, of a
# stripped copy, of JIT code with and without its database, of a file that is gone.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
cp "$app/app" app
strip --strip-all -o bare app

# Three calls of "hot" (0x400116), one of them with nothing to do; 50 rounds in all. Its "ret" at +28 has a
# "rep" before it here, of which two rounds are to be taken off. "warm" (0x40013a) calls it.
counts() # counts PID NAME BASE
{
	printf 'version: 1\ncreator: callgrind-3.19.0\npid: %d\npart: 1\n\npositions: instr\nevents: Ir\n\n' "$1"
	printf 'ob=(1) %s\nfl=(1) ???\nfn=(1) hot\n' "$2"
	printf '0x%x 3\n+2 3\njcnd=1/3 +27 \n* \n+2 2\n+3 2\n+5 2\n' "$3"
	printf '+5 50\n+2 50\n+3 50\n+2 50\njcnd=48/50 -7 \n* \n+2 3\n+2 5\njump=2 * \n* \n+1 1\n+5 1\njump=1 -8 \n* \n'
	printf 'fn=(2) warm\n0x%x 3\ncfn=(1)\ncalls=3 0x%x \n* 222\ncob=(7) elsewhere.so\ncfn=(9) f\ncalls=1 0x10 \n* 5\n' \
		$(($3 + 0x2c)) "$3"
	printf '\ntotals: 225\n'
}
counts 4711 app 0x400116 >app.out
counts 4711 bare 0x400116 >bare.out
counts 4711 '???' 0x7f0000001040 >jit.out
counts 4711 gone 0x400116 >gone.out
sed 's/^totals.*/totals: 226/' app.out >wrong.out
head -n 20 app.out >cut.out

show() # what does not depend on when it was
{
	sed 's/^run [0-9]* /run UTC /; s/^crc32c .*/crc32c SUM/; s/^/    /' "$1"
}
{
	run dcpix -o app -from app.out
	show app.xct
	show app.tab
	run dcpix -json -o app -from app.out
	run dcpix -o bare -quiet -from bare.out
	show bare.xct
	show bare.tab
	run dcpix -o jit -quiet -db db -from jit.out
	show jit.xct
	show jit.tab
	run dcpix -o alone -quiet -from jit.out
	show alone.xct
	run dcpix -o gone -quiet -from gone.out
	show gone.xct
	run dcpix -o both -quiet -from app.out -from app.out
	show both.xct
	run dcpix -o none -from wrong.out
	run dcpix -o none -from cut.out
	run dcpix -o none -from /dev/null
	run dcpix -o none -from missing.out
	run dcpix -o none -db nowhere -from app.out
	run dcpix
	run dcpix -from app.out true
	run dcpix ./not-there
	run dcpix ./app.out
	ls none.* 2>&1 || :
	echo "# a name that a terminal would obey"
	"$DCPI_BIN/dcpix" -o $'red\e[31m' -from app.out 2>&1
} >out 2>&1
compare dcpix
