#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Two routines that change in step with the nominal sampling period get their true halves, because
# periods are drawn anew; with a fixed period they do not.
#
# Truth is the program's own clock. n = 8000 samples of a 50 % share have a standard deviation of
# 0.56 points by chance; 2.5 points are more than four of them. Drawn periods sweep the program's
# phase at least ten times a second, which leaves well under a point.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
phase=$DCPI_BUILD/tests/phase

# run KIND OPTION…: "phase KIND" at 2 kHz; sets $seen, the share of phase_a in dcpiprof, and $truth.
run()
{
	local kind=$1
	shift
	start_daemon -epoch -event cpu-clock -rate 2000 "$@"
	"$phase" "$kind" 500000 4 >"$work/truth"
	"$DCPI_BIN/dcpiflush" >/dev/null
	"$DCPI_BIN/dcpiprof" -no_header phase 2>/dev/null |
		awk '$4 ~ /^phase_[ab]$/ { n[$4] += $1 } END { printf "%.2f %d\n", 100 * n["phase_a"] / (n["phase_a"] + n["phase_b"]), n["phase_a"] + n["phase_b"] }' >"$work/seen"
	stop_daemon
	seen=$(cut -d' ' -f1 "$work/seen") truth=$(awk '$1 == "phase_a" { print $2 }' "$work/truth")
	[ "$(cut -d' ' -f2 "$work/seen")" -gt 6000 ] || fail "only $(cat "$work/seen")"
}

for source in bpf perf; do
	for kind in timer loop; do
		run $kind -source $source
		within "$source, $kind, drawn periods" "$seen" "$truth" 2.5
	done
done
run timer -source bpf -fixed_period
echo "fixed period: $seen % (truth $truth %)"
awk -v s="$seen" -v t="$truth" 'BEGIN { exit !(s - t > 10 || t - s > 10) }' ||
	fail "the program is not in step with a fixed period: this test shows nothing"
