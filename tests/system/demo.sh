#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# scripts/demo, as a newcomer runs it: exit 0, the JIT's routines beside libc's and the kernel's in a
# profile that sums, and the hottest one by line and instruction.
set -eu -o pipefail
[ "$(id -u)" = 0 ] || { echo "skip: needs root to sample the system"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$DCPI_SRC/scripts/demo" "$work/db" >"$work/out" || { cat "$work/out"; exit 1; }
sed -n '/where the time went/,$p' "$work/out" | awk "NR <= 40"

profile() { sed -n '/where the time went/,/hottest routine/p' "$work/out"; }
profile | grep -cE ' calc\[[0-9]+\]$' >/dev/null
profile | grep -vF '(no symbol)' | grep -cE ' vmlinux' >/dev/null
profile | grep -vF '(no symbol)' | grep -cE '/libc\.so' >/dev/null
# Rows above the total sum to it.
profile | awk '$1 ~ /^[0-9]+$/ && $2 ~ /%$/ && $NF != "total" { s += $1 } $NF == "total" { t = $1 }
	END { print "rows " s ", total " t; exit !(t > 0 && s == t) }'
list() { sed -n '/hottest routine/,$p' "$work/out"; }
list | grep -c 'demo\.calc:[0-9]' >/dev/null
# What an instruction cost and how often it ran may stand between.
list | grep -cE '[0-9]+\.[0-9]+%  .* 0x[0-9a-f]+ \+0x[0-9a-f]+ ' >/dev/null
list | grep -cE '^ *[0-9]+  100\.00%  +total' >/dev/null
ls "$work"/db/dyn/calc-*.dyn
