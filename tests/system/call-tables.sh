#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Unwind tables of files that are met for the first time: a path ends at the first one that is missing, so of a program
# whose calls go through twelve libraries twelve paths would end early, were they met by paths alone. Samples between
# paths meet them too.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root

LEVELS=12 EVERY=250

# chain DIR: a program that spends 8 s of CPU time below calls through so many libraries of its own.
chain()
{
	local i
	mkdir "$1"
	for ((i = 0; i < LEVELS; i++)); do
		if [ $i = 0 ]; then
			echo 'unsigned long level0(unsigned long n) { for (unsigned long i = n; i; i--) n ^= n * 31 + i; return n; }'
		else
			echo "unsigned long level$((i - 1))(unsigned long);"
			echo "unsigned long level$i(unsigned long n) { return level$((i - 1))(n) + $i; }"
		fi >"$1/level$i.c"
		gcc -O1 -fPIC -shared -o "$1/level$i-${1##*/}.so" "$1/level$i.c"
	done
	cat >"$1/main.c" <<-END
		#include <time.h>
		unsigned long level$((LEVELS - 1))(unsigned long);
		volatile unsigned long sink;
		int main(void) { while (clock() < 8 * CLOCKS_PER_SEC) sink = level$((LEVELS - 1))(100000); }
	END
	gcc -O1 -o "$1/main" "$1/main.c" -Wl,--no-as-needed "$1"/level*.so
}

start_daemon -rate 1000 -callpaths $EVERY
# tables_settle: what other programs' files need is made, or waits for more time than the machine has.
tables_settle()
{
	local waiting before=-1
	for _ in $(seq 60); do
		waiting=$(status_field tables_waiting)
		[ "$waiting" != 0 ] && [ "$waiting" != "$before" ] || return 0
		before=$waiting
		sleep 1
	done
}

# Several of them, each in an epoch of its own: a busy machine may make the tables of one too late.
for try in 1 2 3 4 5 6; do
	tables_settle
	chain "$work/$try"
	"$work/$try/main"
	"$DCPI_BIN/dcpictl" flush >/dev/null
	"$DCPI_BIN/dcpicalltree" -cut 0 -depth 1 -image "$work/$try/level0-$try.so" >"$work/tree" 2>/dev/null
	all=$(awk '/^cpu-clock +[0-9]+ samples/ { print $2 }' "$work/tree")
	early=$(awk '/\(no unwind rows\)/ { n += $2 } END { print n + 0 }' "$work/tree")
	echo "of $((all / EVERY)) paths $((early / EVERY)) end early"
	# Were there not more paths than libraries, nothing would be shown.
	if [ $((all / EVERY)) -gt $((2 * LEVELS)) ] && [ $((early / EVERY)) -lt $((LEVELS / 2)) ]; then
		exit 0
	fi
	[ $try = 6 ] || "$DCPI_BIN/dcpictl" epoch >/dev/null
done
cat "$work/tree"
fail "$early of $all samples end early"
