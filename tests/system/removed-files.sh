#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Libraries that their programs remove as soon as they are loaded, and programs that a container alone has: when they are
# gone the tools show the routines and their instructions, to those alone who could read the files. What is too large is
# not kept.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
tests=$DCPI_BIN/../tests
reachable_programs
install -m 755 "$tests/load_removed" "$work/load"
install -d -m 1777 "$work/tmp"

as() { setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"; }

# library SLOT MODE: each has other code; user 65534's.
library() { install -o 65534 -m "$2" "$tests/removed_$1.so" "$work/tmp/lib$1.so"; }
load() { as 65534 "$work/load" "$work/tmp/lib$1.so" "${@:2}"; }

# expect IMAGE USER TEXT: in place of a procedure's name nearly all samples in that image have this.
expect()
{
	local percent
	as "$2" "$DCPI_BIN/dcpiprof" -no_header >"$work/report" 2>"$work/err" || :
	percent=$(awk -v i="$1" -v t="$3" '$NF == i { all += $1; n += index($0, t) ? $1 : 0 }
		END { printf "%d\n", all ? 100 * n / all : -1 }' "$work/report")
	echo "$1 as $2: $percent % $3"
	[ "$percent" -ge 90 ] || fail "$(cat "$work/report" "$work/err")"
}

# It ran already when the daemon came, which finds it in /proc.
library 0 755
setpriv --reuid 65534 --regid 65534 --clear-groups "$work/load" "$work/tmp/lib0.so" 3 &
before=$!
for ((i = 0; i < 600; i++)); do [ -p "$work/tmp/lib0.so" ] && break || sleep 0.1; done
kill -STOP $before
# Their processes are to live when it looks.
start_daemon -drain 500
kill -CONT $before
library 1 755
load 1 3 &
loads=($!)
library 2 700
load 2 3 &
loads+=($!)
library 3 755
load 3 3 memfd &
loads+=($!)
# Loaded as ever; the rest of it is a hole.
library 4 755
truncate -s 65M "$work/tmp/lib4.so"
load 4 3
# program FACTOR FILE [OPTION]: the factor is in its code.
program()
{
	printf '#include <time.h>\nvolatile long sink;\nvoid contained_loop(void) { for (long i = 0; i < 100000; i++) sink += i * %d; }\n
		int main(void) { while (clock() < 2 * CLOCKS_PER_SEC) contained_loop(); }\n' "$1" |
		gcc -O1 -Wl,--build-id ${3:+"$3"} -x c -o "$2" - || fail "gcc"
}
# contained NAME OWNER: such a program runs as $work/box/NAME, on a file system that goes with it.
contained()
{
	unshare -m sh -c 'mount -t tmpfs -o mode=755 none "$1/box" && install -p -m 755 -o "$3" "$1/$2" "$1/box" &&
		exec setpriv --reuid "$3" --regid "$3" --clear-groups "$1/box/$2"' contained "$work" "$@" &
	loads+=($!)
}
# rootless FILE: it runs as /app/sealed in a container as users make them: user, mount and PID namespaces, a root folder
# that is an overlay.
rootless()
{
	as 65534 unshare -Urmpf sh -c 'mount -t tmpfs none "$1" && cd "$1" && mkdir -p low/app low/old up work root &&
		cp "$2" low/app/sealed && mount -t overlay -o lowerdir=low,upperdir=up,workdir=work none root && cd root &&
		pivot_root . old && exec /app/sealed' rootless "$work/box" "$1" &
	loads+=($!)
}
mkdir -m 755 "$work/box"
program 3 "$work/one"
program 5 "$work/users"
program 7 "$work/another"
program 9 "$work/outside"
contained one 0
contained users 65534
# Two containers have different programs under one path.
program 11 "$work/first" -static
program 13 "$work/second" -static
rootless "$work/first"
rootless "$work/second"
# Another program has its path outside, of another size, or of its size and time; or the same one at another time.
program 25 "$work/alike"
program 27 "$work/box/alike"
touch -r "$work/alike" "$work/box/alike"
[ "$(stat -c '%s %Y' "$work/alike")" = "$(stat -c '%s %Y' "$work/box/alike")" ] || fail "they are not alike"
contained alike 0
install -m 755 /bin/true "$work/box/another"
contained another 0
install -m 755 "$work/outside" "$work/box"
touch -d yesterday "$work/box/outside"
contained outside 0
for pid in "${loads[@]}" $before; do
	wait "$pid"
done
"$DCPI_BIN/dcpictl" flush >/dev/null
for i in 0 1 2 4; do
	[ -p "$work/tmp/lib$i.so" ] || fail "lib$i.so is there still"
done
ls -l "$db/dyn"
find "$db/dyn" -name '*.file' | sort >"$work/copies"
[ "$(wc -l <"$work/copies")" = 10 ] || fail "not ten copies"
[ "$(status_field files_kept)" = 10 ] || fail "not ten of them are counted"
grep -q "lib4.so', which its path will not lead to, is not kept: it is larger than 64 MiB" "$work/log" || fail "nothing is said of it"
tmp=$work/tmp
for image in "$tmp/lib0.so" "$tmp/lib1.so" "$tmp/lib2.so" /memfd:removed; do
	expect "$image" 0 removed_loop
	expect "$image" 65534 removed_loop
	expect "$image" 65533 "(image not readable)"
done
expect "$tmp/lib4.so" 0 "(image"
box=$work/box
expect "$box/one" 0 contained_loop
expect "$box/one" 65534 "(image not readable)"
expect "$box/users" 65534 contained_loop
expect "$box/users" 65533 "(image not readable)"
expect "$box/another" 0 contained_loop
expect "$box/another" 65533 "(image not readable)"
expect "$box/alike" 0 contained_loop
expect /app/sealed 65534 contained_loop
expect /app/sealed 65533 "(image not readable)"
expect "$box/outside" 65533 contained_loop
"$DCPI_BIN/dcpilist" -asm -no_header contained_loop "$box/one" >"$work/list" || fail "dcpilist of a container's program"
[ "$(awk '$1 > 0 && /0x/' "$work/list" | wc -l)" -ge 2 ] || fail "no instructions: $(cat "$work/list")"
"$DCPI_BIN/dcpilist" -asm -no_header removed_loop "$tmp/lib1.so" >"$work/list" || fail "dcpilist"
[ "$(awk '$1 > 0 && /0x/' "$work/list" | wc -l)" -ge 2 ] || fail "no instructions: $(cat "$work/list")"
account_holds "with copies"

# They go with the last epoch that has samples in them.
"$DCPI_BIN/dcpictl" epoch >/dev/null
"$DCPI_BIN/dcpid" -gc "$db" >/dev/null
# Programs of others may have been removed meanwhile: those are more.
find "$db/dyn" -name '*.file' | sort | comm -23 "$work/copies" - >"$work/gone"
[ ! -s "$work/gone" ] || fail "a copy is gone whose samples are there: $(cat "$work/gone")"
rm -r "$(find "$db" -maxdepth 1 -name '2*' | sort | sed -n 1p)"
"$DCPI_BIN/dcpid" -gc "$db" >/dev/null
find "$db/dyn" -name '*.file' | sort | comm -12 "$work/copies" - >"$work/left"
[ ! -s "$work/left" ] || fail "copies that no epoch refers to: $(cat "$work/left")"
stop_daemon
