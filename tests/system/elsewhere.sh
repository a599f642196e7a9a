#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The JIT gone, the daemon killed by SIGKILL, the database copied elsewhere and the original removed: an
# unprivileged user who may read the copy gets the same answers.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root


# ask DATABASE COMMAND…: the reports, by the command's user.
ask()
{
	local from=$1
	shift
	for report in "dcpiprof" "dcpiprof -i" "dcpiprof -json" "dcpiprof hello" "dcpilist -both sixty" \
		"dcpilist -asm -json thirty"; do
		echo "--- $report"
		"$@" "$DCPI_BIN/"$report -db "$from" || fail "$report on $from"
	done | sed "s|$from|DB|"
}

start_daemon
"$DCPI_BIN/examples/hello" 1 >/dev/null || fail "hello"
"$DCPI_BIN/dcpictl" flush || fail "flush"
kill -KILL "$daemon"
while kill -0 "$daemon" 2>/dev/null; do sleep 0.05; done
daemon=

ask "$db" env >"$work/before"
grep -q '^ .*sixty  *hello\[[0-9]*\]$' "$work/before" || fail "sixty is not in the profile"
grep -q 'decq\|jne' "$work/before" || fail "sixty is not disassembled"

mkdir "$work/there"
cp -R "$db" "$work/there/copy"
rm -rf "$db" "$work/run"
chmod 755 "$work"
chown -R 65534:65534 "$work/there"
ask "$work/there/copy" setpriv --reuid 65534 --regid 65534 --clear-groups >"$work/after"
diff "$work/before" "$work/after" || fail "the copy answers otherwise"
echo "$(grep -c . "$work/after") lines are the same"
