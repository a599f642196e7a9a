#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpiscan: a map of what lies around, files that are no images among it; and images found by it.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
unset DCPI_DEBUG_PATH
here=$(pwd -P)

# mapped ARGUMENT …: as run, with this folder's name left out.
mapped() { run "$@" | sed "s|$here|HERE|g"; }

mkdir -p moved/deep
cp "$app/app" moved/deep/prog
cp "$app/app" moved/again
cp "$app/app" "moved/two
lines"
echo text >moved/text
: >moved/empty
head -c 600 "$app/app" >moved/cut
mkfifo moved/fifo
ln -s deep/prog moved/link
{
	mapped dcpiscan moved
	mapped dcpiscan -o app.map moved/deep
	cat app.map | sed "s|$here|HERE|g"
	mapped dcpiscan -json moved/deep
	mapped dcpiprof -no_header /opt/app/app
	mapped dcpiprof -no_header -m app.map /opt/app/app
	# It is not there any more, and another file is in its place: the map is not believed.
	cp "$app/app.c" moved/deep/prog
	mapped dcpiprof -no_header -m app.map /opt/app/app
	mapped dcpiscan -m app.map moved/again
	rm "moved/two
lines"
	mapped dcpiscan
	mapped dcpiscan no_such_folder
	printf 'dcpi-map 1\nnonsense\n' >bad.map
	mapped dcpiprof -m bad.map
	printf 'dcpi-map 2\n' >bad.map
	mapped dcpiprof -m bad.map
	printf 'dcpi-map 1\n0123 /bin/x' >bad.map
	mapped dcpiscan -m bad.map
	mapped dcpiscan -o no/such/folder moved
} >out
compare dcpiscan
