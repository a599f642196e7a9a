#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Churn without end: programs that fork, exec and map code, JITs that come, tell, reuse addresses and go, some
# of them killed; flushes and epochs between. No sample is lost without a name, and when all have gone the
# daemon has its descriptors back. Some seconds of it; "scripts/test --long soak" asks for as many
# as it likes (DCPI_COUNT), by another seed (DCPI_SEED, DCPI_FROM), and judges the line "soak:".
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
tests=$DCPI_BIN/../tests
seconds=${DCPI_COUNT:-4}
RANDOM=$(((${DCPI_SEED:-1} + ${DCPI_FROM:-0}) % 32768))
churners=()

end_churn()
{
	local p
	for p in ${churners[@]+"${churners[@]}"}; do kill -KILL -- -"$p" 2>/dev/null || :; done
	churners=()
}
at_end end_churn

# churn SEED: one thing after the other, drawn.
churn()
{
	RANDOM=$1
	while :; do
		case $((RANDOM % 8)) in
		0) for _ in {1..50}; do /bin/true; done ;;
		1) "$tests/jit_kids" work 20 $((RANDOM % 50 + 1)) ;;
		2) "$tests/million_jit" -routines $((RANDOM % 2000 + 10)) -seconds 0.3 ;;
		3) timeout -s KILL 0.$((RANDOM % 8 + 1)) "$tests/million_jit" -routines 500 -seconds 5 ;;
		4) "$tests/remap" 0.3 5 "$tests/remap_0.so" "$tests/remap_1.so" ;;
		5) "$DCPI_BIN/examples/hello" 0.3 ;;
		6) for _ in {1..10}; do (: | cat | sort) & done; wait ;;
		7) "$tests/reuse_jit" -seconds 0.3 -turn 2 -retire ;;
		esac
	done
}
export -f churn
export tests DCPI_BIN

family() { echo "$daemon"; cat /proc/"$daemon"/task/*/children 2>/dev/null || :; }

# memory: KiB that they have to themselves. A helper may end meanwhile.
memory()
{
	local p
	for p in $(family); do awk '/^Pss:/ { print $2 }' "/proc/$p/smaps_rollup" 2>/dev/null || :; done |
		awk '{ s += $1 } END { print s + 0 }'
}

descriptors() { find "/proc/$daemon/fd" -mindepth 1 2>/dev/null | wc -l; }

# ticks: of CPU time, those of helpers that have ended too.
ticks()
{
	local p
	for p in $(family); do sed 's/.*) //' "/proc/$p/stat" 2>/dev/null || :; done |
		awk 'NR == 1 { s = $14 + $15 } { s += $12 + $13 } END { print s + 0 }'
}

# quarter N FIELD: the median of a field of $work/seen in a quarter of the time.
quarter()
{
	awk -v q="$1" -v f="$2" '{ v[NR] = $f } END { for (i = 1; i <= NR; i++) if (int((i - 1) * 4 / NR) + 1 == q) print v[i] }' \
		"$work/seen" | sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

start_daemon -flush 2
before=$(descriptors) ticks_before=$(ticks)
for _ in $(seq "$(nproc)") 1; do
	setsid bash -c "churn $RANDOM" >/dev/null 2>&1 &
	churners+=($!)
	disown $! # whose end is no news
done
began=$SECONDS end=$((SECONDS + seconds)) turn=0
while [ $SECONDS -lt $end ] || [ $turn -lt 4 ]; do
	sleep 1
	echo "$(memory) $(descriptors)" >>"$work/seen"
	turn=$((turn + 1))
	[ $((turn % 30)) != 0 ] || account_holds "after $turn s"
	[ $((turn % 120)) != 60 ] || "$DCPI_BIN/dcpiepoch" || fail "dcpiepoch"
done
cpu=$(($(ticks) - ticks_before)) took=$((SECONDS - began))
end_churn
account_holds "at the end"
flush_holds "at the end"
# Somebody else's program may have come; of the churn's there were hundreds.
for ((i = 0; i < 600; i++)); do
	after=$(descriptors)
	[ "$after" -gt $((before + 8)) ] || break
	sleep 0.1
done
echo "descriptors: $before before, $after after"
[ "$after" -le $((before + 8)) ] || fail "descriptors stay open: $(ls -l "/proc/$daemon/fd")"
echo "KiB by quarters: $(quarter 1 1) $(quarter 2 1) $(quarter 3 1) $(quarter 4 1)"
echo "sums: samples $received lost $lost"
echo "soak: $took $(quarter 2 1) $(quarter 4 1) $(quarter 2 2) $(quarter 4 2) $cpu $received $lost"
stop_daemon
