#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Call paths against the truth: programs whose compiler keeps a shadow stack are stopped wherever they are, and each
# frame of the walk is compared. They are stripped, have no frame pointers, and call in every way that compilers know.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
NR=${DCPI_COUNT:-200000}
support=$DCPI_SRC/tests/support

# shapes NAME OPTION…: the program, by these options of the compiler and linker.
shapes()
{
	local name=$1
	shift
	gcc -std=gnu17 -D_GNU_SOURCE -g -fno-inline -finstrument-functions "$@" -c -o "$work/c.o" "$support/call_shapes.c" &&
		g++ -g -fno-inline -finstrument-functions "$@" -c -o "$work/cc.o" "$support/call_shapes_throw.cc" &&
		g++ "$@" -o "$work/$name.whole" "$work/c.o" "$work/cc.o" &&
		nm "$work/c.o" "$work/cc.o" | awk '$2 ~ /[TtWw]/ { print $3 }' >"$work/$name.names" &&
		strip -o "$work/$name" "$work/$name.whole" || fail "$name is not built"
}

# walk NAME: NR frames are right, and nearly all paths complete.
walk()
{
	"$DCPI_BUILD/tests/call_walk" "$NR" "$work/$1.names" "$work/$1.whole" "$work/$1" 600 >"$work/walked" || {
		cat "$work/walked" >&2
		fail "$1: frames are wrong, or too few"
	}
	echo "$1: $(tr '\n' ' ' <"$work/walked")"
	awk '$1 == "paths" { exit !($4 >= 0.99 * $2) }' "$work/walked" || fail "$1: paths are not complete"
	awk '$1 == "frames" { exit !($4 >= 900) }' "$work/walked" || fail "$1: no path was deep"
}

shapes o2 -O2 -fomit-frame-pointer
walk o2
shapes o3 -O3 -fomit-frame-pointer -march=native
walk o3
shapes o0 -O0 -fomit-frame-pointer
walk o0
shapes static -O2 -fomit-frame-pointer -static
walk static
shapes pie -Os -fomit-frame-pointer -static-pie
walk pie
