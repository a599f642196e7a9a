#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# scripts/dist makes the same tarball twice, of all that git has and nothing else, in a folder of its name. A tree that
# was unpacked from it makes no tarball, and says why.
set -eu -o pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail()
{
	echo "FAILED: $*" >&2
	exit 1
}
cd "$work"
export GIT_CEILING_DIRECTORIES=$work GIT_CONFIG_GLOBAL=/dev/null
# A small repository in the place of ours: where this is built there may be none.
mkdir -p tree/scripts
cp "$DCPI_SRC/scripts/dist" tree/scripts
cp "$DCPI_SRC/CMakeLists.txt" tree
echo text >tree/file
! tree/scripts/dist out 2>said || fail "made a tarball of no repository"
grep -q 'no git repository' said || fail "does not say why: $(cat said)"
git init -q tree
git -C tree add .
git -C tree -c user.name=x -c user.email=x@example.com commit -q -m first
echo other >tree/untracked
(umask 077 && tree/scripts/dist "$work/one" >said)
name=$(basename "$(cat said)" .tar.xz)
[ "$name" = "dcpi-$(sed -n 's/^project(dcpi VERSION \([0-9.]*\).*/\1/p' tree/CMakeLists.txt)" ] || fail "named '$name'"
touch tree/file
TZ=Asia/Tokyo tree/scripts/dist "$work/two" >/dev/null
cmp "one/$name.tar.xz" "two/$name.tar.xz" || fail "the second one differs"
(cd one && sha256sum -c "$name.tar.xz.sha256" >/dev/null) || fail "its checksum is another"
tar -tJf "one/$name.tar.xz" | sed "s|^$name/||" | LC_ALL=C sort | tr '\n' ' ' >list
[ "$(cat list)" = " CMakeLists.txt file scripts/ scripts/dist " ] || fail "it holds '$(cat list)'"
tar --numeric-owner -tvJf "one/$name.tar.xz" | awk '$2 != "0/0" { bad = 1 } END { exit bad }' || fail "it names an owner"
echo changed >>tree/file
tree/scripts/dist "$work/three" 2>said >/dev/null
grep -q 'uncommitted changes are left out' said || fail "does not tell of changes"
cmp "one/$name.tar.xz" "three/$name.tar.xz" || fail "takes what is not committed"
