#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The database cannot be written any more: with a full disk the daemon goes on, a JIT's END is refused at once,
# nothing is lost once there is room; a database that was removed ends the daemon with one message, and
# whoever waits for an image is told.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
tests=$DCPI_BIN/../tests
EIO=-7 TIMED_OUT=-4 # of dbgdyn.h

mkdir "$work/disk"
mount -t tmpfs -o size=16m none "$work/disk" || {
	echo "skip: cannot mount a tmpfs to fill"
	exit 77
}
trap 'umount -l "$work/disk"; cleanup' EXIT

# begin_jit: one that runs, and waits for a line before it ends.
begin_jit()
{
	local line
	coproc jit { exec "$tests/million_jit" -routines 100 -seconds 0.3 -wait; }
	read -r line <&"${jit[0]}" && read -r line <&"${jit[0]}" || fail "the JIT"
}

# end_jit: $result of its END.
end_jit()
{
	local what seconds
	echo >&"${jit[1]}"
	read -r what seconds result <&"${jit[0]}" || fail "the JIT says nothing of its end"
	wait "$jit_PID" || :
}

db=$work/disk/db
export DCPIDB=$db
start_daemon
begin_jit
dd if=/dev/zero of="$work/disk/ballast" bs=64k 2>/dev/null || :
dd if=/dev/zero of="$work/disk/ballast" bs=1k conv=notrunc oflag=append 2>/dev/null || :
end_jit
echo "END on a full disk: $result"
[ "$result" = $EIO ] || fail "END returns $result on a full disk"
account_holds "on a full disk"
rm "$work/disk/ballast"
flush_holds "when there is room"
[ "$("$DCPI_BIN/dcpiprof" million | awk '$3 == "total" { print $1 }')" -gt 50 ] || fail "the JIT's samples are lost"
begin_jit
end_jit
[ "$result" = 0 ] || fail "END returns $result when there is room"

begin_jit
rm -rf "$db"
end_jit
echo "END without a database: $result"
[ "$result" != 0 ] && [ "$result" != $TIMED_OUT ] || fail "END returns $result without a database"
wait_for_end "$daemon" || fail "the daemon goes on without a database"
daemon=
[ "$(grep -c "database '$db', or its open epoch, was removed" "$work/log")" = 1 ] || fail "the log does not say why it ended"
[ ! -e "$DCPI_RUN/control" ] || fail "the socket was left behind"
[ ! -e "$db" ] || fail "half a database was made"
start_daemon
flush_holds "a new one"
stop_daemon
