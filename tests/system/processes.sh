#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Very many processes live when the daemon comes: each is known, they take little memory and no descriptors,
# and no sample of theirs is lost; when they have gone they are forgotten. Hundreds of them; "scripts/test
# --long processes": 10,000 (DCPI_COUNT), with the times that it took.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
count=${DCPI_COUNT:-500}

now() { date +%s%N; }

# memory: KiB of the daemon alone.
memory() { awk '/^VmRSS:/ { print $2 }' "/proc/$daemon/status"; }

descriptors() { find "/proc/$daemon/fd" -mindepth 1 | wc -l; }

start_daemon -source bpf
few=$(memory) few_fds=$(descriptors)
stop_daemon
rm -rf "$db"

coproc sleepers { exec "$DCPI_BIN/../tests/sleepers" "$count"; }
read -r line <&"${sleepers[0]}" || fail "no $count processes can live here"
echo "$line"
begin=$(now)
start_daemon -source bpf -flush 1
began=$(now)
known=$(status_field processes)
asked=$(now)
many=$(memory) many_fds=$(descriptors)
echo "$known processes known; start $(((began - begin) / 1000000)) ms, status $(((asked - began) / 1000000)) ms," \
	"$many KiB, with few $few, $many_fds descriptors, with few $few_fds"
[ "$known" -ge "$count" ] || fail "$known processes are known of $count"
# Each takes 1.5 KiB (measured with 10,000); what the daemon needs anyway differs by a few MiB.
sanitized || [ "$many" -le $((few + count * 4 + 16384)) ] || fail "$((many - few)) KiB more for $count processes"
# The root folders of some, for their perf maps: 256 at most, however many there are.
[ "$many_fds" -le $((few_fds + 260)) ] || fail "$many_fds descriptors"
account_holds "with $count processes"
kill "$sleepers_PID"
for ((i = 0; i < 300; i++)); do
	known=$(status_field processes)
	[ "$known" -ge "$count" ] || break
	sleep 0.2
done
echo "$known processes known when they have gone"
[ "$known" -lt "$count" ] || fail "processes that have gone are still known"
account_holds "without them"
flush_holds "at the end"
stop_daemon
