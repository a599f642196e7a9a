#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpivlst, and dcpilist with values: of a program, of a routine whose process is gone, of all
# procedures; cut ones; sums; what may not be read.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
. "$DCPI_SRC/tests/support/values-db.sh"

# Of 30 samples 10 are of the chosen minute, and the values are of the epoch.
"$mkdb" minutes <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	at hot+17 30
	values values
	value hot+17 100 3
	workload app comm=app exe=/opt/app/app
	w app cpu-clock 0 20 hot+17@app
	w app cpu-clock 3 10 hot+17@app
	finish
END

{
	run dcpivlst hot app
	run dcpilist -asm -vprof -no_freq hot app
	run dcpilist -both -vprof -vcutoff 41 -no_header hot app
	run dcpivlst -vshow 1 -no_header triple
	run dcpivlst -vconcise -no_header triple
	run dcpivlst -allprocs -no_freq app
	run dcpivlst -json triple
	run dcpivlst -allprocs -json hi >all
	grep -c '"schema": *"dcpilist/1"' all
	run dcpivlst -vtrace "$DCPI_LIB/vp-addr.so" -no_header warm app | sed "s,$DCPI_LIB,LIB,"
	run dcpivlst -vtrace vp-addr.so warm app
	run dcpivlst -vtrace /nowhere/vp-addr.so warm app
	run dcpivlst hot vmlinux
	run dcpivlst -source hot app
	run dcpivlst -vprof -vreplay hot app
	run dcpivlst -vreplay hot app
	run dcpivlst -label x hot app
	run dcpilist -vconcise hot app
	run dcpilist -vcutoff 0 hot app
	run dcpilist -asm -vshow 8 hot app
	run dcpivlst hot app triple
	run dcpivlst -db db hot app
	TZ=UTC run dcpivlst -db minutes -no_freq -since '2023-11-14 22:15' -until '2023-11-14 22:20' hot app
	TZ=UTC run dcpilist -db minutes -no_freq -asm -since '2023-11-14 22:15' -until '2023-11-14 22:20' hot app
} >out
compare dcpivlst

# The rows' vtot come to the total.
"$DCPI_BIN/dcpivlst" -no_header -no_freq -vshow 1 -vcutoff 100 hot app 2>/dev/null | awk '
	/ total / { total = $NF; next }
	match($0, /  +[0-9]+  +[0-9]+ +[0-9]+ +[a-z]+:/) { split(substr($0, RSTART), f); sum += f[1] }
	END { exit !(total == 2140 && sum == 2140) }'

# Somebody else sees that there are values, and none of them; of the code that was all his, his.
as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
chmod 755 .
if [ "$(id -u)" = 0 ] && "${as[@]}" test -x "$DCPI_BIN/dcpi"; then
	"${as[@]}" "$DCPI_BIN/dcpivlst" -json hot app >json 2>err
	grep -q '"unreadable_files":[12]' json
	grep -q 'warning: ' err
	grep -q '^hint: ' err
	[ "$(grep -c '"values":null' json)" = 13 ]
	grep -q '"cpu-clock":50' json
fi
