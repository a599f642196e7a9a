#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# calc -dump: every function; each line starts where the one before it ends, the first at +0000; as many
# bytes in all as it says; two runs are the same.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
calc=$DCPI_BIN/calc
$calc -dump "$DCPI_SRC/examples/jit/calc/demo.calc" >"$work/one"
$calc -dump "$DCPI_SRC/examples/jit/calc/demo.calc" >"$work/two"
cmp "$work/one" "$work/two"

awk '
function done() {
	if (name && name !~ /^calc:/ && nr != want) {
		print name ": " nr " bytes, not " want
		bad = 1
	}
}
/^[^ ]/ { done(); name = $1; sub(":$", "", name); want = $2; nr = 0; functions[name] = 1; next }
$1 ~ /^\+/ {
	if ($1 != sprintf("+%04x", nr)) {
		print name ": line at " $1 " after " nr " bytes"
		bad = 1
	}
	nr += NF - 3
}
END {
	done()
	nr_wanted = split("random escape mandelbrot sieve matrix gravity by_value sort fib main", w)
	for (i = 1; i <= nr_wanted; i++) {
		if (!(w[i] in functions)) {
			print "no function " w[i]
			bad = 1
		}
	}
	exit bad
}' "$work/one"
