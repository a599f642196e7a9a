# SPDX-License-Identifier: BSD-2-Clause
# Sourced by benches of runtimes: each as a user starts it who wants its code in a profile. $bench_work, $support and
# $build are the bench's.

RUNTIME_PACKAGES="nodejs llvm clang openjdk-17-jdk-headless luajit"

# setup NAME: $plain, the program by itself, and $told, with its one switch; $program, as it is called in a
# profile; $dumps: perf can make something of it.
setup()
{
	dumps=no
	case $1 in
	v8)
		plain=(node "$support/v8_work.js")
		told=(node --perf-prof "$support/v8_work.js")
		program=node dumps=yes
		;;
	llvm)
		clang -O1 -g -emit-llvm -c -o "$bench_work/work.bc" "$support/llvm_work.c"
		plain=(lli --jit-kind=mcjit "$bench_work/work.bc")
		told=(env JITDUMPDIR="$bench_work/run-dir" lli --jit-kind=mcjit "$bench_work/work.bc")
		program=lli dumps=yes
		;;
	jvm)
		mkdir -p "$bench_work/classes"
		javac -d "$bench_work/classes" "$support/JvmWork.java"
		plain=(java -cp "$bench_work/classes" JvmWork)
		told=(java -agentpath:"$build/lib/libdcpi-jvmti.so" -cp "$bench_work/classes" JvmWork)
		program=java
		;;
	luajit)
		plain=(luajit "$support/luajit_work.lua")
		told=(env LUA_PATH="$PWD/adapters/luajit/?.lua;;" LD_LIBRARY_PATH="$build/lib" \
			luajit -jdcpi "$support/luajit_work.lua")
		program=luajit
		;;
	esac
}
