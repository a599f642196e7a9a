#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The JVM's agent from outside: what it exports and links, and that an installed copy finds libdbgdyn.
set -eu
lib=$DCPI_LIB/libdcpi-jvmti.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; exit 1; }
[ -f "$lib" ] || {
	echo "skip: built without the JVM's agent, as there were no JDK's headers"
	exit 77
}

readelf --dyn-syms -W "$lib" |
	awk '$5 == "GLOBAL" && $7 != "UND" && $4 == "FUNC" { sub(/@.*/, "", $8); print $8 }' |
	LC_ALL=C sort >"$work/exports"
printf '%s\n' Agent_OnAttach Agent_OnLoad | diff - "$work/exports" || fail "exported symbols differ"
for so in $(readelf -dW "$lib" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p'); do
	case $so in
	libdbgdyn.so.0 | libc.so* | ld-linux*) ;;
	libasan.so* | libubsan.so*) ;; # a sanitizer's build
	*) fail "links $so" ;;
	esac
done

cmake --install "$DCPI_BUILD" --prefix "$work/there" >"$work/log" || { cat "$work/log"; fail "install"; }
mv "$work/there" "$work/moved"
installed=$(find "$work/moved" -name libdcpi-jvmti.so)
[ "${installed%/dcpi/libdcpi-jvmti.so}" != "$installed" ] || fail "installed as '$installed'"
readelf -dW "$installed" >"$work/dynamic"
grep -q 'RUNPATH.*\[\$ORIGIN/\.\.\]' "$work/dynamic" || fail "looks for libdbgdyn elsewhere: $(cat "$work/dynamic")"
[ -f "${installed%/dcpi/*}/libdbgdyn.so.0" ] || fail "libdbgdyn is not where it looks"
