#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# libopagent from outside: its names and their version as OProfile's, what it links, that its header is clean C
# and C++, and that an installed copy is found by who is linked with it and by who loads it by name.
set -eu
lib=$DCPI_LIB/libopagent.so
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "$*"; exit 1; }
cross=${DCPI_EMULATOR:+aarch64-linux-gnu-}
export DCPI_RUN=$tmp DCPI_QUEUE=/dbgdyn-test-none

readelf --dyn-syms -W "$lib" |
	awk '$5 == "GLOBAL" && $7 != "UND" && $4 == "FUNC" { print $8 }' | LC_ALL=C sort >"$tmp/exports"
diff - "$tmp/exports" <<'END' || fail "exported symbols differ"
op_close_agent@@OPAGENT_1.0
op_major_version@@OPAGENT_1.0
op_minor_version@@OPAGENT_1.0
op_open_agent@@OPAGENT_1.0
op_unload_native_code@@OPAGENT_1.0
op_write_debug_line_info@@OPAGENT_1.0
op_write_native_code@@OPAGENT_1.0
END
sanitize=
for so in $(readelf -dW "$lib" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'); do
	case $so in
	libc.so* | libc.musl* | ld-linux* | libdbgdyn.so.0) ;;
	libasan.so* | libubsan.so*) sanitize=-fsanitize=address,undefined ;;
	*) fail "links $so" ;;
	esac
done
readelf -dW "$lib" | grep -c 'SONAME.*\[libopagent.so.1\]' >/dev/null || fail "another SONAME"

echo '#include <opagent.h>' >"$tmp/h.c"
for std in c99 c17; do
	${cross}gcc -std=$std -Wall -Wextra -Werror -Wshadow -Wpedantic -I"$DCPI_SRC/adapters/opagent" \
		-c "$tmp/h.c" -o "$tmp/h.o" || fail "opagent.h: $std"
done
g++ -x c++ -std=c++11 -Wall -Wextra -Werror -Wshadow -Wpedantic -I"$DCPI_SRC/adapters/opagent" \
	-c "$tmp/h.c" -o "$tmp/h.o" || fail "opagent.h: C++"

for component in opagent dbgdyn; do
	cmake --install "$DCPI_LIB/.." --component $component --prefix "$tmp/first" >"$tmp/install" 2>&1 ||
		{ cat "$tmp/install"; fail "install"; }
done
mv "$tmp/first" "$tmp/prefix"
libdir=$(dirname "$(find "$tmp/prefix" -name libopagent.so.1)")
cat >"$tmp/linked.c" <<'END'
#include <opagent.h>
static char code[64];
int main(void)
{
	op_agent_t a = op_open_agent();
	struct debug_line_info line = { (unsigned long)code, 1, "a.c" };
	return !a || op_write_native_code(a, "f", (uintptr_t)code, code, 64) ||
	       op_write_debug_line_info(a, code, 1, &line) || op_unload_native_code(a, (uintptr_t)code) ||
	       op_close_agent(a) || op_major_version() != 1;
}
END
cat >"$tmp/loaded.c" <<'END'
#include <dlfcn.h>
int main(void)
{
	void *lib = dlopen("libopagent.so", RTLD_NOW);
	void *(*open)(void) = lib ? (void *(*)(void))dlsym(lib, "op_open_agent") : 0;
	int (*close)(void *) = lib ? (int (*)(void *))dlsym(lib, "op_close_agent") : 0;
	void *a = open ? open() : 0;
	return !a || close(a);
}
END
# shellcheck disable=SC2086
${cross}gcc -Wall -Werror $sanitize -I"$tmp/prefix/include" "$tmp/linked.c" -L"$libdir" -lopagent \
	-Wl,-rpath-link,"$libdir" -o "$tmp/linked" || fail "build linked"
# shellcheck disable=SC2086
${cross}gcc -Wall -Werror $sanitize "$tmp/loaded.c" -o "$tmp/loaded" || fail "build loaded"
for program in linked loaded; do
	if [ -n "$cross" ]; then
		"$DCPI_EMULATOR" -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$libdir" "$tmp/$program"
	else
		LD_LIBRARY_PATH=$libdir ASAN_OPTIONS=detect_leaks=0 "$tmp/$program"
	fi || fail "run $program: $?"
done
echo "libopagent: names, linked, loaded"
