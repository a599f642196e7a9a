#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What the installed perf recorded, replayed: perf report and dcpiprof count the same samples of each
# procedure and image, in whatever way they were recorded.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
command -v perf >/dev/null || {
	echo "skip: needs perf (linux-perf)"
	exit 77
}
export DEBUGINFOD_URLS='' PERF_CONFIG=/dev/null
mix=$DCPI_BUILD/tests/mix
cd "$work" || exit 1

# broke_down STATUS FILE: perf itself did, by a signal or by a fault that it names: none of our doing.
broke_down() { [ "$1" -ge 128 ] || grep -Eq 'stack smashing|assertion failed|Segmentation fault' "$2"; }

perf_report() { perf report -i "$1" --stdio -n -t '|' --no-children -g none --sort dso,sym -F sample,dso,sym; }

# recorded FILE OPTION…: and perf can read it; with perf's own words kept for a failure. 1: perf itself broke down each
# time. Debian's 6.1 does when it records two events, or, without --buildid-mmap, where others sample with build-ids
# (the kernel sets their mark for all).
recorded()
{
	local file=$1 try status
	shift
	for try in 1 2 3 4 5; do
		perf record -o "$file" -N "$@" >"$file.out" 2>&1 && perf_report "$file" 2>>"$file.out" >/dev/null && return
		status=$?
		broke_down $status "$file.out" || fail "perf record $*: $(tail -n 3 "$file.out")"
		sleep 1
	done
	echo "perf itself breaks down: perf record $*: $(tail -n 1 "$file.out")"
	return 1
}

record()
{
	local file=$1
	shift
	recorded "$file" --buildid-mmap "$@" || fail "without perf there is nothing to compare"
}

# merged: images that mix does not run become one. Of those of other programs perf and dcpid may name a removed or
# replaced file differently.
merged()
{
	awk -F '|' '$2 !~ /^(mix|libc|ld-linux|vmlinux)/ { $2 = "other"; $3 = "" }
		{ n[$2 "|" $3] += $1 }
		END { for (k in n) print n[k] "|" k }' | sort
}

