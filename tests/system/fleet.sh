#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A fleet's store of two shards with two replicas each: what it has equals the databases that were shipped, offset by
# offset, after a server was killed in an upload, the shipper at random times, batches sent twice and in another order, a
# replica away; while the server is away, refuses, is foreign, or says garbage, batches wait and are reported (fleet-trouble has more);
# names that are SQL are data. DCPI_COUNT: times that the shipper is killed (100).
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/fleet.sh"
need_root
for program in clickhouse-server curl java python3; do
	command -v $program >/dev/null || { echo "skip: '$program' is not installed"; exit 77; }
done
mkdb=$DCPI_BIN/../tests/mkdb ship=$DCPI_BIN/dcpiship fetch=$DCPI_BIN/dcpifetch
app=$DCPI_SRC/tests/data/app/app
kills=${DCPI_COUNT:-100} other='' RANDOM=${DCPI_SEED:-$$}
echo "seed ${DCPI_SEED:-$$}"
end_all()
{
	fleet_stop
	[ -z "$other" ] || kill "$other" 2>/dev/null || :
	umount "$work/full" 2>/dev/null || :
}
at_end end_all
store() { echo "clickhouse://127.0.0.1:${fleet_http[${1:-0}]}/dcpi"; }

# ---- databases -------------------------------------------------------------------------------------

make() { fleet_database "$mkdb" "$work/$1" "$1" "$2" "$3"; }

# send NAME [OPTION…]
send() { "$ship" -quiet -db "$work/$1" -to "$(store)" "${@:2}"; }
sums() { python3 "$DCPI_SRC/tests/support/fleet_sums.py" "$DCPI_BIN/dcpicat" "$@"; }

# replicated: where both replicas live, waits until each has all rows, so that either may answer.
replicated()
{
	local i t tries
	for i in 0 1 2 3; do
		[ -n "${fleet_pid[i]}" ] && [ -n "${fleet_pid[i ^ 1]}" ] || continue
		for t in prof totals work part image routine content sums profsums; do
			tries=0
			# A server that has just started refuses this.
			until fleet_ask $i "SYSTEM SYNC REPLICA dcpi.${t}_here" 2>"$work/refusal"; do
				tries=$((tries + 1))
				[ $tries -lt 60 ] || fail "replicas differ: $(cat "$work/refusal")"
				sleep 1
			done
		done
	done
}

# by_routine SERVER FILE: counts by routine of all epochs, of some that begin and end within a day, and of some machines.
by_routine()
{
	: >"$work/$2"
	for choice in "-epoch all" "-epoch 2026092116..2026092302" "-epoch 20260922 -platform *eta -hosts"; do
		rm -rf "$work/got-sums"
		(set -f && "$fetch" -quiet -from "$(store "$1")" $choice -detail routine -o "$work/got-sums") || fail "$choice"
		{ echo "$choice"; sums "$work/got-sums"; } >>"$work/$2"
	done
}

# same WHAT SERVER NAME…: what the store says through that server is what these databases have. A server that was killed
# looks, when it is back, for parts that it lacks, beside what it waits for when it is asked to: some tries.
same()
{
	local what=$1 server=$2 db got=$work/got try
	shift 2
	sums -keep "$work/sums" "${@/#/$work/}" >"$work/should"
	for try in 1 2 3 4 5; do
		replicated
		rm -rf "$got"
		"$fetch" -quiet -from "$(store "$server")" -epoch all -o "$got"
		sums "$got" >"$work/is"
		! cmp -s "$work/is" "$work/should" || break
		echo "$what: other counts in try $try"
		sleep 3
	done
	rm -rf "$got-apart"
	"$fetch" -quiet -from "$(store "$server")" -epoch all -hosts -epochs -o "$got-apart"
	cmp "$work/is" "$work/should" || fail "$what: other counts: $(diff "$work/is" "$work/should" | sed -n 1,5p)"
	sums -apart "$got-apart" >"$work/is"
	sums -apart -keep "$work/sums" "${@/#/$work/}" >"$work/should"
	cmp "$work/is" "$work/should" || fail "$what: other counts by machine: $(diff "$work/is" "$work/should" | sed -n 1,5p)"
	for db; do
		"$ship" -verify -db "$work/$db" -to "$(store "$server")" >"$work/verified" || fail "$what: -verify: $(cat "$work/verified")"
	done
	rm -rf "$got" "$got-apart"
	"$fetch" -quiet -from "$(store "$server")" -epoch all -detail routine -o "$got"
	# Routines are added up from another table: per event the same sums.
	[ "$(sums "$got" | awk '{ s[$(NF - 1)] += $NF } END { for (e in s) print e, s[e] }' | sort)" = \
		"$(awk '{ s[$(NF - 1)] += $NF } END { for (e in s) print e, s[e] }' "$work/should" | sort)" ] ||
		fail "$what: other sums by routine"
	# Sums of many hours are old here, as of the time before; what is read with them is that of the next time.
	"$ship" -quiet -sum -to "$(store "$server")" || fail "$what: -sum"
	echo "$what: $(awk '{ s += $NF } END { print s }' "$work/should") samples in $(wc -l <"$work/should") counts are the same"
}

