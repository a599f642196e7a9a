# SPDX-License-Identifier: BSD-2-Clause
# machine: x86-64 systemd
# The unit under a running systemd: the processes have the user, the capabilities and the filters of the tables in
# SECURITY.md, and the source is bpf; helpers have a control group with limits of its own, and one that takes too much
# memory is what ends; users' programs and the kernel have names, perf maps are read; the service ends as it should. At
# kernel.perf_event_paranoid 3 it says what to do, and works with the right that it names.
. /src/tests/support/daemon.sh
. /src/tests/support/rights.sh
db=/var/lib/dcpi DCPI_RUN=/run/dcpi DCPIDB=/var/lib/dcpi
unset DCPI_QUEUE
unit=/lib/systemd/system/dcpid.service
group=/sys/fs/cgroup/system.slice/dcpid.service
mkdir -p /etc/systemd/system/dcpid.service.d
# Under emulation the kernel checks its programs for long.
printf '[Service]\nStandardError=append:/out/dcpid.log\nTimeoutStartSec=4min\n' >/etc/systemd/system/dcpid.service.d/test.conf
systemctl daemon-reload || fail "systemctl"
systemctl --version | sed -n 1p

# start WHERE: the service; sets $daemon.
start()
{
	if ! systemctl start dcpid; then
		systemctl status --no-pager dcpid
		dmesg | tail -n 30
		cat /out/dcpid.log
		fail "the service does not start $1"
	fi
	daemon=$(status_field pid)
	[ "$(systemctl show -P MainPID dcpid)" = "$daemon" ] || fail "another process answers"
	status_field source | grep -q '^bpf: ' || fail "the source is not bpf $1: $(cat /out/dcpid.log)"
}

# Debian's kernels begin with 3, where CAP_PERFMON is not enough.
level=/proc/sys/kernel/perf_event_paranoid
echo "perf_event_paranoid begins with $(cat $level)"
echo 3 >$level
systemctl start dcpid && fail "the service starts at 3 without the right"
systemctl stop dcpid
cat /out/dcpid.log
grep -q 'hint: .*perf_event_paranoid to 2' /out/dcpid.log || fail "no hint says what to set"
grep -q 'hint: .*CAP_SYS_ADMIN' /out/dcpid.log || fail "no hint names the right"
systemctl reset-failed dcpid
: >/out/dcpid.log
echo 2 >$level
start "at 2"
cat /out/dcpid.log

# in_group PID NAME GROUP
in_group()
{
	grep -qx "0::/system.slice/dcpid.service/$3" "/proc/$1/cgroup" ||
		fail "$2 is in another group: $(cat "/proc/$1/cgroup")"
}

row=dcpid
is "$daemon" Uid 990
for field in CapEff CapPrm CapBnd; do is "$daemon" $field "$(mask "$(sed -n 's/^AmbientCapabilities=//p' $unit)")"; done
is "$daemon" NoNewPrivs 1
is "$daemon" Seccomp 2
in_group "$daemon" dcpid dcpid
for name in dcpid-reader dcpid-parse; do
	# One that is slow here is ended, and another one takes its place.
	for ((i = 0; i < 30; i++)); do
		(
			set -e
			helper=$(helper_of $name)
			row_holds "$helper" $name 990 2
			in_group "$helper" $name helpers
		) >"$work/row" 2>&1 && break
		sleep 1
	done
	cat "$work/row"
	[ $i -lt 30 ] || fail "$name"
done
all=$(($(awk '$1 == "MemTotal:" { print $2 }' /proc/meminfo) * 1024))
for name in memory.max pids.max cpu.max; do echo "helpers: $name $(cat $group/helpers/$name)"; done
[ "$(cat $group/helpers/pids.max)" = 48 ] || fail "tasks have no limit"
[ "$(cat $group/helpers/cpu.max)" = "400000 100000" ] || fail "CPU time has no limit"
awk -v m="$(cat $group/helpers/memory.max)" -v all=$all 'BEGIN { exit !(m > all / 5 && m < all * 0.3) }' ||
	fail "the limit of memory is not a quarter of the machine's"

su -s /bin/bash nobody -c "/bin/examples/hello 2" || fail "hello"
dcpiflush >/dev/null || fail "dcpiflush"
echo 64K >$group/helpers/memory.max
su -s /bin/bash nobody -c "/bin/examples/hello 1" || fail "hello while helpers have no memory"
dcpictl status >/dev/null || fail "dcpid does not answer"
grep '^oom' $group/helpers/memory.events
[ "$(awk '$1 == "oom_kill" { print $2 }' $group/helpers/memory.events)" -gt 0 ] || fail "no helper was ended"
[ "$(awk '$1 == "oom_kill" { print $2 }' $group/dcpid/memory.events)" = 0 ] || fail "dcpid has no memory"
echo $((all / 4)) >$group/helpers/memory.max
[ "$(status_field pid)" = "$daemon" ] || fail "dcpid was ended"
su -s /bin/bash nobody -c "/bin/examples/hello 2" || fail "hello"
account_holds "after helpers were ended"
systemctl stop dcpid || fail "systemctl stop"
systemctl is-failed -q dcpid && fail "the service has failed: $(systemctl status --no-pager dcpid)"
cat /out/dcpid.log
dcpiprof -no_header 2>/dev/null >"$work/prof"
head -n 12 "$work/prof"
grep -q ' /bin/' "$work/prof" || fail "no program has a name"
! grep 'not implemented' /out/dcpid.log || fail "the unit forbids what dcpid needs"
grep -q '^ *[0-9].* [a-z_0-9]* *vmlinux' "$work/prof" || fail "no kernel procedure has a name"

# The other remedy: the one program gets more, and no other.
echo 3 >$level
printf '[Service]\nAmbientCapabilities=CAP_SYS_ADMIN\nCapabilityBoundingSet=CAP_SYS_ADMIN\n' \
	>/etc/systemd/system/dcpid.service.d/admin.conf
systemctl daemon-reload || fail "systemctl"
start "with CAP_SYS_ADMIN at 3"
is "$daemon" CapEff "$(mask "$(sed -n 's/^AmbientCapabilities=//p' $unit) CAP_SYS_ADMIN")"
row_holds "$(helper_of dcpid-reader)" dcpid-reader 990 2
systemctl stop dcpid || fail "systemctl stop"
