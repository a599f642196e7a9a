# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 x86-64 two-cpus
# A CPU goes away and comes back under dcpid: the account holds at each step, and the CPU is sampled again.
. /src/tests/support/daemon.sh
cpu=/sys/devices/system/cpu/cpu1/online
if [ ! -w $cpu ]; then
	fail "no CPU can be taken offline"
fi

# of_hello: the samples of all runs of the program so far.
of_hello()
{
	dcpiflush >/dev/null || fail "dcpiflush"
	dcpiprof -no_header 2>/dev/null | awk '$NF ~ /(^|\/)hello(\[|$)/ { n += $1 } END { print n + 0 }'
}

for source in perf bpf; do
	rm -rf "$db"
	start_daemon -source $source -event cpu-clock -drain 100
	for step in 0 1 0 1; do
		echo $step >$cpu || fail "cannot write $cpu"
		sleep 2
		"$DCPI_BIN/examples/hello" 1 >/dev/null || fail "hello"
		account_holds "$source, CPU 1 is $step"
		status_field source
	done
	before=$(of_hello)
	taskset 2 "$DCPI_BIN/examples/hello" 2 >/dev/null || fail "hello on CPU 1"
	account_holds "$source, on CPU 1"
	on_it=$(($(of_hello) - before))
	echo "$source: $on_it samples on CPU 1"
	[ $on_it -ge 200 ] || fail "$source: CPU 1 is not sampled again"
	stop_daemon
done
