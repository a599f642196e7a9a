#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The old form both ways with a program that knows nothing but the original's page: what it writes is read
# right, and it reads right what dcpicat and "dcpid -format" write.
set -eu
export LC_ALL=C TZ=UTC
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
PATH=$DCPI_BIN:$DCPI_BIN/../tests:$PATH

run() {
	local code=0
	echo "\$ $*"
	"$@" 2>&1 || code=$?
	[ $code = 0 ] || echo "exit $code"
}

# header EVENT PERIOD EPOCH [LINE…]
header()
{
	printf '%s\n' "image 0A1b2c" "epoch $3" "platform two words" "event $1" "period 00$2" \
		"path /usr/bin/made" "tsize 0" "cpuspeed 333" "cpuamask 5fF" "cpuimplv 2" "cpucount 4" "${@:4}" samples
}

cat >stream <<-END
	dcpi-replay 1
	utc 1700000000
	event cpu-clock 1000000
	event instructions:u 4096
	comm pid=10 path=w
	mmap pid=10 addr=0x400000 len=0x3000 off=0x1000 id=01010101 path=/opt/w
	mmap pid=10 addr=0x7f0000000000 len=0x200000000 id=03030303 path=/opt/huge.so
	count t=100 pid=10 addr=0x400010 n=5
	count t=110 pid=10 addr=0x400011 n=6
	count t=120 pid=10 addr=0x400011 n=7 event=1
	count t=130 pid=10 addr=0x400016 n=8
	count t=140 pid=10 addr=0x7f0000000010 n=4294967295
	count t=150 pid=10 addr=0x7f00fffffff0 n=3 event=1
	count t=160 pid=10 addr=0x7f0100000000 n=2 event=1
	count t=170 pid=99 addr=0x7f0100000000 n=4
END
# An ELF file with a build-id; our own programs are scripts where an emulator runs them.
elf=$(command -v readelf)
cat >found <<-END
	dcpi-replay 1
	utc 1700000000
	event cpu-clock 1000000
	comm pid=10 path=w
	mmap pid=10 addr=0x400000 len=0x1000 off=0 id=$(readelf -n "$elf" | sed -n 's/.*Build ID: //p') path=$elf
	count t=100 pid=10 addr=0x400010 n=5
END
# Two of these cannot be told in 32 bits: one file of version 1 for both.
sed 's/addr=0x7f0000000010 n=4294967295/&\ncount t=141 pid=10 addr=0x7f0000000010 n=1/' stream >more

# old_files VERSION: how many of the database's files are of it.
old_files() { grep -lax "version $1" "$2"/2*/*/* | wc -l; }
prof() { dcpiprof -db "$1" -epoch all -i -no_header 2>/dev/null; }

{
	echo "# written by the page"
	{ header cycles 63488 9612042334 "weather  fine " && printf '%s\n' "0x10 1 0 3" "0x13 0 0" "0x40 7"; } |
		oldform write >made
	run oldform read made
	run dcpicat made
	header imiss 4096 6912312359 | oldform write >none
	run dcpicat none
	{ header cycles 1 20021204233459 && echo "0xffffffff 1"; } | oldform write >seconds
	run dcpicat seconds
	run oldform read seconds
	echo "# written by dcpicat"
	run dcpicat -output one made
	run dcpicat -format 0.06 -output six one
	run oldform read six
	run oldform counts six
	run grep -ax -e "version .*" -e "weather .*" -e "cpu.*" -e "kind .*" six
	echo "# written by dcpid"
	for version in 1 0.07 0.06; do
		run dcpid -quiet -replay stream -platform test -format $version db-$version
	done
	run oldform read db-0.07/2*/test/*+*
	cat db-0.07/2*/test/*+* >all-7
	cat db-0.06/2*/test/*+* | sed 's/version 0.06/version 0.07/' | cmp - all-7
	run oldform counts db-0.06/2*/test/*+*
	for version in 1 0.07 0.06; do
		echo "$version: $(old_files 0.06 db-$version) $(old_files 0.07 db-$version) $(old_files "dcpi-dynamic 1" db-$version)"
	done
	echo "# an old form by dcpicat holds the text of an image that is found"
	dcpid -quiet -replay found -platform test db-found
	cp db-found/2*/test/*.* found1
	dcpicat found1 | grep ^text_ >text
	[ "$(wc -l <text)" = 2 ] || cat text
	run dcpicat -format 0.07 -output found7 found1
	grep -acE '^(tstart 0x[0-9a-f]+|tsize [1-9][0-9]*)$' found7
	dcpicat found7 | grep ^text_ | diff text -
	echo "# the same samples, whatever the form"
	run prof db-1
	for version in 0.07 0.06; do
		prof db-$version | diff <(prof db-1) -
	done
	echo "# what does not fit goes into version 1"
	dcpid -quiet -replay more -platform test -format 0.07 db-more 2>said || echo "exit $?"
	sed 's/^[0-9-]* [0-9:.]* //' said
	run prof db-more
	run oldform counts db-more/2*/test/w*+*
	run dcpid -quiet -replay stream -platform test -format 1.01 db-x
	run ls -d db-x
} >got
[ -z "${DCPI_UPDATE:-}" ] || cp got "$DCPI_SRC/tests/golden/oldform.expected"
diff -u "$DCPI_SRC/tests/golden/oldform.expected" got
