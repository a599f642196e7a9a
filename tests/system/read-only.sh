#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A disk that turns read-only under a running daemon, and is writable again: what was stored stays readable, the
# daemon says so once, goes on and keeps what it samples; nothing of that is lost. A disk that is full: the same, with
# the names of code whose process is gone; and what makes room needs none.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
need_root

mkdir "$work/disk"
mount -t tmpfs -o size=16m none "$work/disk" || {
	echo "skip: cannot mount a tmpfs"
	exit 77
}
at_end 'umount -l "$work/disk"'
db=$work/disk/db
export DCPIDB=$db

# turn ro|rw: nobody can ask the kernel for that, as it does it by itself after an error, where a file of that mount
# is open for writing. The daemon's lock is: it has a mount of its own, and was left there by a daemon that died. So
# would be what it sets aside of dynamic code: where it cannot write when it starts, it takes memory for that.
turn()
{
	mount -o "remount,bind,$1" "$db/dyn" && mount -o "remount,bind,$1" "$work/disk" || fail "the disk does not turn $1"
}
"$DCPI_BIN/../tests/mkdb" "$db" </dev/null
echo "host $(hostname) pid 1 machine - boot $(cat /proc/sys/kernel/random/boot_id)" >"$db/.lock-box"
mount --bind "$db/.lock-box" "$db/.lock-box"
mount --bind "$db/dyn" "$db/dyn"
mount -o remount,bind,ro "$db/dyn"

# refused COMMAND…: it fails, and says why.
refused()
{
	! "$@" >"$work/out" 2>"$work/refused" || fail "'$*' on a read-only disk says that it worked"
	grep -q 'Read-only file system' "$work/refused" || fail "'$*' says: $(cat "$work/refused")"
}

start_daemon -platform box
turn rw
epoch=$(status_field epoch)
flush_holds "before"
before=$stored
turn ro
for _ in 1 2 3; do
	sleep 0.2
	refused "$DCPI_BIN/dcpictl" flush
done
refused "$DCPI_BIN/dcpictl" epoch
refused "$DCPI_BIN/dcpictl" quit
refused "$DCPI_BIN/dcpid" -run "$work/run2" -queue "$DCPI_QUEUE-2" -platform other "$db"
[ "$(status_field epoch)" = "$epoch" ] || fail "it has left its epoch"
case $(status_field flush_error) in
*"Read-only file system") ;;
*) fail "the status says of the flushes: $(status_field flush_error)" ;;
esac
[ "$(total_on_disk)" = "$before" ] || fail "$before were stored, $(total_on_disk) are on disk"
account_holds "read-only"
waits=$((received - lost - before))
[ "$waits" -gt 100 ] || fail "only $waits samples wait"

turn rw
flush_holds "writable again"
[ "$stored" -ge $((before + waits)) ] || fail "$waits samples waited beside $before, $stored are stored"
account_holds "writable again"
"$DCPI_BIN/dcpictl" epoch || fail "dcpictl epoch"
[ "$(grep -c 'flush failed' "$work/log")" = 1 ] || fail "the log does not say once that flushes fail"
[ "$(grep -c 'flush works again' "$work/log")" = 1 ] || fail "the log does not say that they work again"
stop_daemon
[ "$(total_on_disk)" -ge "$stored" ] || fail "$stored were stored, $(total_on_disk) are on disk at the end"

# Of two processes, whose records do not lie in one segment, the first is killed.
fill() { ! cat /dev/zero >"$work/disk/filler" 2>"$work/err" || fail "the disk is not full"; }
earlier=$(total_on_disk)
start_daemon -platform box
fill
"$DCPI_BIN/examples/hello" 10 >"$work/out" &
hello=$!
"$DCPI_BIN/examples/hello" 1 >"$work/out"
kill -9 $hello
wait $hello 2>"$work/err" || :
"$DCPI_BIN/examples/hello" 1 >"$work/out"
! "$DCPI_BIN/dcpictl" flush 2>"$work/refused" || fail "a flush to a full disk says that it worked"
grep 'No space left' "$work/refused" || fail "a flush to a full disk says: $(cat "$work/refused")"
rm "$work/disk/filler"
flush_holds "room again" -"$earlier"
[ "$(samples hello)" -gt 1000 ] || fail "only $(samples hello) samples of hello"
within "share without a name" "$(share '(no' hello)" 0 0.01
[ "$(status_field routines_refused)" = 0 ] || fail "routines were refused"
stop_daemon
fill
[ "$(find "$db" -path '*/box/*@*' -o -path '*/box/*.file.*' | wc -l)" -gt 3 ] || fail "no profiles"
"$DCPI_BIN/dcpid" -gc -gc_size 1 "$db" >"$work/out" || fail "dcpid -gc on a full disk"
[ -z "$(find "$db" -path '*/box/*')" ] || fail "dcpid -gc left: $(find "$db" -path '*/box/*')"
