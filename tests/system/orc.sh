#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# LLVM ORC, Debian's package, with the listener of examples/jit/orc: the program is shown by routine, line and
# instruction, though neither a dump nor a debugger's list tells of it.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/runtime.sh"
need_root
need_runtime llvm-config
need_runtime clang
example=$DCPI_SRC/examples/jit/orc
[ -e "$(llvm-config --includedir)/llvm-c/Orc.h" ] || {
	echo "skip: needs llvm-dev"
	exit 77
}

cd "$work" || exit 1
gcc -O1 -Wall -Wextra -Werror $(llvm-config --cflags) -I"$DCPI_SRC/include" -c "$example/run.c" || fail "gcc"
g++ -O0 -Wall -Wextra -Wno-unused-parameter -Werror $(llvm-config --cxxflags) -I"$DCPI_SRC/include" \
	-c "$example/listener.cpp" || fail "g++"
g++ run.o listener.o $(llvm-config --ldflags --libs) -L"$DCPI_LIB" -ldbgdyn -Wl,-rpath,"$DCPI_LIB" -o orc || fail "g++"
clang -O1 -g -emit-llvm -c -o hot.bc "$DCPI_SRC/tests/support/llvm_hot.c" || fail "clang"

start_daemon -unknown
./orc hot.bc >truth || fail "orc"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
shares_hold orc truth
mostly_named orc "orc: dynamic, unnamed" 95
llc -filetype=obj -o hot.o hot.bc || fail "llc"
as_compiled hot_a orc hot.o 20
stop_daemon
