#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The functions of libcrypto, libstdc++ and the running kernel: no instruction that objdump decodes is shown as bytes, or
# given another length.
set -eu
. "$DCPI_SRC/tests/support/decode.sh"
for library in libcrypto.so.3 libstdc++.so.6; do
	agree "$(/sbin/ldconfig -p | awk -v name=$library '$1 == name { print $NF; exit }')"
done
start=$("$DCPI_BIN/../tests/kernel_text" kernel) || exit 77
echo "kernel:"
objdump -D -w -b binary -m i386:x86-64 --adjust-vma="$start" kernel | "$DCPI_BIN/../tests/objdump_agree"
