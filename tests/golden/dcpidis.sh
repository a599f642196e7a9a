#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpidis: whole images and parts of them: a program with DWARF, a stripped library, a pseudo-image,
# code in which symbols lie; what is no image.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
unset DCPIDB
cp "$app/app" "$DCPI_SRC/tests/data/stripped/libapp.so" .
{
	run dcpidis app
	run dcpidis -source -bytes app hot
	run dcpidis libapp.so
	run dcpidis -no_header -source -bytes db/dyn/hi.box.1.dyn
	run dcpidis -no_header app helper 0x400127 0x400127..0x40012e
	run dcpidis -no_header libapp.so 0x2e5..0x2f0 hot@plt
	run dcpidis -json libapp.so 0x2e7..0x2ec warm@plt
	run dcpidis -json -source db/dyn/hi.box.1.dyn leaf
	run dcpidis -no_header app hoot
	run dcpidis app 0x1
	run dcpidis app 0x400116..0x400116
	run dcpidis app 0x1..0x2
	run dcpidis app 400116..400120
	run dcpidis db/dcpi-database
	run dcpidis nothing
	head -c 3000 app >cut
	run dcpidis cut
	run dcpidis
	for machine in aarch64 riscv64; do
		echo "# stubs of $machine"
		"$DCPI_BIN/dcpidis" -no_header "$DCPI_SRC/tests/data/strip/stubs-$machine.so" |
			awk '/:$/ { name = $1; next } name { print name, $1; name = "" }'
	done
} >out
compare dcpidis

# All of it is there, in order, and JSON has the same instructions.
for image in app libapp.so db/dyn/hi.box.1.dyn; do
	"$DCPI_BIN/dcpidis" -no_header "$image" | sed -n 's/^  \(0x[0-9a-f]*\)  /\1 /p' >text
	"$DCPI_BIN/dcpidis" -json "$image" |
		awk -F'"' '$2 == "address" && /^      / { at = $4 } $2 == "text" { print at, $4 }' >json
	[ -s text ] || { echo "$image has no instructions"; exit 1; }
	diff text json
	sort -c -u text
done
