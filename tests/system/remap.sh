#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Law 2: one address, two files in turn, as dlclose and dlopen may leave them. No sample goes to the wrong
# one; those of which it is not known are "ambiguous mapping".
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/slots.sh"
need_root
objects=("$DCPI_BUILD"/tests/remap_{0,1}.so)
rate=2000

# none_too_many: no object has more samples than its own time gives, in either half of its work.
none_too_many()
{
	awk -v rate=$rate '
		NR == FNR { expected[$1] = $2 * rate / 2000; next }
		{
			reach = 5 * sqrt(expected[$1]) + expected[$1] / 20
			printf "%s: %d in its slot, %d shared, %.0f each by its clock\n", $1, $2, $3, expected[$1]
			bad += $2 > expected[$1] + reach || $3 > expected[$1] + reach
		}
		END { exit bad }' "$work/truth" "$work/slots" || fail "an object has samples of another"
}

# try SOURCE SECONDS MEAN OPTION…: the samples of both objects, and what is not known, are the CPU time.
try()
{
	local expected ambiguous
	start_daemon -unknown -rate $rate -source "$1" "${@:4}"
	"$DCPI_BUILD/tests/remap" "$2" "$3" "${objects[@]}" >"$work/truth" || fail "remap"
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	account_holds "$1, turns of $3 ms"
	count_slots "${objects[@]}"
	none_too_many
	ambiguous=$(told "ambiguous mapping" remap)
	expected=$(awk -v rate=$rate '{ sum += rate / 1000 * $2 } END { printf "%.0f\n", sum }' "$work/truth")
	echo "$1: $all told apart, $ambiguous ambiguous, $expected by its clock"
	within "samples of both" $((all + ambiguous)) "$expected" $((expected / 10 + $(missed)))
	if [ "$1" = perf ]; then
		[ "$ambiguous" = 0 ] || fail "each sample has its time: none can be ambiguous"
		judge_slots "$work/truth"
	elif [ "$3" -gt 500 ]; then
		[ "$all" -gt $((expected / 2)) ] || fail "less than half is told apart"
	fi
	stop_daemon
	rm -rf "$db" "$work/log"
}

try perf 2 10
try perf 3 200
# Nothing can be told apart, or much.
try bpf 2 10
try bpf 6 700 -drain 500

# Before them stood code that its runtime told of by a jitdump, which knows no word for its end: what it gets
# is its own time, and no object less than its own. (Each of them has 5 standard deviations, and 5 % besides.)
start_daemon -unknown -rate $rate -drain 200
"$DCPI_BUILD/tests/remap" -jitdump "$work" 1.5 500 "${objects[@]}" >"$work/truth" || fail "remap -jitdump"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
account_holds "after code that was told of"
count_slots "${objects[@]}"
none_too_many
got=$("$DCPI_BIN/dcpiprof" remap | awk 'NF > 1 && $(NF - 1) == "told" { print $1 }')
expected=$(awk -v rate=$rate '$1 == "told" { printf "%.0f\n", rate / 1000 * $2 }' "$work/truth")
within "samples of what was told" "${got:-0}" "$expected" $((expected / 5 + $(missed)))
expected=$(awk -v rate=$rate '{ sum += rate / 1000 * $2 } END { printf "%.0f\n", sum }' "$work/truth")
ambiguous=$(told "ambiguous mapping" remap)
within "samples of all" $((got + all + ambiguous)) "$expected" $((expected / 10 + $(missed)))
[ "$all" -gt $((expected / 3)) ] || fail "the files that came in its place have $all samples"
stop_daemon
rm -rf "$db" "$work/log"

# Files alone again, whose build-id the kernel does not tell (or that have none): what is mapped when the
# daemon looks is another file half of the time.
unnamed=()
for object in "${objects[@]}"; do
	objcopy --remove-section .note.gnu.build-id "$object" "$work/${object##*/}" || fail "objcopy"
	unnamed+=("$work/${object##*/}")
done
objects=("${unnamed[@]}")
try perf 2 5 -drain 100
try bpf 3 500 -drain 100
