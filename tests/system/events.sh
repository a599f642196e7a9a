#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What dcpid says of this machine is so: listed events can be sampled, refused ones cannot, with rights
# and without; events asked for together are counted together, those of slots in turn.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
reachable_programs
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
cd "$work" || exit 1

# ---- the reports
"$DCPI_BIN/dcpid" -list-events >events || fail "-list-events"
"$DCPI_BIN/dcpid" -check >check || fail "-check"
"${nobody[@]}" "$DCPI_BIN/dcpid" -list-events >events.nobody
[ $? -le 1 ] || fail "-list-events of nobody"
"${nobody[@]}" "$DCPI_BIN/dcpid" -check >check.nobody 2>check.err
[ $? -le 1 ] || fail "-check of nobody"
[ -z "$(ls -A "$db")" ] || fail "a report made a database"
cat events check check.nobody

grep -q '^  cpu-clock ' events || fail "no cpu-clock"
grep -q '^  perf  *ok: ' check || fail "perf is not ok for root"
grep -q '^  capabilities  *all that are needed' check || fail "root lacks capabilities"
grep -q '^  CAP_PERFMON  *missing' check.nobody || fail "nobody has CAP_PERFMON"
grep -q '^  *-> run as root or with CAP_' check.nobody || fail "no remedy for nobody"
for part in machine 'sources of samples' 'rights and limits' 'cost, measured now'; do
	grep -qx "$part" check && grep -qx "$part" check.nobody || fail "no part '$part'"
done
# Root of a user namespace has all capabilities, and no right by them.
unshare -Ur "$DCPI_BIN/dcpid" -check >check.inner || fail "-check in a user namespace"
grep -q '^  capabilities  *of a user namespace: no right' check.inner || fail "capabilities of a user namespace"
grep -q '^  *-> run outside of this user namespace, as root' check.inner || fail "no remedy in a user namespace"
! unshare -Ur "$DCPI_BIN/dcpid" "$db" 2>err || fail "sampling in a user namespace"
grep -q '^hint: run outside of this user namespace, as root or with CAP_PERFMON' err || fail "refused with $(cat err)"
# Without /sys nobody knows what the kernel has.
unshare -m sh -c 'mount -t tmpfs none /sys && exec "$0" -source bpf "$1"' "$DCPI_BIN/dcpid" "$db" 2>err && fail "bpf without /sys"
grep -q '/sys is not mounted' err || fail "without /sys: $(cat err)"
rm -rf "$db"
# A virtual machine's interrupt takes twelve microseconds; none takes a fifth of one.
awk '/^  interrupt of a sample/ { seen = 1; if (!/not measured/ && !($5 > 0.2 && $5 < 200)) bad = 1 }
	END { exit !seen || bad }' check ||
	fail "the interrupt's time"

# ---- cycles are listed where they can be sampled
if grep -q '^  cycles ' events; then
	"$DCPI_BIN/dcpid" -background -log "$work/log" -source perf -event cycles "$db" || fail "cycles"
	daemon=$(status_field pid)
	stop_daemon
else
	! "$DCPI_BIN/dcpid" -source perf -event cycles "$db" 2>err || fail "cycles are not listed"
	grep -q "no such event" err || fail "cycles: $(cat err)"
fi
rm -rf "$db"

# ---- without a wish: cycles, or where there are none the tick
default=tick
! grep -q '^  cycles ' events || default=cycles
"$DCPI_BIN/dcpid" -background -log "$work/log" "$db" || fail "dcpid without a wish"
daemon=$(status_field pid)
[ "$(status_field name)" = $default ] || fail "default event $(status_field name), not $default"
stop_daemon
rm -rf "$db"
"$DCPI_BIN/dcpid" -background -log "$work/log" -rate 500 "$db" || fail "dcpid -rate"
daemon=$(status_field pid)
[ "$(status_field name)" != tick ] || fail "the tick has no rate"
stop_daemon
rm -rf "$db"

# ---- together, and in turn: enabled fractions are the last of the three behind an event's name
enabled()
{
	find "$db" -name '*.*' -path '*/2*' -type f ! -name '.*' -exec "$DCPI_BIN/dcpicat" {} + |
		sed -nE "s/^event +[0-9]+ $1:[0-9]+:([0-9]+)\$/\\1/p" | sort -n | tail -n 1
}

start_daemon -event cpu-clock:1000000 -event page-faults:10 -rate 500
status_field source | grep 'no event takes the rate' || fail "a rate that no event takes: $(status_field source)"
"$DCPI_BIN/examples/hello" 2 >/dev/null || fail "hello"
(for ((i = 0; i < 50; i++)); do /bin/true; done)
stop_daemon
within "cpu-clock, together" "$(enabled cpu-clock)" 10000 1
within "page-faults, together" "$(enabled page-faults)" 10000 1
rm -rf "$db"

start_daemon -slot cpu-clock:1000000 -slot task-clock:1000000+page-faults:10
"$DCPI_BIN/examples/hello" 6 >/dev/null || fail "hello"
(for ((i = 0; i < 50; i++)); do /bin/true; done)
stop_daemon
within "cpu-clock, in turn" "$(enabled cpu-clock)" 5000 1500
within "task-clock, in turn" "$(enabled task-clock)" 5000 1500
