#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The seed's own contract: ranges and DST records that the application owns. END waits for the image;
# the code goes on running after it and is still charged to it.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
need_root

start_daemon
"$DCPI_BIN/examples/dst" 7 >"$work/truth" &
jit=$!
# It goes on for as long as it took to END, which alone writes an image within a minute.
for ((i = 0; i < 1200; i++)); do
	! compgen -G "$db/dyn/dst-*.dyn" >/dev/null || break
	sleep 0.1
done
kill -STOP $jit || fail "dst has ended too early"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
before=$(samples dst)
file=$(image dst)
kill -CONT $jit
for name in dst_half dst_third dst_rest; do
	check_elf "$file" $name 31c04801f848ffcf75f8c3
done
wait $jit || fail "dst"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
[ "$(image dst)" = "$file" ] || fail "it has another image now"
[ "$(samples dst)" -gt $((before + 100)) ] ||
	fail "after END: $(samples dst) samples, before $before"
for name in dst_half dst_third dst_rest; do
	share_holds $name dst
done
# Each instruction knows the line of the program that emitted it.
addr=$(nm "$file" | awk '$3 == "dst_rest" { print $1 }')
line=$(addr2line -e "$file" "0x$addr")
case $line in
*/dst.c:[1-9]*) ;;
*) fail "addr2line says '$line'" ;;
esac
sed -n "${line##*:}p" "$DCPI_SRC/examples/jit/dst.c" | grep -q 'EMIT(' ||
	fail "'$line' emits nothing"
stop_daemon
