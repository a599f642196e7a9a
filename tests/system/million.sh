#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Very much code in one process: while 100,000 routines are told at addresses that nobody had before, the
# sampler's tables get no more keys than without generations; and a daemon that comes when all of them live
# already learns each, bytes included.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
need_root
tests=${DCPI_BIN%/bin}/tests
NR=100000 BASE=0x300000000000 END=0x30000186a000

# kernel DATABASE: how many samples it holds, and how many of them the kernel has, the idle task's too, which a stream
# does not tell from others.
kernel()
{
	"$DCPI_BIN/dcpiprof" -db "$1" -i -no_header 2>>"$work/err" |
		awk '$NF == "total" { all = $1 } /\(idle\)|vmlinux/ { n += $1 } END { print all, n }'
}

# count_keys [OPTION…]: $keys in which the samples come, and $addresses, which were as many without generations.
count_keys()
{
	local samples read live
	# A file that was there gives nobody else what it gave before: it tells where the kernel lies.
	install -m 666 /dev/null "$work/stream"
	start_daemon -source bpf -record "$work/stream"
	[ "$(stat -c %a "$work/stream")" = 640 ] || fail "mode of the stream: $(stat -c %a "$work/stream")"
	"$tests/million_jit" -routines $NR -seconds 6 "$@" >"$work/jit" || fail "the JIT: $(cat "$work/jit")"
	stop_daemon
	live=$(kernel "$db")
	"$DCPI_BIN/dcpid" -quiet -platform again -replay "$work/stream" "$work/again" || fail "the replay"
	echo "samples in all, and in the kernel: $live; replayed: $(kernel "$work/again")"
	[ "${live#* }" -gt 0 ] && [ "$(kernel "$work/again")" = "$live" ] || fail "a replay's samples"
	"$tests/stream_keys" "$work/stream" $BASE $END >"$work/keys" || fail "the stream cannot be read"
	keys=$(truth "$work/keys" keys) addresses=$(truth "$work/keys" addresses)
	samples=$(truth "$work/keys" samples) read=$(truth "$work/keys" read)
	echo "million_jit $*: $samples samples, generation read of $read: $keys keys, $addresses addresses"
	[ "$samples" -gt 1000 ] || fail "$samples samples"
	[ "$read" -gt $((samples * 9 / 10)) ] || fail "generations were read of $read samples of $samples"
	[ "$addresses" -ge 40 ] || fail "samples at $addresses addresses"
	rm -rf "$db" "$work/again" "$work/stream"
}

count_keys -warm
[ "$keys" -le $((addresses * 11 / 10)) ] || fail "$keys keys, without generations $addresses"
# That the measure would show them.
count_keys -again
[ "$keys" -gt $((addresses * 2)) ] || fail "their neighbours told anew: only $keys keys"

# late: a daemon that comes last.
coproc jit { exec "$tests/million_jit" -routines $NR -seconds 0.1 -wait; }
read -r line <&"${jit[0]}" || fail "the JIT"
read -r line <&"${jit[0]}" || fail "the JIT"
start_daemon -keep_all -process_quota 200
echo >&"${jit[1]}"
read -r what seconds result <&"${jit[0]}" || fail "the JIT says nothing of its end"
echo "all of them told late: $what $seconds s, result $result"
[ "$result" = 0 ] || fail "dbgdyn_end: $result"
stop_daemon
nm "$(image million)" | grep -c 'Engine.compile.routine' >"$work/nr"
[ "$(cat "$work/nr")" = $NR ] || fail "$(cat "$work/nr") routines of $NR"
# The number of each is its last eight bytes.
objdump -s --start-address=$((BASE + 99999 * 256 + 248)) --stop-address=$((BASE + NR * 256)) "$(image million)" |
	grep -q ' 9f860100 00000000 ' || fail "the last routine's bytes"
