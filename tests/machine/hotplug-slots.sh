# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 x86-64 two-cpus
# A CPU goes away inside the turn of a slot, stays away while turns change, and comes back in another one's: the account holds,
# each event is sampled there again in its turns, and the profile keeps what part of the time each was counted.
. /src/tests/support/daemon.sh
cpu=/sys/devices/system/cpu/cpu1/online
[ -w $cpu ] || fail "no CPU can be taken offline"
events=(cpu-clock:1000000 task-clock:1000000)
[ "$(uname -m)" != aarch64 ] || events=(cycles:1000003 "armv8_pmuv3/event=0x11,name=others/:1000003")
names=(cpu-clock task-clock)
[ "$(uname -m)" != aarch64 ] || names=(cycles others)

# of_hello EVENT: its samples in all runs of the program so far.
of_hello()
{
	dcpiprof -event "$1" -no_header 2>/dev/null | awk '$NF ~ /(^|\/)hello(\[|$)/ { n += $1 } END { print n + 0 }'
}

for source in perf bpf; do
	rm -rf "$db"
	start_daemon -source $source -slot "${events[0]}" -slot "${events[1]}" -drain 100
	for away in 0.3 1.4 0.1 2.2; do
		echo 0 >$cpu || fail "cannot write $cpu"
		sleep $away
		echo 1 >$cpu || fail "cannot write $cpu"
		sleep 0.7
	done
	account_holds "$source, after four absences"
	sleep 2 # until it is known that it was away
	status_field source
	dcpiflush >/dev/null || fail "dcpiflush"
	before=("$(of_hello "${names[0]}")" "$(of_hello "${names[1]}")")
	taskset 2 "$DCPI_BIN/examples/hello" 4 >/dev/null || fail "hello on CPU 1"
	account_holds "$source, on CPU 1"
	dcpiflush >/dev/null || fail "dcpiflush"
	for i in 0 1; do
		on_it=$(($(of_hello "${names[$i]}") - before[i]))
		echo "$source: $on_it samples of ${names[$i]} on CPU 1"
		[ $on_it -ge 20 ] || fail "$source: CPU 1 is not sampled again by ${names[$i]}"
	done
	stop_daemon
	dcpicat "$db"/*/*/hello* | awk '
		$1 == "event" {
			n = split($3, part, ":")
			print part[1], part[n] / 100, "% of the time"
			good += part[n] > 3000 && part[n] < 7000
			all++
		}
		END { exit !(all >= 2 && good == all) }' || fail "$source: parts of the time"
done
