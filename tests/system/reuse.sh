#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Law 2 under reuse: a JIT puts 2 or 50 routines at one address in turn and measures by its own clock how
# much CPU time each got. Each has its share, within the error of sampling; no sample goes to one that did
# not live; next to none is unsure. bench/reuse does the same at full length.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/truth.sh"
truth_programs=reuse_jit
need_root

# judge NAME WHAT: $limit: of the worst deviation; $each: see worst_sigma.
judge()
{
	judge_samples "$1"
	none_wrong "$2"
	sort_out "$2 ($(cat "$work/err"))"
	[ "$lost" = 0 ] || fail "$2: $lost samples have no routine"
	at_most "unsure samples" "$unsure" "$((5 + total / 100))"
	at_most "worst deviation, in standard deviations" "$(worst_sigma "$work/truth" $each)" $limit
}

# try NAME OPTION…: of reuse_jit. A run at 1000 samples a second has 2500 of them: 50 for each of 50 routines, of which
# one at an address in turn with others has a standard deviation of 7, so that the limit is half of its samples.
seconds=2.5
try()
{
	local name=$1
	shift
	: >"$work/log"
	"$tests/reuse_jit" -facility "$name" -seconds $seconds "$@" >"$work/truth" 2>"$work/err" || fail "reuse_jit $*"
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	judge "$name" "$*"
	account_holds "$*"
}

# short SOURCE: programs of an eighth of a second each, whose routines are told in a jitdump file alone (as backends of
# PostgreSQL), and take turns at one address: over before the daemon knows that addresses are reused.
short()
{
	local i
	mkdir -p "$work/dumps"
	: >"$work/log"
	for ((i = 1; i <= 25; i++)); do
		nice -n -19 "$tests/reuse_jit" -alone -jitdump "$work/dumps" -routines 4 -turn 3 -seconds 0.12 -seed $i 2>"$work/err" ||
			fail "reuse_jit -alone: $(cat "$work/err")"
	done >"$work/truth"
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	judge_samples reuse_jit
	[ "$wrong $bytes" = "0 0" ] || fail "jitdump, $1: $wrong and $bytes of $total samples are wrong"
	sort_out "short programs with a jitdump, $1"
	at_most "samples without a routine, and unsure" $((lost + unsure)) $((total / 50))
	at_most "worst deviation, in standard deviations" "$(worst_sigma "$work/truth")" 4.5
}

limit=3.5 each=
# As long as counts are sampled often; then at the settings that dcpid has by itself.
start_daemon -unknown
try two -routines 2 -turn 1
try fifty -routines 50 -turn 1 -retire
try long -routines 50 -turn 100
try beside -routines 10 -turn 50 -threads -retire
short bpf
stop_daemon
rm -rf "$db" "$work/log"

"$DCPI_BIN/dcpid" -background -log "$work/log" -unknown "$db" || fail "dcpid does not start"
daemon=$(status_field pid)
seconds=4 # some hundred samples a second
limit=6 # 4 to 8 samples each
try default -routines 50 -turn 10
# Stays of 1 and 0.1 ms are shorter than a tick: the number of samples is as unsteady as the binomial one, of
# which one of four routines is beyond 3.5 once in 500 runs, beyond 4.5 once in 37,000.
limit=4.5 each=each
try default2 -routines 2 -turn 1 -retire -threads
stop_daemon
seconds=2.5 each=

# Samples that bring no generation are told apart by time.
rm -rf "$db" "$work/log"
start_daemon -unknown -source perf
try perf2 -routines 2 -turn 1
try perf50 -routines 50 -turn 1 -retire
short perf
stop_daemon

rm -rf "$db"
"$DCPI_BIN/dcpirun" -unknown -db "$db" -- "$tests/reuse_jit" -facility run -seconds $seconds -routines 50 -turn 1 \
	>"$work/truth" 2>"$work/log" || fail "dcpirun: $(cat "$work/log")"
: >"$work/err"
judge run dcpirun
