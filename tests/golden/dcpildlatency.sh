#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpildlatency: near and far, sums, what is not there.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
. "$DCPI_SRC/tests/support/values-db.sh"

{
	run dcpildlatency
	run dcpildlatency -far 1000 -no_header app
	run dcpildlatency -n 1 -no_header
	run dcpildlatency -json -n 1
	run dcpildlatency -db db
	run dcpildlatency nothing
	run dcpildlatency -n 0
} >out
compare dcpildlatency
