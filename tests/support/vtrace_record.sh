#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Writes tests/data/vtrace/vectors anew: what a CPU does for each of its instructions ("# INSTRUCTION", "# ~INSTRUCTION"
# where the interpreter need not know the result), in the lines behind it. The CPU has AVX-512 (BW, DQ, VL).
#   vtrace_record.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
file=tests/data/vtrace/vectors work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gcc -O1 -D_GNU_SOURCE -Ilib/base -o "$work/record" tests/support/vtrace_record.[cS] lib/base/hash.c lib/base/clock.c
sed -n 's/^# ~\?\([a-z].*\)/\1/p' "$file" >"$work/code.s"
as -o "$work/code.o" "$work/code.s"
objdump -d --insn-width=16 "$work/code.o" | sed -nE 's/^ +[0-9a-f]+:\t(([0-9a-f]{2} )+).*/\1/p' | tr -d ' ' >"$work/bytes"
[ "$(wc -l <"$work/bytes")" = "$(wc -l <"$work/code.s")" ]
"$work/record" <"$work/bytes" >"$work/results"
seeds=$(sed -n 's/.*KNOWN_SEEDS = \([0-9]*\).*/\1/p' tests/support/vtrace_known.h)
grep '^##' "$file" >"$work/new"
grep '^# ' "$file" | awk -v results="$work/results" -v bytes="$work/bytes" -v seeds="$seeds" '
	{
		print
		getline code <bytes
		for (n = 0; n < seeds; n++) {
			getline line <results
			print line
		}
	}' >>"$work/new"
cp "$work/new" "$file"
