#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpivarg: arguments of a program and of a routine whose process is gone, callers, blocks that do
# always the same, loads.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
. "$DCPI_SRC/tests/support/values-db.sh"

# An argument that is another one each time.
{
	printf 'platform box\nepoch 1700000000\nprofile file /opt/app/app %s\nevent cpu-clock 1000000\nat hot+17 50\n' "$app/app"
	printf 'values values.arg0\n'
	for i in $(seq 200); do echo "value hot 1 $((1000 + 3 * i))"; done
} | "$mkdb" many

# Calls from an image that is gone: nobody knows their addresses.
"$mkdb" gone <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	at hot+17 50
	values values.arg0
	context /opt/gone/lib.so ffffffffffffffffffffffffffffffffffffffff
	value hot 60 5 1 0x147
	value hot 40 5 1 0x150
	profile file /opt/gone/lib.so $app/app
	id ffffffffffffffffffffffffffffffffffffffff
	event cpu-clock 1000000
	at 0x140 2
END

{
	run dcpivarg -arg_full app
	run dcpivarg -arg_full triple hi
	run dcpivarg -arg_terse -no_header app
	run dcpivarg -arg_terse -no_header hi
	run dcpivarg -db many -arg_terse -no_header app
	run dcpivarg app
	run dcpivarg -ret_full -no_header hot app
	run dcpivarg -ret_full -no_header hi
	run dcpivarg -db gone -ret_full -no_header hot app
	"$DCPI_BIN/dcpivarg" -db gone -json hot app 2>/dev/null >json
	sed -n '/"callers"/,/^      \]/p' json
	echo
	run dcpivarg -ret_save -no_header hot app
	run dcpivarg -inv_blocks -no_header hi
	run dcpivarg -inv_blocks -no_header app
	run dcpivarg -inv_blocks app
	run dcpivarg -top_loads -no_header app
	run dcpivarg -arg_full -json triple hi
	run dcpivarg -json hot app
	run dcpivarg -inv_blocks -json hi
	run dcpivarg -arg_full -ret_full app
	run dcpivarg -top_loads hot app
	run dcpivarg -top_loads -n 1 -vshow 1 -no_header app
	run dcpivarg -n 20 app
	run dcpivarg -vshow 8 app
	run dcpivarg -ret_full -vconcise app
	run dcpivarg -arg_terse -vcutoff 1 app
	run dcpivarg -arg_terse -vconcise -vshow 1 app
	run dcpivarg -arg_terse -vconcise -no_header hot app
	run dcpivarg nothing app
	run dcpivarg nothing
	run dcpivarg -db db app
} >out
compare dcpivarg

# Each of those values came once in 200 times, though what is kept looks like three times in a hundred:
# no share of them is told, in text or JSON.
"$DCPI_BIN/dcpivarg" -db many -arg_full -json app >json
[ "$(grep -c '"percent":' json)" -gt 8 ]
[ "$(grep -c '"percent":' json)" = "$(grep -c '"percent":null' json)" ]
