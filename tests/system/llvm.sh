#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# LLVM as it is, by lli: the jitdump that its listener writes is followed while it runs. Everything is read
# after the process is gone and its files are removed.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/runtime.sh"
need_root
need_runtime lli
need_runtime clang

cd "$work" || exit 1
clang -O1 -g -emit-llvm -c -o hot.bc "$DCPI_SRC/tests/support/llvm_hot.c" || fail "clang"
start_daemon -unknown
mkdir "$work/dumps"
JITDUMPDIR=$work/dumps lli --jit-kind=mcjit hot.bc >"$work/truth" || fail "lli"
sleep 1
rm -rf "$work/dumps"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
shares_hold lli "$work/truth"
mostly_named lli "lli: dynamic, unnamed" 98

llc -filetype=obj -o hot.o hot.bc || fail "llc"
as_compiled hot_a lli hot.o 20
dyn=$(echo "$db"/dyn/lli-*.dyn)
nm "$dyn" | grep -q ' hot_b$' || fail "nm does not show hot_b"
stop_daemon
