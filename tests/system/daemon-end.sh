#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# However a daemon ends: SIGTERM flushes all; SIGKILL leaves a readable database, loses one flush
# interval at most, and the next one goes on in the epoch and says so; a full disk loses nothing.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
need_root

# end_by SIGNAL: end the daemon and wait until it is gone.
end_by()
{
	kill "-$1" "$daemon"
	wait_for_end "$daemon" || fail "the daemon lives on after SIG$1"
	daemon=
}

start_daemon -platform term
sleep 1
end_by TERM
said=$(sed -nE 's/.* finished: ([0-9]+) samples stored/\1/p' "$work/log")
echo "SIGTERM: the log says $said stored, on disk are $(total_on_disk)"
[ -n "$said" ] && [ "$said" -gt 100 ] && [ "$said" = "$(total_on_disk)" ] || fail "SIGTERM lost samples"
[ ! -e "$DCPI_RUN/control" ] || fail "SIGTERM: the socket was left behind"

db=$work/killed
export DCPIDB=$db
start_daemon -platform kill
epoch=$(status_field epoch)
sleep 0.5
flush_stored "before SIGKILL"
sleep 1.5
end_by KILL
[ "$(total_on_disk)" = "$stored" ] || fail "SIGKILL: $stored were flushed, $(total_on_disk) are on disk"
start_daemon -platform kill
[ "$(status_field epoch)" = "$epoch" ] || fail "the epoch does not go on"
grep -qE "epoch $epoch was left open .* gap of [0-9]+ s" "$work/log" || fail "the gap is not in the log"
grep -qE "epoch $epoch goes on" "$work/log" || fail "the log does not say that the epoch goes on"
grep -E "left open" "$work/log"
sleep 0.5
stop_daemon
[ "$(total_on_disk)" -gt "$stored" ] || fail "nothing was added after the restart"
start_daemon -platform kill
[ "$(status_field epoch)" != "$epoch" ] || fail "a finished epoch went on"
end_by KILL
start_daemon -platform kill -epoch
[ "$(ls "$db" | grep -c '^2')" = 3 ] || fail "-epoch began no epoch: $(ls "$db")"
end_by TERM

# Without anybody's flush, all but the last interval is there.
db=$work/interval
export DCPIDB=$db
listed=$(grep -c 'were running already' "$work/log")
start_daemon -platform interval -flush 1 -b
[ "$(grep -c 'were running already' "$work/log")" = "$listed" ] || fail "-b reads /proc"
# On a slow machine they are longer.
for _ in $(seq 100); do
	sleep 0.5
	[ "0$(total_on_disk)" -le 1000 ] || break
done
sleep 0.5
end_by KILL
echo "SIGKILL, flushing every second: $(total_on_disk) on disk"
[ "$(total_on_disk)" -gt 100 ] || fail "more than one interval was lost"

# A disk of 64 MB becomes full. (Emulators beside this test have code of some megabytes.)
mkdir "$work/small"
mount -t tmpfs -o size=64m none "$work/small" || {
	echo "skip: cannot mount a tmpfs for the full disk"
	exit 77
}
at_end 'umount -l "$work/small"'
db=$work/small/db
export DCPIDB=$db
start_daemon -platform full
sleep 0.5
flush_stored "before the disk is full"
before=$stored
dd if=/dev/zero of="$work/small/ballast" bs=64k 2>/dev/null || :
truncate -s -12K "$work/small/ballast" # for the first of the files of a flush
sleep 0.5
! "$DCPI_BIN/dcpictl" flush 2>"$work/err2" || fail "flush onto a full disk says that it worked"
grep -q 'No space left' "$work/err2" || fail "flush onto a full disk says: $(cat "$work/err2")"
echo "in the middle of a flush the disk was full: $before were on disk, $(total_on_disk) are"
[ "$(total_on_disk)" = "$before" ] || fail "a full disk harmed what was there"
account_holds "with a full disk"
[ -n "$(status_field flush_error)" ] || fail "the status does not show that flushes fail"
! "$DCPI_BIN/dcpictl" quit 2>"$work/err2" || fail "quit on a full disk says that it worked"
grep -q '^hint: ' "$work/err2" || fail "quit on a full disk gives no hint"
rm "$work/small/ballast"
flush_holds "after the disk has room again"
[ "$stored" -gt 100 ] || fail "a full disk lost samples"
[ "$(grep -c 'flush failed' "$work/log")" = 1 ] || fail "the log does not say once that flushes fail"

# Ended with a full disk, it says what that costs.
dd if=/dev/zero of="$work/small/ballast" bs=64k 2>/dev/null || :
sleep 0.5
end_by TERM
tail -n 2 "$work/log"
grep -qE ' [1-9][0-9]* samples that waited in memory are lost: .*No space left' "$work/log" ||
	fail "SIGTERM on a full disk does not say what is lost"
[ "$(grep -c 'the next flush tries again' "$work/log")" = 1 ] || fail "the last flush says that there is another"
[ "$(total_on_disk)" = "$stored" ] || fail "SIGTERM on a full disk harmed what was there"
