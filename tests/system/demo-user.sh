#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# scripts/demo where the kernel refuses to sample: it says so, and shows the same through dcpirun.
set -eu -o pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$DCPI_BUILD/tests/no_perf" "$DCPI_SRC/scripts/demo" "$work/db" >"$work/out" || { cat "$work/out"; exit 1; }
sed -n '/start dcpid/,$p' "$work/out" | awk "NR <= 60"

grep -q '^dcpid: cannot sample' "$work/out"
grep -q '^== the system may not be sampled here: the same through dcpirun' "$work/out"
grep -q '^dcpirun: .*sampling from inside the program' "$work/out"
profile() { sed -n '/where the time went/,/hottest routine/p' "$work/out"; }
profile | grep -cE ' calc\[[0-9]+\]$' >/dev/null
profile | grep -vF '(no symbol)' | grep -cE '/libc\.so' >/dev/null
list() { sed -n '/hottest routine/,$p' "$work/out"; }
list | grep -c 'demo\.calc:[0-9]' >/dev/null
ls "$work"/db/dyn/calc-*.dyn
