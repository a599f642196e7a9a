#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Law 1: received = stored + pending + lost, to the sample, under a storm of short programs and at a
# high rate; what was stored is what is on disk.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
need_root

start_daemon -rate 4000 -flush 1
account_holds "at once"
(
	end=$((SECONDS + 4))
	while [ $SECONDS -lt $end ]; do
		/bin/true
		(: | cat)
	done
) &
storm=$!
for _ in 1 2 3 4 5; do
	sleep 0.5
	account_holds "in the storm"
done
wait $storm
account_holds "after it"

flush_holds "a flush"
account_holds "after a flush"

# A new epoch begins empty, and what was before is still there.
first=$(status_field epoch)
"$DCPI_BIN/dcpiepoch" >"$work/epoch"
second=$(status_field epoch)
[ "$first" != "$second" ] || fail "the epoch is still $first"
grep -q "epoch $second begins" "$work/epoch" || fail "dcpiepoch: $(cat "$work/epoch")"
account_holds "in the second epoch"

"$DCPI_BIN/dcpiquit"
daemon=
for epoch in "$first" "$second"; do
	said=$(sed -nE "s/.* epoch $epoch finished: ([0-9]+) samples? stored/\1/p" "$work/log")
	disk=$("$DCPI_BIN/dcpiprof" -db "$db" -epoch "$epoch" -i -no_header 2>>"$work/err" | awk '$NF == "total" { print $1 }')
	echo "epoch $epoch: the log says $said stored, on disk are $disk"
	[ -n "$said" ] && [ "$said" = "$disk" ] || fail "epoch $epoch: $said stored, $disk on disk"
done
