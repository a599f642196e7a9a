# SPDX-License-Identifier: BSD-2-Clause
# Sourced after daemon.sh: compares running processes with the tables of SECURITY.md, by what the kernel tells of them.
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

# is PID FIELD HAS: the kernel's number, hexadecimal where it is of capabilities. A process that has just begun gives its
# rights up first: half a minute.
is()
{
	local has i
	for ((i = 0; i < 300; i++)); do
		has=$(awk -v name="$2:" '$1 == name { print $2 }' "/proc/$1/status")
		case $2 in Cap*) has=$((16#$has)) ;; esac
		[ "$has" != "$3" ] || return 0
		sleep 0.1
	done
	fail "$row: $2 is $has, not $3"
}

# row_holds PID NAME [USER [FILTER]]: as root started it by hand, or as USER, whose service has a filter of that kind.
row_holds()
{
	local set user=0 filter=2 field
	row=$2
	set=$(mask "$(cell "$row" 3)")
	case $(cell "$row" 2) in
	root) ;;
	own) user=2147440000 ;;
	*) fail "$row: SECURITY.md has no user '$(cell "$row" 2)'" ;;
	esac
	case $(cell "$row" 4) in –*) filter=${4:-0} ;; esac
	is "$1" Uid "${3:-$user}"
	for field in CapEff CapPrm; do is "$1" $field "$set"; done
	for field in CapInh CapAmb; do is "$1" $field 0; done
	# A service may not change what its unit bounds.
	[ -n "${3:-}" ] || is "$1" CapBnd 0
	is "$1" NoNewPrivs 1
	is "$1" Seccomp "$filter"
	echo "$row: user ${3:-$user}, capabilities $(printf %x "$set"), seccomp $filter"
}

# helper_of NAME [PARENT]: its pid, when it has been started: a minute.
helper_of()
{
	local i pid
	for ((i = 0; i < 600; i++)); do
		for pid in $(cat "/proc/${2:-$daemon}"/task/*/children); do
			[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != "$1" ] || { echo "$pid" && return; }
		done
		sleep 0.1
	done
	fail "no $1"
}
