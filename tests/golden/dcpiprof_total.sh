#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpiprof -total: beside the samples of each procedure or image those that it is on the call path of.
set -eu
. "$DCPI_SRC/tests/support/paths-db.sh"

{
	run dcpiprof -unchecked -total
	run dcpiprof -unchecked -total -s total -no_header
	run dcpiprof -unchecked -total -s total -keep 30 -event cpu-clock jit
	run dcpiprof -unchecked -total -i -event cpu-clock
	run dcpiprof -unchecked -total -csl -event cpu-clock app
	run dcpiprof -unchecked -total -json -event cpu-clock vmlinux-6.1.0
	echo "# what cannot be"
	run dcpiprof -unchecked -total -pids
	run dcpiprof -s total
	run dcpiprof -unchecked -total -label none
	run dcpiprof -unchecked -total -db db
} >out
compare dcpiprof_total
