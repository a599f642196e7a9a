#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpiprof: by procedure, by image, sorted, cut, of some images; every total sums.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

# Modifiers say nothing of what is counted: clocks are by nanoseconds, and first to sort by.
"$mkdb" mods <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/app $app/app
	event page-faults:u 40
	event task-clock:k 500000
	event tick 4000000
	at hot+17 1 30 5
	at warm 9 20 0
END

{
	run dcpiprof
	run dcpiprof -i
	run dcpiprof -s imiss
	run dcpiprof -event imiss -no_header
	run dcpiprof -keep 60 -no_header
	run dcpiprof /opt/app/app
	run dcpiprof hi
	run dcpiprof -no_header 0123 vmlinux-6.1.0
	run dcpiprof -no_header gone/lib.so
	run dcpiprof -no_header ap
	run dcpiprof -no_header app ap
	run dcpiprof -epoch 200001010000
	run dcpiprof -platform bx
	run dcpiprof -event cycles
	run dcpiprof -label none
	run dcpiprof -db mods
	run dcpiprof -db mods -keep 60 -no_header
	run dcpiprof -csl -keep 60
	run dcpiprof -csl -json
	echo "# an image that is elsewhere; another one than that which was profiled is not taken"
	cp "$app/app" moved
	DCPI_DEBUG_PATH='' run dcpiprof -no_header app
	DCPI_DEBUG_PATH='' run dcpiprof -no_header -p nowhere -p db/dyn/hi.box.1.dyn -p moved app
	run dcpiprof -no_header -p moved lib.so
	run dcpiprof -json -keep 60 lib.so idle
	run dcpiprof -json -keep 60 app hi
	echo "# nothing was flushed yet"
	"$mkdb" begun </dev/null && printf 'platform box\nepoch 1700000000\n' | "$mkdb" begun
	run dcpiprof -db begun
	echo "# each platform is named once, of however many epochs"
	for platform in boxes box; do
		printf 'platform %s\nepoch 1600000000\nepoch 1700000000\n' $platform | "$mkdb" several
	done
	run dcpiprof -db several -epoch all -platform bx
} >out
compare dcpiprof

# The lines above the total sum to it, in the column that all have.
"$DCPI_BIN/dcpiprof" -no_header 2>/dev/null | awk '
	/ total$/ { total = $1; next } { sum += $1 } END { exit !(sum == 214 && total == 214) }'

# A limit on the length of files ends no report: what would be kept for the next one is left out.
cp -r db limited
find limited -name .index -delete
rm -rf limited/index
(ulimit -f 0 && exec "$DCPI_BIN/dcpiprof" -db limited -i) 2>&1 | cat >out
grep ' 214 .* total$' out >/dev/null || { cat out; exit 1; }
