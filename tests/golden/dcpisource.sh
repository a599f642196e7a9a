#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpisource: lines of what dcpiflow printed, from where they are; a graph without source stays as it
# is, byte for byte; what is no graph is refused.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
"$DCPI_BIN/dcpiflow" hot app >hot.graph
"$DCPI_BIN/dcpiflow" triple >triple.graph
sed 1d triple.graph | cat hot.graph - >two.graph
"$DCPI_BIN/dcpiflow" hot "$DCPI_SRC/tests/data/stripped/libapp.so" | sed "s|$DCPI_SRC/||" >bare.graph
mkdir away

{
	run dcpisource two.graph
	run dcpisource -json hot.graph
	run dcpisource bare.graph
	mv app.c away
	run dcpisource hot.graph
	run dcpisource -src away/app.c hot.graph
	run dcpisource -src away/none.c hot.graph
	run dcpisource -src gone/app.c hot.graph
	sed 's/samples 50/samples 51/' hot.graph >wrong.graph
	run dcpisource wrong.graph
	run dcpisource away/app.c
	# Code of two lines alike: the first of them, in the file wherever it is.
	sed 's/^; FILE 0 .*/& lines 3-4/' triple.graph >lines.graph
	run dcpisource lines.graph | grep '|'
	mv triple.hi away
	run dcpisource -src away/triple.hi lines.graph | grep '|'
	mv away/triple.hi .
} >out
compare dcpisource
"$DCPI_BIN/dcpisource" hot.graph | cmp - hot.graph
mv away/app.c .
"$DCPI_BIN/dcpisource" <hot.graph >once
"$DCPI_BIN/dcpisource" once | cmp - once
