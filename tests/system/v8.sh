#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# V8 as it is, by node: its jitdump (--perf-prof) and its perf map (--perf-basic-prof) are followed while it
# runs. Everything is read after the process is gone and its files are removed.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/runtime.sh"
need_root
need_runtime node
support=$DCPI_SRC/tests/support

# run NAME OPTION…: node in a folder of its own, which is removed with the perf map; its pid is $ran then, its
# dump $work/NAME.dump.
run()
{
	local name=$1
	shift
	mkdir "$work/$name"
	(cd "$work/$name" && exec node "$@") >"$work/$name.out" 2>&1 &
	ran=$!
	wait $ran || { cat "$work/$name.out" >&2; fail "node $*"; }
	# What is buffered is written at its end; the daemon hears of that within a quarter of a second.
	sleep 1
	! [ -f "$work/$name/jit-$ran.dump" ] || cp "$work/$name/jit-$ran.dump" "$work/$name.dump"
	rm -rf "${work:?}/$name" "/tmp/perf-$ran.map"
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	grep -E '^[a-z_0-9]+ [0-9.e+-]+$' "$work/$name.out" >"$work/truth"
}

# printed NAME FUNCTION: "ADDRESS BYTES" of the optimized code of that function, as V8 printed it.
printed()
{
	awk -v name="$2" '
		/^--- / || /^Instructions/ { on = /^Instructions/ && mine }
		/^name = / { mine = $3 == name }
		on && /^0x[0-9a-f]+ +[0-9a-f]+ +[0-9a-f]+ / { print substr($1, 3), $3 }' "$work/$1.out"
}

start_daemon -unknown
run dump --perf-prof --print-opt-code --print-opt-code-filter=hot_a "$support/v8_hot.js" 2
shares_hold node "$work/truth"
mostly_named node "node: dynamic, unnamed" 98
printed dump hot_a >"$work/printed"
hot=$(hottest node '[*]hot_a')
same_code "$hot" node "$work/printed"
"$DCPI_BIN/dcpilist" -source "$hot" node >"$work/source" || fail "dcpilist -source"
grep -q 'x = (x \* 48271 + i) % 2147483647' "$work/source" || { cat "$work/source" >&2; fail "no source lines"; }

# Time stamps tell which function stood there: each sample is where they say, by another reader of dump and
# samples (of the latter some are joined where the daemon comes late; these it need not tell apart).
stop_daemon
rm -rf "$db"
start_daemon -unknown -record "$work/record"
run churn --perf-prof --expose-gc "$support/v8_churn.js" 4
shares_hold node "$work/truth"
mostly_named node "node: dynamic, unnamed" 98
node "$support/v8_stamps.js" "$work/churn.dump" "$work/record" "$ran" | grep turn_ | sort -k2 >"$work/by-stamps" ||
	fail "v8_stamps.js"
rows node | grep turn_ | sort -k2 >"$work/by-dcpid"
echo "by the stamps $(awk '{ n += $1 } END { print n }' "$work/by-stamps") samples, charged" \
	"$(awk '{ n += $1 } END { print n }' "$work/by-dcpid")"
diff "$work/by-stamps" "$work/by-dcpid" >"$work/diff" || :
awk 'FNR == 1 { file++ } file == 1 { stamps[$2 " " $3] = $1; next } { k = $2 " " $3; bad += $1 > stamps[k] }
	END { exit bad > 0 }' "$work/by-stamps" "$work/by-dcpid" || {
	cat "$work/diff" >&2
	fail "samples are charged to functions that were not there"
}
again=$(nm "$db"/dyn/node-*.dyn | grep -c '^7000.*turn_')
echo "$again functions stood where another one had been"
[ "$again" -gt 5 ] || fail "no address was used again: this has tried nothing"

# A perf map tells no times; of functions that stay that is no harm.
"$DCPI_BIN/dcpiepoch" >/dev/null || fail "dcpiepoch"
run map --perf-basic-prof "$support/v8_hot.js" 2
shares_hold node "$work/truth"
mostly_named node "node: dynamic, unnamed" 98
hot=$(hottest node '[*]hot_a')
"$DCPI_BIN/dcpilist" -asm -no_header "$hot" node >"$work/listing" || fail "dcpilist '$hot'"
[ "$(grep -c ' 0x' "$work/listing")" -gt 20 ] || fail "a perf map's routine has no code"

# In namespaces of its own: another number, another /tmp, which is gone with it.
"$DCPI_BIN/dcpiepoch" >/dev/null || fail "dcpiepoch"
for switch in --perf-prof --perf-basic-prof; do
	unshare --user --map-root-user --pid --fork --mount sh -c '
		mount -t tmpfs none /tmp && mount -t proc none /proc && cd /tmp && cat >hot.js && exec node "$1" hot.js 1' \
		sh $switch <"$support/v8_hot.js" >"$work/truth" || fail "node in namespaces"
	sleep 1
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	shares_hold node "$work/truth"
	mostly_named node "node: dynamic, unnamed" 95
	"$DCPI_BIN/dcpiepoch" >/dev/null || fail "dcpiepoch"
done

# Forty short-lived workers one after the other: one table, one pseudo-image.
for i in $(seq 40); do
	(cd "$work" && exec node --perf-prof "$support/v8_hot.js" 0.05) >"$work/truth" || fail "worker $i"
	rm -f "$work"/jit-*.dump
done
sleep 1
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
# Those of this epoch: what ran in the one before may be written late.
images=$(ls "$db/$(status_field epoch)"/* | grep -c '^node.*[.]dynamic$')
echo "workers: $(image_samples node) samples, $images pseudo-images"
[ "$(image_samples node)" -gt 1000 ] || fail "workers have no samples"
[ "$images" -ge 1 ] && [ "$images" -le 2 ] || fail "workers leave more than a pseudo-image (and one of unnamed code)"
rows node | awk '/[*]hot_a /{ n++ } END { exit n != 1 }' || fail "workers are not one row"

# Without any switch it is countable, and can be disassembled, as flushes came while it ran.
"$DCPI_BIN/dcpiepoch" >/dev/null || fail "dcpiepoch"
(cd "$work" && exec node "$support/v8_hot.js" 3) >"$work/none.out" 2>&1 &
ran=$!
while kill -0 $ran 2>/dev/null; do
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	sleep 0.5
done
wait $ran || fail "node"
sleep 1
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
[ "$(image_samples "node: dynamic, unnamed")" -gt 500 ] || fail "code that nobody names is not counted"
page=$(hottest "node: dynamic, unnamed" .)
"$DCPI_BIN/dcpilist" -asm -no_header "$page" "node: dynamic, unnamed" >"$work/listing" || fail "dcpilist '$page'"
[ "$(grep -c ' 0x' "$work/listing")" -gt 100 ] || fail "code that nobody names has no bytes"
! grep 'no bytes of this code' "$work/listing" || fail "code that nobody names has no bytes"
account_holds "at the end"
stop_daemon
