#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# libdbgdyn from outside: what it exports and links, that both headers are clean C and C++, and that
# an installed copy is found by pkg-config and CMake and is enough to build the examples.
set -eu
lib=$DCPI_LIB/libdbgdyn.so
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "$*"; exit 1; }
. "$DCPI_SRC/tests/support/library.sh"
cross=${DCPI_EMULATOR:+aarch64-linux-gnu-}
export DCPI_RUN=$tmp DCPI_QUEUE=/dbgdyn-test-none

# -- exports: the interface and nothing else
readelf --dyn-syms -W "$lib" |
	awk '$5 == "GLOBAL" && $7 != "UND" && $4 == "FUNC" { sub(/@.*/, "", $8); print $8 }' |
	LC_ALL=C sort > "$tmp/exports"
diff - "$tmp/exports" <<'END' || fail "exported symbols differ"
DBG$DYN_ADD
DBG$DYN_BEGIN
DBG$DYN_END
dbgdyn_add
dbgdyn_begin
dbgdyn_check
dbgdyn_copy_object
dbgdyn_end
dbgdyn_flush
dbgdyn_move
dbgdyn_register
dbgdyn_register_many
dbgdyn_register_object
dbgdyn_registry_make
dbgdyn_retire
dbgdyn_retire_code
dbgdyn_strerror
END

