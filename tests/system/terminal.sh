#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Terminals of 80 and of 110 columns, and a real C++ program of templates: clang, with LLVM's library. No row of the tables
# is longer than a line, and the names in their first column, pasted, find their procedures.
set -eu -o pipefail
command -v clang >/dev/null || { echo "skip: needs clang"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset DCPIDB DCPI_PAGER PAGER LESS COLUMNS DEBUGINFOD_URLS
export TERM=xterm NO_COLOR=1 DCPI_PAGER=cat
fail() { echo "FAILED: $*" >&2; exit 1; }

awk 'BEGIN {
	for (i = 0; i < 1500; i++)
		printf "int f%d(int *a, int n) { int s = 0; for (int i = 0; i < n; i++) s += a[i] * %d + (s >> %d); return s; }\n", i, i, i % 7
}' >work.c
"$DCPI_BIN/dcpirun" -db db clang -O2 -c -o work.o work.c 2>err || { cat err; fail "dcpirun clang"; }
library=$("$DCPI_BIN/dcpiprof" -db db -i -no_header 2>/dev/null | awk '/libLLVM/ && !n++ { print $NF }')
[ "$library" ] || fail "no samples in LLVM's library"

on() { "$DCPI_SRC/tests/support/terminal.py" "$1" "$DCPI_BIN/$2" "${@:3}" 2>&1; }
for columns in 80 110; do
	for command in "dcpiprof -all" "dcpitopcounts -n 60" "dcpiprof -i -all"; do
		# shellcheck disable=SC2086
		on $columns $command -db db -no_header >rows || fail "$command"
		[ "$(grep -c '%' rows)" -ge 4 ] || fail "$command has few rows"
		# Characters count, not bytes; messages may be longer than a line.
		! LC_ALL=C.UTF-8 grep -E "^.{$((columns + 1))}.*" rows | grep -E '^ *[0-9]+ +[0-9.]+%' >long ||
			{ sed -n 1,5p long; fail "$command: rows are longer than $columns columns"; }
	done
	on $columns dcpiprof -db db -all -no_header "$library" >rows || fail "dcpiprof of the library"
	grep -q '…' rows || fail "no name was too long, so this shows nothing"
	# Behind the shares is a name, up to two blanks. Addresses are no names.
	sed -E 's/^ *[0-9]+ +[0-9.]+% +[0-9.]+% +([0-9]+[.][0-9]+ +)?//; s/  .*//' rows | grep -vE '^(0x|[0-9])' | grep -E '^[^(]*::|…' | sed -n 1,12p >pasted
	[ "$(wc -l <pasted)" -ge 5 ] || fail "too few names of C++"
	while IFS= read -r name; do
		! "$DCPI_BIN/dcpilist" -db db -hot "$name" "$library" >listing 2>err || continue
		# Several procedures look the same: each has a name, or an address, that can be pasted.
		grep -qE 'is [0-9]+ procedures$' err || { cat err; fail "'$name' finds nothing"; }
		choice=$(sed -nE "s/^hint: name one[^:]*: '([^']*)'.*/\\1/p; s/^hint: name one[^:]*: (0x[0-9a-f]+) .*/\\1/p" err)
		"$DCPI_BIN/dcpilist" -db db -hot "$choice" "$library" >listing 2>err || { cat err; fail "no '$choice'"; }
	done <pasted
done
echo "$(wc -l <pasted) names of $(wc -l <rows) rows"
