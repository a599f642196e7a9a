#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpicosts: costs from samples and counts of one run are kept, and dcpicalc uses them; again, they add up.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
{
	run dcpicosts "$app/app.xct"
	cat db/costs/*
	run dcpicalc hot app
	run dcpicosts "$app/app.xct"
	cat db/costs/*
	run dcpicosts app.c
	run dcpicosts -epoch 1 "$app/app.xct"
} >out
sed -i "s|$DCPI_SRC/||" out
compare dcpicosts
