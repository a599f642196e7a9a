#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The same stream, sample by sample and as the source bpf counts it, gives equal profiles, byte for
# byte: processes that begin, exec, end and whose pids are used again, two events, kernel and
# dynamic code, through roomy tables and through tiny ones.
set -eu
export LC_ALL=C TZ=UTC
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
restream=$DCPI_BIN/../tests/restream

# le LEN VALUE: little-endian hex.
le()
{
	local i v=$2
	for ((i = 0; i < $1; i++)); do
		printf %02x $((v >> 8 * i & 255))
	done
}

hex() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n'; }

# routine HANDLE ADDR NAME(4 bytes): 16 bytes of code, no lines.
routine()
{
	le 4 80; le 2 2; le 2 1
	le 4 0; le 4 0; le 8 "$1"; le 8 "$2"; le 8 16; le 4 4; le 4 0; le 4 0; le 4 0
	hex "$3"; hex "0123456789abcdef"; le 4 0
}

# Facility 0 "jits", its arena, two routines.
dyn=$(
	le 4 32; le 2 5; le 2 0; le 4 0; le 4 1; le 4 4; le 4 62; hex jits; le 4 0
	le 4 48; le 2 6; le 2 0; le 4 0; le 4 0; le 4 0; le 4 1; le 8 $((0x7000000)); le 8 4096; le 4 0; le 4 0
	routine 1 $((0x7000100)) hot1
	routine 2 $((0x7000200)) hot2
)

# Lives of three pids in a row, each with one of two programs; what is where is drawn.
awk -v dyn="$dyn" '
	# addr: format of an address and what goes into it; awk has no numbers so large
	function count(pid, format, off, more) { printf "count t=%d pid=%d addr=" format "%s\n", t, pid, off, more }
	function maps(pid, which) {
		printf "mmap t=%d pid=%d addr=0x400000 len=0x10000 id=%s path=/bin/%s\n", ++t, pid,
			which ? "0101" : "0202", which ? "one" : "two"
	}
	function life(pid, parent, n,   i, which) {
		which = rand() < 0.5
		printf "fork t=%d pid=%d ppid=%d\n", ++t, pid, parent
		for (i = 0; i < 20; i++) { # the parent'"'"'s mappings, as a child has them
			t += int(rand() * 50) + 1
			count(pid, "0x4%05x", int(rand() * 20), "")
		}
		printf "exec t=%d pid=%d path=p%d\n", ++t, pid, which
		maps(pid, which)
		for (i = 0; i < n; i++) {
			t += int(rand() * 50) + 1
			if (rand() < 0.2)
				count(pid, "0xffffffff81%06x", int(rand() * 5), " mode=kernel")
			else if (rand() < 0.05)
				count(0, "0xffffffff81%06x", 256, " mode=kernel")
			else if (rand() < 0.3)
				count(1, "0x7000%03x", 256 + 256 * (rand() < 0.4) + int(rand() * 16), "")
			else
				count(pid, "0x4%05x", int(rand() * rand() * 200), rand() < 0.3 ? " event=1" : "")
		}
		printf "exit t=%d pid=%d\n", ++t, pid
	}
	BEGIN {
		srand(7)
		print "dcpi-replay 1\nutc 1700000000\nevent cycles 65536\nevent imiss 4096"
		print "kernel addr=0xffffffff81000000 len=0x200000 id=0505 path=vmlinux"
		print "comm pid=1 path=jit"
		print "mmap pid=1 addr=0x400000 len=0x10000 id=0303 path=/bin/jit"
		print "mmap pid=1 addr=0x7000000 len=0x1000 path=//anon"
		t = 1000
		printf "dyn t=%d pid=1 data=%s\n", t, dyn
		for (k = 0; k < 40; k++)
			life(10 + k % 3, 1, 60)
	}' >stream

given=$(grep -c ^count stream)
"$DCPI_BIN/dcpid" -quiet -replay stream -platform test samples

by_comm() { "$DCPI_BIN/dcpiprof" -db "$1" -no_header -by comm 2>/dev/null; }

# check TABLE DRAIN: entries, nanoseconds.
check()
{
	local name=counts-$1-$2 file
	"$restream" stream "$name" "$1" "$2" >said
	echo "$given samples received, $given handed on" | diff -u - said
	"$DCPI_BIN/dcpid" -quiet -replay "$name" -platform test "db-$name"
	for file in samples/2*/test/*.*; do
		cmp "$file" "db-$name${file#samples}"
	done
	# Which processes are kept by pid depends on when each count came.
	diff <(by_comm samples) <(by_comm "db-$name")
	diff <(cd samples && find . -type f -path './2*' ! -name .index | sort) \
		<(cd "db-$name" && find . -type f -path './2*' ! -name .index | sort)
	nr=$(grep -c ^count "$name")
}

check 4096 10000
[ "$nr" -lt "$given" ] || { echo "nothing was counted together"; exit 1; }
check 16 10000
check 4 1000
check 1024 1000000000
[ "$nr" -lt $((given * 3 / 4)) ] || { echo "hardly anything was counted together: $nr of $given"; exit 1; }

# All that was to be there is.
"$DCPI_BIN/dcpiprof" -db samples -i -no_header -event cycles 2>/dev/null >images
for name in one two vmlinux jit; do
	grep -q "$name" images || { echo "no samples in $name:"; cat images; exit 1; }
done
