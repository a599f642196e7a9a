#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The recipes for packagers: each is read by its own program's parser, which says nothing about whether it builds there;
# all have the version of CMakeLists.txt; and each file or folder that one names is installed.
set -eu -o pipefail
cd "$DCPI_SRC"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail()
{
	echo "FAILED: $*" >&2
	exit 1
}
version=$(sed -n 's/^project(dcpi VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
[ -n "$version" ] || fail "no version in CMakeLists.txt"

# parsed TOOL COMMAND…: without the tool nothing is known, which is said.
parsed()
{
	command -v "$1" >/dev/null || {
		echo "not parsed: $1 is not installed"
		return
	}
	"${@:2}" >"$work/out" 2>&1 || { cat "$work/out"; fail "$*"; }
}

is_version() { [ "$2" = "$version" ] || fail "$1 is of version '$2', CMakeLists.txt of '$version'"; }

is_version NEWS.md "$(sed -n 's/^## \([0-9.]*\).*/\1/p' NEWS.md | sed -n 1p)"
is_version debian/changelog "$(sed -n '1s/^dcpi (\([0-9.]*\)-[0-9]*).*/\1/p' packaging/debian/changelog)"
is_version PKGBUILD "$(bash -c '. packaging/arch/PKGBUILD && declare -F build package >/dev/null && echo "$pkgver"')"
is_version dcpi.spec "$(sed -n 's/^Version: *//p' packaging/rpm/dcpi.spec)"

# Macros of Fedora's that Debian's rpm has not.
parsed rpmspec rpmspec -P --nodebuginfo --define 'cmake true' --define 'cmake_build true' --define 'cmake_install true' \
	--define '_unitdir /usr/lib/systemd/system' --define '_sysusersdir /usr/lib/sysusers.d' \
	--define 'systemd_post() true' --define 'systemd_preun() true' --define 'systemd_postun_with_restart() true' \
	packaging/rpm/dcpi.spec
parsed nix-instantiate nix-instantiate --parse packaging/nix/flake.nix
parsed dpkg-gencontrol dpkg-gencontrol -cpackaging/debian/control -lpackaging/debian/changelog -f"$work/files" \
	-pdcpi -O"$work/control"

# Debian: every package has what goes into it, each library its symbols, and they are those that it exports.
for package in libdbgdyn0:dbgdyn libsprofil0:sprofil libuvprof0:uvprof libopagent1:opagent; do
	library=${package#*:} package=${package%:*}
	grep -qx "Package: $package" packaging/debian/control || fail "no $package in debian/control"
	[ -s "packaging/debian/$package.install" ] || fail "nothing goes into $package"
	readelf --dyn-syms -W "$DCPI_LIB/lib$library.so" |
		awk '$5 ~ /GLOBAL|WEAK/ && $7 != "UND" { sub(/@.*/, "", $8); print $8 }' | LC_ALL=C sort -u >"$work/exports"
	sed -n 's/^ \([^@ ]*\)@.*/\1/p' "packaging/debian/$package.symbols" | LC_ALL=C sort -u | diff "$work/exports" - ||
		fail "$package.symbols has other symbols than the library"
done
bash -n packaging/debian/tests/main
awk '/^(Tests|Depends|Restrictions): ./ { n++ } END { exit n != 3 }' packaging/debian/tests/control || fail "tests/control"
