#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# scripts/demo, as a newcomer runs it: exit 0, the JIT's routines beside libc's and the kernel's in a
# profile that sums, and the hottest one by line and instruction.
set -eu -o pipefail
[ "$(id -u)" = 0 ] || { echo "skip: needs root to sample the system"; exit 77; }
set -E
trap 'echo "FAILED: line $LINENO: $BASH_COMMAND"' ERR
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$DCPI_SRC/scripts/demo" "$work/db" >"$work/out" || { cat "$work/out"; exit 1; }
sed -n '/where the time went/,$p' "$work/out" | awk "NR <= 40"

fail() { echo "FAILED: $*"; exit 1; }
profile() { sed -n '/where the time went/,/hottest routine/p' "$work/out"; }
profile | grep -cE ' calc\[[0-9]+\]$' >/dev/null || fail "the JIT is not in the profile"
# On a busy machine these may be among the last hundredths, which the demo leaves out.
"$DCPI_BIN/dcpiprof" -db "$work/db" >"$work/all" 2>"$work/err" || fail "dcpiprof: $(cat "$work/err")"
for image in vmlinux '/[^ ]*/libc\.so[.0-9]*'; do
	grep -vF '(no symbol)' "$work/all" | grep -cE " $image" >/dev/null || fail "no procedure of $image has a name"
done
# Rows above the total sum to it.
profile | awk '$1 ~ /^[0-9]+$/ && $2 ~ /%$/ && $NF != "total" { s += $1 } $NF == "total" { t = $1 }
	END { print "rows " s ", total " t; exit !(t > 0 && s == t) }' || fail "the rows are not the total"
list() { sed -n '/hottest routine/,$p' "$work/out"; }
list | grep -c 'demo\.calc:[0-9]' >/dev/null || fail "the listing has no source lines"
# What an instruction cost and how often it ran may stand between.
list | grep -cE '[0-9]+\.[0-9]+%  .* 0x[0-9a-f]+ \+0x[0-9a-f]+ ' >/dev/null || fail "the listing has no instructions"
list | grep -cE '^ *[0-9]+  100\.00%  +total' >/dev/null || fail "the listing has no total"
ls "$work"/db/dyn/calc-*.dyn

# How often the hottest routine ran is known in the default set-up, from instruction traces, where these can be had and
# enough of the JIT came (some 30 a second): of fewer than 100 visits of a routine's blocks the tools take none.
export DCPIDB=$work/db
# All is read: a writer that ends of SIGPIPE would fail the test.
profile | awk '$NF ~ /^calc\[/ && !found++ { print $(NF - 1), $NF }' >"$work/hottest"
read -r routine image <"$work/hottest"
"$DCPI_BIN/dcpiwhatcg" "$image" >"$work/whatcg"
cat "$work/whatcg"
traces=$(sed -nE 's/.* from ([0-9]+) traces of the image.*/\1/p' "$work/whatcg" | sed -n 1p)
echo "$image: ${traces:-no} traces, hottest $routine"
if [ "${traces:-0}" -lt 200 ]; then
	# A machine that ran something else meanwhile, or that has no traces.
	sed -n '/^\$ dcpictl status/,/^== run/p' "$work/out"
	samples=$(awk '$2 ~ /%$/ && $NF ~ /^calc\[/ { n += $1 } END { print n + 0 }' <(profile))
	# A second of CPU time gives 250 to 1,000 samples: a trace for 128 of them is a quarter of the usual ones or less.
	grep -qE '\((no traces|bpf refused): ' "$work/out" || [ "$samples" -lt 1000 ] ||
		[ $((${traces:-0} * 128)) -ge "$samples" ] ||
		fail "$samples samples and ${traces:-no} traces of the JIT"
	exit 0
fi
list | grep -cE '^freq .* from [0-9]+ traces' >/dev/null || fail "the listing has no frequencies"
"$DCPI_BIN/dcpicalc" "$routine" "$image" | grep -cE '^block .* freq [0-9]' >/dev/null || fail "no block has a frequency"
awk '$1 == "total" && $2 == "tallied" { n = $NF } $1 == "total" && NF == 3 { all = $NF } END {
	print n " of " all " samples are tallied"; exit !(n * 2 > all) }' "$work/whatcg" ||
	fail "too few samples are tallied"
