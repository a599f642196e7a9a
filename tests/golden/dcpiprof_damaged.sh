#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpiprof and dcpilist on a database with a damaged profile, a cut pseudo-image, an epoch still
# open, hostile names: one line for each, exit code not 0, all other samples there.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

"$mkdb" db <<-END
	platform other
	epoch 1700000000
	profile file /opt/app/other $app/app
	event cpu-clock 1000000
	at hot 5
	profile named $(printf 'bad\033[31m')
	event cpu-clock 1000000
	at 0 2
END
{
	run dcpiprof -platform other
	"$DCPI_BIN/dcpiprof" -json -platform other | grep -A 3 epochs
	echo
	profile=$(echo db/202311142213/box/idle*)
	cp "$profile" saved
	head -c 40 saved >"$profile"
	run dcpiprof -no_header -keep 30 | sed "s,'[^']*idle[^']*','IDLE',"
	cp saved "$profile"
	mv db/dyn/hi.box.1.dyn whole
	head -c 3000 whole >db/dyn/hi.box.1.dyn
	run dcpiprof hi.box.1.dyn
	run dcpiprof -no_header hi app # it may be the facility's
	run dcpiprof -no_header app
	run dcpilist triple hi.box.1.dyn
	rm db/dyn/hi.box.1.dyn
	run dcpiprof -no_header -keep 30
	cp whole db/dyn/another-name.dyn
	run dcpiprof -no_header hi
	mkdir empty
	run dcpiprof -db empty
	run dcpiprof -db nowhere
	run dcpiprof -db whole
} >out
compare dcpiprof_damaged
