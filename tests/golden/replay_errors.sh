#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpid: what can be wrong with its options, its stream and its database is said in one line, with
# a hint where there is a remedy; and what was good before it stays.
set -eu
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

printf 'dcpi-replay 1\nutc 1700000000\nevent cycles 1000\nmmap pid=1 addr=0x1000 len=0x1000 id=0101 path=/a\ncount pid=1 addr=0x1001\n' >good
head -c -3 good >cut
{ cat good; echo 'count pid=1 addr=0x1001 event=7'; } >bad
mkdir other full
touch other/letter.txt
"$DCPI_BIN/dcpid" -quiet -replay good -platform test full

run()
{
	local status=0
	echo "\$ $*"
	"$DCPI_BIN/$1" "${@:2}" 2>&1 || status=$?
	echo "exit $status"
}

{
	run dcpid
	run dcpid -replay good -flsh 3 db
	run dcpid -replay good -background db
	run dcpid -replay good -rate 0 db
	run dcpid -source perf -table 64 db
	run dcpid -replay good -event cycles:1000 db
	run dcpid -replay good -source perf db
	run dcpid -replay good -slot cycles db
	run dcpid -replay good -quiet -unknown db
	run dcpirun -quiet -unknown true
	run dcpirun -quiet -verbose true
	run dcpirun -db '' true
	run dcpirun -source perf -event thread-clock true
	run dcpid -gc missing
	mkfifo pipe
	run dcpid -replay good -log pipe db
	run dcpid -replay good -platform a/b db
	run dcpid -replay good -platform .. db
	run dcpid -replay missing -platform test db
	ls -d db
	run dcpid -replay good -quiet -platform test other
	run dcpid -replay good -quiet -platform test other/letter.txt
	run dcpid -replay good -quiet -platform test -record /nonexistent/x db
	cp good stream
	run dcpid -replay stream -quiet -platform test -record ./stream db
	cmp good stream
	run dcpid -replay - -quiet -platform test -record stream db <stream
	cmp good stream
	run dcpid -replay cut -quiet -platform test cutdb
	run dcpid -replay bad -quiet -platform test baddb
	run dcpiprof -db baddb -no_header -i
	# A second epoch of the same minute takes the next free name; the first one is as it was.
	run dcpid -replay good -quiet -platform test full
	ls full | grep '^2'
	run dcpiprof -db full -no_header -i -epoch all
	run dcpictl -run "./none" status
	run dcpictl flsh
	run dcpictl flsh -n 5
	run dcpictl -run ./none -n 5 status
	run dcpictl -run ./none -json label x true
	run dcpictl -run ./none -n 5 -json log
	run dcpictl -run ./none label x true -x
	run dcpiquit -run "./none"
} >out 2>&1 || :
[ ! "${DCPI_UPDATE:-}" ] || cp out "$DCPI_SRC/tests/golden/replay_errors.expected"
diff -u "$DCPI_SRC/tests/golden/replay_errors.expected" out

# A record that is not complete is a failure, whenever it shows; what is in the database is good.
[ -w /dev/full ] || exit 0
{ cat good; yes 'count pid=1 addr=0x1001' | head -999; } >long
{
	run dcpid -replay good -quiet -platform test -record /dev/full recorded
	run dcpid -replay long -quiet -platform test -record /dev/full recorded
	run dcpiprof -db recorded -no_header -i -epoch all
} >out
diff -u - out <<'END'
$ dcpid -replay good -quiet -platform test -record /dev/full recorded
error: cannot complete '/dev/full': No space left on device
exit 1
$ dcpid -replay long -quiet -platform test -record /dev/full recorded
error: cannot write '/dev/full': No space left on device; it is not complete
exit 1
$ dcpiprof -db recorded -no_header -i -epoch all
1001  100.00%  100.00%  /a
1001  100.00%           total
exit 0
END