# refused WHAT WORDS COMMAND…: fails, and says so.
refused()
{
	local what=$1 words=$2
	shift 2
	! "$@" >"$work/said" 2>&1 || fail "$what: it did not fail"
	grep -q "$words" "$work/said" || fail "$what: said $(cat "$work/said")"
	echo "$what: $(sed -n 1p "$work/said" | cut -c 1-150)"
}

waiting() { find "$1" -name '*.batch' | wc -l; }

mkdir "$work/servers" "$work/sums"
fleet_start "$work/servers" 2 2 || fail "the servers do not start"
fleet_tables "$ship" dcpi || fail "the tables"
make alpha 0 10
make beta 3 12
make gamma 5 9
send alpha
send beta
send gamma
# A replica that lags behind is no difference.
for i in 0 1 2 3; do
	"$ship" -verify -wait 60 -db "$work/gamma" -to "$(store $i)" >"$work/verified" || fail "-verify at once: $(cat "$work/verified")"
done
same "as shipped" 0 alpha beta gamma
same "through another server" 3 alpha beta gamma

# ---- twice, and in another order -------------------------------------------------------------------
echo "== repeated and reordered"
mkdir "$work/kept"
rm -rf "$work/alpha/ship"
"$ship" -quiet -db "$work/alpha" # without a store: batches stay
cp "$work"/alpha/ship/*.batch "$work/kept"
send alpha
for i in $(find "$work/kept" -name '*.batch' | sort -r); do
	mkdir "$work/relay"
	cp "$i" "$work/relay"
	"$ship" -quiet -relay "$work/relay" -to "$(store)"
	rmdir "$work/relay" || fail "the relay left a batch"
done
same "each batch three times, the last first" 1 alpha beta gamma
# An open epoch, sent after each flush, the newest first: the newest counts, and a profile that a later flush has not.
mkdir -p "$work/delta" "$work/flushes"
"$mkdb" "$work/delta" </dev/null
for i in 1 2 3; do
	printf '%s\n' "platform delta" "epoch $((1790000000 + 60 * i))" "profile file /opt/app/app $app" 'event cpu-clock 1000000' \
		"at 4096 $i" "at $((4096 + 16 * i)) 5" flush "profile named x$i" 'event cpu-clock 1000000' "at 0 $i" flush | "$mkdb" "$work/delta"
	"$ship" -quiet -open -db "$work/delta"
	for b in "$work"/delta/ship/*.batch; do
		[ ! -f "$b" ] || mv "$b" "$work/flushes/$i-${b##*/}"
	done
done
for b in $(find "$work/flushes" -name '*.batch' | sort -r); do
	mkdir "$work/relay"
	cp "$b" "$work/relay"
	"$ship" -quiet -relay "$work/relay" -to "$(store)"
	rmdir "$work/relay"
done
send delta -open
same "flushes of an open epoch, the newest first" 2 alpha beta gamma delta

# ---- killed ----------------------------------------------------------------------------------------
echo "== a server is killed in an upload"
make epsilon 20 50
for round in 1 2 3; do
	send epsilon 2>"$work/said" &
	shipper=$!
	sleep 0.$((RANDOM % 4))
	fleet_kill $((round % 4))
	wait $shipper || :
	fleet_restart $((round % 4))
done
for i in $(seq 20); do
	! send epsilon 2>"$work/said" || break
	sleep 1
