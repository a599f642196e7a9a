#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Every ```c snippet of the JIT author's guide compiles: each is a whole file.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
awk -v dir="$tmp" '
	/^```c$/ { file = sprintf("%s/snippet%02d.c", dir, ++n); next }
	/^```/ { file = ""; next }
	file { print > file }
	END { if (n < 5) { print "only " n " snippets found"; exit 1 } }
' "$DCPI_SRC/docs/JIT-GUIDE.md"
for snippet in "$tmp"/snippet*.c; do
	gcc -std=gnu17 -Wall -Wextra -Werror -I"$DCPI_SRC/include" -c "$snippet" -o "$tmp/out.o" ||
		{ echo "in ${snippet##*/} of docs/JIT-GUIDE.md"; exit 1; }
done
