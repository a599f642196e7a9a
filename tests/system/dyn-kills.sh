#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Law 3: a JIT killed by SIGKILL at any moment after its registration loses no routine that got a
# sample. Thirty of them, killed after 10 to 300 ms.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
need_root
rounds=30

try()
{
	start_daemon -source "$1"
	for ((i = 1; i <= rounds; i++)); do
		"$DCPI_BIN/examples/hello" 60 >/dev/null &
		jit=$!
		sleep "$(awk -v i=$i 'BEGIN { printf "%.3f", 0.01 * i }')"
		kill -KILL $jit
		wait $jit 2>/dev/null
	done
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	# Whoever got a sample has an image, whole.
	nr=0
	for file in "$db"/dyn/hello-*.dyn; do
		[ -f "$file" ] || continue
		nr=$((nr + 1))
		check_elf "$file" ten 48ffcf75fbc3
	done
	# The first ones may have died before they registered anything.
	[ $nr -ge $((rounds - 3)) ] || fail "$nr images of $rounds JITs"
	within "share without a name" "$(share '(no' hello)" 0 0.01
	within "share of sixty" "$(share sixty hello)" 60 6
	echo "$nr images, $(samples hello) samples"
	stop_daemon
	rm -rf "$db"
}

for source in bpf perf; do
	echo "with the source $source:"
	try $source
done
