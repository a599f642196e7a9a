#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The database cannot be written any more: with a full disk, or when it was removed, the daemon goes on and says
# so once, a JIT's END and a flush are refused at once, and nothing is lost once there is room, or a folder in its
# place; the new database has whatever its profiles refer to.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
tests=$DCPI_BIN/../tests
EIO=-7 TIMED_OUT=-4 # of dbgdyn.h

mkdir "$work/disk"
mount -t tmpfs -o size=512m none "$work/disk" || {
	echo "skip: cannot mount a tmpfs to fill"
	exit 77
}
at_end 'umount -l "$work/disk"'

# begin_jit: one that runs, and waits for a line before it ends.
begin_jit()
{
	local line
	coproc jit { exec "$tests/million_jit" -routines 100 -seconds 2 -wait; }
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
for _ in 1 2 3; do
	! "$DCPI_BIN/dcpictl" flush 2>/dev/null || fail "a flush onto a full disk says that it worked"
done
again=$(sed 's/^[^ ]* //' "$work/log" | sort | uniq -d)
[ -z "$again" ] || fail "said more than once of a full disk: $again"
rm "$work/disk/ballast"
flush_holds "when there is room"
[ "$("$DCPI_BIN/dcpiprof" million | awk '$NF == "total" { print $1 }')" -gt 50 ] || fail "the JIT's samples are lost"
begin_jit
end_jit
[ "$result" = 0 ] || fail "END returns $result when there is room"

# removed WHAT…: the message of a command that needs a database, on standard error.
removed()
{
	"$@" 2>"$work/said" && fail "$* without a database"
	cat "$work/said"
	grep -q "database '$db', or its open epoch, was removed" "$work/said" || fail "$* does not say why"
}

# lose COMMAND…: it removes all samples that are on disk; $gone is how many ever were. The daemon stands still, as a
# flush of its own might come between.
gone=0
lose()
{
	kill -STOP "$daemon"
	gone=$((gone + $(total_on_disk)))
	"$@"
	kill -CONT "$daemon"
}

"$tests/million_jit" -routines 100 -seconds 3600 >/dev/null &
lives=$!
at_end 'kill "$lives" 2>/dev/null'
begin_jit
flush_stored "before it is removed"
lose rm -rf "$db"
end_jit
echo "END without a database: $result"
[ "$result" != 0 ] && [ "$result" != $TIMED_OUT ] || fail "END returns $result without a database"
removed "$DCPI_BIN/dcpictl" flush
grep -q dcpiquit "$work/said" || fail "flush does not say what to do"
removed "$DCPI_BIN/dcpictl" epoch
"$DCPI_BIN/dcpictl" status >"$work/status"
grep "failed: .*was removed" "$work/status" || fail "the status does not say it"
head -c 2G /dev/zero >/dev/null # time in the kernel
account_holds "without a database"
[ ! -e "$db" ] || fail "half a database was made"
[ "$(grep -c "database '$db', or its open epoch, was removed" "$work/log")" = 1 ] || fail "the log does not say it once"

# As a service sees a folder made anew, which it may not write to before it is started again.
mkdir "$db"
mount --bind "$db" "$db"
mount -o remount,bind,ro "$db"
"$DCPI_BIN/dcpictl" flush 2>"$work/said" && fail "a flush to a read-only folder"
cat "$work/said"
grep -q 'systemctl restart' "$work/said" || fail "flush does not say what to do with a read-only folder"
"$DCPI_BIN/dcpictl" status | grep 'hint: .*systemctl restart' || fail "the status does not say it"
account_holds "with a read-only folder"
umount "$db"
flush_holds "its folder is made again" "$gone"
[ "$(grep -c "database '$db' is there again" "$work/log")" = 1 ] || fail "the log does not say that it is there"
"$DCPI_BIN/dcpiprof" million >"$work/prof"
nr=$(grep -c 'Engine.compile.routine' "$work/prof" || :)
echo "routines of JITs that began before: $nr"
[ "$nr" -gt 50 ] || fail "of 100 routines $nr have names"
"$DCPI_BIN/dcpiprof" >"$work/prof"
nr=$(grep -vF '(no symbol)' "$work/prof" | grep -c ' vmlinux' || :)
echo "routines of the kernel: $nr"
[ "$nr" -gt 3 ] || fail "the kernel's routines have no names"
begin_jit
end_jit
[ "$result" = 0 ] || fail "END returns $result in the new database"

# An epoch is removed by removing its folder; the database stays.
flush_stored "before its epoch is removed"
lose rm -rf "${db:?}/$(status_field epoch)"
flush_holds "without its epoch" "$gone"

# What is in it alone: as one empties that of a service, to which a folder made anew would be read-only.
flush_stored "before it is emptied"
lose find "$db" -mindepth 1 -delete
flush_holds "emptied" "$gone"

kill "$lives"
wait "$lives" || :
flush_stored "before it is removed again"
rm -rf "$db"
head -c 1G /dev/zero >/dev/null
removed "$DCPI_BIN/dcpiquit"
wait_for_end "$daemon" || fail "the daemon goes on after dcpiquit"
daemon=
grep -qE '[1-9][0-9]* samples that waited in memory are lost' "$work/said" || fail "dcpiquit does not say what is lost"
[ ! -e "$DCPI_RUN/control" ] || fail "the socket was left behind"
[ ! -e "$db" ] || fail "half a database was made at the end"
start_daemon
flush_holds "a new one"
stop_daemon
