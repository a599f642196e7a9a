#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A fleet's server in trouble: its disk is full, it answers slowly, never, or by a byte a second, its certificate is not
# to be trusted, it sends clients elsewhere. Batches wait and are reported, no password leaves, and once the server is
# well it has every sample once. dcpiship is killed at random between flushes of open epochs, and ends soon when it is
# asked to.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/fleet.sh"
need_root
for program in clickhouse-server curl openssl python3; do
	command -v $program >/dev/null || { echo "skip: '$program' is not installed"; exit 77; }
done
mkdb=$DCPI_BIN/../tests/mkdb ship=$DCPI_BIN/dcpiship fetch=$DCPI_BIN/dcpifetch
app=$DCPI_SRC/tests/data/app/app
front='' other='' RANDOM=${DCPI_SEED:-$$}
echo "seed ${DCPI_SEED:-$$}"
end_one() { [ -z "$1" ] || { kill "$1" 2>/dev/null || :; wait "$1" 2>/dev/null || :; }; }
end_all()
{
	end_one "$other"
	end_one "$front"
	fleet_stop
	umount "$work/disk" 2>/dev/null || :
}
at_end end_all

make() { fleet_database "$mkdb" "$work/$1" "$1" "$2" "$3"; }
send() { "$ship" -quiet -db "$work/$1" -to "$store" "${@:2}"; }
sums() { python3 "$DCPI_SRC/tests/support/fleet_sums.py" "$DCPI_BIN/dcpicat" "$@"; }
waiting() { find "$work/$1/ship" -name '*.batch' ! -name '.*' | wc -l; }

# same WHAT NAME…: the store has what these databases have, and nothing else.
same()
{
	local what=$1 got=$work/got db
	shift
	rm -rf "$got"
	"$fetch" -quiet -from "$store" -epoch all -hosts -epochs -o "$got"
	sums -apart "$got" >"$work/is"
	sums -apart "${@/#/$work/}" >"$work/should"
	cmp "$work/is" "$work/should" || fail "$what: other counts: $(diff "$work/is" "$work/should" | sed -n 1,5p)"
	for db; do
		"$ship" -verify -db "$work/$db" -to "$store" >"$work/verified" || fail "$what: -verify: $(cat "$work/verified")"
	done
	by_routine "$what: by routine"
	"$ship" -quiet -sum -to "$store" 2>/dev/null &
	other=$!
	sleep 0.0$((RANDOM % 10))
	kill -KILL $other 2>/dev/null || :
	wait $other 2>/dev/null || :
	other=
	by_routine "$what: with some sums"
	"$ship" -quiet -sum -to "$store" || fail "$what: -sum"
	echo "$what: $(awk '{ s += $NF } END { print s }' "$work/should") samples in $(wc -l <"$work/should") counts are the same"
}

# by_routine WHAT: sums by routine, which are read from other rows, have the same samples for each event.
by_routine()
{
	rm -rf "$work/got-sums"
	"$fetch" -quiet -from "$store" -epoch all -detail routine -o "$work/got-sums"
	[ "$(sums "$work/got-sums" | per_event)" = "$(per_event <"$work/should")" ] || fail "$1: other sums"
}
per_event() { awk '{ s[$(NF - 1)] += $NF } END { for (e in s) print e, s[e] }' | sort; }

# refused WHAT WORDS COMMAND…: fails, and says so. A command that hangs is ended.
refused()
{
	local what=$1 words=$2 code=0
	shift 2
	timeout -k 5 120 "$@" >"$work/said" 2>&1 || code=$?
	[ $code = 1 ] || fail "$what: it exits $code"
	grep -q -e "$words" "$work/said" || fail "$what: said $(cat "$work/said")"
	echo "$what: $(grep -e "$words" "$work/said" | sed -n 1p | cut -c 1-160)"
}

# until_true WHAT COMMAND…: waits a minute at most.
until_true()
{
	local what=$1 tries=0
	shift
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || fail "$what"
		sleep 0.1
	done
}
ended() { ! kill -0 "$1" 2>/dev/null; }

# ---- the disk is full ------------------------------------------------------------------------------
echo "== full"
mkdir -p "$work/disk" "$work/servers/server0"
mount -t tmpfs -o size=128m tmpfs "$work/disk"
mkdir "$work/disk/data"
ln -s "$work/disk/data" "$work/servers/server0/data"
fleet_start "$work/servers" 1 1 || fail "the server does not start"
fleet_tables "$ship" dcpi || fail "the tables"
store=clickhouse://127.0.0.1:${fleet_http[0]}/dcpi
make alpha 0 5
send alpha
make beta 10 40
dd if=/dev/zero of="$work/disk/fill" bs=64k 2>/dev/null || :
refused "a full server" 'No space left' "$ship" -db "$work/beta" -to "$store"
grep -q "^hint: the server's disk is full" "$work/said" || fail "no hint: $(cat "$work/said")"
[ "$(waiting beta)" = 30 ] || fail "$(waiting beta) of 30 batches wait"
# With little space some tables' rows are taken, and others are not. (What a server could not write stays there for a day.)
rows() { fleet_ask 0 "SELECT count() FROM dcpi.$1 FINAL WHERE platform = 'beta'"; }
for _ in $(seq 10); do
	truncate -s -600K "$work/disk/fill"
	! send beta 2>"$work/said" || break
	[ "$(rows part)$(rows work)$(rows prof)" = 000 ] || break