# -- links libc alone, stays loaded, starts nothing
links_libc_alone "$lib"
readelf -dW "$lib" | grep -q NODELETE || fail "dlclose would unload it"
if [ -z "$sanitize" ]; then
	# The compiler's own start-up entries are the only ones (aarch64: one for its atomics).
	n=$(readelf -SW "$lib" | awk '$2 == ".init_array" { print $6 }
		$3 == ".init_array" { print $7 }')
	[ "$n" = 000008 ] || [ "${cross}$n" = aarch64-linux-gnu-000010 ] || fail "has a constructor (init_array of $n bytes)"
fi

# -- headers
for h in dbgdyn.h dbgdyn_vms.h dbgdyn_dlopen.h; do
	echo "#include <$h>" > "$tmp/h.c"
	pedantic=-Wpedantic
	[ $h != dbgdyn_vms.h ] || pedantic=	# `$` in names
	for std in c99 c11 c17; do
		${cross}gcc -std=$std -Wall -Wextra -Werror -Wshadow $pedantic \
			-I"$DCPI_SRC/include" -c "$tmp/h.c" -o "$tmp/h.o" || fail "$h: $std"
	done
	for std in c++98 c++11 c++17; do
		[ $h$std != dbgdyn_dlopen.hc++98 ] || continue # variadic macros
		g++ -x c++ -std=$std -Wall -Wextra -Werror -Wshadow $pedantic \
			-I"$DCPI_SRC/include" -c "$tmp/h.c" -o "$tmp/h.o" || fail "$h: $std"
	done
done

# -- an installed copy, moved to where it was not configured for
cmake --install "$DCPI_LIB/.." --component dbgdyn --prefix "$tmp/first" > "$tmp/install" 2>&1 ||
	{ cat "$tmp/install"; fail "install"; }
mv "$tmp/first" "$tmp/prefix"
pc=$(find "$tmp/prefix" -name dbgdyn.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
libdir=$(dirname "$PKG_CONFIG_PATH")
for example in hello dst; do
	# shellcheck disable=SC2046,SC2086
	${cross}gcc -O1 -Wall -Werror $sanitize "$DCPI_SRC/examples/jit/$example.c" \
		$(pkg-config --cflags --libs dbgdyn) -o "$tmp/$example" || fail "build $example"
	LD_LIBRARY_PATH=$libdir ASAN_OPTIONS=detect_leaks=0 ${DCPI_EMULATOR:+$DCPI_EMULATOR -L /usr/aarch64-linux-gnu \
		-E LD_LIBRARY_PATH="$libdir"} "$tmp/$example" 0.2 > "$tmp/out" 2> "$tmp/err" ||
		{ cat "$tmp/out" "$tmp/err"; fail "run $example"; }
	awk '{ sum += $2 } NF != 3 || $3 != "%" { exit 1 }
		END { exit !(NR == 3 && sum > 99.7 && sum < 100.3) }' "$tmp/out" ||
		{ cat "$tmp/out"; fail "$example: its own shares do not sum"; }
done

# -- the static library: the same interface, in a program that takes it along
nm -g --defined-only "$libdir/libdbgdyn.a" | awk 'NF == 3 { print $3 }' | LC_ALL=C sort | diff "$tmp/exports" - ||
	fail "other global symbols in libdbgdyn.a"
if [ -z "$sanitize" ]; then
	# shellcheck disable=SC2046
	${cross}gcc -static -O1 -Wall -Werror "$DCPI_SRC/examples/jit/hello.c" $(pkg-config --cflags --libs --static dbgdyn) \
		-o "$tmp/hello-static" || fail "link libdbgdyn.a"
	! readelf -dW "$tmp/hello-static" | grep NEEDED || fail "the static program needs libraries"
	$DCPI_EMULATOR "$tmp/hello-static" 0.2 >"$tmp/out" || { cat "$tmp/out"; fail "run the static program"; }
	[ "$(wc -l <"$tmp/out")" = 3 ] || fail "the static program's output"
fi

# By dlopen: with the library, and without.
cat > "$tmp/dlopen.c" <<'END'
#include <dbgdyn_dlopen.h>
#include <stdio.h>

static const unsigned char code[16];

int main(void)
{
	struct dbgdyn_routine r = { .size = sizeof(r), .name = DBGDYN_STR("f"), .code = code, .code_len = sizeof(code) };
	dbgdyn_context context = { 1 };
	dbgdyn_handle handle = { 0 };
	int began = dbgdyn_begin("shim", 4, NULL, &context);
	int told = dbgdyn_register(context, &r, &handle);

	dbgdyn_retire(context, handle);
	printf("%d %d %d %d %s\n", began, context.id != 0, told, handle.id != 0, dbgdyn_strerror(told));
	return 0;
}
END
# shellcheck disable=SC2046,SC2086
${cross}gcc -O1 -Wall -Werror $sanitize "$tmp/dlopen.c" $(pkg-config --cflags dbgdyn) -o "$tmp/dlopen" || fail "build dlopen"
for where in "$libdir" "$tmp"; do
	LD_LIBRARY_PATH=$where ASAN_OPTIONS=detect_leaks=0 ${DCPI_EMULATOR:+$DCPI_EMULATOR -L /usr/aarch64-linux-gnu \
		-E LD_LIBRARY_PATH="$where"} "$tmp/dlopen" || fail "run dlopen"
done > "$tmp/out"
diff - "$tmp/out" <<'END' || fail "by dlopen"
0 1 0 1 success
-6 0 -6 0 libdbgdyn is not installed
END

mkdir "$tmp/user"
cp "$DCPI_SRC/examples/jit/hello.c" "$tmp/user"
cat > "$tmp/user/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(user LANGUAGES C)
find_package(dbgdyn 0.1 REQUIRED)
add_executable(hello hello.c)
target_link_libraries(hello PRIVATE DCPI::dbgdyn)
add_executable(hello-static hello.c)
target_link_libraries(hello-static PRIVATE DCPI::dbgdyn_static)
END
cmake -G Ninja -S "$tmp/user" -B "$tmp/user/build" -DCMAKE_PREFIX_PATH="$tmp/prefix" \
	-DCMAKE_C_COMPILER="${cross}gcc" -DCMAKE_C_FLAGS="$sanitize" > "$tmp/cmake" 2>&1 &&
	cmake --build "$tmp/user/build" >> "$tmp/cmake" 2>&1 || { cat "$tmp/cmake"; fail "CMake package"; }