done
[ "$(waiting "$work/epsilon/ship")" = 0 ] || fail "batches wait: $(cat "$work/said")"
same "servers killed" 0 alpha beta gamma delta epsilon

echo "== the shipper is killed $kills times"
make zeta 60 90
for i in $(seq "$kills"); do
	"$ship" -quiet -db "$work/zeta" -to "$(store $((RANDOM % 4)))" 2>/dev/null &
	shipper=$!
	sleep 0.0$((RANDOM % 10))$((RANDOM % 10))
	kill -KILL $shipper 2>/dev/null || :
	wait $shipper 2>/dev/null || :
	# Now and then it begins anew, as when its spool was lost.
	[ $((i % 10)) != 9 ] || rm -rf "$work/zeta/ship"
done
send zeta
same "the shipper killed" 0 alpha beta gamma delta epsilon zeta

echo "== a replica is away"
fleet_kill 1
make eta 100 105
send eta
same "without it" 0 alpha beta gamma delta epsilon zeta eta
fleet_restart 1
replicated
fleet_kill 0
same "through it, when it is back and the other is away" 1 alpha beta gamma delta epsilon zeta eta
fleet_restart 0

# ---- what servers may do ---------------------------------------------------------------------------
echo "== away, refusing, foreign, garbage, a full spool"
make theta 200 203
free=$(fleet_ports 1)
refused "away" 'does not answer' "$ship" -db "$work/theta" -to "clickhouse://127.0.0.1:$free/dcpi"
[ "$(waiting "$work/theta/ship")" = 3 ] || fail "batches do not wait"
echo wrong >"$work/password"
chmod 600 "$work/password"
refused "wrong password" 'refuses access' "$ship" -db "$work/theta" -credentials "$work/password" \
	-to "clickhouse://shipper@127.0.0.1:${fleet_http[0]}/dcpi"
fleet_ask 0 'CREATE DATABASE foreign'
refused "no tables" 'has no store' "$ship" -db "$work/theta" -to "clickhouse://127.0.0.1:${fleet_http[0]}/foreign"
fleet_ask 0 'CREATE TABLE foreign.schema (version UInt32, id String) ENGINE = Memory'
refused "foreign tables" 'is no store' "$ship" -db "$work/theta" -to "clickhouse://127.0.0.1:${fleet_http[0]}/foreign"
fleet_ask 0 "INSERT INTO foreign.schema VALUES (99, 'x')"
refused "a later schema" 'version 99' "$ship" -db "$work/theta" -to "clickhouse://127.0.0.1:${fleet_http[0]}/foreign"
cat >"$work/garbage.py" <<'END'
import os, socket, sys
what, port, s = sys.argv[1], int(sys.argv[2]), socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("127.0.0.1", port))
s.listen(5)
while True:
    c = s.accept()[0]
    c.recv(65536)
    if what == "garbage":
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4096\r\n\r\n" + os.urandom(4096))
    elif what == "text":
        c.sendall(b"220 mail.example ESMTP\r\n")
    elif what == "half":
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n\x01\x00")
    elif what == "error":
        c.sendall(b"HTTP/1.1 500 No\r\nContent-Length: 3\r\n\r\n\x1b[2")
    c.close()
END
for what in garbage text half error; do
	free=$(fleet_ports 1)
	python3 "$work/garbage.py" $what "$free" &
	other=$!
	sleep 0.5
	refused "$what" 'dcpiship' "$ship" -db "$work/theta" -to "clickhouse://127.0.0.1:$free/dcpi"
	! grep -q "$(printf '\033')" "$work/said" || fail "$what: control characters reach the terminal"
	[ "$(waiting "$work/theta/ship")" = 3 ] || fail "$what: batches do not wait"
	kill $other
	wait $other 2>/dev/null || :
	other=
done
refused "an option that -relay has not" 'for a database' "$ship" -relay "$work" -verify -to "$(store)"
# The spool is full: the rest stays in the database, and goes when there is room.
mkdir "$work/full"
mount -t tmpfs -o size=64k tmpfs "$work/full"
dd if=/dev/zero of="$work/full/fill" bs=1k count=60 2>/dev/null || :
make iota 300 340
refused "a full disk for the spool" 'No space\|cannot' "$ship" -db "$work/iota" -spool "$work/full/spool" -to "$(store)"
rm "$work/full/fill"
for i in $(seq 40); do
	! "$ship" -quiet -db "$work/iota" -spool "$work/full/spool" -to "$(store)" 2>"$work/said" || break
