#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# fork and exec in a JIT, without and with a second thread that makes code meanwhile: what a child runs of
# its parent's code is charged to what lived there at the fork, though the parent puts another routine at that
# address at once; what the child makes is its own. So it is for a daemon that comes only after the forks.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/truth.sh"
truth_programs=jit_fork
need_root

# one_facility NAME PATTERN: has its truth in lines that begin so.
one_facility()
{
	grep "^$2" "$work/all" >"$work/truth"
	judge_samples "$1"
	none_wrong "$1"
	echo "$1: $total samples in $images images"
	[ "$total" -gt 0 ] || fail "$1: no samples"
	at_most "$1: worst deviation of a routine, in standard deviations" "$(worst_sigma "$work/truth")" 6
}

for threads in "" -threads; do
	start_daemon -unknown
	"$tests/jit_fork" 40 $threads >"$work/all" || fail "jit_fork"
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	judge_samples up down over again
	none_wrong all
	sort_out "all${threads:+ with threads}"
	[ "$lost" = 0 ] || fail "$lost samples have no routine"
	at_most "unsure samples" "$unsure" "$((total / 10))"
	one_facility up "up\|other"
	one_facility down down
	# Until the daemon has heard of its own registry, nothing tells its own code from what was there.
	judge_samples over
	[ "$total" -gt 0 ] || fail "over: no samples"
	stop_daemon
	rm -rf "$db" "$work/log"
done

# Of what the parent has put another routine over since nobody tells any more: that is not charged to
# anybody. All else is known.
mkfifo "$work/go"
"$tests/jit_fork" 4 -late <"$work/go" >"$work/all" 2>"$work/err" &
jit=$!
exec 9>"$work/go"
for ((i = 0; i < 600; i++)); do
	! grep -qs ready "$work/err" || break
	sleep 0.1
done
start_daemon -unknown 9>&-
echo go >&9
wait "$jit" || fail "jit_fork -late: $(cat "$work/err")"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
grep . "$work/all" >"$work/truth"
judge_samples up down
none_wrong late
sort_out late
[ "$lost" = 0 ] || fail "$lost samples have no routine"
at_most "late: worst deviation of a routine, in standard deviations" "$(worst_sigma "$work/truth")" 6
stop_daemon
