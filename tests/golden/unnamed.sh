#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Code that nothing has named: the hint is the switch of that runtime, for each that docs/RUNTIMES.md has one of; it says
# so where a runtime has none, and where the program is not known. Code with names, and few samples, have no hint.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

# The program, and what its hint and the page on runtimes have alike ("-": the runtime has no switch).
cat >programs <<-END
	pypy3 -
	node --perf-prof
	guile-3.0 -
	nodejs --perf-prof
	deno --v8-flags=--perf-prof
	workerd v8Flags = ["--perf-prof"]
	java libdcpi-jvmti.so
	lli --jit-kind=mcjit
	luajit -jdcpi
	nginx init_worker_by_lua_block { require("dcpi").start() }
	beam.smp +JPperf true
	php8.2 jit_debug
	php-fpm8.2 jit_debug
	mono-sgen --jitmap
	postgres jit_profiling_support=on
	dotnet DOTNET_PerfMapEnabled=1
	bun BUN_JSC_useJITDump=1
	WebKitWebProcess JSC_useJITDump=1
	moar MVM_JIT_PERF_MAP=1
	own-jit -
END
# image NAME FACILITY SAMPLES: code of its own.
image()
{
	"$DCPI_BIN/../tests/mkjob" "db/dyn/$1.box.9.dyn" >/dev/null <<-END
		image 62 $2 9 box /opt/$1
		run 0x7f0000001000 0 0x1000
		routine 0x7f0000001040 page $(printf '%s' "$1" | od -An -tx1 | tr -d ' \n')c3
	END
	printf 'profile dynamic %s.box.9.dyn\nevent cpu-clock 1000000\nat page %d\n' "$1" "$3"
}
rm -rf db
"$mkdb" db </dev/null
{
	printf 'platform box\nepoch 1700000000\n'
	samples=400
	while read -r program _; do
		image "$program" "$program:\\sdynamic,\\sunnamed" $((samples -= 10))
	done <programs
	image named node 100
	image few 'java:\sdynamic,\sunnamed' 1
	echo finish
} | "$mkdb" db
run dcpiprof -i -no_header >out
# A terminal tells of few, so that the table stays on the screen; each part of a hint is said once.
{
	echo "# on a terminal"
	TERM=xterm NO_COLOR=1 DCPI_PAGER=cat "$DCPI_SRC/tests/support/terminal.py" 80 "$DCPI_BIN/dcpiprof" -i -no_header |
		sed '1,/ total$/d'
} >>out

# A report on one image or procedure says nothing of other images; where none is found, it may be in them.
{
	run dcpilist -asm -no_header page 'node[9]'
	run dcpilist -asm -no_header page 'moar: dynamic, unnamed[9]'
	run dcpifdo -bolt 'node[9]'
	run dcpilist none
} >>out

# PROGRAM and its hint, as JSON has all.
"$DCPI_BIN/dcpiprof" -i -json 2>err >json
python3 - >hints <<-'END'
	import json
	for p in json.load(open("json"))["problems"]:
	    print(p["text"].split("'")[1].split(":")[0], p["hint"])
END
wanted=0
while read -r program switch; do
	[ "$switch" != - ] || continue
	wanted=$((wanted + 1))
	grep -F "$program " hints >hint
	grep -qF -e "$switch" hint || { echo "no '$switch': $(cat hint)"; exit 1; }
	grep -qF -e "$switch" "$DCPI_SRC/docs/RUNTIMES.md" || { echo "RUNTIMES.md lacks '$switch'"; exit 1; }
done <programs
[ $wanted = 17 ]
cat hints >>out
compare unnamed
