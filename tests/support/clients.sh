#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Clients that begin, run a routine and end, one behind the other: dcpid answers meanwhile, keeps its accounts, its
# memory and descriptors do not stay with them, and no sample is charged to a routine that was not there.
# "scripts/test --long clients": 100,000 (DCPI_COUNT), which is to take a minute on a quiet machine.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/truth.sh"
need_root
count=${DCPI_COUNT:-100000}

# mib FIELD: of the daemon's memory. descriptors: how many it has open.
mib() { awk -v f="$1:" '$1 == f { print int($2 / 1024) }' "/proc/$daemon/status"; }
descriptors() { find "/proc/$daemon/fd" -type l 2>/dev/null | wc -l; }

start_daemon -unknown -flush 5
before=$(mib VmRSS) open=$(descriptors)
"$tests/jit_kids" many "$count" >"$work/said" &
load=$! slowest=0
while kill -0 $load 2>/dev/null; do
	asked=$(date +%s%N)
	[ -n "$(status_field pid)" ] || fail "the daemon gives no status"
	took=$((($(date +%s%N) - asked) / 1000000))
	slowest=$((took > slowest ? took : slowest))
	sleep 0.2
done
wait $load || fail "jit_kids: $(cat "$work/said")"
cat "$work/said"
read -r _ begun _ ended _ seconds <"$work/said"
[ "$begun" = "$count" ] || fail "$begun of $count clients began"
[ $((ended * 5)) -ge $((count * 2)) ] || fail "$ended of $((count / 2)) were told that their end is known"
account_holds "$count clients"
for ((i = 0; i < 300; i++)); do
	[ "$(descriptors)" -gt $((open + 16)) ] || break
	sleep 0.1
done
at_most "descriptors of the daemon, $open before" "$(descriptors)" $((open + 16))
peak=$(mib VmHWM)
at_most "MiB of the daemon's memory at most, $before before" "$peak" $((before + 96 + count / 250))
lost_events=$("$DCPI_BIN/dcpictl" status | sed -n 's/.*; \([0-9]*\) load events lost.*/\1/p')
# Their code is written by then, whatever that took.
stop_daemon
judge_samples many
[ "$wrong $bytes" = "0 0" ] || fail "$wrong and $bytes of $total samples are wrong"
sort_out "$count clients"
[ "$(find "$db/dyn" -name '*.tmp*' | wc -l)" = 0 ] || fail "dyn/ holds other files: $(ls -A "$db/dyn")"
echo "sums: clients $count seconds $seconds status_ms $slowest rss_mib $peak samples $((total + unsure + lost)) unsure $unsure lost $lost \
events_lost ${lost_events:-0} images $(find "$db/dyn" -name 'many-*' | wc -l)"
