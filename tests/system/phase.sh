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

# measure KIND OPTION…: "phase KIND" at 2 kHz under the daemon; sets $seen, the share of phase_a in
# dcpiprof of the newest epoch, and $truth.
measure()
{
	local count
	"$DCPI_BUILD/tests/phase" "$1" 500000 4 "${@:2}" >"$work/truth"
	"$DCPI_BIN/dcpiflush" >/dev/null
	read -r seen count < <("$DCPI_BIN/dcpiprof" -no_header phase 2>/dev/null | awk '
		NF > 1 && $(NF - 1) ~ /^phase_[ab]$/ { n[$(NF - 1)] += $1; all += $1 }
		END { printf "%.2f %d\n", all ? 100 * n["phase_a"] / all : 0, all }')
	[ "$count" -gt 6000 ] || fail "only $count samples"
	truth=$(awk '$1 == "phase_a" { print $2 }' "$work/truth")
}

for source in bpf perf; do
	for kind in timer loop; do
		start_daemon -epoch -event cpu-clock -rate 2000 -source $source
		measure $kind
		stop_daemon
		within "$source, $kind, drawn periods" "$seen" "$truth" 2.5
	done
done

# A fixed period's samples come at one point of the program's turns, whichever that is. Where it is
# a change, delays of the timer give half to each routine; of two runs on one CPU, with changes a
# quarter of a period apart, one has them an eighth, 62 us, or more away from it. A host that takes a
# virtual machine's CPU away puts the timer elsewhere: three such pairs at most.
start_daemon -epoch -event cpu-clock -rate 2000 -source bpf -fixed_period
taskset -cp 0 $$ >/dev/null
in_step=no
for later in 0 125000 0 125000 0 125000; do
	[ $in_step = no ] || break
	measure timer $later
	echo "fixed period, changes $later ns later: $seen % (truth $truth %)"
	awk -v s="$seen" -v t="$truth" 'BEGIN { exit !(s - t > 10 || t - s > 10) }' && in_step=yes
	"$DCPI_BIN/dcpiepoch" >/dev/null
done
stop_daemon
[ $in_step = yes ] || fail "the program is not in step with a fixed period: this test shows nothing"
