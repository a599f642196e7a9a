#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Images on a file system that never answers, and a debuginfod server that never does: the tools end,
# and say which image it was (root, to mount one).
set -eu
[ "$(id -u)" = 0 ] || { echo "skip: needs root to mount a file system"; exit 77; }
. "$DCPI_SRC/tests/support/app-db.sh"
silent=$DCPI_BIN/../tests/silent
# The search for leaks at a program's end would wait for its thread that waits there.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
mkdir dead
fuse='' tcp=''
cleanup()
{
	[ -z "$tcp" ] || kill "$tcp" 2>/dev/null || :
	# Who waits there is freed when the file system's program has gone.
	[ -z "$fuse" ] || kill "$fuse" 2>/dev/null || :
	umount -l "$work/dead" 2>/dev/null || :
	rm -rf "$work"
}
trap cleanup EXIT
fail() { echo "$0: $*" >&2; exit 1; }

"$mkdb" dead-db <<-END
	platform box
	epoch 1700000000
	profile file $work/dead/lib/a.so $app/app
	event cpu-clock 1000000
	at 0x10c 7
	profile file $work/dead/lib/b.so $app/app
	id ffffffffffffffffffffffffffffffffffffffff
	event cpu-clock 1000000
	at 0x10c 5
	profile file /opt/app/app $app/app
	id 5712000000000000000000000000000000000001
	path $DCPI_SRC/tests/data/strip/strip.so
	event cpu-clock 1000000
	at 0x2b4 3
END

"$silent" fuse "$work/dead" &
fuse=$!
for ((i = 0; i < 600; i++)); do
	grep -q " $work/dead fuse" /proc/self/mounts && break
	kill -0 $fuse 2>/dev/null || { wait $fuse || code=$?; fuse=; [ "${code:-0}" != 77 ] || { echo "skip: no /dev/fuse"; exit 77; }; fail "no mount"; }
	sleep 0.1
done

unset DCPI_DEBUG_PATH
start=$SECONDS
timeout -k 5 120 "$DCPI_BIN/dcpiprof" -db dead-db -no_header >out 2>err || fail "dcpiprof: $? $(cat err)"
[ $((SECONDS - start)) -le 45 ] || fail "it took $((SECONDS - start)) s"
cat out err
for name in a b; do
	grep -q "cannot open image '$work/dead/lib/$name.so': its file system does not answer" err || fail "$name.so is not named"
done
# None of the samples is lost, and the image that answers has its names.
[ "$(awk '/image not readable/ { s += $1 } END { print s }' out)" = 12 ] || fail "samples are missing"
grep -q '3 .* 0x2b0 ' out || fail "what answers is not there"

# A copy elsewhere is found.
mkdir -p root/.build-id/01
cp "$app/app" root/.build-id/01/23456789abcdef0123456789abcdef01234567
DCPI_DEBUG_PATH=root timeout -k 5 120 "$DCPI_BIN/dcpiprof" -db dead-db -no_header 2>err | grep -q '7 .* helper ' || fail "the copy is not found: $(cat err)"

"$silent" tcp port &
tcp=$!
for ((i = 0; i < 600; i++)); do [ -s port ] && break; sleep 0.1; done
start=$SECONDS
DEBUGINFOD_URLS=http://127.0.0.1:$(cat port) DEBUGINFOD_CACHE_PATH=$work/cache timeout -k 5 200 \
	"$DCPI_BIN/dcpiprof" -db dead-db -no_header strip.so >out 2>err || fail "dcpiprof: $? $(cat err)"
echo "a silent server: $((SECONDS - start)) s"
[ $((SECONDS - start)) -le 60 ] || fail "it took $((SECONDS - start)) s"
grep -q '3 .* 0x2b0 ' out || fail "no names beside a silent server"
