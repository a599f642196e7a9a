#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A JIT that has exited is shown by routine, with its true shares, and its image is ordinary ELF.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
need_root

start_daemon
"$DCPI_BIN/examples/hello" 5 >"$work/truth" || fail "hello"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
for name in sixty thirty ten; do
	share_holds $name hello
done
# The code spins for five seconds at 1000 Hz, but others use the CPU too.
[ "$(samples hello)" -gt 1000 ] || fail "only $(samples hello) samples of hello"
within "share without a name" "$(share '(no' hello)" 0 0.01

file=$(image hello)
for name in sixty thirty ten; do
	check_elf "$file" $name 48ffcf75fbc3
done
[ "$(stat -c %a "$file")" = 640 ] || fail "mode of '$file': $(stat -c %a "$file")"
stop_daemon
