#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Who may read a database that root's daemon has made: root, its group and who called sudo; not everybody. A
# folder that was there keeps its mode, and a program's own database (dcpirun) is its user's.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
chmod 755 "$work"
mkdir "$work/bin"
cp -P "$DCPI_BIN"/dcpi* "$work/bin"

# as UID COMMAND…
as()
{
	local uid=$1
	shift
	setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
}

may_read() { as "$1" "$work/bin/dcpiprof" -db "$db" -i >/dev/null 2>"$work/said"; }

SUDO_UID=65533 start_daemon
"$DCPI_BIN/dcpictl" flush >/dev/null
stop_daemon
mode=$(stat -c %a "$db")
[ "$mode" = 750 ] || fail "the database's mode is $mode"
may_read 0 || fail "root may not read it: $(cat "$work/said")"
mode=$(stat -c %a "$work/log")
[ "$mode" = 640 ] || fail "the log's mode is $mode"
! as 65534 cat "$work/log" 2>/dev/null || fail "everybody may read the log"
as 65533 cat "$work/log" >/dev/null || fail "who called sudo may not read the log"
may_read 65533 || fail "who called sudo may not read it: $(cat "$work/said")"
! may_read 65534 || fail "everybody may read it"
grep -qi 'permission denied' "$work/said" || fail "no cause is given: $(cat "$work/said")"
! as 65533 touch "$db/x" 2>/dev/null || fail "who called sudo may write"

# An administrator has opened another one.
db=$work/open
mkdir -m 755 "$db"
start_daemon
"$DCPI_BIN/dcpictl" flush >/dev/null
stop_daemon
may_read 65534 || fail "a folder that was there does not keep its mode: $(cat "$work/said")"
