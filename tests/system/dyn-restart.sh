#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Law 6: a daemon that starts after the JIT, or after a daemon that was killed, finds it by its marker.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
need_root

jit=
at_end '[ -z "$jit" ] || kill -KILL $jit'

# The JIT has so much CPU time. It stands still while daemons start and flush, which takes seconds on a busy machine.
try()
{
	local late name
	"$DCPI_BIN/examples/hello" 6 >"$work/truth" &
	jit=$!
	sleep 1
	kill -STOP $jit
	start_daemon -source "$1"
	late=0
	for _ in {1..8}; do
		kill -CONT $jit
		sleep 0.5
		kill -STOP $jit
		"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
		late=$(samples hello)
		[ "${late:-0}" -le 200 ] || break
	done
	[ "${late:-0}" -gt 200 ] || fail "a JIT that was there before: $late samples"
	# The tools get a copy: the image belongs to the daemon that is to be killed.
	cp "$(image hello)" "$work/image" || fail "cp"
	kill -KILL "$daemon"
	wait_for_end "$daemon" || fail "a killed daemon does not end"
	daemon=
	start_daemon -source "$1"
	kill -CONT $jit
	wait $jit || fail "hello"
	jit=
	check_elf "$work/image" thirty 48ffcf75fbc3
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	[ "$(samples hello)" -gt $((late + 200)) ] ||
		fail "after the restart: $(samples hello) samples, before $late"
	for name in sixty thirty ten; do
		share_holds $name hello
	done
	within "share without a name" "$(share '(no' hello)" 0 0.01
	stop_daemon
	rm -rf "$db"
}

for source in bpf perf; do
	echo "with the source $source:"
	try $source
done
