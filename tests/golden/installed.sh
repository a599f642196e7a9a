#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A copy installed elsewhere works from there: dcpid finds its helpers, the tools their names.
set -eu -o pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$DCPI_BUILD" --prefix "$work/there" >"$work/log" || { cat "$work/log"; exit 1; }
mv "$work/there" "$work/moved"
cat >"$work/stream" <<'END'
dcpi-replay 1
utc 1700000000
event cycles 65536
mmap pid=1 addr=0x1000 len=0x1000 id=0101010101 path=/bin/a
count pid=1 addr=0x1010 n=42
END

run() { $DCPI_EMULATOR "$work/moved/$1" "${@:2}"; }
run sbin/dcpid -quiet -replay "$work/stream" -platform test "$work/db"
run bin/dcpi prof -i -db "$work/db" -no_header >"$work/out" 2>/dev/null || :
cat "$work/out"
grep -q '^ *42 .*/bin/a$' "$work/out"
[ "$(readlink "$work/moved/bin/dcpiprof")" = dcpi ]
for helper in reader pseudoimg translate values; do
	[ -x "$work/moved/libexec/dcpi/dcpid-$helper" ]
done
[ ! -e "$DCPI_BIN/dcpid-step" ] || [ -x "$work/moved/libexec/dcpi/dcpid-step" ]
# Whoever finds a helper and tries it is told what it is.
for helper in reader translate values step; do
	[ -x "$work/moved/libexec/dcpi/dcpid-$helper" ] || continue
	status=0
	run "libexec/dcpi/dcpid-$helper" -help </dev/null 2>"$work/err" || status=$?
	cat "$work/err"
	[ $status = 2 ]
	grep -q "^dcpid-$helper: not for use by hand: dcpid starts it$" "$work/err"
done
rm "$work/moved/libexec/dcpi/dcpid-reader"
if run sbin/dcpid -quiet -replay "$work/stream" -platform other "$work/db" 2>"$work/err"; then
	echo "dcpid runs without its reader"
	exit 1
fi
cat "$work/err"
grep -q 'dcpid-reader' "$work/err"
grep -q '^hint: ' "$work/err"
