# SPDX-License-Identifier: BSD-2-Clause
# Sourced by tests that compare lib/insn with objdump. Runs in $work.

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# compare NAME: "out" against the golden text.
compare()
{
	if [ "${DCPI_UPDATE:-}" ]; then
		cp out "$DCPI_SRC/tests/golden/$1.expected"
	fi
	diff -u "$DCPI_SRC/tests/golden/$1.expected" out
}

# agree FILE [all]: in the functions that its symbols name, or wherever objdump finds code.
agree()
{
	echo "$1:"
	if [ "${2:-}" = all ]; then
		objdump -d -w "$1" | "$DCPI_BIN/../tests/objdump_agree"
		return
	fi
	readelf -W --dyn-syms "$1" |
		awk '$4 == "FUNC" && $3 > 0 && $7 != "UND" { printf "%s %x\n", $2, $3 }' >bounds
	objdump -d -w "$1" | "$DCPI_BIN/../tests/objdump_agree" bounds
}