done
echo "with little space: $(rows part) rows of part, $(rows work) of work, $(rows prof) of prof, $(rows totals) of totals"
[ -z "$(find "$work/beta/ship" -name '*.bad')" ] || fail "batches are set aside"
[ "$(waiting beta)" = 0 ] || refused "-verify, while batches wait" "^$(waiting beta) batches wait" \
	"$ship" -verify -wait 0 -db "$work/beta" -to "$store"
rm "$work/disk/fill"
send beta || fail "with space again"
[ "$(waiting beta)" = 0 ] || fail "$(waiting beta) batches wait with space"
same "full, and then not" alpha beta

# A difference that stays is found, though replicas are waited for.
fleet_ask 0 "INSERT INTO dcpi.totals SELECT event, label, epoch, platform, ver + 1, period, enabled, samples + 1, r, n
	FROM dcpi.totals WHERE platform = 'alpha' ORDER BY epoch LIMIT 1"
refused "a true difference" '1 differ' "$ship" -verify -wait 2 -db "$work/alpha" -to "$store"
fleet_ask 0 'TRUNCATE TABLE dcpi.totals'
rm -r "$work/alpha/ship" "$work/beta/ship"
send alpha
send beta
same "sent anew" alpha beta

# ---- slow ------------------------------------------------------------------------------------------
# front [CERT KEY]: stands before the server; "mode MODE" sets what it does. The files are read with each connection.
front_start()
{
	end_one "$front"
	: >"$work/front.log"
	front_port=$(fleet_ports 1)
	python3 "$DCPI_SRC/tests/support/fleet_front.py" "$front_port" "${fleet_http[0]}" "$work/mode" "$work/front.log" "$@" &
	front=$!
	until_true "the front does not listen" front_listens
	: >"$work/front.log"
}
front_listens() { (: <>"/dev/tcp/127.0.0.1/$front_port") 2>/dev/null; }
mode() { printf '%s\n' "$*" >"$work/mode"; }
none_waits() { [ "$(waiting "$1")" = 0 ]; }

echo "== slow"
make gamma 50 60
mode silent
front_start
slow=clickhouse://127.0.0.1:$front_port/dcpi
for what in silent deaf drip; do
	mode $what
	refused "$what" 'does not answer' "$ship" -timeout 1 -db "$work/gamma" -to "$slow"
	[ "$(waiting gamma)" = 10 ] || fail "$what: $(waiting gamma) of 10 batches wait"
done
# The next turn is made, and gets through when the server is well.
mode deaf
"$ship" -quiet -every 1 -jitter 0 -timeout 1 -db "$work/gamma" -to "$slow" >"$work/said" 2>&1 &
other=$!
until_true "nothing is reported" grep -q 'does not answer' "$work/said"
mode late
until_true "batches wait at a server that is well" none_waits gamma
# It ends when it is asked to, whatever it waits for.
for what in silent deaf drip; do
	make delta 70 75
	mode $what
	end_one "$other"
	: >"$work/front.log"
	"$ship" -quiet -every 1 -jitter 0 -timeout 3600 -db "$work/delta" -to "$slow" >"$work/said" 2>&1 &
	other=$!
	until_true "$what: no connection" grep -q "front: $what" "$work/front.log"
	kill -TERM "$other"
	until_true "$what: it does not end" ended "$other"
	code=0
	wait "$other" || code=$?
	[ $code = 0 ] || fail "$what: it exits $code: $(cat "$work/said")"
	other=
	[ ! -s "$work/said" ] || fail "$what: said $(cat "$work/said")"
	echo "$what: it ends when it is asked to"
done
send delta
same "slow, and then not" alpha beta gamma delta

