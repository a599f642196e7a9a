#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Law 3: JIT processes killed by SIGKILL at random moments after dbgdyn_begin returned, half of them within
# its first 2 ms, with every CPU busy. Each routine that got a sample has its name, its bytes and its lines.
# Thirty of them with each source; "scripts/test --long jit-kills" asks for others (DCPI_FROM, DCPI_COUNT,
# DCPI_SEED, DCPI_SOURCES), and adds up the numbers of lines "sums: NAME NUMBER …".
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/truth.sh"
truth_programs=jit_kids
need_root

try()
{
	start_daemon -unknown -source "$1" -rate 2000
	"$tests/jit_kids" kill "${DCPI_SEED:-1}" "${DCPI_FROM:-0}" "${DCPI_COUNT:-30}" >"$work/kids" ||
		fail "jit_kids"
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	judge_samples kid
	none_wrong "killed"
	sort_out "killed"
	echo "sums: $(cat "$work/kids") samples $total images $images unsure $unsure lost $lost"
	[ "$lost" = 0 ] || fail "$lost samples have no routine"
	stop_daemon
	rm -rf "$db" "$work/log"
}

for source in ${DCPI_SOURCES:-bpf perf}; do
	try "$source"
done
