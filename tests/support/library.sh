# SPDX-License-Identifier: BSD-2-Clause
# Sourced by golden tests of shared libraries, which define "fail".

# links_libc_alone LIBRARY: a sanitizer's build has the sanitizer too; then programs need $sanitize.
links_libc_alone()
{
	local needed so
	needed=$(readelf -dW "$1" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
	[ -n "$needed" ] || fail "links nothing"
	sanitize=
	case $needed in *asan*) sanitize=-fsanitize=address,undefined ;; esac
	for so in $needed; do
		case $so in
		libc.so* | libc.musl* | ld-linux*) ;;
		libasan.so* | libubsan.so*) ;;
		*) fail "links $so" ;;
		esac
	done
}
