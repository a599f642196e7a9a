#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Absolute folders of installation, as Nix and others give: configured anew, and what is built already installed by
# the new rules. All of it lands below the folders that were given, links lead to what is there, pkg-config and CMake
# find the libraries, and dcpid its helpers.
set -eu -o pipefail
[ -z "${DCPI_EMULATOR:-}" ] || exit 0 # the rules are the same, and the programs of a cross build look elsewhere
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
work=$(cd "$work" && pwd -P)
fail()
{
	echo "FAILED: $*" >&2
	exit 1
}
value() { sed -n "s/^$1:[A-Z]*=//p" "$DCPI_BUILD/CMakeCache.txt"; }

# Nothing is compiled: programs, libraries and pages are those of the build that is there, and keep its run paths.
cmake -S "$DCPI_SRC" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE="$(value CMAKE_BUILD_TYPE)" \
	-DCMAKE_SKIP_RPATH=ON -DCMAKE_C_COMPILER="$(value CMAKE_C_COMPILER)" -DCMAKE_C_FLAGS="$(value CMAKE_C_FLAGS)" \
	-DDCPI_SANITIZE="$(value DCPI_SANITIZE)" -DDCPI_TESTS=OFF -DCMAKE_INSTALL_PREFIX="$work/prefix" \
	-DCMAKE_INSTALL_BINDIR="$work/tools/bin" -DCMAKE_INSTALL_SBINDIR="$work/daemon" \
	-DCMAKE_INSTALL_LIBEXECDIR="$work/helpers" -DCMAKE_INSTALL_LIBDIR="$work/dev/lib" \
	-DCMAKE_INSTALL_INCLUDEDIR="$work/dev/include" -DCMAKE_INSTALL_DATADIR="$work/data" \
	-DCMAKE_INSTALL_MANDIR="$work/data/man" -DCMAKE_INSTALL_SYSCONFDIR="$work/etc" \
	-DDCPI_UNIT_DIR="$work/units" -DDCPI_SYSUSERS_DIR="$work/users" >"$work/log" 2>&1 || { cat "$work/log"; fail "cmake"; }
rm -rf "$work/build/bin"
ln -s "$DCPI_BUILD/bin" "$work/build/bin"
cp -a "$DCPI_BUILD"/lib/*.so* "$DCPI_BUILD/lib/libtrace.a" "$DCPI_BUILD/lib/libdbgdyn.a" "$work/build/lib"
cp "$DCPI_BUILD"/man/*.[1-9] "$work/build/man"
cmake --install "$work/build" >"$work/log" 2>&1 || { cat "$work/log"; fail "cmake --install"; }

# Each at its place, and nothing below the prefix, which has no folder of its own left.
for file in tools/bin/dcpi tools/bin/dcpirun daemon/dcpid helpers/dcpi/dcpid-reader dev/lib/libdbgdyn.so \
	dev/lib/libdbgdyn.a dev/lib/dcpi/libdcpirun.so dev/lib/dcpi/install-manifest dev/include/dbgdyn.h \
	dev/include/dcpi/trace-vlist.h dev/lib/cmake/dbgdyn/dbgdynConfig.cmake data/man/man8/dcpid.8 \
	data/bash-completion/completions/dcpi data/lua/5.1/jit/dcpi.lua etc/dcpi/dcpid.json units/dcpid.service \
	users/dcpi.conf; do
	[ -f "$work/$file" ] || fail "no $file"
done
[ ! -e "$work/prefix" ] || fail "the prefix has $(find "$work/prefix" -type f | head)"
for link in tools/bin/dcpiprof data/bash-completion/completions/dcpid; do
	[ -L "$work/$link" ] && [ -f "$work/$link" ] || fail "$link leads nowhere"
done
grep -qx "ExecStart=$work/daemon/dcpid -config $work/etc/dcpi/dcpid.json" "$work/units/dcpid.service" ||
	fail "the unit: $(grep ExecStart "$work/units/dcpid.service")"
"$work/daemon/dcpid" -help >"$work/out" || fail "dcpid -help"
grep -q -- '-event' "$work/out"
"$work/tools/bin/dcpiprof" -help >"$work/out" || fail "dcpiprof -help"

# compiled NAME FROM FILE: the relative path that is compiled in leads from there to what it is for.
compiled()
{
	local place
	place=$(grep -om 1 -- "-D$1=[^ ]*" "$work/build/build.ninja" | sed 's/.*=//; s/[\\"]//g')
	[ -n "$place" ] && [ -e "$work/$2/$place$3" ] || fail "$1 is '$place', from $2"
}
compiled DCPID_HELPERS daemon /dcpid-reader
compiled DCPIRUN_HELPERS tools/bin /dcpid-reader
compiled DCPIRUN_AGENT tools/bin ''
compiled DCPI_MANIFEST tools/bin ''

export PKG_CONFIG_PATH=$work/dev/lib/pkgconfig
for name in dbgdyn sprofil uvprof; do
	[ "$(pkg-config --variable=libdir $name) $(pkg-config --variable=includedir $name)" = \
		"$work/dev/lib $work/dev/include" ] || fail "$name.pc: $(pkg-config --libs --cflags $name)"
done
if [ "$(value DCPI_SANITIZE)" != ON ]; then
	# shellcheck disable=SC2046
	cc "$DCPI_SRC/examples/jit/hello.c" $(pkg-config --cflags --libs dbgdyn) -o "$work/hello" || fail "build by pkg-config"
fi
mkdir "$work/user"
printf '%s\n' 'cmake_minimum_required(VERSION 3.20)' 'project(user LANGUAGES C)' 'find_package(dbgdyn REQUIRED)' \
	"add_executable(hello $DCPI_SRC/examples/jit/hello.c)" 'target_link_libraries(hello PRIVATE DCPI::dbgdyn)' \
	>"$work/user/CMakeLists.txt"
cmake -G Ninja -S "$work/user" -B "$work/user/build" -DCMAKE_PREFIX_PATH="$work/dev/lib/cmake" >"$work/log" 2>&1 ||
	{ cat "$work/log"; fail "find_package"; }
