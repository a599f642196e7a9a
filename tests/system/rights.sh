#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A daemon that root started by hand has the capabilities that SECURITY.md says, and each of its helpers the user, the
# capabilities and the filter of the table there, as the kernel tells of the running process.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
reachable_programs
declare -A bit=([CAP_CHOWN]=0 [CAP_DAC_OVERRIDE]=1 [CAP_DAC_READ_SEARCH]=2 [CAP_FOWNER]=3 [CAP_KILL]=5 [CAP_SETGID]=6
	[CAP_SETUID]=7 [CAP_SETPCAP]=8 [CAP_IPC_LOCK]=14 [CAP_SYS_PTRACE]=19 [CAP_SYS_ADMIN]=21 [CAP_SYS_RESOURCE]=24
	[CAP_SYSLOG]=34 [CAP_PERFMON]=38 [CAP_BPF]=39 [CAP_CHECKPOINT_RESTORE]=40)

# cell NAME NUMBER: of the table's row of that process.
cell()
{
	awk -F ' *[|] *' -v name="$1" -v n="$2" '$2 == name { print $(n + 1); found = 1 } END { exit !found }' \
		"$DCPI_SRC/SECURITY.md" || fail "SECURITY.md has no row of $1"
}

# mask CELL: its capabilities, as a number.
mask()
{
	local name sum=0
	for name in ${1//,/}; do
		[ "$name" = none ] || sum=$((sum | 1 << ${bit[$name]}))
	done
	echo $sum
}

# is PID FIELD HAS: the kernel's number, hexadecimal where it is of capabilities.
is()
{
	local has
	has=$(awk -v name="$2:" '$1 == name { print $2 }' "/proc/$1/status")
	case $2 in Cap*) has=$((16#$has)) ;; esac
	[ "$has" = "$3" ] || fail "$row: $2 is $has, not $3"
}

# row_holds PID NAME
row_holds()
{
	local set user=0 filter=2
	row=$2
	set=$(mask "$(cell "$row" 3)")
	[ "$(cell "$row" 2)" = root ] || user=65534
	case $(cell "$row" 4) in –*) filter=0 ;; esac
	is "$1" Uid $user
	for field in CapEff CapPrm; do is "$1" $field "$set"; done
	for field in CapInh CapAmb CapBnd; do is "$1" $field 0; done
	is "$1" NoNewPrivs 1
	is "$1" Seccomp $filter
	echo "$row: user $user, capabilities $(printf %x "$set"), seccomp $filter"
}

# helper_of NAME [PARENT]: its pid, when it has been started: half a minute.
helper_of()
{
	local i
	for ((i = 0; i < 300; i++)); do
		! pgrep -o -P "${2:-$daemon}" -x "$1" || return 0
		sleep 0.1
	done
	fail "no $1"
}

sh -c 'while :; do :; done' &
busy=$!
trap 'kill $busy; cleanup' EXIT
start_daemon -vprof -vstep $busy -drain 100
row=dcpid
set=$(mask "$(sed -n '/^Started by root by hand, dcpid keeps/,/^$/p' "$DCPI_SRC/SECURITY.md" | grep -o 'CAP_[A-Z_]*')")
[ "$set" != 0 ] || fail "SECURITY.md does not say what dcpid keeps"
is "$daemon" Uid 0
# Root itself may lack some of them on this machine.
own=$((16#$(awk '$1 == "CapBnd:" { print $2 }' /proc/self/status)))
for field in CapEff CapPrm CapBnd; do is "$daemon" $field $((set & own)); done
for field in CapInh CapAmb; do is "$daemon" $field 0; done
[ $((own & ~set)) != 0 ] || fail "root has nothing here that dcpid could drop"
is "$daemon" NoNewPrivs 1
echo "dcpid: capabilities $(printf %x "$set")"
# Root may be without the right to raise priorities on this machine.
[ $((own & 1 << 23)) = 0 ] || {
	[ "$(ps -o ni= -p "$daemon" | tr -d ' ')" = -10 ] || fail "dcpid has no priority"
	[ ! -e "/proc/$daemon/autogroup" ] || grep -q 'nice -10$' "/proc/$daemon/autogroup" ||
		fail "dcpid's session has no priority: $(cat "/proc/$daemon/autogroup")"
}
for name in dcpid-reader dcpid-parse dcpid-translate dcpid-values dcpid-step; do
	row_holds "$(helper_of $name)" $name
done
step=$(helper_of dcpid-step)
row_holds "$(helper_of dcpid-step "$step")" "dcpid-step's child"
stop_daemon
# One that waits for its job.
mkfifo "$work/job"
"$DCPI_BIN/dcpid-pseudoimg" <"$work/job" >"$work/image" 2>"$work/answer" &
image=$!
exec 9>"$work/job"
for ((i = 0; i < 100; i++)); do
	! grep -q '^Seccomp:.2' "/proc/$image/status" || break
	sleep 0.05
done
row_holds $image dcpid-pseudoimg
exec 9>&-
wait $image || :
