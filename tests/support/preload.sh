# SPDX-License-Identifier: BSD-2-Clause
# Sourced by tests in which a program that is none of ours loads a library of ours. In a sanitizer's build that
# wants the sanitizer to be there first.

# set_hosting: the variables that it wants, for env, to the array hosting.
set_hosting()
{
	local first=
	case $(readelf -dW "$DCPI_LIB/libdbgdyn.so") in
	*libasan.so*) first=$(gcc -print-file-name=libasan.so) ;;
	esac
	hosting=("LD_PRELOAD=$first" "ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS:-}" "LD_LIBRARY_PATH=$DCPI_LIB")
}

# hosted COMMAND…: run it so.
hosted()
{
	local hosting
	set_hosting
	env "${hosting[@]}" "$@"
}
