#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpitop's tables of a second of samples, which a daemon has from a file.
set -eu
. "$DCPI_SRC/tests/support/paths-db.sh"
. "$DCPI_SRC/tests/support/whose-db.sh"
. "$DCPI_SRC/tests/support/fake-daemon.sh"
export LC_ALL=C.UTF-8 TZ=UTC
cat >answers <<-END
	{"status": [{"ok": true, "database": "$work/whose"}],
	 "watch": [{"ok": true, "all": true}]}
END
answer_from answers whose/*/box/workloads

{
	run dcpitop -batch 1
	run dcpitop -batch 1 -i -idle
	run dcpitop -batch 1 -by thread
	run dcpitop -batch 1 -by uid -event imiss
	run dcpitop -batch 1 -comm app -thread two
	run dcpitop -batch 1 -json -comm app
	run dcpitop -batch 1 -json -by comm -idle
	run dcpitop -batch 1 -json -i -comm none
	run dcpitop -batch 1 -comm none
	echo "# what cannot be"
	run dcpitop -batch 1 -event dmiss
	run dcpitop -batch 1 -by colour
	run dcpitop -batch 1 -by uid -i
	run dcpitop -json
	run dcpitop
	run dcpitop -run none -batch 1
	echo "# asked"
	sort asked | uniq -c
} >out
compare dcpitop
