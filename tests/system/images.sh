#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Very many images in one epoch: the daemon takes little memory for each, stores all samples, adds to them in
# its next flush, and dcpiprof answers. Thousands of them, replayed; "scripts/test --long images": 100,000
# (DCPI_COUNT), with times and memory.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
count=${DCPI_COUNT:-4500} # a flush syncs 4,096 and more together

now() { date +%s%N; }

# since NANOSECONDS: milliseconds.
since() { echo $((($(now) - $1) / 1000000)); }

# records EVENT: a hundred images to a process, six samples in each.
records()
{
	awk -v n="$count" -v what="$1" '
		function pid(i) { return 1000 + int(i / 100) }
		function addr(i) { return (i % 100 + 1) * 65536 }
		BEGIN {
			for (i = 0; i < n; i++) {
				if (what == "mmap" && i % 100 == 0)
					printf "exec t=1 pid=%d path=work\n", pid(i)
				if (what == "mmap")
					printf "mmap t=2 pid=%d addr=%d len=65536 id=%08x path=/opt/%d/lib%d.so\n",
						pid(i), addr(i), i + 1, i % 10, i
				else
					for (k = 1; k <= 3; k++)
						printf "count t=3 pid=%d addr=%d n=%d\n", pid(i), addr(i) + 16 * k, k
			}
		}'
}

profiles() { find "$db" -name 'lib*.file.*' ! -name '.*' | wc -l; }

mkfifo "$work/stream"
"$DCPI_BIN/dcpid" -quiet -flush 1 -platform m -replay - "$db" <"$work/stream" &
daemon=$!
exec 9>"$work/stream"
printf 'dcpi-replay 1\nutc 1700000000\nevent cpu-clock 1000000\n' >&9
records mmap >&9
records count >&9
begin=$(now)
# While nothing comes it waits for that, and flushes nothing.
for ((i = 0; i < 600; i++)); do
	[ "$(profiles)" -lt "$count" ] || break
	echo "comm t=4 pid=1000 path=work" >&9
	sleep 0.2
done
first=$(since "$begin")
[ "$(profiles)" = "$count" ] || fail "$(profiles) profiles of $count"
memory=$(awk '/^VmHWM:/ { print $2 }' "/proc/$daemon/status")
records count >&9
exec 9>&-
begin=$(now)
wait "$daemon" || fail "dcpid ends with $?"
daemon=
echo "$count images: first flush $first ms, the next $(since "$begin") ms, dcpid $memory KiB"
# Each takes 2.5 KiB (measured with 100,000); a sanitizer's take more.
[ "$memory" -le $((count * 6 + 65536)) ] || fail "dcpid takes $memory KiB for $count images"

begin=$(now)
"$DCPI_BIN/dcpiprof" -i -no_header >"$work/images" || fail "dcpiprof -i"
echo "dcpiprof -i $(since "$begin") ms"
begin=$(now)
"$DCPI_BIN/dcpiprof" -no_header >"$work/procedures" 2>/dev/null || fail "dcpiprof"
echo "dcpiprof $(since "$begin") ms"
for table in images procedures; do
	awk -v n="$count" '
		$NF == "total" { total = $1; next }
		$1 == 12 { rows++ }
		END { exit !(rows == n && total == 12 * n) }' "$work/$table" ||
		fail "not $count $table of 12 samples: $(tail -n 2 "$work/$table")"
done
