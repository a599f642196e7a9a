#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Law 3: daemons killed by SIGKILL at random moments, half of them within a flush, while samples stream in
# from a replay (every fourth writes version 0.07): the database is always readable, nothing is counted
# twice, at most one flush interval is lost and named as a gap. Thirty of them; "scripts/test --long
# daemon-kills" asks for others (DCPI_FROM, DCPI_COUNT, DCPI_SEED), and adds up the line "sums:".
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
from=${DCPI_FROM:-0} count=${DCPI_COUNT:-30} at_once=4

# kills FROM COUNT: in a folder of their own.
kills()
{
	mkdir "$work/$1"
	"$DCPI_BIN/../tests/daemon_kills" "$DCPI_BIN/dcpid" "$work/$1" "${DCPI_SEED:-1}" "$1" "$2" || {
		tail -n 20 "$work/$1/log"
		return 1
	}
}

# Each of them does nothing most of the time. Of any number the last one does what is left.
status=0 pids=()
while [ "$at_once" -gt 0 ]; do
	part=$((count / at_once))
	[ $part = 0 ] || {
		kills "$from" $part &
		pids+=($!)
	}
	from=$((from + part)) count=$((count - part)) at_once=$((at_once - 1))
done
for pid in "${pids[@]}"; do
	wait "$pid" || status=1
done
exit $status
