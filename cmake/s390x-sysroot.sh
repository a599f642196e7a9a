#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# s390x-sysroot.sh FOLDER: what a build for s390x links and includes, the source of Zydis, and the emulator with its
# libraries as the command FOLDER/qemu.
set -eu
cd "$(dirname "$0")/.."
. scripts/packages.sh
root=$1
need_packages $DCPI_S390X_PACKAGES
need_sysroot "$root" s390x $DCPI_S390X_UNPACKED
need_source zydis "$root/zydis"
need_unpacked "$root/zycore" libzycore-dev # headers alone are used
# Zydis 4.0 copies numbers out of instructions in the order of the machine that it runs on.
for len in 2 4 8; do
	sed -i "s/ZYAN_CHECK(ZydisInputNextBytes(state, instruction, (ZyanU8\*)&value, $len));\$/&\
		value = __builtin_bswap$((8 * len))(value);/" "$root/zydis/src/Decoder.c"
done
[ "$(grep -c 'value = __builtin_bswap' "$root/zydis/src/Decoder.c")" = 6 ]
printf '#!/bin/sh\nexec %s -L "%s" "$@"\n' "$(command -v qemu-s390x)" "$root" >"$root/qemu"
chmod 755 "$root/qemu"
