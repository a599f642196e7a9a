#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpildlatency: near and far, sums, what is not there and what is not told.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
. "$DCPI_SRC/tests/support/values-db.sh"

# All of one instruction's loads are told of, of the other's some: 10 ns and 2.5 us.
{
	printf 'platform box\nepoch 1700000000\nprofile file /opt/app/app %s\nevent cpu-clock 1000000\n' "$app/app"
	printf 'values vp-ldlatency\nvalue warm+28 1000 10\n'
	for i in $(seq 1000); do echo "value warm+29 1 $((2000 + i))"; done
} | "$mkdb" unannounced

{
	run dcpildlatency
	run dcpildlatency -far 1000 -no_header app
	run dcpildlatency -n 1 -no_header
	run dcpildlatency -json -n 1
	run dcpildlatency -db db
	run dcpildlatency nothing
	run dcpildlatency -n 0
} >out
compare dcpildlatency

# What the instructions took comes to the total, whatever part of them is told of.
for n in 1 2; do
	"$DCPI_BIN/dcpildlatency" -db unannounced -n $n -no_header | awk '
		{ ns = $1 * $2; time = $6 + 0 }
		/ total$/ { total = ns; next }
		{ sum += ns; times += time }
		END { exit !(NR == 3 && times > 99.7 && times < 100.3 && sum > total * 0.99 && sum < total * 1.01) }'
done
