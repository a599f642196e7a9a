#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# -caller: of all samples those that a procedure called.
set -eu
. "$DCPI_SRC/tests/support/paths-db.sh"

{
	run dcpiprof -unchecked -caller warm
	run dcpiprof -unchecked -no_header -caller outer -event cpu-clock
	run dcpiprof -unchecked -no_header -caller 'square(int)' -caller entry -i
	run dcpiprof -unchecked -json -caller 'square(int)' -caller entry -event cpu-clock app
	run dcpilist -unchecked -caller outer -event cpu-clock -no_freq hot
	run dcpitopcounts -unchecked -caller fib -event cpu-clock -n 4
	echo "# what cannot be"
	run dcpiprof -unchecked -caller hot
	run dcpiprof -unchecked -caller nobody
	run dcpiprof -unchecked -caller warm -total
	run dcpilist -unchecked -caller warm -db db hot
} >out
compare caller
