#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpivcat: files, the same added up from a database, JSON, files that are none.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
. "$DCPI_SRC/tests/support/values-db.sh"

# The profiles' files have names of their own, which hold no secret.
file() # IMAGE PROFILER
{
	"$DCPI_BIN/dcpivcat" values/*/box/* 2>/dev/null >/dev/null || :
	for f in values/*/box/*; do
		if "$DCPI_BIN/dcpivcat" "$f" 2>/dev/null | awk -v image="$1" -v name="$2" '
			$1 == "path" && index($2, image) { a = 1 }
			$1 == "profiler" && $2 == name { b = 1 }
			END { exit !(a && b) }'; then
			echo "$f"
		fi
	done
}
ln -s "$(file app/app values)" app.values
ln -s "$(file app/app values.arg0)" app.arg0
ln -s "$(file hi.box values)" hi.values
printf 'version 1\nsamples\n' >none
{
	run dcpivcat app.values hi.values
	run dcpivcat app.arg0
	run dcpivcat -image hi
	run dcpivcat -image app -profiler values.arg0 -json
	run dcpivcat -json none
	run dcpivcat none app.arg0
	run dcpivcat
	run dcpivcat -image app app.values
	run dcpivcat -profiler values app.values
	run dcpivcat -db values app.values
	run dcpivcat -epoch all app.values
	run dcpivcat -platform box app.values
	run dcpivcat -image nothing
	run dcpivcat -image app -profiler nothing
} >out
compare dcpivcat
