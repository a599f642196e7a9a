#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A load that changes every two minutes, over an hour's change of epoch, a suspend and a restart of the daemon:
# -since and -until give each phase its programs' CPU time, dcpitimeline's slices have the same samples, and it says
# which time was not recorded. The daemon's clock is that of tests/support/clocks.c: a phase takes seconds.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
export TZ=UTC LC_ALL=C DCPI_CLOCKS=$work/clocks COLUMNS=120
for name in alpha beta; do
	cp "$DCPI_BUILD/tests/named" "$work/$name"
done

# Four minutes before an hour that is past, so that no epoch is in the tools' future.
hour=$((($(date +%s) / 3600 - 2) * 3600))
ahead=0 slept=0
# at SECONDS [SLEPT]: the daemon's clock shows so many after the hour, and it slept so many more.
at()
{
	ahead=$((hour + $1 - $(date +%s)))
	slept=$((slept + ${2:-0}))
	printf '%19d\n%19d\n' $ahead $slept | dd of="$work/clocks" conv=notrunc status=none
}
start_it()
{
	LD_PRELOAD=$DCPI_BUILD/tests/clocks.so ASAN_OPTIONS=verify_asan_link_order=0:${ASAN_OPTIONS:-} start_daemon -epoch_every 1h
}
# phase NAME ALPHA BETA: milliseconds of CPU time.
phase()
{
	# The daemon looks at the clock when it drains.
	"$DCPI_BIN/dcpictl" flush >/dev/null || fail "dcpictl flush"
	"$work/alpha" "$2"000000 alpha >"$work/$1.alpha" &
	local other=$!
	"$work/beta" "$3"000000 beta >"$work/$1.beta"
	wait $other
	flush_stored "phase $1"
	end=$(($(date +%s) + ahead))
}
clock_of() { date -d "@$((hour + $1))" '+%F %T'; }
# holds NAME FROM: in these two minutes alpha has its part of both programs' time, within 3 points and what chance makes;
# the slice of dcpitimeline has the same samples.
holds()
{
	local from=$((hour + $2)) alpha beta
	"$DCPI_BIN/dcpiprof" -since "$(clock_of "$2")" -until "$(clock_of $(($2 + 120)))" -by comm -no_header >"$work/report"
	alpha=$(awk '$NF == "alpha" { print $1 }' "$work/report") beta=$(awk '$NF == "beta" { print $1 }' "$work/report")
	within "alpha in phase $1" "$(awk -v a="$alpha" -v b="$beta" 'BEGIN { print 100 * a / (a + b) }')" \
		"$(awk '{ n[NR] = $2 } END { print 100 * n[1] / (n[1] + n[2]) }' "$work/$1.alpha" "$work/$1.beta")" \
		"$(awk -v n=$((alpha + beta)) 'BEGIN { print 3 + 4 * 50 / sqrt(n) }')"
	python3 - "$work/slices.json" "$from" "$alpha" "$beta" <<-'END' || fail "another slice: $(cat "$work/report")"
		import json, sys
		t = json.load(open(sys.argv[1]))
		i = [s["begin"] for s in t["slices"]].index(int(sys.argv[2]))
		rows = {r["name"]: r["slices"][i] for r in t["rows"]}
		assert t["slices"][i]["recorded"]
		assert rows["alpha"] == int(sys.argv[3]) and rows["beta"] == int(sys.argv[4]), rows
		assert sum(s["samples"] for s in t["slices"]) == t["total"]
	END
}

at -237
start_it
phase one 1500 500
at -117
phase two 500 1500
# The hour's change, and sleep from 00:02 on to 00:10.
at 3
phase three 1500 500
at 603 480
phase four 500 1500
account_holds "after four phases"
stop_daemon
ends=("$hour" "$end")
at 1203
start_it
phase five 1500 500
stop_daemon
ends+=("$end")

# A tool takes the time of the last flush for an epoch's end, which our clock has set.
mapfile -t epochs < <(find "$db" -maxdepth 1 -name '2*' -printf '%f\n' | sort)
echo "epochs: ${epochs[*]}"
[ "${#epochs[@]}" = 3 ] || fail "not an epoch for each hour and daemon: ${epochs[*]}"
for i in 0 1 2; do
	touch -d "@${ends[i]}" "$db/${epochs[i]}"/*/.commit
done
"$DCPI_BIN/dcpitimeline" -epoch all -by comm -slice 2m >"$work/slices"
cut -c 1-120 "$work/slices"
"$DCPI_BIN/dcpitimeline" -epoch all -by comm -slice 2m -json >"$work/slices.json"
holds one -240
holds two -120
holds three 0
holds four 600
holds five 1200
# said_between FROM TO CAUSE: the slices between have no samples for that reason.
said_between()
{
	sed -n "s/.* $(clock_of "$1") UTC to $(clock_of "$2") UTC: //p" "$work/slices" >"$work/cause"
	grep -F "$3" "$work/cause" >/dev/null || fail "no cause '$3' of the gap at $1: $(cat "$work/cause")"
}
said_between 120 600 "the machine was suspended for"
said_between 720 1200 "no daemon ran"
# The clock of this test is set before each phase.
grep -E "the clock was set ahead by [0-9]+ s" "$work/slices" >/dev/null || fail "nothing is said of the clock"
grep -qF "$(clock_of 120) UTC to $(clock_of 600) UTC" "$work/slices" || fail "nothing is said of the sleep"
grep -qF "$(clock_of 720) UTC to $(clock_of 1200) UTC" "$work/slices" || fail "nothing is said of the time without a daemon"
