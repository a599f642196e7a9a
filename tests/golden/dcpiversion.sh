#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# What is the same everywhere: the release is the project's, and every row is there, in text and in JSON.
set -eu
run() { "$DCPI_BIN/dcpiversion" "$@"; }
text=$(run) json=$(run -json) version=$(run -version)
release=$(sed -n 's/.*dcpi VERSION \([0-9.]*\).*/\1/p' "$DCPI_SRC/CMakeLists.txt")
echo "$text" | head -n 1 | grep -qxF "dcpiversion (DCPI) $release"
case $version in
"dcpiversion (DCPI) $release" | "dcpiversion (DCPI) $release, revision "[0-9a-z]*) ;;
*)
	echo "-version prints '$version'"
	exit 1
	;;
esac
echo "$json" | grep -q "\"release\": *\"$release\""
for row in revision compiler system distribution processors; do
	echo "$text" | grep -Eq "^$row +[^ ]" || { echo "no $row: $text"; exit 1; }
	echo "$json" | grep -Eq "\"$row\": *\"" || { echo "no $row: $json"; exit 1; }
done
echo "$text" | grep -qE "^system +Linux "
code=0
run extra 2>/dev/null || code=$?
[ "$code" = 2 ]
