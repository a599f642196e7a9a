# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 x86-64 exact
# programs: upcalls unit_uvprof_uvprof
# libuvprof on Linux 6.1: each thread's handler runs as often as the event was counted and sampled, one more or less, by the
# clock and by the PMU; for a user whom the kernel gives events, and by a timer for one whom it refuses them; and all that its
# unit test says of threads, forks, signals, jumps and crashes.
. /src/tests/support/daemon.sh
uname -rv
events="task-clock:1000000 cpu-clock:1000000"
[ "$(uname -m)" != aarch64 ] || events+=" cycles:1000003"
echo 2 >/proc/sys/kernel/perf_event_paranoid
for event in $events; do
	su -s /bin/bash nobody -c "/tests/upcalls ${event%:*} ${event#*:}" >"$work/runs" || fail "$event: $(cat "$work/runs")"
	[ "$(grep -c ' runs, ' "$work/runs")" = 16 ] || fail "$event: not sixteen threads"
	echo "$event: $(head -n 1 "$work/runs")"
done
su -s /bin/bash nobody -c /tests/unit_uvprof_uvprof >"$work/unit" 2>&1 || fail "units: $(cat "$work/unit")"
grep '^\[  PASSED' "$work/unit"
! grep '^\[  SKIPPED' "$work/unit" || fail "units were skipped"

# Debian's own value is for no event at all.
echo 3 >/proc/sys/kernel/perf_event_paranoid
su -s /bin/bash nobody -c "/tests/upcalls task-clock 1000000" >"$work/runs"
[ $? = 3 ] || fail "events of a user who may not: $(cat "$work/runs")"
cat "$work/runs"
su -s /bin/bash nobody -c /tests/unit_uvprof_uvprof >"$work/unit" 2>&1 || fail "units by timers: $(cat "$work/unit")"
grep '^\[  SKIPPED.*perf_runs' "$work/unit" || fail "an event in spite of the kernel"
