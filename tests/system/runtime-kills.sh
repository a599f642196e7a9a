#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Runtimes killed at any moment while the daemon reads what they tell of their code, by each of the ways: it
# goes on, accounts for each sample, keeps sound images, and names the code that it had been told of. DCPI_COUNT
# kills of each way, at moments by DCPI_SEED.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
. "$DCPI_SRC/tests/support/runtime.sh"
need_root
need_runtime node
need_runtime lli
need_runtime clang
need_runtime java
support=$DCPI_SRC/tests/support
RANDOM=${DCPI_SEED:=$$}
echo "seed $DCPI_SEED"

run_jitdump() { exec node --perf-prof --expose-gc "$support/v8_churn.js" 20; }
run_perfmap() { exec node --perf-basic-prof "$support/v8_hot.js" 20; }
run_gdb() { exec lli hot.bc; }
run_java() { exec java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -cp "$work/classes" work.Work shares 20; }

# killed WAY [FACTOR]: a run that lives for 0.1 to 1.1 seconds, or FACTOR times as long.
killed()
{
	(cd "$work" && "run_$1") >"$work/out" 2>&1 &
	local pid=$!
	sleep "$(awk -v r=$RANDOM -v factor="${2:-1}" 'BEGIN { print factor * (0.1 + r / 32768) }')"
	kill -KILL $pid || { cat "$work/out" >&2; fail "$1 ended by itself"; }
	wait $pid 2>/dev/null
	rm -f "/tmp/perf-$pid.map" "$work"/jit-*.dump
	timeout 60 "$DCPI_BIN/dcpictl" status -json >"$work/status" || fail "$1: the daemon does not answer"
}

# more WAY IMAGE PATTERN NR: more of them, twenty at most and ever longer, until more than NR of the image's rows match.
more()
{
	local i
	for ((i = 0; i < 20; i++)); do
		[ "$(rows "$2" 2>/dev/null | grep -cE "$3")" -le "$4" ] || return 0
		killed "$1" $((1 + i / 4))
		"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	done
}

mkdir "$work/classes"
javac -d "$work/classes" "$support/jvm/Work.java" || fail "javac"
clang -O1 -g -emit-llvm -c -o "$work/hot.bc" "$support/llvm_hot.c" || fail "clang"
start_daemon -unknown
for ((i = 0; i < ${DCPI_COUNT:-5}; i++)); do
	for way in jitdump perfmap gdb java; do
		killed $way
	done
done
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
# One that lived for half a second had told of its functions: where by chance none did, there are more.
more jitdump node '(turn_|hot_)' 2
more gdb lli hot_ 0
[ "$(status_field pid)" = "$daemon" ] || fail "it is another daemon"
account_holds "after the kills"
[ "$(rows node | grep -cE '(turn_|hot_)')" -gt 2 ] || { rows node >&2; fail "node: no function has its name"; }
rows lli | grep -q 'hot_' || { rows lli >&2; fail "lli: no function has its name"; }
for file in "$db"/dyn/*.dyn; do
	lint_image "$file"
done

# The next one is read as if nothing had been.
"$DCPI_BIN/dcpiepoch" >/dev/null || fail "dcpiepoch"
(cd "$work" && exec node --perf-prof "$support/v8_hot.js" 1) >"$work/truth" || fail "node"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
shares_hold node "$work/truth"
mostly_named node "node: dynamic, unnamed" 95
stop_daemon
