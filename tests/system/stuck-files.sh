#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A perf map on an overlay above a FUSE server that stops answering: the daemon answers and flushes all the
# same, loses no sample, and names an honest JIT's.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
need_root
tests=$DCPI_BIN/../tests

# stuck OPERATION: the server never answers it.
stuck()
{
	local fuse i before
	mkdir "$work/$1"
	chmod 755 "$work"
	exec 8> >(exec "$tests/fuse_hang" "$work/$1" "$1" >"$work/$1.out" 2>&1)
	fuse=$!
	for ((i = 0; i < 300; i++)); do
		[ ! -s "$work/$1.out" ] || break
		sleep 0.1
	done
	! grep '^skip' "$work/$1.out" || exit 77
	grep -q hangs "$work/$1.out" || fail "$1: nobody has opened the map: $(cat "$work/$1.out")"
	# The deadline of one request, then the next ones.
	for i in 1 2 3; do
		timeout 10 "$DCPI_BIN/dcpictl" status >"$work/answer" || fail "$1: the daemon does not answer"
		sleep 1
	done
	account_holds "$1"
	"$DCPI_BIN/examples/hello" 1.5 >"$work/truth" || fail "$1: hello"
	timeout 20 "$DCPI_BIN/dcpiflush" || fail "$1: dcpiflush"
	within "$1: share without a name" "$(share '(no' hello)" 0 0.01
	# An epoch's end waits for the same, as long again: once.
	[ "$1" != flush ] || timeout 20 "$DCPI_BIN/dcpictl" epoch >"$work/answer" || fail "$1: dcpictl epoch"
	exec 8>&-
	wait $fuse
}

start_daemon
stuck getattr
grep -q 'the perf map of process .* is not read' "$work/log" || fail "nothing is told of it"
stuck flush
stop_daemon
