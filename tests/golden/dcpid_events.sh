#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpid: wrong texts of events are explained before anything is touched.
set -eu
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

run()
{
	local status=0
	echo "\$ $*"
	"$DCPI_BIN/dcpid" "$@" 2>&1 || status=$?
	echo "exit $status"
}

{
	run -source perf -event cycels db
	run -source perf -event cycles -t cycels db
	run -source perf -event cycles:x db
	run -source perf -event cycles -event cycles:1000 db
	run -source perf -event cycles+ db
	run -source perf -event '' db
	run -source perf -event cpu-clock:p db
	run -source perf -slot cpu-clock -slot 'page-faults+tick:5' db
	run -event cycles -slot instructions db
	run -event tick -rate 50 db
	run -list-events db
	run -check db
	run -list-events -check
	run -check -source perf
	run -list-events -event cycles
	run -check -database db
	ls
} >out
[ ! "${DCPI_UPDATE:-}" ] || cp out "$DCPI_SRC/tests/golden/dcpid_events.expected"
diff -u "$DCPI_SRC/tests/golden/dcpid_events.expected" out
