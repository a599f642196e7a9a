#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Files of version 0.07 that a daemon writes say where each program's text is, and how large: as readelf does, of one
# that is linked to a fixed address as well, and the same by dcpicat from version 1.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
command -v cc >/dev/null && command -v readelf >/dev/null || {
	echo "skip: no cc or readelf"
	exit 77
}

echo 'int main(void) { for (volatile unsigned n = 0; n < 400000000; n++) ; return 0; }' >"$work/spin.c"
cc -O1 -no-pie -Wl,--build-id=sha1 -o "$work/fixed" "$work/spin.c"
cc -O1 -pie -fPIE -Wl,--build-id=none -o "$work/moves" "$work/spin.c"

# text FILE: "tstart tsize", as its program headers have them.
text()
{
	local type offset address physical size rest start='' sum=0
	while read -r type offset address physical size rest; do
		case "$type $rest" in "LOAD "*E*) ;; *) continue ;; esac
		start=${start:-$(printf '0x%x' $((address - offset)))}
		sum=$((sum + size))
	done < <(readelf -lW "$1")
	echo "$start $sum"
}

# of_profile FILE: the same, of a profile's header.
of_profile() { awk '$1 == "tstart" || $1 == "tsize" { at[$1] = $2 } /^samples/ { exit } END { print at["tstart"], at["tsize"] }' "$1"; }

start_daemon -format 0.07
"$work/fixed" &
"$work/moves"
wait $!
stop_daemon
for name in fixed moves; do
	file=$(find "$db" -name "$name.file.*+cpu-clock")
	[ -n "$file" ] || fail "no profile of $name"
	want=$(text "$work/$name") is=$(of_profile "$file")
	echo "$name: $is"
	[ "$is" = "$want" ] || fail "$name has its text at $want"
done
