#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Every ```c snippet of the JIT author's guide compiles, pasted into C or C++, and each ```c++ one: each is a whole file.
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
awk -v dir="$tmp" '
	/^```c$/ { file = sprintf("%s/snippet%02d.c", dir, ++n); next }
	/^```c\+\+$/ { file = sprintf("%s/snippet%02d.cpp", dir, ++n); next }
	/^```/ { file = ""; next }
	file { print > file }
	END { if (n < 5) { print "only " n " snippets found"; exit 1 } }
' "$DCPI_SRC/docs/JIT-GUIDE.md"
for snippet in "$tmp"/snippet*.c; do
	for compiler in "gcc -std=gnu17" "g++ -x c++ -std=gnu++17"; do
		# What C++ leaves out of an initializer is zero there too; g++ only warns of it.
		$compiler -Wall -Wextra -Wno-missing-field-initializers -Werror -I"$DCPI_SRC/include" -c "$snippet" -o "$tmp/out.o" ||
			{ echo "$compiler: in ${snippet##*/} of docs/JIT-GUIDE.md"; exit 1; }
	done
done
for snippet in "$tmp"/snippet*.cpp; do
	g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -I"$DCPI_SRC/include" -c "$snippet" -o "$tmp/out.o" ||
		{ echo "g++: in ${snippet##*/} of docs/JIT-GUIDE.md"; exit 1; }
done
