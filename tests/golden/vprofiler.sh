#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Value profilers from outside: headers that are clean C and C++, and an installed copy that is
# enough to build one.
set -eu -o pipefail
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "$*"; exit 1; }
cross=${DCPI_EMULATOR:+aarch64-linux-gnu-}

cmake --install "$DCPI_BUILD" --component trace --prefix "$tmp/first" >"$tmp/install" 2>&1 ||
	{ cat "$tmp/install"; fail "install"; }
mv "$tmp/first" "$tmp/prefix"
lib=$(find "$tmp/prefix" -name libtrace.a)
inc=$tmp/prefix/include/dcpi

for header in trace-inst trace-parse trace-vlist vprofiler; do
	echo "#include <$header.h>" >"$tmp/h.c"
	for std in c99 c11 c17; do
		${cross}gcc -std=$std -Wall -Wextra -Werror -Wshadow -Wpedantic -I"$inc" -c "$tmp/h.c" -o "$tmp/h.o" ||
			fail "$header.h: $std"
	done
	for std in c++11 c++17; do
		g++ -x c++ -std=$std -Wall -Wextra -Werror -Wshadow -Wpedantic -I"$inc" -c "$tmp/h.c" -o "$tmp/h.o" ||
			fail "$header.h: $std"
	done
done

sanitize=
if nm "$lib" | grep __asan >/dev/null; then
	sanitize=-fsanitize=address,undefined
fi
# shellcheck disable=SC2086
${cross}gcc -shared -fPIC -O1 -Wall -Werror $sanitize -I"$inc" "$DCPI_SRC/examples/vprofiler/vp-ldq-addr.c" \
	-L"${lib%/*}" -ltrace -o "$tmp/vp-ldq-addr.so" || fail "build vp-ldq-addr"
readelf --dyn-syms -W "$tmp/vp-ldq-addr.so" >"$tmp/symbols"
awk '$7 != "UND" && $8 == "_dispatch" { found = 1 } END { exit !found }' "$tmp/symbols" ||
	fail "no _dispatch"
# All that it needs of us is in it.
awk '$7 == "UND" && $8 ~ /trace_/ { print; bad = 1 } END { exit bad }' "$tmp/symbols" ||
	fail "libtrace.a is not enough"
readelf -dW "$tmp/vp-ldq-addr.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' >"$tmp/needed"
! grep -v -E '^(libc|libasan|libubsan|ld-linux[^.]*)\.so' "$tmp/needed" || fail "links more than libc"
