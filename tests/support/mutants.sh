#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Makes a copy of the tree in build-dev/long/mutants and runs mutants.py on it. Root's file systems are
# read-only meanwhile, but for the copy and /tmp, as a changed line may delete anything.
#   mutants.sh [COUNT [PATH…]]
set -euo pipefail
cd "$(dirname "$0")/../.."
copy=$PWD/build-dev/long/mutants
mkdir -p "$copy"
git ls-files -z --cached --others --exclude-standard |
	while IFS= read -r -d '' f; do [ ! -e "$f" ] || printf '%s\0' "$f"; done |
	tar -c --null -T - | tar -x -C "$copy"
[ ! -f "$copy/changed" ] || touch "$copy/$(cat "$copy/changed")" # a run was killed there
for preset in dev asan; do
	(cd "$copy" && cmake --preset $preset >/dev/null && cmake --build build-$preset >build.log) ||
		{ tail -n 40 "$copy/build.log" >&2; exit 1; }
done
rm -f "$copy/changed"
run=(python3 "$copy/tests/support/mutants.py" "$copy" "$@")
[ $# -gt 0 ] || run+=(200)
if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
	exec unshare --mount bash -c 'mount --bind "$1" "$1" && mount --bind /tmp /tmp && mount -o remount,bind,ro / && cd "$1" &&
		shift && exec "$@"' bash "$copy" "${run[@]}"
fi
exec "${run[@]}"