# of_perf FILE EVENT: "samples|image|procedure" lines, as perf report counts them. Images by base
# name; procedures where they are the program's own; all that is no file under one name.
of_perf()
{
	perf_report "$1" 2>/dev/null |
		awk -F '|' -v event="'$2'" -v kernel="vmlinux-$(uname -r)" '
			/^# Samples: / { on = index($0, event) > 0 }
			/^#/ || NF < 3 || !on { next }
			{ gsub(/^ +| +$/, "", $2); sub(/ \(deleted\)$/, "", $2); sub(/.* /, "", $2)
			  sub(/^\[.\] /, "", $3); gsub(/ +$/, "", $3) }
			$2 == "[kernel.kallsyms]" { $2 = kernel }
			$2 ~ /^(\[|\/\/|memfd:|bpf_|tid$|[0-9]+$)/ { $2 = "other" }
			{ n[$2 "|" ($3 ~ /^mix_/ ? $3 : "")] += $1 }
			END { for (k in n) print n[k] "|" k }' | sort
}

# of_dcpi DB EVENT: the same of dcpiprof. Its -i must have the same sums by image.
of_dcpi()
{
	dcpi_rows -db "$1" -event "$2" | tee by_routine
	dcpi_rows -i -db "$1" -event "$2" >by_image
	awk -F '|' '{ n[$2] += $1 } END { for (k in n) print n[k] "|" k "|" }' by_routine | sort |
		diff -u - by_image >&2 || fail "$1: dcpiprof and dcpiprof -i differ for $2"
}

dcpi_rows()
{
	"$DCPI_BIN/dcpiprof" "$@" -no_header 2>/dev/null |
		awk '$NF == "total" { next }
			{ image = $0; sub(/^ *[0-9]+ +[0-9.]+% +[0-9.]+% +([0-9]+[.][0-9]+ +)?/, "", image)
			  name = image; sub(/ .*/, "", name) }
			image ~ /\((dynamic|unknown|reused|ambiguous)/ || $NF ~ /^(bpf|\[vdso\])$/ { image = "other" }
			{ sub(/.*[ \/]/, "", image)
			  n[image "|" (name ~ /^mix_/ ? name : "")] += $1 }
			END { for (k in n) print n[k] "|" k }' | sort
}

# replayed FILE EVENT…: both agree, and all samples are stored. $rows: a filter of what is compared.
rows="cat"
replayed()
{
	local file=$1 event db=$1.db sum=0
	shift
	"$DCPI_BIN/dcpid" -replay "$file" -platform test "$db" >"$file.log" 2>&1 ||
		fail "dcpid -replay $file: $(cat "$file.log")"
	for event in "$@"; do
		of_perf "$file" "$event" | $rows >perf.rows
		of_dcpi "$db" "$event" | $rows >dcpi.rows
		[ -s perf.rows ] || fail "$file: perf report has no samples of $event"
		diff -u perf.rows dcpi.rows || fail "$file: $event differs"
		sum=$((sum + $(awk -F '|' '{ s += $1 } END { print s }' perf.rows)))
		echo "$file: $event: $(awk -F '|' '{ s += $1 } END { print s }' perf.rows) samples in $(wc -l <perf.rows) rows agree"
	done
	grep -q "finished: $sum samples stored\$" "$file.log" || fail "$file: $sum samples, but $(cat "$file.log")"
}

record period.data -e cpu-clock/period=999983/u "$mix" 20
replayed period.data cpu-clock/period=999983/u
record faults.data -e page-faults/period=1/u "$mix" 20
replayed faults.data page-faults/period=1/u
record freq.data -e cpu-clock -F 999 "$mix" 20
replayed freq.data cpu-clock
record packed.data -z -e task-clock -F 4999 "$mix" 20
replayed packed.data task-clock
record mono.data -k mono -e cpu-clock -F 999 "$mix" 20
replayed mono.data cpu-clock
# Samples with much behind what is read of them.
record stack.data --call-graph dwarf,4096 -d --phys-data --sample-cpu -e cpu-clock -F 999 "$mix" 5
replayed stack.data cpu-clock
record all.data -a -e cpu-clock -F 999 "$mix" 20
rows=merged replayed all.data cpu-clock
# As perf records by itself, where it can.
! recorded plain.data -e cpu-clock -F 999 "$mix" 20 || replayed plain.data cpu-clock
# Two events, each with a period of its own, where perf can (tests/golden/perfdata.sh has two in any case).
! recorded two.data -e cpu-clock/period=999983/u,page-faults/period=1/u "$mix" 20 ||
	replayed two.data cpu-clock/period=999983/u page-faults/period=1/u

# Through a pipe, as a file and as standard input.
perf record -o - --buildid-mmap -e cpu-clock -F 999 "$mix" 20 >pipe.data 2>pipe.out || fail "perf record -o -: $(tail -n 3 pipe.out)"
replayed pipe.data cpu-clock
"$DCPI_BIN/dcpid" -quiet -replay - -platform test stdin.db <pipe.data || fail "dcpid -replay -"
cat pipe.data | "$DCPI_BIN/dcpid" -quiet -replay - -platform test piped.db || fail "dcpid -replay -"
for other in stdin.db piped.db; do
	diff <("$DCPI_BIN/dcpiprof" -db pipe.data.db -no_header) \
		<("$DCPI_BIN/dcpiprof" -db $other -no_header) || fail "$other differs"
done

# A recording that was cut off keeps what stood before.
size=$(stat -c %s freq.data)
head -c $((size / 2)) freq.data >cut.data
"$DCPI_BIN/dcpid" -quiet -replay cut.data -platform test cut.db 2>cut.log && fail "a cut file is no error"
cat cut.log
grep -q "cannot replay 'cut.data': offset [0-9]*: the file ends in the midst" cut.log || fail "no cause"
[ "$("$DCPI_BIN/dcpiprof" -db cut.db -no_header 2>/dev/null | awk '$NF == "total" { print $1 }')" -gt 10 ] ||
	fail "nothing is left of a cut file"
