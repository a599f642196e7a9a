#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Options from a file: the command line holds before it, and what is wrong in it has its line.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >stream <<'END'
dcpi-replay 1
utc 1700000000
event cycles 65536
mmap pid=1 addr=0x1000 len=0x1000 id=0101010101 path=/bin/a
count pid=1 addr=0x1010 n=42
END
dcpid() { "$DCPI_BIN/dcpid" "$@"; }
exec >out 2>&1

echo '{ "database": "db", "platform": "file", "quiet": true }' >good.json
dcpid -config good.json -replay stream
dcpid -config good.json -replay stream -platform line
dcpid -config good.json -replay stream other
ls -d db/2*/* other/2*/*

refused()
{
	local status=0
	dcpid -config "$1" -replay stream db || status=$?
	echo "status $status"
}
# What is of the service alone hinders no replay.
echo '{ "database": "db", "event": "cycles", "source": "perf", "quiet": true }' >service.json
dcpid -config service.json -replay stream -platform service
# The packaged one is read; a replay begins no epoch by itself.
dcpid -config "$DCPI_SRC/packaging/dcpid.json" -quiet -replay stream -platform packaged db
dcpid -epoch_every 1h -replay stream db || echo "status $?"
echo '{ "epoch_every": "90s" }' >every.json
refused every.json
echo '{ "epoch_every": 1 }' >number.json
refused number.json
printf '{\n  "database": "db",\n  "plattform": "x"\n}\n' >misspelt.json
refused misspelt.json
printf '{\n  "rate": 0\n}\n' >limits.json
refused limits.json
printf '{\n  "rate": 100,\n' >cut.json
refused cut.json
echo '{ "replay": "stream" }' >place.json
refused place.json
echo '{ "quiet": true, "verbose": true }' >both.json
refused both.json
refused none.json
refused .
echo '{ "rate": 100, "event": "tick" }' >tick.json
refused tick.json
# Another event than the file's has no use for its rate.
echo '{ "rate": 100, "event": "cycles" }' >rate.json
dcpid -config rate.json -event tick || echo "status $?"
# Waits need call paths, and a source that has them.
echo '{ "wait": true, "callpaths": 0 }' >wait.json
dcpid -config wait.json db || echo "status $?"
dcpid -wait -source perf db || echo "status $?"
dcpid -wait -replay stream db || echo "status $?"
echo '{}' >empty.json
dcpid -config empty.json || echo "status $?"

exec >&2
[ ! "${DCPI_UPDATE:-}" ] || cp out "$DCPI_SRC/tests/golden/dcpid_config.expected"
diff -u "$DCPI_SRC/tests/golden/dcpid_config.expected" out
