#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# How many samples in code of JITs have a certain caller, by rules computed from the code (lib/height), and why others
# have none (docs/decisions/jit-call-paths.md): calc, LuaJIT, V8, HotSpot with and without frame pointers, LLVM.
# Root; about two minutes.
#   bench/support/heights.sh [calc|luajit|v8|jvm|jvm-fp|llvm …]
set -eu -o pipefail
cd "$(dirname "$0")/../.."
: "${DCPI_BUILD:=$PWD/build}" "${DCPI_SRC:=$PWD}"
: "${DCPI_BIN:=$DCPI_BUILD/bin}" "${DCPI_LIB:=$DCPI_BUILD/lib}"
. tests/support/daemon.sh
need_root
[ $# -gt 0 ] || set -- calc luajit v8 jvm jvm-fp llvm
cmake --build "$DCPI_BUILD" --target bench_heights >/dev/null
support=$PWD/bench/support
mkdir "$work/classes" "$work/in"
jdk=$(ls -d /usr/lib/jvm/java-17-openjdk-* 2>/dev/null | sort | sed -n 1p)

# load NAME: the program at work.
load()
{
	case $1 in
	calc) "$DCPI_BIN/calc" -time 8 -shares "$DCPI_SRC/examples/jit/calc/shares.calc" ;;
	luajit)
		LUA_PATH="$DCPI_SRC/adapters/luajit/?.lua;;" LD_LIBRARY_PATH=$DCPI_LIB luajit -jdcpi "$support/luajit_work.lua"
		;;
	v8) node --perf-prof "$support/v8_work.js" ;;
	llvm)
		clang -O1 -g -emit-llvm -c -o work.bc "$support/llvm_work.c"
		JITDUMPDIR=$PWD lli --jit-kind=mcjit work.bc
		;;
	jvm) java_with ;;
	jvm-fp) java_with -XX:+PreserveFramePointer ;;
	esac
}

java_with()
{
	"$jdk/bin/javac" -d "$work/classes" "$support/JvmWork.java"
	"$jdk/bin/java" "$@" -agentpath:"$DCPI_LIB/libdcpi-jvmti.so" -cp "$work/classes" JvmWork
}

for name in "$@"; do
	db=$work/db-$name
	export DCPIDB=$db
	start_daemon
	(cd "$work/in" && load "$name") >"$work/out" 2>&1 || { cat "$work/out" >&2; fail "$name"; }
	sleep 1
	"$DCPI_BIN/dcpiflush" >/dev/null || fail "dcpiflush"
	stop_daemon
	rm -rf "${work:?}/in"/*
	echo "== $name"
	"$DCPI_BUILD/bench/heights" "$db"
	[ -z "${HEIGHTS_LIST:-}" ] || "$DCPI_BUILD/bench/heights" -list "$db" | sort -t$'\t' -k2,2nr | sed -n "1,12p"
done
