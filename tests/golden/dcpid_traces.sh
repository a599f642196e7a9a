#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Options of windows, values and call paths that do not go together, or make no sense: nothing begins.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
dcpid() { "$DCPI_BIN/dcpid" "$@" db || echo "status $?"; }
exec 3>&2 >out 2>&1

for options in '-vkernel -vwindows 0' -vcontext '-vstep 1' '-vwindows 5 -vstep 1' '-vwindows -1' '-vprof -vwindows 0' '-vwindows 5 -replay x' '-vprof -source perf' \
	'-callpaths 8 -replay x' '-callpaths 8 -source perf' '-vreplay -replay x' '-vtrace vp-classic.so' '-vtrace ./vp-classic.so -vprof'; do
	echo "# $options"
	dcpid $options
done
echo '{ "vtrace": [ "/a.so", "b.so" ] }' >dcpid.json
echo '# the same in a file'
dcpid -config dcpid.json
ls -A

exec 2>&3
[ ! "${DCPI_UPDATE:-}" ] || cp out "$DCPI_SRC/tests/golden/dcpid_traces.expected"
diff -u "$DCPI_SRC/tests/golden/dcpid_traces.expected" out >&2
