#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A JIT built for OProfile's agent library, read after it is gone: each routine has the share that the program
# measured, its name, bytes and lines, however it was told of; where one after another stands at an address, no
# sample goes to one that was not there.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/truth.sh"
truth_programs=opagent_jit
need_root

start_daemon -unknown
"$tests/opagent_jit" old 6 >"$work/truth" || fail "opagent_jit"
"$DCPI_BIN/dcpiflush" >/dev/null || fail "dcpiflush"
judge_samples opagent
none_wrong "opagent_jit"
sort_out "opagent_jit"
[ "$lost" = 0 ] || fail "$lost samples have no routine"
[ "$total" -gt 1000 ] || fail "too few samples to judge"
[ "$(awk '$1 == "routine"' "$work/judged" | wc -l)" = 22 ] || fail "not all routines: $(cat "$work/judged")"
at_most "unsure samples" "$unsure" "$((5 + total / 100))"
at_most "worst deviation, in standard deviations" "$(worst_sigma "$work/truth")" 4
account_holds "opagent_jit"
"$DCPI_BIN/dcpiprof" -no_header opagent 2>/dev/null | sed -n 1,5p
"$DCPI_BIN/dcpilist" -asm -no_header old_2 opagent | awk '/truth.jit:1021|truth.jit:1022/ { n++ } END { exit n != 2 }' ||
	fail "dcpilist shows no lines"
stop_daemon
