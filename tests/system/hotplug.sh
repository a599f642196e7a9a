#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A CPU goes offline and comes back, for long and for a moment, while dcpid samples: the account holds
# at every step, what its ring and table held is kept, and after a second or two it is sampled again.
# Where the kernel refuses that, dcpid says so, goes on with the others, and tries again.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
need_root

cpus=/sys/devices/system/cpu
cpu=$(find $cpus/cpu[0-9]*/online -writable 2>/dev/null | sort -V | tail -n 1)
[ -n "$cpu" ] && [ "$(cat "$cpu")" = 1 ] || {
	echo "skip: no CPU here can be taken offline"
	exit 77
}
all=$(cat $cpus/online)
nr=$(getconf _NPROCESSORS_ONLN)
spinners=()

restore()
{
	echo 1 >"$cpu"
	[ ${#spinners[@]} = 0 ] || kill "${spinners[@]}" 2>/dev/null
	[ "$(cat $cpus/online)" = "$all" ] || echo "CPUs online: $(cat $cpus/online), not $all" >&2
}
at_end restore

# busy_rate SECONDS: samples a second, in hundreds, while every CPU is busy. Sets $rate.
busy_rate()
{
	local before=$received since now
	since=$(date +%s%N)
	sleep "$1"
	account_holds "$2"
	now=$(date +%s%N)
	[ "$received" -ge "$before" ] || fail "$2: $received received, $before before"
	rate=$(((received - before) * 10000000 / (now - since)))
	echo "$2: $rate hundred samples a second"
}

# source_says TEXT [0]: within a minute the status says that of its source; 0: no more.
source_says()
{
	local i
	for ((i = 0; i < 600; i++)); do
		status_field source >"$work/source"
		[ "$(grep -c -- "$1" "$work/source")" != "${2:-1}" ] || return 0
		sleep 0.1
	done
	fail "the source is: $(cat "$work/source")"
}

for source in perf bpf; do
	start_daemon -source $source -event cpu-clock -rate 1000 -drain 100
	for ((i = 0; i < nr; i++)); do
		(while :; do :; done) &
		spinners+=($!)
	done
	account_holds "$source, at once"
	busy_rate 1 "$source, all CPUs"
	full=$rate
	echo 0 >"$cpu"
	source_says "on $((nr - 1)) CPU"
	account_holds "$source, one gone"
	busy_rate 1 "$source, one less"
	# A CPU's worth is missing, with room for a slow machine.
	[ "$rate" -lt $((full * (2 * nr - 1) / (2 * nr))) ] || fail "$source: $rate without, $full with it"
	echo 1 >"$cpu"
	source_says "on $nr CPU"
	account_holds "$source, back"
	busy_rate 1 "$source, all again"
	[ "$rate" -gt $((full * (2 * nr - 1) / (2 * nr))) ] || fail "$source: $rate again, $full before"
	for _ in 1 2 3; do
		echo 0 >"$cpu"
		sleep 0.2
		echo 1 >"$cpu"
		sleep 0.3
	done
	sleep 2 # until it is known that it was away
	source_says "on $nr CPU"
	account_holds "$source, after three moments"
	busy_rate 1 "$source, all once more"
	[ "$rate" -gt $((full * (2 * nr - 1) / (2 * nr))) ] || fail "$source: $rate at last, $full before"
	kill "${spinners[@]}"
	spinners=()
	stop_daemon
	! grep -E "refused|cannot" "$work/log" || fail "$source: something was refused"
	rm -rf "$db" "$work/log"
done

# first_free: the lowest descriptor that dcpid does not use.
first_free()
{
	local fd
	for ((fd = 0; ; fd++)); do
		[ -L "/proc/$daemon/fd/$fd" ] || break
	done
	echo $fd
}

start_daemon -source perf -event cpu-clock -rate 1000
limits=$(prlimit --pid "$daemon" --nofile --raw --noheadings -o SOFT,HARD)
echo 0 >"$cpu"
source_says "on $((nr - 1)) CPU"
# One more descriptor is to be had; a CPU needs two.
prlimit --pid "$daemon" --nofile=$(($(first_free) + 1)):"${limits#* }"
echo 1 >"$cpu"
source_says "; CPU ${cpu//[!0-9]/} refused: Too many open files"
cat "$work/source"
account_holds "refused"
prlimit --pid "$daemon" --nofile="${limits% *}:${limits#* }"
source_says refused 0
source_says "on $nr CPU"
cat "$work/source"
account_holds "no more refused"
stop_daemon