# ---- TLS -------------------------------------------------------------------------------------------
echo "== certificates"
# authority NAME; certificate NAME AUTHORITY HOST DAYS
authority() { openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/$1.key" -out "$work/$1.pem" -subj "/CN=$1" -days 2 2>/dev/null; }
certificate()
{
	openssl req -newkey rsa:2048 -nodes -keyout "$work/$1.key" -out "$work/$1.csr" -subj "/CN=$3" 2>/dev/null
	printf 'subjectAltName=DNS:%s\n' "$3" >"$work/$1.ext"
	openssl x509 -req -in "$work/$1.csr" -CA "$work/$2.pem" -CAkey "$work/$2.key" -CAcreateserial -days "$4" \
		-extfile "$work/$1.ext" -out "$work/$1.pem" 2>/dev/null
}
authority ours
authority theirs
certificate good ours localhost 2
certificate expired ours localhost -1
certificate elsewhere ours db.example 2
echo secret >"$work/password"
chmod 600 "$work/password"
make epsilon 80 85
mode pass
secure() { env DCPI_STORE_CA="$1" "$ship" -db "$work/epsilon" -credentials "$work/password" -to "$2"; }
# untrusted WHAT WORDS CA CERTIFICATE: nothing is sent.
untrusted()
{
	front_start "$work/$4.pem" "$work/$4.key"
	refused "$1" "$2" env DCPI_STORE_CA="$3" "$ship" -db "$work/epsilon" -credentials "$work/password" \
		-to "clickhouses://shipper@localhost:$front_port/dcpi"
	grep -q '^hint: ' "$work/said" || fail "$1: no hint: $(cat "$work/said")"
	! grep -a -v -q '^front: ' "$work/front.log" || fail "$1: something was sent: $(cat "$work/front.log")"
	[ "$(waiting epsilon)" = 5 ] || fail "$1: $(waiting epsilon) of 5 batches wait"
}
untrusted "an unknown authority" 'cannot be trusted.*' "$work/theirs.pem" good
untrusted "none of the system's" 'cannot be trusted' '' good
untrusted "another host's certificate" 'cannot be trusted.*localhost' "$work/ours.pem" elsewhere
untrusted "an expired certificate" 'cannot be trusted.*expired' "$work/ours.pem" expired
front_start # without TLS
refused "no TLS" 'does not answer' env DCPI_STORE_CA="$work/ours.pem" "$ship" -db "$work/epsilon" -credentials "$work/password" \
	-to "clickhouses://shipper@localhost:$front_port/dcpi"
! grep -a -q -i authorization "$work/front.log" || fail "a password without TLS"
front_start "$work/good.pem" "$work/good.key"
secure "$work/ours.pem" "clickhouses://shipper@localhost:$front_port/dcpi" || fail "the right authority"
grep -a -q '^Authorization: Basic ' "$work/front.log" || fail "no password was sent"
same "over TLS" alpha beta gamma delta epsilon
# A server that sends its clients elsewhere is not followed.
make zeta 90 92
elsewhere=$(fleet_ports 1)
mkfifo "$work/pipe"
python3 -c 'import socket, sys
s = socket.socket()
s.bind(("127.0.0.1", int(sys.argv[1])))
s.listen(5)
c = s.accept()[0]
open(sys.argv[2], "wb").write(b"came: " + c.recv(65536))' "$elsewhere" "$work/elsewhere.log" &
other=$!
for scheme in http https; do
	mode "redirect $scheme://localhost:$elsewhere/"
	refused "a redirection to $scheme" 'no answer of ClickHouse: status 307' env DCPI_STORE_CA="$work/ours.pem" "$ship" \
		-db "$work/zeta" -credentials "$work/password" -to "clickhouses://shipper@localhost:$front_port/dcpi"
	[ ! -e "$work/elsewhere.log" ] || fail "a client follows: $(cat "$work/elsewhere.log")"
	kill -0 "$other" || fail "a client follows"
done
end_one "$other"
other=
send zeta

# ---- killed between flushes ------------------------------------------------------------------------
echo "== killed between flushes of open epochs"
mkdir -p "$work/eta"
"$mkdb" "$work/eta" </dev/null
for i in $(seq 30); do
	printf '%s\n' "platform eta" "epoch $((1790000000 + 60 * (i / 3)))" "profile file /opt/app/app $app" 'event cpu-clock 1000000' \
		"at 4096 $i" "at $((4096 + 16 * (i % 9))) 5" flush "profile named x$((i % 4))" 'event cpu-clock 1000000' "at 0 $i" \
		"$([ $((i % 3)) = 2 ] && echo finish || echo flush)" | "$mkdb" "$work/eta"
	for _ in 1 2; do
		"$ship" -quiet -open -db "$work/eta" -to "$store" 2>/dev/null &
		other=$!
		sleep 0.0$((RANDOM % 5))$((RANDOM % 10))
		kill -KILL $other 2>/dev/null || :
		wait $other 2>/dev/null || :
		other=
	done
done
send eta -open
[ "$(waiting eta)" = 0 ] || fail "$(waiting eta) batches wait"
[ -z "$(find "$work/eta/ship" -name '.held*')" ] || fail "a batch is held for ever"
same "killed between flushes" alpha beta gamma delta epsilon zeta eta
