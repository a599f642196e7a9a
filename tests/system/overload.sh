#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Far too much: tables of sixteen entries and rings of two pages at 50 kHz, exchanged every 50 ms, a
# storm of short programs, a process that calls bpf() without end, and a CPU that goes and comes back.
# Nothing crashes, what is lost has a name, what the kernel did not deliver is shown as missed, and the
# account holds to the sample. Then without the rights: bpf is refused with the reason, and perf takes
# its place.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/limits.sh"
need_root

cpu1=/sys/devices/system/cpu/cpu1/online
loop=
restore()
{
	[ ! -w $cpu1 ] || echo 1 >$cpu1
	[ -z "$loop" ] || kill "$loop" 2>/dev/null
	restore_limits
}
at_end restore
raise_limits

start_daemon -source bpf -event cpu-clock -rate 50000 -table 16 -ring 2 -drain 50 -flush 1
"$DCPI_BIN/../tests/bpf_loop" &
loop=$!
(
	end=$((SECONDS + 4))
	while [ $SECONDS -lt $end ]; do
		/bin/true
	done
) &
storm=$!
account_holds "at once"
for _ in 1 2 3 4 5; do
	sleep 0.6
	account_holds "in the storm"
done
if [ -w $cpu1 ]; then
	echo 0 >$cpu1
	sleep 1
	account_holds "without CPU 1"
	echo 1 >$cpu1
	sleep 1
	account_holds "with it again"
fi
kill "$loop" || fail "bpf_loop has ended by itself"
loop=
wait "$storm"
account_holds "after it"
table=$(status_field table-full) late=$(status_field drain-late) missed=$(status_field missed)
echo "table-full $table, drain-late $late, missed $missed"
[ "$((table + late))" -gt 0 ] || fail "nothing was lost"
[ "$missed" -gt 0 ] || fail "nothing was missed"
flush_holds "a flush"
stop_daemon
rm -rf "$db" "$work/log"

without="setpriv --bounding-set -bpf,-sys_admin"
if $without "$DCPI_BIN/dcpid" -source bpf -log "$work/log" "$db" 2>"$work/err"; then
	fail "bpf without the right to it"
fi
cat "$work/err"
grep -q "Operation not permitted" "$work/err" || fail "the reason is not told"
grep -q "hint: .*CAP_BPF" "$work/err" || fail "the remedy is not told"
# A kernel that refuses it to root too says so in a file.
unshare -m sh -c 'mount -t tmpfs none /sys/kernel/security && echo "none integrity [confidentiality]" >/sys/kernel/security/lockdown &&
	"$@"' sh $without "$DCPI_BIN/dcpid" -source bpf "$db" 2>"$work/err" && fail "bpf in a kernel that is locked down"
grep -q '^hint: the kernel is locked down' "$work/err" || fail "locked down: $(cat "$work/err")"
$without "$DCPI_BIN/dcpid" -background -log "$work/log" "$db" || fail "no perf without bpf"
daemon=$(status_field pid)
status_field source | tee "$work/source"
grep -q "^perf: .*(bpf refused: .*CAP_BPF" "$work/source" || fail "the fall-back is not told"
sleep 1
account_holds "by perf"
stop_daemon
