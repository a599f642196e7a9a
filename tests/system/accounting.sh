#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Law 1: received = stored + pending + lost, to the sample, under a storm of short programs and at a
# high rate; what was stored is what is on disk.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
need_root

total_on_disk()
{
	"$DCPI_BIN/dcpiprof" -epoch all -i -no_header 2>>"$work/err" | awk '$NF == "total" { print $1 }'
}

# check WHEN: the identity, computed here from the parts.
check()
{
	local received stored pending lost parts
	"$DCPI_BIN/dcpictl" status -json >"$work/status"
	parts=$(tr ',{}' '\n\n\n' <"$work/status" | awk -F: '
		{ gsub(/"/, "", $1) }
		$1 == "losses" { inside = 1; next }
		$1 == "buckets" { inside = 0 }
		inside && $2 != "" { l += $2; names++ }
		$1 == "received" { r = $2 }  # the last one is the sum: events come before
		$1 == "stored" { s = $2 }
		$1 == "pending" { p = $2 }
		END { print r, s, p, names ? l : "unnamed" }')
	read -r received stored pending lost <<<"$parts"
	echo "$1: received $received, stored $stored, pending $pending, lost $lost"
	[ "$received" -gt 0 ] || fail "$1: nothing received"
	[ "$received" = $((stored + pending + lost)) ] || fail "$1: samples are missing"
}

start_daemon -rate 4000 -flush 1
check "at once"
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
	check "in the storm"
done
wait $storm
check "after it"

"$DCPI_BIN/dcpictl" -json flush >"$work/flushed"
stored=$(sed -E 's/.*"stored":([0-9]+).*/\1/' "$work/flushed")
disk=$(total_on_disk)
echo "flush says $stored stored, on disk are $disk"
[ "$stored" = "$disk" ] || fail "flush: $stored stored, $disk on disk"
check "after a flush"

# A new epoch begins empty, and what was before is still there.
first=$(status_field epoch)
"$DCPI_BIN/dcpiepoch" >"$work/epoch"
second=$(status_field epoch)
[ "$first" != "$second" ] || fail "the epoch is still $first"
grep -q "epoch $second begins" "$work/epoch" || fail "dcpiepoch: $(cat "$work/epoch")"
check "in the second epoch"

"$DCPI_BIN/dcpiquit"
daemon=
said=$(sed -nE 's/.* finished: ([0-9]+) samples stored/\1/p' "$work/log")
disk=$(total_on_disk)
echo "the log says $said stored, on disk are $disk"
[ "$said" = "$disk" ] || fail "quit: $said stored, $disk on disk"
