#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A client with the newest header, which has a routine in several ranges, and one with the header of 0.1, each with this
# library and this daemon. DCPI_OTHER is a build of another version (scripts/test --long versions COMMIT): then also this
# daemon with its library, and its daemon with this library. No sample is wrong, lost or unsure in any pair; a library that
# knows no parts passes over them: there only the client of 0.1 is run.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/truth.sh"
truth_programs='reuse_jit|parts_jit'
need_root
other=${DCPI_OTHER:-} here=$DCPI_BIN

# judge NAME WHAT
judge()
{
	judge_samples "$1"
	none_wrong "$2"
	sort_out "$2"
	at_most "$2: samples without a routine" "$lost" 0
	at_most "$2: unsure samples" "$unsure" $((5 + total / 100))
	at_most "$2: worst deviation, in standard deviations" "$(worst_sigma "$work/truth")" 4.5
	account_holds "$2"
}

# pair BIN LIB WHAT: the daemon of BIN beside clients with the library in LIB.
pair()
{
	DCPI_BIN=$1
	rm -rf "$db" "$work/log"
	start_daemon -unknown
	LD_LIBRARY_PATH=$2 "$tests/reuse_jit" -facility reuse -seconds 2 -routines 3 -turn 5 -retire >"$work/truth" 2>"$work/err" ||
		fail "$3: reuse_jit: $(cat "$work/err")"
	"$DCPI_BIN/dcpiflush" || fail "$3: dcpiflush"
	judge reuse "$3, a client of 0.1"
	[ "$2" = "$other/lib" ] || {
		: >"$work/log"
		LD_LIBRARY_PATH=$2 "$tests/parts_jit" 2 >"$work/truth" || fail "$3: parts_jit"
		"$DCPI_BIN/dcpiflush" || fail "$3: dcpiflush"
		judge parts "$3, the newest client"
		"$here/dcpilist" parts_0.cold parts >"$work/list" || fail "$3: dcpilist parts_0.cold"
		! "$here/dcpilist" parts_0 parts 2>&1 | grep procedures || fail "$3: parts_0 is not one procedure"
	}
	stop_daemon
}

tests=$here/../tests
pair "$here" "$here/../lib" "this version"
[ -z "$other" ] || {
	pair "$here" "$other/lib" "the other library"
	pair "$other/bin" "$here/../lib" "the other daemon"
}
