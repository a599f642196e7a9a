#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# PCRE2, Debian's source with the hooks of examples/jit/pcre2: a program that knows nothing of DCPI is shown by its
# patterns, which come and go at the same places. Without libdbgdyn the same library works as well.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/runtime.sh"
. "$DCPI_SRC/scripts/packages.sh"
need_root
example=$DCPI_SRC/examples/jit/pcre2

# build_pcre2: its 8-bit library alone, at $work/pcre2.
build_pcre2()
{
	local file version files=
	need_source pcre2 "$DCPI_BUILD/sources/pcre2" || {
		echo "skip: no source of pcre2 can be had"
		exit 77
	}
	cp -r "$DCPI_BUILD/sources/pcre2" "$work/pcre2"
	cd "$work/pcre2/src" || exit 1
	version=$(sed -n 's/^#define PCRE2_M[AJIN]*OR *//p' pcre2.h.generic | tr '\n' .)
	patch -s -d .. -p1 <"$example/hooks-${version%.}.patch" || fail "no hooks for this version of pcre2, or they do not apply"
	cp "$example/pcre2_dbgdyn.h" .
	for file in config.h pcre2.h; do
		cp $file.generic $file
	done
	cp pcre2_chartables.c.dist pcre2_chartables.c
	for file in pcre2_*.c; do
		case $file in
		*_jit_match.c | *_jit_misc.c | *_jit_test.c | *_dftables.c | *_fuzzsupport.c | *_printint.c | *_ucptables.c) ;;
		*) files+=" $file" ;;
		esac
	done
	printf '%s\n' $files | xargs -P "$(nproc)" -n 1 gcc -O0 -fPIC -DHAVE_CONFIG_H -DSUPPORT_JIT -DSUPPORT_UNICODE \
		-DPCRE2_CODE_UNIT_WIDTH=8 -I. -I"$DCPI_SRC/include" -c || fail "gcc of pcre2"
	gcc -shared -o "$work/libpcre2-8.so" ./*.o || fail "gcc of its library"
	gcc -O1 -Wall -Wextra -Werror -I. "$example/match.c" "$work/libpcre2-8.so" -Wl,-rpath,"$work" -o "$work/match" ||
		fail "gcc of match.c"
}

build_pcre2
cd "$work" || exit 1
start_daemon -unknown
LD_LIBRARY_PATH=$DCPI_LIB ./match 5 >truth || fail "match"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
shares_hold pcre2 truth
mostly_named pcre2 "match: dynamic, unnamed" 95
"$DCPI_BIN/dcpiprof" -no_header pcre2 >prof || fail "dcpiprof"
cat prof
grep -qF ' (?:[abc]|_)++sixty(\d) ' prof || fail "no routine has a pattern as its name"
stop_daemon

# There is no libdbgdyn for it, and no daemon.
./match 0.1 >truth || fail "match without libdbgdyn"
