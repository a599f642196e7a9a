#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Call paths through code that processes wrote: from what runs in calc's, and V8's, routines back through the
# program to its start, by what the routines do with the stack. Read when the processes are gone.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/runtime.sh"
need_root
[ "$(uname -m)" = x86_64 ] || { echo "skip: such code is followed on x86-64 alone"; exit 77; }

# tree_of PROGRAM: run it as $run; the tree of what was sampled on paths through its routines, to $work/tree and
# $work/json.
tree_of()
{
	local image pid
	"${run[@]}" >"$work/said" &
	pid=$!
	wait $pid || fail "$1"
	"$DCPI_BIN/dcpictl" flush >/dev/null || fail "dcpictl flush"
	image=$("$DCPI_BIN/dcpiprof" -i -no_header | awk -v p="$1[$pid]" '$NF == p { print $NF }')
	[ -n "$image" ] || fail "no routines of $1"
	"$DCPI_BIN/dcpicalltree" -cut 0 -image "$image" >"$work/tree" || fail "dcpicalltree"
	"$DCPI_BIN/dcpicalltree" -json -depth 1 -image "$image" >"$work/json" || fail "dcpicalltree -json"
}

number() { sed -nE "s/^ *\"$1\": *([0-9]+),?\$/\1/p" "$work/json" | sed -n 1p; }

# ended_early: samples of the tree whose path does not reach the start.
ended_early()
{
	awk '/^ *[0-9.]+% +[0-9]+ +([0-9]+ +)?\((cut|stack unreadable|no unwind rows|contradicted)/ { n += $2 }
		END { print n + 0 }' "$work/tree"
}

# walked PROGRAM: run it as $run until a quarter of its samples or more are on complete paths. How long its tables
# take, the machine decides, and what else waits for one.
walked()
{
	local all early
	for _ in 1 2 3 4 5 6; do
		tree_of "$1"
		all=$(awk '/^cpu-clock +[0-9]+ samples/ { print $2 }' "$work/tree")
		early=$(ended_early)
		echo "$1: of $all samples $early end early"
		[ "$all" -gt 500 ] || fail "$1: $all samples"
		[ $((early * 4)) -gt $((all * 3)) ] || return 0
	done
	head -60 "$work/tree"
	fail "$1: $early of $all end early"
}

# reach_start PROGRAM FRAME…: callers are not contradicted by their code (but for a few, where code was replaced), and
# the frames stand below each other in that order.
reach_start()
{
	local agree contradicted program=$1
	shift
	agree=$(number callers_agree) contradicted=$(number callers_contradicted)
	echo "$program: of the callers on all paths $contradicted are contradicted, $agree agree with their code"
	[ $((contradicted * 10000)) -le "$agree" ] || fail "$program: callers are contradicted"
	printf '%s\n' "$@" | awk '
		NR == FNR { want[++nr] = $0; next }
		at < nr && index($0, want[at + 1]) { at++ }
		END { if (at < nr) print "not found in its place: " want[at + 1]; exit at < nr }' - "$work/tree" ||
		{ head -60 "$work/tree"; fail "$program: who called"; }
}

start_daemon -callpaths 1
run=("$DCPI_BIN/calc" -time 4 -shares "$DCPI_SRC/examples/jit/calc/shares.calc")
walked calc
reach_start calc ' _start ' ' main ' calc_run calc_jit_enter calc:enter sixty

if command -v node >/dev/null; then
	mkdir "$work/node"
	# V8 writes its map at once, and buffers its dump: code is to be known while it runs.
	cd "$work/node" || fail "$work/node"
	run=(node --perf-basic-prof "$DCPI_SRC/tests/support/v8_hot.js" 4)
	walked node
	reach_start node ' _start ' 'node::Start(' 'v8::Function::Call' JSEntry JSEntryTrampoline '*hot_a'
fi
stop_daemon
