#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Samples of excluded images and processes are not stored, and counted: 42 of b and 300 of processes 2 to 3.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >stream <<'END'
dcpi-replay 1
utc 1700000000
event cycles 65536
mmap pid=1 addr=0x1000 len=0x1000 id=0101010101 path=/bin/a
mmap pid=1 addr=0x3000 len=0x1000 id=0202020202 path=/bin/b
mmap pid=2 addr=0x1000 len=0x1000 id=0101010101 path=/bin/a
count pid=1 addr=0x1010 n=7
count pid=1 addr=0x3010 n=42
count pid=2 addr=0x1010 n=100
count pid=3 addr=0x5010 n=200
count pid=4 addr=0x5010 n=3
END
dcpid() { "$DCPI_BIN/dcpid" "$@"; }
rows() { "$DCPI_BIN/dcpi" prof -i -no_header -db "$1" 2>/dev/null || echo "status $?"; }
exec 3>&2 >out 2>&1

printf '# for the test\nb\nPID 2-3\n' >exclusions
dcpid -exclusions exclusions -replay stream -platform test one
rows one

# Beside the configuration; and all of it.
mkdir etc
echo '{ "quiet": true, "platform": "test", "database": "two" }' >etc/dcpid.json
printf 'a\nb\nPID 1-4\n' >etc/exclusions
dcpid -config etc/dcpid.json -replay stream
rows two
dcpid -config etc/dcpid.json -exclusions /dev/null -replay stream three || echo "status $?"
: >empty
dcpid -config etc/dcpid.json -exclusions empty -replay stream three
rows three

echo 'PID 7-' >bad
dcpid -exclusions bad -replay stream four || echo "status $?"
dcpid -exclusions none -replay stream four || echo "status $?"
[ ! -e four ]

exec 2>&3
[ ! "${DCPI_UPDATE:-}" ] || cp out "$DCPI_SRC/tests/golden/dcpid_exclusions.expected"
diff -u "$DCPI_SRC/tests/golden/dcpid_exclusions.expected" out >&2
