#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Short processes without end: runs of a compiler, each of another process with a sample or two and pids that come
# again, are one workload with their number; every sample is kept, memory and files are those of a thousand.
# DCPI_SHORT_RUNS=1000000 tries a million.
set -eu
export LC_ALL=C TZ=UTC
runs=${DCPI_SHORT_RUNS:-30000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "$0: $*" >&2; exit 1; }

cat >head <<-END
	dcpi-replay 1
	utc 1700000000
	event cpu-clock 1000000
	fork t=1 pid=10 ppid=1
	exec t=2 pid=10 path=make
	mmap t=3 pid=10 addr=0x400000 len=0x10000 id=01010101 path=/usr/bin/make
END
# A thousand of them: every tenth is an assembler, and every hundredth never becomes another program than make.
awk 'BEGIN {
	for (i = 0; i < 1000; i++) {
		pid = 1000 + i
		t = 1000000 * (i + 1)
		print "fork t=" t " pid=" pid " ppid=10"
		if (i % 100 != 99) {
			name = i % 10 ? "cc1" : "as"
			print "exec t=" t + 1 " pid=" pid " path=" name
			print "mmap t=" t + 2 " pid=" pid " addr=0x400000 len=0x100000 id=" (i % 10 ? "02020202" : "03030303") " path=/usr/lib/" name
		}
		print "count t=" t + 3 " pid=" pid " addr=" 4194304 + i % 50 * 16 (i % 2 ? "" : " n=2")
		print "exit t=" t + 4 " pid=" pid
	}
}' >thousand

# replay RUNS DATABASE: prints the most KiB that the daemon had.
replay()
{
	{ cat head && for ((i = 0; i < $1; i += 1000)); do cat thousand; done; } |
		python3 -c 'import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)' "$DCPI_BIN/dcpid" -quiet -replay - -platform box "$2"
}
export ASAN_OPTIONS=quarantine_size_mb=1:${ASAN_OPTIONS:-}
few=$(replay 1000 few)
many=$(replay "$runs" many)
[ "$many" -le $((few * 2 + 16384)) ] || fail "$many KiB for $runs runs, $few KiB for a thousand"
[ "$(find many -type f | wc -l)" = "$(find few -type f | wc -l)" ] || fail "files: $(find many -type f)"
[ "$(du -s many | cut -f 1)" -le $(($(du -s few | cut -f 1) + 64)) ] || fail "$(du -s few many)"

# Numbers are those of a thousand runs.
export DCPIDB=many
"$DCPI_BIN/dcpiprof" -by comm -json >json
python3 - $((runs / 1000)) <<-'END' >out
	import json, sys
	t, factor = json.load(open("json")), int(sys.argv[1])
	for row in t["rows"]:
	    print(row["name"], row["samples"]["cpu-clock"] / factor, row["processes"] / factor)
	print("total", t["total"]["cpu-clock"] / factor)
END
"$DCPI_BIN/dcpiprof" -i -json >json
python3 - $((runs / 1000)) <<-'END' >>out
	import json, sys
	t, factor = json.load(open("json")), int(sys.argv[1])
	for row in t["rows"]:
	    print(row["image"], row["samples"]["cpu-clock"] / factor)
END
if [ "${DCPI_UPDATE:-}" ]; then
	cp out "$DCPI_SRC/tests/golden/short_processes.expected"
fi
diff -u "$DCPI_SRC/tests/golden/short_processes.expected" out
