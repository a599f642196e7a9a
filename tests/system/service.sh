#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The daemon as the unit runs it: a user of its own with six capabilities, a manager that is told of
# readiness and life, a log for the journal. And the unit itself, judged by systemd.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/rights.sh"
need_root
reachable_programs
tests=$DCPI_BUILD/tests
unit=$DCPI_BUILD/packaging/dcpid.service
capabilities=$(sed -n 's/^AmbientCapabilities=//p' "$unit")
sets=$(for c in $capabilities; do c=${c,,} && printf ',+%s' "${c#cap_}"; done)
own=$work/own
mkdir -m 755 "$own"
chown 65534:65534 "$own"
export DCPI_RUN=$own/run DCPIDB=$own/db
db=$own/db

as_service=(setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs
	--inh-caps="-all$sets" --ambient-caps="-all$sets" --bounding-set="-all$sets")

# wait_for TEXT FILE: a minute, until a line of it has that.
wait_for()
{
	local i
	for ((i = 0; i < 600; i++)); do
		! grep -q -- "$1" "$2" || return 0
		sleep 0.1
	done
	fail "no '$1' in ${2##*/}: $(cat "$2")"
}

run_service() # SOURCE [OPTION…]
{
	rm -f "$work/log" "$work/notify"
	"$tests/notify_listen" "$work/notify" >"$work/heard" &
	listener=$!
	for ((i = 0; i < 600; i++)); do [ ! -S "$work/notify" ] || break; sleep 0.1; done
	: >"$work/log"
	chmod 666 "$work/log"
	NOTIFY_SOCKET=$work/notify WATCHDOG_USEC=600000 JOURNAL_STREAM=$(stat -c %d:%i "$work/log") \
		"${as_service[@]}" "$DCPI_BIN/dcpid" -source "$@" "$db" 2>>"$work/log" &
	daemon=$!
	wait_for READY=1 "$work/heard"
	[ "$(status_field pid)" = "$daemon" ] || fail "ready, but dcpictl is not answered"

	"$DCPI_BIN/examples/hello" >/dev/null
	sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'
	row=dcpid
	is "$daemon" CapEff "$(mask "$capabilities")"
	local helpers="dcpid-reader dcpid-parse" helper
	case " $* " in *" -vprof "*) helpers+=" dcpid-translate dcpid-values dcpid-step" ;; esac
	for helper in $helpers; do
		row_holds "$(helper_of $helper)" $helper 65534
	done
	# The one it steps with, which has the name of its parent.
	case " $* " in *" -vprof "*) row_holds "$(helper_of dcpid-step "$(helper_of dcpid-step)")" "dcpid-step's child" 65534 ;; esac
	account_holds "$1"
	wait_for "WATCHDOG=1.* samples stored" "$work/heard"

	kill -STOP "$daemon" # a daemon that hangs is not alive
	# The manager may hear late of what it said before.
	local before=-1 after i
	after=$(grep -c WATCHDOG=1 "$work/heard")
	for ((i = 0; i < 20 && before != after; i++)); do
		before=$after
		sleep 1.5
		after=$(grep -c WATCHDOG=1 "$work/heard")
	done
	kill -CONT "$daemon"
	[ "$before" = "$after" ] || fail "a stopped daemon says that it lives"

	"$DCPI_BIN/dcpictl" quit || fail "dcpictl quit"
	wait "$daemon" || fail "the service ends with $?"
	daemon=
	wait "$listener" || fail "the manager was not told of the end"
	cat "$work/heard"
	! grep -v '^<[3-7]>[^<]' "$work/log" || fail "lines without a priority"
	grep -q "^<6>$1: " "$work/log" || fail "the log does not name its source: $(cat "$work/log")"
	# Another user's process, the kernel's symbols, and a routine that a program told of.
	"$DCPI_BIN/dcpiprof" -no_header -db "$db" >"$work/prof"
	grep -q ' sixty .*hello\(\[\| *$\)' "$work/prof" || fail "hello's routine is not there: $(cat "$work/prof")"
	grep -q 'dash$\|bash$' "$work/prof" || fail "the shell's samples are not there"
	grep -q '^ *[0-9].* [a-z_0-9]* *vmlinux' "$work/prof" || fail "no kernel procedure has a name"
}

# Somebody else's, who runs all the time, as long as we do.
sh -c "while kill -0 $$; do i=0; while [ \$i -lt 10000 ]; do i=\$((i+1)); done; done" 2>/dev/null &
stepped=$!
run_service bpf -vprof -vstep $stepped
kill $stepped
mv "$db" "$work/db-bpf"
run_service perf
mv "$db" "$work/db-perf"

# Why it could not start.
"$tests/notify_listen" "$work/notify2" >"$work/heard" &
listener=$!
for ((i = 0; i < 600; i++)); do [ ! -S "$work/notify2" ] || break; sleep 0.1; done
! NOTIFY_SOCKET=$work/notify2 "${as_service[@]}" "$DCPI_BIN/dcpid" "$work/db" 2>"$work/err" || fail "it has no right to '$work'"
wait_for 'ERRNO=13' "$work/heard"
kill $listener
cat "$work/heard"

# The unit.
command -v systemd-analyze >/dev/null || fail "systemd-analyze is missing"
sed "s|^ExecStart=[^ ]*|ExecStart=$DCPI_BIN/dcpid|" "$unit" >"$work/dcpid.service"
systemd-analyze verify --man=no "$work/dcpid.service" >"$work/verify" 2>&1 || fail "$(cat "$work/verify")"
[ ! -s "$work/verify" ] || fail "$(cat "$work/verify")"
systemd-analyze security --offline=true --threshold=20 --no-pager "$work/dcpid.service" >"$work/security" ||
	fail "$(cat "$work/security")"
tail -n 1 "$work/security"
level=$(sed -nE 's/.*exposure level[^:]*: ([0-9.]+).*/\1/p' "$work/security")
grep -q "^\*\*The unit.\*\* .* says $level\.\( \|$\)" "$DCPI_SRC/SECURITY.md" || fail "SECURITY.md has another level than $level"
# Each item that is left has its reason.
sed -nE 's/^✗ ([^ ]+) .*/\1/p' "$work/security" >"$work/left"
[ -s "$work/left" ] || fail "no item is left: $(cat "$work/security")"
while read -r item; do
	grep -qF "| \`${item//|/\\|}\` |" "$DCPI_SRC/SECURITY.md" || fail "SECURITY.md has no reason for $item"
done <"$work/left"
