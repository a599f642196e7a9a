#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# LuaJIT as a client: "luajit -jdcpi PROGRAM", everything read after the process is gone. Routines have the names
# and shares that the program knows by its own clock, their lines and LuaJIT's own disassembly; where traces are
# flushed and others take their place, no sample goes to one that is gone; runs are one table and one image.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/truth.sh"
. "$DCPI_SRC/tests/support/runtime.sh"
. "$DCPI_SRC/tests/support/preload.sh"
need_root
need_runtime luajit
export LUA_PATH="$DCPI_SRC/adapters/luajit/?.lua;;"
lua=$DCPI_SRC/tests/support/lua

# counts [OPTION…]: "SAMPLES<tab>PROCEDURE" of LuaJIT's routines.
counts()
{
	"$DCPI_BIN/dcpiprof" -no_header "$@" luajit 2>>"$work/notes" | awk '
		$NF ~ /^luajit\[/ || $NF == "luajit" { n = $1; sub(/^ *[0-9]+ +[0-9.]+% +[0-9.]+% +([0-9]+[.][0-9]+ +)?/, ""); sub(/ +[^ ]+$/, ""); print n "\t" $0 }'
}

# nr PATTERN: samples of the routines whose names it matches, in $work/counts.
nr() { awk -F'\t' -v p="$1" '$2 ~ p { n += $1 } END { print n + 0 }' "$work/counts"; }

# unnamed PID: its samples in dynamic code that are in no routine: under names that say so (dcpid -unknown), and,
# of all processes until then, in pages of which nobody told.
unnamed()
{
	local told
	told=$(awk -v of=" samples of pid $1 " '
		index($0, of) && /dynamic|reused/ { sub(/.*: /, ""); n += $1 }
		END { print n + 0 }' "$work/log")
	"$DCPI_BIN/dcpiprof" -epoch all -i -no_header 2>>"$work/notes" | awk -v n="$told" '
		/luajit: dynamic, unnamed/ { n += $1 }
		END { print n + 0 }'
}

start_daemon -unknown

# -- names, shares, lines, disassembly
hosted luajit -jdcpi -jdump=m,"$work/dump" "$lua/shares.lua" 3 >"$work/said" 2>"$work/err" &
pid=$!
wait $pid || fail "shares.lua: $(cat "$work/err")"
[ ! -s "$work/err" ] || fail "it says $(cat "$work/err")"
"$DCPI_BIN/dcpiflush" >/dev/null || fail "dcpiflush"
cat "$work/said"
counts >"$work/counts"
cat "$work/counts"
all=$(nr .)
[ "$all" -gt 1500 ] || fail "too few samples to judge"
# The loop of each, and what returns from it; nothing else of the program's is as long.
named=0
for routine in sixty thirty ten; do
	n=$(nr "^shares.lua:[0-9]+ (Account:)?$routine( |\$)")
	# n = 2,000 samples of a share of 60 % have a standard deviation of 1.1 points.
	within $routine "$(awk -v n="$n" -v a="$all" 'BEGIN { print 100 * n / a }')" \
		"$(awk -v r=$routine '$1 == r { print $2 }' "$work/said")" 4
	named=$((named + n))
done
[ $((named * 100)) -ge $((all * 98)) ] || fail "$named of $all are of the three"
missing=$(unnamed $pid)
echo "unnamed: $missing beside $all"
[ $((missing * 100)) -le $((all * 2)) ] || fail "samples without a name"

# Guards tell one line from another; between two of them several stay together. The loop is these; which of its
# instructions waits for the arithmetic to end, and so has most samples, is the processor's affair.
"$DCPI_BIN/dcpilist" -source -no_header "shares.lua:6 sixty" luajit >"$work/lines" || fail "dcpilist -source"
cat "$work/lines"
awk '/shares.lua:6 .*for i = 1, n do/ { head = $1 } /shares.lua lines 7-8:7 .*s = s \* 1.25/ { body = $1 } $3 == "total" { t = $1 }
	END { exit !(head && body && t > 1000 && (head + body) * 100 > t * 98) }' "$work/lines" || fail "lines"

# What -jdump wrote in the run is what LuaJIT's disassembler makes of the bytes that were kept.
address=$(awk '/^---- TRACE .* start shares.lua:6$/ { on = 1; next } on && / mcode / { getline; print $1; exit }' "$work/dump")
"$DCPI_BIN/dcpilist" -asm -bytes -no_header "0x$address" luajit >"$work/asm" || fail "dcpilist 0x$address"
awk '/^---- TRACE .* start shares.lua:6$/ { on = 1; next } on && / mcode / { on = 2; next } /^---- TRACE/ { if (on == 2) exit }
	on == 2 && /^[0-9a-f]+ / { sub(/[ \t]*->.*/, ""); sub(/[ \t]+$/, ""); print }' "$work/dump" >"$work/theirs"
"$DCPI_BIN/dcpilist" -json "0x$address" luajit | sed -n 's/.*"bytes":"\([0-9a-f]*\)".*/\1/p' |
	luajit "$lua/disassemble.lua" "0x$address" | sed 's/[ \t]*$//' >"$work/ours"
cmp "$work/theirs" "$work/ours" || fail "disassembly differs: $(diff "$work/theirs" "$work/ours")"
echo "disassembly: $(wc -l <"$work/ours") instructions, as -jdump has them"
[ "$(wc -l <"$work/ours")" -gt 15 ] || fail "nothing compared"


# -- flushed traces: what the program measured, and in each stage's epoch nothing of the other's
mkfifo "$work/go"
: >"$work/log"
hosted luajit -jdcpi "$lua/flush.lua" 6 <"$work/go" >"$work/said" 2>"$work/err" &
pid=$!
exec 3>"$work/go"
wait_for_stage()
{
	local i
	for ((i = 0; i < 900; i++)); do
		[ "$(grep -c "done" "$work/said")" -lt "$1" ] || return 0
		sleep 0.1
	done
	fail "stage $1 of flush.lua does not end: $(cat "$work/err")"
}
nr_stages=0 total=0
for stage in a b; do
	nr_stages=$((nr_stages + 1))
	wait_for_stage $nr_stages
	"$DCPI_BIN/dcpiepoch" >/dev/null || fail "dcpiepoch"
	mapfile -t epochs < <(cd "$db" && ls -d 2[0-9]*)
	counts -epoch "${epochs[-2]}" | awk -F'\t' '$2 ~ /^[ab][0-9].lua/' >"$work/counts"
	wrong=$(awk -F'\t' -v s=$stage '$2 !~ "^" s { n += $1 } END { print n + 0 }' "$work/counts")
	grep "^$stage" "$work/said" >"$work/truth"
	awk -F'\t' '{ print "routine", substr($2, 1, 2), $1 }' "$work/counts" |
		awk '{ n[$2] += $3 } END { for (i in n) print "routine", i, n[i] }' >"$work/judged"
	sum=$(nr .)
	total=$((total + sum))
	echo "stage $stage: $sum samples, $wrong in routines that were gone"
	[ "$sum" -gt 1000 ] && [ "$wrong" = 0 ] || fail "stage $stage"
	at_most "worst deviation, in standard deviations" "$(worst_sigma "$work/truth")" 4
	echo >&3
done
wait $pid || fail "flush.lua: $(cat "$work/err")"
exec 3>&-
[ ! -s "$work/err" ] || fail "it says $(cat "$work/err")"
missing=$(unnamed $pid)
echo "unnamed: $missing beside $total"
[ $((missing * 100)) -le $((total * 2)) ] || fail "samples without a name"
stop_daemon

# -- a flush each 80 ms, without a moment for the daemon to learn of LuaJIT's new region: by counts and by single samples
for source in bpf perf; do
	db=$work/churn.$source DCPIDB=$work/churn.$source
	: >"$work/log"
	start_daemon -unknown -source $source
	hosted luajit -jdcpi "$lua/churn.lua" 6 >"$work/truth" 2>"$work/err" &
	pid=$!
	wait $pid || fail "churn.lua: $(cat "$work/err")"
	[ ! -s "$work/err" ] || fail "it says $(cat "$work/err")"
	"$DCPI_BIN/dcpiflush" >/dev/null || fail "dcpiflush"
	counts | awk -F'\t' '$2 ~ /^c[0-3].lua/' >"$work/counts"
	awk -F'\t' '{ n[substr($2, 1, 2)] += $1 } END { for (i in n) print "routine", i, n[i] }' "$work/counts" >"$work/judged"
	sum=$(nr .) missing=$(unnamed $pid)
	echo "a flush each 80 ms, $source: $sum samples in routines, $missing without a name"
	[ "$sum" -gt 3000 ] || fail "too few samples to judge"
	[ $((missing * 100)) -le $((sum * 2)) ] || fail "samples without a name"
	at_most "worst deviation, in standard deviations" "$(worst_sigma "$work/truth")" 4
	stop_daemon
done

# -- short runs, one after the other: one table, one image
db=$work/runs DCPIDB=$work/runs
start_daemon -flush 1
for ((i = 0; i < 20; i++)); do
	hosted luajit -jdcpi "$lua/short.lua" 2>"$work/err" || fail "short.lua: $(cat "$work/err")"
	[ ! -s "$work/err" ] || fail "it says $(cat "$work/err")"
done
"$DCPI_BIN/dcpiflush" >/dev/null || fail "dcpiflush"
files=$(find "$db/dyn" -name 'luajit*.dyn' | wc -l)
counts >"$work/counts"
cat "$work/counts"
echo "20 runs: $files pseudo-images, $(awk -F'\t' '$2 == "short.lua:5 work"' "$work/counts" | wc -l) rows of the routine"
[ "$files" = 1 ] || fail "$files pseudo-images"
[ "$(grep -c 'short.lua:5 work$' "$work/counts")" = 1 ] || fail "not one row"
[ "$(nr 'short.lua:5 work$')" -gt 800 ] || fail "too few samples"
stop_daemon

# -- what goes wrong is said once, and harms nothing
run() { "$@" "$lua/short.lua" >"$work/out" 2>"$work/err" || fail "$*: $(cat "$work/err")"; }
LD_LIBRARY_PATH=/nonexistent run luajit -jdcpi
[ "$(grep -c '^dcpi: not started: libdbgdyn.so.0: ' "$work/err")" = 1 ] && [ "$(wc -l <"$work/err")" = 1 ] ||
	fail "without libdbgdyn: $(cat "$work/err")"
LUA_INIT='require("dcpi").start()' run hosted luajit -jdcpi -jv
grep -q '^\[TRACE .* short.lua:5 loop\]$' "$work/err" || fail "-jv beside it, and started twice: $(cat "$work/err")"
! grep dcpi "$work/err" || fail "it says something"
run hosted luajit -jdcpi -e 'require("jit.util").tracemc = function() error("gone") end'
[ "$(wc -l <"$work/err")" = 1 ] && grep -q '^dcpi: switched off: ' "$work/err" || fail "after a failure: $(cat "$work/err")"
run luajit -e 'jit = nil' -e 'require("dcpi").start()'
[ "$(cat "$work/err")" = "dcpi: not started: this is not LuaJIT" ] || fail "in another Lua: $(cat "$work/err")"
echo "without libdbgdyn, started twice, beside -jv, after a failure, in another Lua: the program runs"
