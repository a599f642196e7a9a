#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpivarg: arguments of a program and of a routine whose process is gone, callers, blocks that do
# always the same, loads.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
. "$DCPI_SRC/tests/support/values-db.sh"

{
	run dcpivarg -arg_full app
	run dcpivarg -arg_full triple hi
	run dcpivarg -arg_terse -no_header app
	run dcpivarg -arg_terse -no_header hi
	run dcpivarg app
	run dcpivarg -ret_full -no_header hot app
	run dcpivarg -ret_full -no_header hi
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
	run dcpivarg nothing app
	run dcpivarg nothing
	run dcpivarg -db db app
} >out
compare dcpivarg
