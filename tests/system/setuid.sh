#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A privileged program's memory stays its own: no registry of another user names an address in it, whether the
# registry was sent after the exec of a set-user-ID program, or a server of root's maps a client's. A registry ends
# with the program it is of, and with its user's rights.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
need_root
reachable_programs
hole=$DCPI_BUILD/tests/setuid_hole
secret=$((RANDOM % 6 + 1))
(umask 077 && echo $secret >"$work/secret")
mkdir -m 755 "$work/suid"

# suid COMMAND…: as nobody, where $work/suid has the vault, set-user-ID root, on a file system of the test's own.
suid()
{
	unshare --mount sh -c 'mount -t tmpfs -o suid,mode=755 none "$0" && cp "$1" "$0/vault" && cp "$1" "$0/client" &&
		chmod 4755 "$0/vault" && shift && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"' \
		"$work/suid" "$hole" "$@"
}

# charged PATTERN: samples of the hole's routines that match.
charged()
{
	"$DCPI_BIN/dcpiprof" -epoch all hole 2>/dev/null |
		awk -v like="^($1)\$" 'NF > 1 && $(NF - 1) ~ like { sum += $1 } END { print sum + 0 }'
}

# kept WHO: nothing was charged by the secret number; what was, tells it.
kept()
{
	local n leaks=
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	for n in 1 2 3 4 5 6 7; do
		[ "$(charged "number_$n")" = 0 ] || leaks="$leaks $n ($(charged "number_$n") samples)"
	done
	[ -z "$leaks" ] || fail "$1: the secret number $secret leaks: number$leaks"
	account_holds "$1"
}

# own_time: milliseconds of CPU time under a registry of one's own, as the program says.
own_time() { awk '$1 == "own" { sum += $2 } END { print sum + 0 }' "$work/out"; }

start_daemon -drain 200
# Known as what it is: without another's registry.
suid "$work/suid/vault" vault "$work/secret" 0.2 >"$work/out" || fail "vault"
grep -qx 'euid 0 worked' "$work/out" || fail "the vault does not run as root: $(cat "$work/out")"

suid "$work/suid/client" late "$work/suid/vault" "$work/secret" 2.5 >"$work/out" || fail "late"
grep -qx 'euid 0 worked' "$work/out" || fail "late: $(cat "$work/out")"
kept "sent after the exec"
[ "$(charged '.*')" = 0 ] || fail "$(charged '.*') samples of a program of root's are charged to a client's routines"
[ "$(status_field registries_refused)" -gt 0 ] || fail "the refused registry is not counted"

"$hole" server "$work/secret" 2.5 >"$work/out" || fail "server"
kept "mapped by a server"
[ "$(charged '.*')" = 0 ] || fail "$(charged '.*') samples of a server of root's are charged to a client's routines"

# As long as it is the client's program, its word is read.
suid "$work/suid/client" early "$work/suid/vault" "$work/secret" 2 >"$work/out" || fail "early"
grep -qx 'euid 0 worked' "$work/out" || fail "early: $(cat "$work/out")"
kept "executed later"
own=$(charged number_8)
within "samples of its own" "$own" "$(own_time)" $(($(own_time) / 5 + $(missed)))

"$hole" dropper 4 >"$work/out" || fail "dropper"
kept "rights given up"
dropped=$(($(charged number_8) - own))
spent=$(own_time)
echo "rights given up: $dropped samples have names, of $spent ms"
[ $dropped -gt $((spent / 2)) ] || fail "what ran before the rights were given up has no names"
stop_daemon
