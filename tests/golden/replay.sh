#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpid -replay: a stream with every turn that a process can take becomes a database; each sample is
# where it belongs or under the name of what hindered.
set -eu
export LC_ALL=C TZ=UTC
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

a=id=01010101010101010101 b=id=02020202020202020202 lib1=id=03030303 lib2=id=04040404
cat >stream <<END
dcpi-replay 1
utc 1700000000
event cycles 65536
event imiss 4096
kernel addr=0xffffffff81000000 len=0x200000 id=0505050505050505 path=vmlinux
ksymbol addr=0xffffffffc0001000 len=0x100 path=bpf_prog_1
# before the recording: pid 10 runs a, with one library
comm pid=10 path=a
mmap pid=10 addr=0x400000 len=0x3000 off=0x1000 $a path=/bin/a
mmap pid=10 addr=0x7f0000000000 len=0x4000 $lib1 path=/lib/one.so
count t=100 pid=10 addr=0x400010 n=5
count t=110 pid=10 addr=0x400010 event=1 n=2
count t=120 pid=10 addr=0x402fff
# just behind the mapping: unknown
count t=130 pid=10 addr=0x403000
# a library is replaced in the middle by another: the offsets behind the cut stay
count t=140 pid=10 addr=0x7f0000001000
mmap t=150 pid=10 addr=0x7f0000001000 len=0x1000 off=0x8000 $lib2 path=/lib/two.so
count t=160 pid=10 addr=0x7f0000000fff
count t=161 pid=10 addr=0x7f0000001000 n=3
count t=162 pid=10 addr=0x7f0000002000
# a child inherits the mappings, and loses them at exec
fork t=200 pid=11 ppid=10
count t=210 pid=11 addr=0x400010
exec t=220 pid=11 path=b
count t=225 pid=11 addr=0x400010
mmap t=230 pid=11 addr=0x400000 len=0x1000 $b path=/bin/b
count t=240 pid=11 addr=0x400010 n=7
# the parent has its own still; then its pid is used again by a child of 11
count t=250 pid=10 addr=0x400010
exit t=260 pid=10
fork t=270 pid=10 ppid=11
count t=280 pid=10 addr=0x400010 n=11
# the same file under another name, a file without build-id, memory that is no file
mmap t=300 pid=10 addr=0x500000 len=0x1000 $b path=/bin/b-again
count t=310 pid=10 addr=0x500004
mmap t=320 pid=10 addr=0x600000 len=0x1000 major=8 minor=1 inode=77 path=/bin/no-id
count t=330 pid=10 addr=0x600008 n=2
mmap t=340 pid=10 addr=0x700000 len=0x1000 path=//anon
count t=350 pid=10 addr=0x700008 n=3
# somebody of whom nothing is known; the kernel; the hypervisor
count t=400 pid=99 addr=0x400010 n=4
count t=410 pid=-1 addr=0x400010
count t=420 pid=10 mode=kernel addr=0xffffffff81000020 n=6
count t=430 pid=10 mode=kernel addr=0xffffffffc0001004
count t=440 pid=10 mode=kernel addr=0xfffffffff0000000 n=2
count t=450 pid=10 mode=other addr=0x1234 n=2
END

# The sum of the stream: counts without n= are one sample.
given=$(awk '$1 == "count" { n = 1; for (i = 2; i <= NF; i++) if ($i ~ /^n=/) n = substr($i, 3); s += n }
	END { print s }' stream)

"$DCPI_BIN/dcpid" -replay stream -platform test -record again -unknown -log log db
{
	ls db
	for file in db/2*/test/*.*; do
		echo
		"$DCPI_BIN/dcpicat" "$file"
	done
} >out 2>&1
diff -u "$DCPI_SRC/tests/golden/replay.expected" out

# Nothing is lost on the way: the log, the profiles and the stream name one sum.
grep -q "finished: $given samples stored\$" log
"$DCPI_BIN/dcpiprof" -db db -no_header 2>/dev/null |
	awk -v given="$given" '$NF == "total" { total = $1 + $(NF - 2) } END { exit total != given }'

# Whoever starts it without standard input, output and error gets the same: nothing that is said goes into its files.
"$DCPI_BIN/dcpid" -replay stream -platform test closed <&- >&- 2>&-
"$DCPI_BIN/dcpiprof" -db closed -no_header 2>/dev/null |
	awk -v given="$given" '$NF == "total" { total = $1 + $(NF - 2) } END { exit total != given }'

# What was recorded while replaying says the same again: equal databases, equal records.
# A record tells where the kernel lies: a file that was there keeps no more than 0640 of its mode.
touch again2
chmod 646 again2
"$DCPI_BIN/dcpid" -quiet -replay again -platform test -record again2 db2
cmp again again2
[ "$(stat -c %a again2)" = 640 ]
for file in db/2*/test/*.*; do
	"$DCPI_BIN/dcpicat" "$file" >one
	"$DCPI_BIN/dcpicat" "db2${file#db}" >two
	diff -u one two
done

# -unknown names the process and address of each user sample that is in no image; those that might
# have been a JIT's come last, when the registries have been read.
sed -n 's/^[^ ]* info: \(.* samples of pid .*\)/\1/p' log >unknown
diff -u - unknown <<END
unknown: 1 samples of pid 10 () at 0x403000
unknown: 1 samples of pid 11 (b) at 0x400010
unknown process: 4 samples of pid 99 () at 0x400010
unknown process: 1 samples of pid -1 () at 0x400010
dynamic, unknown: 3 samples of pid 10 (b) at 0x700008
END

# A signal ends the reading of a pipe in the midst of a line: what came before is stored, its epoch finished.
mkfifo pipe
"$DCPI_BIN/dcpid" -replay - -platform test -unknown -log ended.log ended <pipe &
exec 9>pipe
{ cat stream; head -c 3000000 /dev/zero | tr '\0' '#'; } >&9
kill $!
wait $!
grep -q 'ended by signal 15: flushing' ended.log
grep -q "finished: $given samples stored\$" ended.log
for file in db/2*/test/*.*; do
	diff -u <("$DCPI_BIN/dcpicat" "$file") <("$DCPI_BIN/dcpicat" "ended/${file#db/}")
done
