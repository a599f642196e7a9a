#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Who may do what, and what is said when something cannot be: rights, a second daemon, no daemon.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
reachable_programs
db=$work/$'d\xff' DCPIDB=$work/$'d\xff' # what JSON cannot say

# A group dcpi, seen by this daemon alone. Whatever the umask, all reach its sockets; and whoever waits for the end of
# what it prints, or for a lock that was held when it was started, is not kept waiting by it, or by a helper of its own.
# Each client of dynamic code takes it a descriptor: it may open as many files as anybody lets it.
{ grep -v '^dcpi:' /etc/group; echo 'dcpi:x:54321:'; } >"$work/group"
start_daemon_with_group()
{
	exec {lock}>"$work/lock"
	flock "$lock"
	(umask 077 && ulimit -Sn 256 && cd "$work" && exec unshare -m sh -c 'mount --bind "$0" /etc/group && shift && exec "$@"' "$work/group" x \
		"$DCPI_BIN/dcpid" -background -log "$work/log" "${db##*/}") 2>&1 | timeout 60 cat >"$work/started" ||
		fail "dcpid keeps the output that it was started with"
	exec {lock}>&-
	flock -n "$work/lock" true || fail "dcpid keeps a lock that it was started under"
	daemon=$(status_field pid)
	[ -n "$daemon" ] || fail "dcpid does not start: $(cat "$work/started")"
	[ "$(awk '/^Max open files/ { print $4 == $5 }' "/proc/$daemon/limits")" = 1 ] ||
		fail "its limits: $(cat "/proc/$daemon/limits")"
}
as() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
as_member() { setpriv --reuid=65534 --regid=65534 --groups=54321 "$@"; }

# refused TEXT COMMAND…: it fails with 1, one line of that text, and a hint.
refused()
{
	local text=$1 status=0
	shift
	"$@" >"$work/out" 2>"$work/err" || status=$?
	[ $status = 1 ] || fail "'$*' ends with $status: $(cat "$work/err")"
	grep -q -- "$text" "$work/err" || fail "'$*' says: $(cat "$work/err")"
	[ "$(wc -l <"$work/err")" = 2 ] && grep -q '^hint: ' "$work/err" ||
		fail "'$*' gives no hint: $(cat "$work/err")"
	echo "refused: $(head -n 1 "$work/err")"
}

refused 'no daemon answers' "$DCPI_BIN/dcpictl" status
start_daemon_with_group

# Anyone may look, only some may touch.
as "$DCPI_BIN/dcpictl" status | grep "^pid  *$daemon\$" >/dev/null || fail "nobody cannot see the status"
for verb in flush epoch quit; do
	refused 'permission denied' as "$DCPI_BIN/dcpictl" $verb
done
"$DCPI_BIN/dcpictl" status -json >"$work/out" || fail "dcpictl status -json"
iconv -f UTF-8 -t UTF-8 "$work/out" >"$work/utf8" || fail "the status is no JSON: $(cat "$work/out")"
# It was started with a path from its own folder.
grep -qF "\"database\":\"$(realpath "$work")/d?\"" "$work/utf8" || fail "the status has another database: $(cat "$work/out")"
as_member "$DCPI_BIN/dcpictl" flush || fail "a member of group dcpi may not flush"
"$DCPI_BIN/dcpiflush" || fail "root may not flush"
[ "$(status_field pid)" = "$daemon" ] || fail "it is another daemon"


# A second one of the same platform is refused, whatever its folder; one in the same folder too.
refused "in use\|owned\|another daemon\|$daemon" "$DCPI_BIN/dcpid" -run "$work/run2" -queue "$DCPI_QUEUE-2" "$db"
refused 'another daemon answers' "$DCPI_BIN/dcpid" -platform other "$db"
refused 'another daemon answers' "$DCPI_BIN/dcpid" -background -platform other "$work/db2"
[ ! -e "$work/db2" ] || fail "a refused daemon left a database behind"
[ "$(status_field pid)" = "$daemon" ] || fail "the first daemon does not answer any more"

# No rights to sample; and nothing is left behind.
refused 'sampl\|perf\|permission\|Permission' as "$DCPI_BIN/dcpid" -run "$work/run3" "$work/nobody"
[ ! -e "$work/nobody" ] || fail "a database was made without rights to fill it"

# A folder that is no database stays as it is.
mkdir "$work/letters"
echo hello >"$work/letters/one"
refused 'not a profile database' "$DCPI_BIN/dcpid" -run "$work/run4" -queue "$DCPI_QUEUE-4" "$work/letters"
[ "$(ls -A "$work/letters")" = one ] || fail "'letters' was changed"

stop_daemon
[ ! -e "$DCPI_RUN/control" ] || fail "the socket was left behind"
refused 'no daemon answers' "$DCPI_BIN/dcpiquit"
