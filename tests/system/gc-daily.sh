#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpid -gc_daily: a daemon that was not there between 03:00 and 05:00 makes good for it ten minutes after it starts,
# with the rights of a daemon.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
export DCPI_CLOCKS=$work/clocks
mkdir -p "$db/dyn"

# epoch NAME: that began and was written so long ago.
epoch()
{
	mkdir -p "$db/$1/box"
	echo x >"$db/$1/box/other.named.p01"
	touch -d "${1:0:8} ${1:8:2}:${1:10:2}" "$db/$1/box/other.named.p01" "$db/$1/box"
}
# start [OPTION…], said COUNT: how often the log tells of housekeeping, once it does. Some programs start
# others with SIGCHLD ignored: the end of housekeeping is known all the same.
start()
{
	env --ignore-signal=CHLD LD_PRELOAD="$DCPI_BUILD/tests/clocks.so" \
		ASAN_OPTIONS="verify_asan_link_order=0:${ASAN_OPTIONS:-}" \
		"$DCPI_BIN/dcpid" -background -event cpu-clock -platform box -log "$work/log" -gc_daily "$@" "$db" || fail "dcpid"
	pid=$(status_field pid)
}
# later: its clocks (tests/support/clocks.c) go five minutes ahead, less than it takes for a clock that was set.
ahead=0
later()
{
	printf '%19d\n%19d\n%19d\n' "$ahead" "$ahead" "$ahead" | dd of="$DCPI_CLOCKS" conv=notrunc status=none
	ahead=$((ahead + 300))
}
said() { grep -c 'housekeeping: removed' "$work/log" || :; }
quit() { "$DCPI_BIN/dcpictl" quit && wait_for_end "$pid" || fail "quit"; }

later
for day in 01 02 03 04 05; do
	epoch "202001${day}0000"
done
# Of a first daemon nobody knows what was before it: it waits for the night.
start
for i in $(seq 600); do
	[ ! -e "$db/.gc-box" ] || break
	sleep 0.1
done
quit
[ -e "$db/.gc-box" ] && [ "$(said)" = 0 ] || fail "it did not wait"
[ -e "$db/202001010000" ] || fail "removed too early"

# It was done two days ago last.
echo $(($(date +%s) - 172800)) >"$db/.gc-box"
start
for i in $(seq 200); do
	[ "$(said)" = 0 ] || break
	later
	sleep 0.2
done
quit
cat "$work/log"
[ "$(said)" = 1 ] || fail "it was not done"
# The two daemons' epochs and the last before them are the three newest.
[ "$(cd "$db" && echo 2020*)" = 202001050000 ] || fail "other epochs went: $(ls "$db")"
