#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A user's file carries the build-id of a program that root has installed, but other code, and runs first:
# neither is shown for the other, in the first epoch, after a restart and in all epochs together. A user's
# copy of equal code stays one with the program.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/forge.sh"
need_root
program=/usr/lib/dcpi-build-ids-$$
at_end 'rm -rf "$program"'
mkdir -m 755 "$program"
chmod 755 "$work"
install -m 755 "$DCPI_BUILD/tests/run_work" "$program/honest"
mkdir -m 777 "$work/user"

as_user() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }

as_user cp "$program/honest" "$work/user/copy"
as_user cp "$program/honest" "$work/user/forged"
forge_code "$work/user/forged"
cmp -s "$program/honest" "$work/user/forged" && fail "the forged file is none"

# samples FILE [OPTION…]: of that image alone.
samples()
{
	local file=$1
	shift
	"$DCPI_BIN/dcpiprof" -i -no_header "$@" 2>"$work/said" | awk -v f="$file" '$NF == f { n += $1 } END { print n + 0 }'
}

start_daemon
as_user "$work/user/forged" threads 2 >/dev/null
"$program/honest" threads 1 >/dev/null
as_user "$work/user/copy" threads 1 >/dev/null
"$DCPI_BIN/dcpictl" flush >/dev/null
forged=$(samples "$work/user/forged")
honest=$(samples "$program/honest")
echo "forged $forged, honest and its copy $honest"
[ "$forged" -ge 1200 ] && [ "$forged" -le 2500 ] || fail "of the forged file: $forged"
[ "$honest" -ge 1200 ] && [ "$honest" -le 2500 ] || fail "of the honest one and its copy: $honest"
[ "$(samples "$work/user/copy")" = 0 ] || fail "the copy is apart"
grep -q "kept apart from" "$work/said" || fail "nothing is said: $(cat "$work/said")"
stop_daemon

# The next daemon meets them in the other order, and keeps to it.
start_daemon -epoch
"$program/honest" threads 1 >/dev/null
as_user "$work/user/forged" threads 1 >/dev/null
"$DCPI_BIN/dcpictl" flush >/dev/null
[ "$(samples "$work/user/forged" -epoch all)" -gt "$forged" ] || fail "the forged file, after a restart"
[ "$(samples "$program/honest" -epoch all)" -gt "$honest" ] || fail "the honest one, after a restart"
total=$(($(samples "$work/user/forged" -epoch all) + $(samples "$program/honest" -epoch all)))
echo "in all epochs $total"
[ "$total" -le 7500 ] || fail "samples are counted twice"
stop_daemon
