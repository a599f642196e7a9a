#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# libsprofil from outside: what it exports and links, that its header is clean C and C++ and lives
# beside glibc's functions of the same names, and that an installed copy is enough for a program.
set -eu
lib=$DCPI_LIB/libsprofil.so
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
fail() { echo "$*"; exit 1; }
. "$DCPI_SRC/tests/support/library.sh"
cross=${DCPI_EMULATOR:+aarch64-linux-gnu-}

# -- exports: the interface, and what stands before libc's; without versions, so that it does
readelf --dyn-syms -W "$lib" |
	awk '$5 == "GLOBAL" && $7 != "UND" && $4 == "FUNC" { print $8 }' | LC_ALL=C sort >"$tmp/exports"
diff - "$tmp/exports" <<'END' || fail "exported symbols differ"
pthread_create
sprofil_profil
sprofil_sprofil
thrd_create
END

# -- links libc alone, stays loaded, starts nothing
links_libc_alone "$lib"
readelf -dW "$lib" | grep -q NODELETE || fail "dlclose would unload it"

# -- header
echo '#include <sprofil.h>' >"$tmp/h.c"
for std in c99 c11 c17; do
	${cross}gcc -std=$std -Wall -Wextra -Werror -Wshadow -Wpedantic -I"$DCPI_SRC/include" \
		-c "$tmp/h.c" -o "$tmp/h.o" || fail "sprofil.h: $std"
done
for std in c++11 c++17; do
	g++ -x c++ -std=$std -Wall -Wextra -Werror -Wshadow -Wpedantic -I"$DCPI_SRC/include" \
		-c "$tmp/h.c" -o "$tmp/h.o" || fail "sprofil.h: $std"
done
printf '#include <sys/profil.h>\n#include <sprofil.h>\n' >"$tmp/both.c"
! ${cross}gcc -I"$DCPI_SRC/include" -c "$tmp/both.c" -o "$tmp/h.o" 2>"$tmp/err" || fail "both headers"
grep -q 'both define struct prof' "$tmp/err" || { cat "$tmp/err"; fail "both headers: no reason given"; }

# -- an installed copy, moved to where it was not configured for
cmake --install "$DCPI_LIB/.." --component sprofil --prefix "$tmp/first" >"$tmp/install" 2>&1 ||
	{ cat "$tmp/install"; fail "install"; }
mv "$tmp/first" "$tmp/prefix"
PKG_CONFIG_PATH=$(dirname "$(find "$tmp/prefix" -name sprofil.pc)")
export PKG_CONFIG_PATH
libdir=$(dirname "$PKG_CONFIG_PATH")
run()
{
	if [ -n "$cross" ]; then
		"$DCPI_EMULATOR" -E LD_LIBRARY_PATH="$libdir" "$@"
	else
		LD_LIBRARY_PATH=$libdir ASAN_OPTIONS=detect_leaks=0 "$@"
	fi
}
# shellcheck disable=SC2046,SC2086
${cross}gcc -O1 -Wall -Werror $sanitize "$DCPI_SRC/examples/sprofil/hot.c" \
	$(pkg-config --cflags --libs sprofil) -o "$tmp/hot" || fail "build hot"
run "$tmp/hot" 0.3 >"$tmp/out" || fail "run hot"
awk '/ ticks/ { n += ($1 == "the") ? $3 : $2 } END { exit !(NR == 5 && n >= 10) }' "$tmp/out" ||
	{ cat "$tmp/out"; fail "hot has no ticks"; }

# -- glibc's sprofil in another file of the same program is glibc's
cat >"$tmp/theirs.c" <<'END'
#include <sys/profil.h>
static unsigned int bin;
int theirs(void)
{
	struct prof one = { &bin, sizeof(bin), 0, 2 };
	return sprofil(&one, 1, 0, PROF_UINT) || sprofil(&one, 0, 0, PROF_UINT);
}
END
cat >"$tmp/ours.c" <<'END'
#include <sprofil.h>
int theirs(void);
static unsigned int bin;
int main(void)
{
	struct prof one = { &bin, sizeof(bin), 0, 2 };
	if (theirs() || sprofil(&one, 1, 0, PROF_UINT))
		return 1;
	while (*(volatile unsigned int *)&bin < 2)
		;
	return sprofil(0, 0, 0, 0) || profil(0, 0, 0, 0);
}
END
# shellcheck disable=SC2046,SC2086
${cross}gcc $sanitize "$tmp/ours.c" "$tmp/theirs.c" $(pkg-config --cflags --libs sprofil) -o "$tmp/two" ||
	fail "build with both"
readelf --dyn-syms -W "$tmp/two" | grep -q ' sprofil@GLIBC' || fail "theirs is not glibc's"
readelf --dyn-syms -W "$tmp/two" | grep -q ' sprofil_sprofil$' || fail "ours is not libsprofil's"
run "$tmp/two" || fail "run with both"

# -- by dlopen
cat >"$tmp/dl.c" <<'END'
#include <dlfcn.h>
#include <sprofil.h>
static unsigned int bin;
int main(void)
{
	void *lib = dlopen("libsprofil.so.0", RTLD_NOW);
	struct prof one = { &bin, sizeof(bin), 0, 2 };
	int (*call)(struct prof *, int, struct timeval *, unsigned int);
	if (!lib)
		return 1;
	call = (int (*)(struct prof *, int, struct timeval *, unsigned int))dlsym(lib, "sprofil_sprofil");
	if (!call || call(&one, 1, 0, PROF_UINT))
		return 2;
	dlclose(lib);
	while (*(volatile unsigned int *)&bin < 2)
		;
	return 0;
}
END
# shellcheck disable=SC2086
${cross}gcc $sanitize -I"$DCPI_SRC/include" "$tmp/dl.c" -o "$tmp/dl" -ldl || fail "build dl"
run "$tmp/dl" || fail "dlopen: $?"