done
cp -r "$work/full/spool" "$work/iota/ship"
send theta
replicated
by_routine 2 before # without the sums of these
"$ship" -quiet -sum -to "$(store 2)"
replicated
by_routine 2 after
cmp "$work/before" "$work/after" || fail "-sum changes answers: $(diff "$work/before" "$work/after" | sed -n 1,5p)"
same "after all that" 2 alpha beta gamma delta epsilon zeta eta theta iota

# ---- names -----------------------------------------------------------------------------------------
echo "== names that are SQL"
hostile="x'; DROP TABLE prof; -- \\ \" %s {a:b}"
cat >"$work/spin.c" <<'END'
volatile unsigned long n;
__attribute__((noinline)) void spin(void) { for (int i = 0; i < 1000000; i++) n += i; }
int main(void) { for (int i = 0; i < 2000; i++) spin(); return 0; }
END
mkdir "$work/$hostile" "$work/kappa"
gcc -O1 -c -o "$work/spin.o" "$work/spin.c"
objcopy --redefine-sym "spin=$hostile" "$work/spin.o"
gcc -o "$work/$hostile/$hostile"$'\n'"y" "$work/spin.o"
db=$work/kappa
start_daemon
program=$work/$hostile/$hostile$'\n'y
"$program"
stop_daemon
refused "a hostile platform" 'cannot be' "$ship" -quiet -db "$work/kappa" -as "$hostile" -to "$(store)"
"$ship" -quiet -db "$work/kappa" -as kappa-1 -to "$(store)"
replicated # any replica may answer
"$ship" -verify -db "$work/kappa" -as kappa-1 -to "$(store)" || fail "-verify of hostile names"
"$fetch" -quiet -from "$(store)" -epoch all -platform kappa-1 -o "$work/got-kappa"
sums "$work/got-kappa" >"$work/is"
sums "$work/kappa" >"$work/should"
cmp "$work/is" "$work/should" || fail "hostile names: other counts: $(diff "$work/is" "$work/should" | sed -n 1,5p)"
"$fetch" -quiet -from "$(store)" -epoch all -o "$work/got-image" "$hostile"$'\n'"y"
"$DCPI_BIN/dcpiprof" -db "$work/got-image" 2>/dev/null | grep -F 'DROP TABLE prof' >/dev/null || fail "the routine's name"
refused "no such platform" 'no samples' "$fetch" -from "$(store)" -epoch all -platform "$hostile" -o "$work/got-label"
refused "a hostile label" 'no samples' "$fetch" -from "$(store)" -epoch all -label "$hostile" -o "$work/got-label"
for other_db in alpha beta gamma delta epsilon zeta eta theta iota; do
	"$ship" -verify -db "$work/$other_db" -to "$(store)" >"$work/verified" || fail "beside hostile names: $(cat "$work/verified")"
done
for t in prof totals work part image routine content; do
	[ "$(fleet_ask 0 "EXISTS TABLE dcpi.$t")" = 1 ] || fail "table $t is gone"
done
echo "names that are SQL are data"

# ---- another store ---------------------------------------------------------------------------------
# A second store has nothing of what the first one was sent: the first epoch that goes there has its images and routines.
echo "== another store"
make lambda 400 402
send lambda
fleet_ask 0 'CREATE DATABASE anew'
anew=clickhouse://127.0.0.1:${fleet_http[0]}/anew
"$ship" -make-schema -to "$anew"
make lambda 402 403
"$ship" -quiet -db "$work/lambda" -to "$anew" 2>"$work/said" || fail "another store: $(cat "$work/said")"
grep -q 'another one than before' "$work/said" || fail "another store is not reported: $(cat "$work/said")"
[ "$(fleet_ask 0 'SELECT sum(samples) > 0 FROM anew.totals')" = 1 ] || fail "another store has no samples"
[ "$(fleet_ask 0 'SELECT count() FROM anew.totals ARRAY JOIN r AS rr WHERE rr NOT IN (SELECT r FROM anew.routine)')" = 0 ] ||
	fail "another store lacks routines"
[ "$(fleet_ask 0 'SELECT count() FROM anew.prof WHERE image NOT IN (SELECT image FROM anew.image)')" = 0 ] ||
	fail "another store lacks images"
