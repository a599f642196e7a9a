#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Law 2: one address, two files in turn, as dlclose and dlopen may leave them. Each works in a slot of its
# own: no sample goes to the wrong one. Those of which it is not known are "ambiguous mapping".
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/slots.sh"
need_root
objects=("$DCPI_BUILD"/tests/remap_{0,1}.so)

# try SOURCE SECONDS MEAN: the samples of both objects, and what is not known, are the CPU time.
try()
{
	local source=$1 expected ambiguous
	start_daemon -rate 2000 "${@:4}"
	"$DCPI_BUILD/tests/remap" "$2" "$3" "${objects[@]}" >"$work/truth" || fail "remap"
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	account_holds "$source, turns of $3 ms"
	ambiguous=$(bucket "ambiguous mapping")
	: >"$work/slots"
	all=0
	for object in "${objects[@]}"; do
		read -r right wrong <<<"$(in_slots "$object")"
		[ "$wrong" = 0 ] || fail "$wrong samples of '$object' are not its own"
		all=$((all + right))
		echo "$source: $right samples of ${object##*/}"
	done
	expected=$(awk '{ sum += 2 * $2 } END { printf "%.0f\n", sum }' "$work/truth")
	echo "$source: $all told apart, $ambiguous ambiguous, $expected by its clock"
	within "samples of both" $((all + ambiguous)) "$expected" $((expected / 10))
	if [ "$source" = perf ]; then
		[ "$ambiguous" = 0 ] || fail "each sample has its time: none can be ambiguous"
		judge_slots "$work/truth" "${objects[@]}"
	fi
	stop_daemon
	rm -rf "$db"
}

try perf 4 10
try perf 4 200
