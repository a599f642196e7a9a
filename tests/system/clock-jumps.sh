#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The clock is set ahead and back under a running daemon, and the machine sleeps (its clocks are those of
# tests/support/clocks.c, for nobody may set the machine's): the daemon says each once, goes on, counts them; epochs
# follow one another, and no sample is lost.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
export DCPI_CLOCKS=$work/clocks

# clocks UTC BOOT: by how many seconds they are ahead.
clocks() { printf '%19d\n%19d\n' "$1" "$2" | dd of="$work/clocks" conv=notrunc status=none; }

# becomes FIELD NUMBER: within a minute.
becomes()
{
	local i
	for ((i = 0; i < 600; i++)); do
		[ "$(status_field "$1")" != "$2" ] || return 0
		sleep 0.1
	done
	fail "$1: $(status_field "$1")"
}

# turned: a new epoch, of a later name.
turned()
{
	local before=$epoch
	"$DCPI_BIN/dcpictl" epoch || fail "dcpictl epoch"
	epoch=$(status_field epoch)
	# Some have seconds.
	[[ $epoch > $before ]] || fail "epoch $epoch after $before"
}

# said TEXT: once.
said() { [ "$(grep -cE "$1" "$work/log")" = 1 ] || fail "the log does not say '$1' once"; }

clocks 0 0
# A sanitizer's runtime wants to be first, before what is preloaded.
LD_PRELOAD=$DCPI_BUILD/tests/clocks.so ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS:-} start_daemon
epoch=$(status_field epoch)
clocks 3600 0
becomes clock_sets 1
turned
clocks -3600 0
becomes clock_sets 2
turned
# Ten minutes of sleep, which UTC has too.
clocks -3000 600
becomes suspends 1
[ "$(status_field suspended_seconds)" -ge 599 ] || fail "suspended for $(status_field suspended_seconds) s"
[ "$(status_field clock_sets)" = 2 ] || fail "a machine that slept is taken for one whose clock was set"
turned
account_holds "after all"
flush_holds "after all"
[ "$stored" -gt 100 ] || fail "only $stored samples"
# Read one after the other, clocks may be a little less apart.
said 'the clock was set ahead by (3600|3599) s$'
said 'the clock was set back by (7200|7199) s$'
said 'the machine was suspended for (600|599) s$'
stop_daemon
[ "$(ls "$db" | grep -c '^2')" = 4 ] || fail "epochs: $(ls "$db")"
