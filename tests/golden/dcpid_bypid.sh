#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpid -bypid: a profile for each process of an image, pids used again included, and the same sums;
# without it one.
set -eu
export LC_ALL=C TZ=UTC
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

w=id=01010101010101010101 lib=id=03030303
{
	cat <<-END
		dcpi-replay 1
		utc 1700000000
		event cpu-clock 1000000
		comm pid=10 path=w
		mmap pid=10 addr=0x400000 len=0x3000 off=0x1000 $w path=/opt/w
		mmap pid=10 addr=0x7f0000000000 len=0x4000 $lib path=/opt/lib.so
		count t=100 pid=10 addr=0x400010 n=5
		count t=110 pid=10 addr=0x7f0000000010 n=2
	END
	# A hundred workers, on ten pids; each runs the program, its own copy of the library, and dies.
	for i in {1..100}; do
		pid=$((100 + i % 10)) t=$((i * 1000))
		cat <<-END
			fork t=$t pid=$pid ppid=10
			count t=$((t + 1)) pid=$pid addr=0x400010
			count t=$((t + 2)) pid=$pid addr=0x400020 n=2
			count t=$((t + 3)) pid=$pid addr=0x7f0000000010
			exit t=$((t + 4)) pid=$pid
		END
	done
	# The program begins another, and goes on as that: the same process of another image.
	cat <<-END
		fork t=200000 pid=300 ppid=10
		count t=200001 pid=300 addr=0x400010 n=3
		exec t=200002 pid=300 path=w
		mmap t=200003 pid=300 addr=0x500000 len=0x3000 off=0x1000 $w path=/opt/w
		count t=200004 pid=300 addr=0x500010 n=4
	END
} >stream

profiles()
{
	"$DCPI_BIN/dcpid" -quiet -replay stream -platform test "$@"
	for file in "${!#}"/2*/test/*.*; do echo "${file##*/}"; done
}
prof() { DCPIDB=$1 "$DCPI_BIN/dcpiprof" -no_header "${@:2}" 2>/dev/null; }

[ "$(profiles all | wc -l)" = 2 ]
profiles -bypid w own >files
[ "$(wc -l <files)" = 103 ] # 100 workers, the first process, the one that did exec, the library
[ "$(grep -c '^w\.file\.01010101010101010101-10[0-9]-[0-9]*000$' files)" = 100 ]
grep -qx 'w\.file\.01010101010101010101-10' files # when it began was not told
grep -qx 'w\.file\.01010101010101010101-300-200000' files
grep -qx 'lib\.so\.file\.03030303' files

# Added up they are what is in one; apart, each has its own samples.
prof all >one
prof own >two
diff -u one two
prof own -i -pids | awk '
	/w\[10\]$/ && $1 == 5 { first++ }
	/w\[10[0-9]\]$/ && $1 == 3 { workers++ }
	/w\[300\]$/ && $1 == 7 { again++ }
	/lib\.so$/ && $1 == 102 { lib++ }
	/ total$/ && $1 == 414 { total++ }
	END { exit !(NR == 104 && first == 1 && workers == 100 && again == 1 && lib == 1 && total == 1) }'

# By path; of both; of neither.
[ "$(profiles -bypid /opt/lib.so lib | wc -l)" = 102 ]
[ "$(profiles -bypid w -bypid lib.so both | wc -l)" = 203 ]
[ "$(profiles -bypid /opt/x/w neither | wc -l)" = 2 ]
