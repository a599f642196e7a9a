#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Samples have their workload: programs of two users, one in a cgroup, with named threads that share libc and the
# kernel, and many short processes. Each thread's samples are its CPU time, as its own clock says; the sums of workloads
# and of minutes are those of the profiles, image by image, to the sample.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
chmod 755 "$work"
cp "$DCPI_BUILD/tests/named" "$work/one" && cp "$work/one" "$work/two" && cp "$work/one" "$work/brief"
chmod 755 "$work/one" "$work/two" "$work/brief"

# A cgroup of our own, in the unified hierarchy or in one of version 1 that the kernel lists first.
cgroup=
for folder in /sys/fs/cgroup/systemd "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)"; do
	[ -w "$folder/cgroup.procs" ] && mkdir "$folder/dcpi-test-$$" 2>/dev/null || continue
	cgroup=$folder/dcpi-test-$$
	break
done
[ -n "$cgroup" ] || echo "without a cgroup: none can be made here"
# in_cgroup COMMAND…
in_cgroup()
{
	sh -c '[ -z "$0" ] || echo $$ >"$0/cgroup.procs"; exec "$@"' "$cgroup" "$@"
}

# idle_cs: hundredths of a second that CPUs were idle since the machine was booted, by the kernel.
idle_cs() { awk -v hz="$(getconf CLK_TCK)" '$1 == "cpu" { printf "%d\n", ($5 + $6) * 100 / hz }' /proc/stat; }
idle_from=$(idle_cs)
start_daemon
idle_within=$(idle_cs)
in_cgroup setpriv --reuid 65534 --regid 65534 --clear-groups "$work/one" 900000000 alpha beta >"$work/one.ns" &
"$work/two" 1500000000 gamma >"$work/two.ns" &
# Programs that end after a flush, and whose code is one pseudo-image then.
for ((i = 0; i < 3; i++)); do
	"$DCPI_BIN/calc" -time 2 "$DCPI_SRC/examples/jit/calc/demo.calc" >"$work/calc.$i" &
done
# The user of a process can be asked while it lives (docs/decisions/workloads.md).
sleep 0.8
"$DCPI_BIN/dcpiflush" || fail "a flush meanwhile"
wait %1 %2 %3 %4 %5 || fail "a run"
for ((i = 0; i < 40; i++)); do
	"$work/brief" 3000000 brief || fail "a run"
done >"$work/brief.ns"
idle_within=$(($(idle_cs) - idle_within))
flush_stored "workloads"
missed=$(missed)
[ -z "$cgroup" ] || rmdir "$cgroup" || fail "rmdir $cgroup"
epoch=$(status_field epoch) platform=$(status_field platform)
stop_daemon
# What the daemon noted is of the time between the two inner looks at least, and of that between the outer ones at most.
idle_from=$(($(idle_cs) - idle_from))
noted=$("$DCPI_BIN/dcpiprof" -db "$db" -i | sed -nE 's/^idle .*\(([0-9]+)\.([0-9]+) of .* s\)$/\1\2/p')
echo "idle: $noted hundredths of a second noted, from $idle_within to $idle_from by the kernel"
[ "${noted:?no idle time is noted}" -ge $((idle_within - 10)) ] && [ "$noted" -le $((idle_from + 10)) ] || fail "the idle time"
"$DCPI_BUILD/tests/workload_sums" "$db" "$epoch" "$platform" >"$work/sums" 2>"$work/err" ||
	fail "the sums are not the profiles': $(head -n 5 "$work/err" | tr '\n' ';')"
cut -f 1-9 "$work/sums" | sort -rn | head -n 12

# samples CONDITION: of workloads, an expression of awk over samples, processes, pid, uid, comm, exe, cgroup, thread
samples()
{
	awk -F '\t' "{ samples = \$1; processes = \$2; pid = \$3; uid = \$4; comm = \$5; exe = \$6; cgroup = \$7; thread = \$9 }
		$1 { n += ${2:-samples} } END { print n + 0 }" "$work/sums"
}
# has_time WHAT CONDITION NANOSECONDS: a sample for each millisecond, but for what the host took away.
has_time()
{
	within "samples of $1" "$(samples "$2")" $(($3 / 1000000)) \
		"$(awk -v n=$(($3 / 1000000)) -v m="$missed" 'BEGIN { printf "%d\n", 6 * sqrt(n) + n / 10 + m }')"
}
time_of() { awk -v name="$2" 'name == "" || $1 == name { n += $2 } END { printf "%d\n", n }' "$work/$1.ns"; }

has_time "a thread of a user's in a cgroup" 'thread == "alpha" && uid == 65534 && exe ~ /\/one$/' "$(time_of one alpha)"
has_time "another thread of it" 'thread == "beta" && uid == 65534 && comm == "one"' "$(time_of one beta)"
has_time "another program" 'thread == "gamma" && uid == 0 && comm == "two"' "$(time_of two gamma)"
[ -z "$cgroup" ] || [ "$(samples "cgroup ~ /dcpi-test-$$\$/ && comm == \"one\"")" = "$(samples 'comm == "one"')" ] ||
	fail "the cgroup of a process"
[ "$(samples 'thread == "gamma"' 1)" = 1 ] || fail "one thread is several workloads"
[ "$(samples 'comm == "brief" && pid')" = 0 ] || fail "short processes are kept by pid"
within "short processes" "$(samples 'comm == "brief" && exe ~ /\/brief$/' processes)" 38 2
# A machine may have no time to idle.
idle=$("$DCPI_BIN/dcpiprof" -db "$db" -i -no_header 2>/dev/null | awk '$NF == "idle" { print $1 }')
[ "$(samples 'comm == "(idle)" && !pid && uid < 0')" -ge "${idle:-0}" ] || fail "the idle task has too few samples"
