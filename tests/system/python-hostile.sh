#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A program that claims to be CPython, with frames that lie: work is bounded, paths end with a name, nothing is lost, and
# what is true is told.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
[ "$(uname -m)" = x86_64 ] || { echo "skip: CPython is known on x86-64 alone"; exit 77; }

gcc -O1 -rdynamic -pthread -D_GNU_SOURCE -o "$work/liar" "$DCPI_SRC/tests/support/hostile_python.c"
start_daemon -rate 1000 -callpaths 1
for try in 1 2 3; do
	"$work/liar" 0.7 >/dev/null
	"$DCPI_BIN/dcpictl" flush >/dev/null
	"$DCPI_BIN/dcpictl" status >"$work/status"
	"$DCPI_BIN/dcpicalltree" -cut 0 -image "$work/liar" >"$work/tree" 2>/dev/null
	if grep -q '(cut)' "$work/tree" && grep -q '(stack unreadable)' "$work/tree" && grep -q ' liar.f ' "$work/tree"; then
		break
	fi
	[ $try -lt 3 ] || { head -40 "$work/tree" >&2; fail "paths do not end as they should"; }
done
sed -n '/^call paths/,/^workloads/p' "$work/status"
awk '/^call paths/ { gsub(/,|;/, ""); exit !($4 > 2000 && $4 == $6 + $8 + $10) }' "$work/status" ||
	fail "the account of call paths"
stop_daemon
