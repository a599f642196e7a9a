#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpi: verbs are commands, a wrong one is answered with the nearest; a report that cannot be written
# is a failure.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

{
	run dcpi prof -no_header -keep 20
	run dcpi dcpiprof -no_header -keep 20
	run dcpi porf
	run dcpi dcpilits
	run dcpi something-else
	run dcpi -nonsense
} >out
compare dcpi

# Every command has help, options for completion and the text of its page, and is listed.
"$DCPI_BIN/dcpi" -help >help
commands=$(sed -n 's/^	X(\(dcpi[a-z0-9]*\),.*/\1/p' "$DCPI_SRC/tools/tools.h")
[ "$(echo "$commands" | wc -l)" -ge 8 ]
for c in $commands; do
	grep -q "^  $c " help || { echo "$c is not listed"; exit 1; }
	"$DCPI_BIN/dcpi" "$c" -help | grep -q "^usage: $c" || { echo "$c has no help"; exit 1; }
	"$DCPI_BIN/$c" -help-man | grep -q '^\.SH OPTIONS' || { echo "$c has no page"; exit 1; }
	"$DCPI_BIN/$c" -help-options | grep -qx -- -help || { echo "$c has no options"; exit 1; }
done
[ -w /dev/full ] || exit 0
for command in "dcpiprof" "dcpiprof -json" "dcpitopcounts -json" "dcpi -help"; do
	code=0
	"$DCPI_BIN"/$command >/dev/full 2>err || code=$?
	echo "${command%% *}: cannot write the output: No space left on device" >want
	grep 'cannot' err | diff want - || { echo "$command >/dev/full"; exit 1; }
	[ "$code" = 1 ] || { echo "$command >/dev/full exits $code"; exit 1; }
done
if "$DCPI_BIN/dcpiprof" >&- 2>err; then
	echo "no output, and no failure"
	exit 1
fi
grep -q "^dcpiprof: cannot write the output: Bad file descriptor" err
