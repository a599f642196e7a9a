#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Call paths through code that processes wrote: from what runs in calc's, V8's, HotSpot's and LuaJIT's routines back
# through the program to its start, by what the routines do with the stack, and by what LuaJIT's module says of the
# frames of traces. Callers of one routine have the shares that the program knows. Read when the processes are gone.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/runtime.sh"
. "$DCPI_SRC/tests/support/preload.sh"
need_root
[ "$(uname -m)" = x86_64 ] || { echo "skip: such code is followed on x86-64 alone"; exit 77; }

# tree_of PROGRAM: run it as $run; the tree of what was sampled on paths through its routines, to $work/tree and
# $work/json.
tree_of()
{
	local pid
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

# walked PROGRAM [PERCENT]: run it as $run until so many of its samples (25 of 100) or more are on complete paths, each
# time in an epoch of its own. How long its tables take, the machine decides, and what else waits for one.
walked()
{
	local all early percent=${2:-25}
	for _ in 1 2 3 4 5 6; do
		tree_of "$1"
		all=$(awk '/^cpu-clock +[0-9]+ samples/ { print $2 }' "$work/tree")
		early=$(ended_early)
		echo "$1: of $all samples $early end early"
		[ "$all" -gt 500 ] || fail "$1: $all samples"
		[ $((early * 100)) -gt $((all * (100 - percent))) ] || return 0
		"$DCPI_BIN/dcpictl" epoch >/dev/null || fail "dcpictl epoch"
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

# callers_share PROCEDURE NAME…: of its samples that these called, each has the share that the program has printed. Among
# N samples a share has a standard deviation of 100 sqrt(p (1 - p) / N) points: 3 points may be missing, or five of these
# where there are so few.
callers_share()
{
	local called=$1
	shift
	"$DCPI_BIN/dcpicallers" -no_header "$called" >"$work/callers" || fail "dcpicallers $called"
	cat "$work/callers"
	printf '%s\n' "$@" | awk -v called="$called" '
		FILENAME == "-" { want[$1] = 1; next }
		FNR == 1 { nr_file++ }
		nr_file == 1 { if ($1 in want) truth[$1] = $2; next }
		$0 ~ "% +" called " " { exit }
		{ for (i = 2; i <= NF; i++) if ($i in want) { got[$i] += $1; all += $1 } }
		END {
			if (all < 500) { print "only " all + 0 " samples"; exit 1 }
			for (name in want) {
				p = truth[name] / 100
				most = 500 * sqrt(p * (1 - p) / all)
				if (most < 3) most = 3
				off = 100 * got[name] / all - truth[name]
				printf "%s: %.2f points off, of %.2f\n", name, off, truth[name]
				if (off > most || off < -most) exit 1
			}
		}' - "$work/said" "$work/callers" || fail "who called $called"
}

# luajit_frame: the frame that LuaJIT's module finds for a first trace is the interpreter's, as its .eh_frame says, and
# two words.
luajit_frame()
{
	local file found said
	file=$(ldd "$(command -v luajit)" | awk '/libluajit/ { print $3 }')
	found=$(env "${hosting[@]}" luajit -e 'local frames = require("dcpi.frames")
		local of_trace = frames.of_trace
		frames.of_trace = function(...)
			local f = of_trace(...)
			print(f and f.cfa_off, f and f.fp_off, f and f.link_off)
			return f
		end' -jdcpi -e 'local s = 0 for i = 1, 1000 do s = s + i end' | head -n 1)
	said=$(readelf -wF "${file:-$(command -v luajit)}" | awk '
		is && $2 ~ /^rsp\+/ { sub(/^rsp\+/, "", $2); sub(/^c/, "", $3); sub(/^c/, "", $4); print $2 + 16, $4, $3; exit }
		{ is = /LOC +CFA +rbx +rbp +r14 +r15 +ra/ }')
	echo "luajit: a trace's frame is found as ${found//$'\t'/ }, and said to be $said"
	[ "${found//$'\t'/ }" = "$said" ] || fail "the frame of LuaJIT's traces"
}

# callers_hold ROUTINE NAME…: those are its callers, by dcpicallers, with shares within 3 points, or five standard
# deviations of so many samples, of the CPU time that the program said.
callers_hold()
{
	local routine=$1
	shift
	"$DCPI_BIN/dcpicallers" -image "$image" "$routine" >"$work/callers" || fail "dcpicallers $routine"
	awk -v names="$*" '
		NR == FNR { said[$1] = $2; all += $2; next }
		{
			for (i = split(names, name, " "); i > 0; i--)
				if ($0 ~ "[.]" name[i] "( |$)" && !(name[i] in got)) { got[name[i]] = $1; sum += $1 }
		}
		END {
			for (n in said) {
				is = sum ? 100 * got[n] / sum : 0
				should = 100 * said[n] / all
				most = sum ? 500 * sqrt(should / 100 * (1 - should / 100) / sum) : 0
				if (most < 3) most = 3
				printf "%s called in %.1f %% of the samples, said %.1f %%\n", n, is, should
				bad += is - should > most || should - is > most
			}
			exit bad > 0 || sum < 500
		}' "$work/said" "$work/callers" || { cat "$work/callers"; fail "callers of $routine"; }
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

if command -v luajit >/dev/null; then
	export LUA_PATH="$DCPI_SRC/adapters/luajit/?.lua;;"
	set_hosting
	luajit_frame
	run=(env "${hosting[@]}" luajit -jdcpi "$DCPI_SRC/tests/support/lua/callers.lua" 4)
	walked luajit
	reach_start luajit ' _start ' ' main ' lua_cpcall lua_pcall 'callers.lua:9 often' memfrob
	callers_share memfrob often seldom
fi

jdk=$(ls -d /usr/lib/jvm/java-17-openjdk-* 2>/dev/null | sort | sed -n 1p)
if [ -x "$jdk/bin/javac" ] && [ -e "$DCPI_LIB/libdcpi-jvmti.so" ]; then
	"$jdk/bin/javac" -d "$work/classes" "$DCPI_SRC/tests/support/Callers.java" || fail "javac"
	run=("$jdk/bin/java" -agentpath:"$DCPI_LIB/libdcpi-jvmti.so" -cp "$work/classes" Callers 4)
	walked java 60
	reach_start java JavaMain call_stub Interpreter Callers.sixty arraycopy
	# HotSpot has another one for processors with AVX-512.
	callers_hold "$(grep -oE 'jbyte_disjoint_arraycopy(_avx3)?' "$work/tree" | sed -n 1p)" sixty thirty ten
fi
stop_daemon
