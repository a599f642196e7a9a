#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# fresh.sh RELEASE FOLDER (root): what a packager does, in minimal systems of that Debian (bookworm, trixie) which are made in
# FOLDER and kept there for the next time. In one with what the packages ask for to be built: the packages twice, in two
# paths, without a warning, the same bytes, judged by that release's lintian. In one with what they ask for to run:
# installed, used, removed, purged, by tests/system/package.sh.
set -eu -o pipefail
release=${1:?release} folder=${2:?folder}
cd "$(dirname "$0")/../.."
source=$PWD
. scripts/packages.sh
fail()
{
	echo "FAILED: $release: $*" >&2
	exit 1
}
need_packages mmdebstrap debian-archive-keyring util-linux
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources 2>/dev/null | sed -n 's/^URIs: *\([^ ]*\).*/\1/p
	s/^deb .*\(http[^ ]*debian\) .*/\1/p' | sed -n 1p) || :
[ -n "$mirror" ] || fail "no mirror of Debian's in apt's sources"

# made NAME HOOK PACKAGE…: a system, whole or not at all; HOOK is run in it, where apt still has a network.
made()
{
	local name=$1 hook=$2 root=$folder/$release-$1
	shift 2
	[ ! -d "$root" ] || return 0
	rm -rf "$root.new"
	mmdebstrap --quiet --mode=root --variant=minbase --include="$(echo "$*" | tr ' ' ',')" \
		--setup-hook="cp -r '$folder/dcpi' \"\$1/dcpi\"" --customize-hook="chroot \"\$1\" sh -c '$hook'" \
		"$release" "$root.new" "$mirror" || fail "cannot make a system"
	rm -rf "$root.new/dcpi"
	mv "$root.new" "$root"
}

# inside ROOT COMMAND…: in that system, without a network.
inside()
{
	local root=$1
	shift
	unshare -m -n bash -eu -c 'root=$1
		shift
		for dir in proc sys dev; do
			mount --rbind "/$dir" "$root/$dir"
		done
		mount -t tmpfs tmpfs "$root/run"
		exec chroot "$root" "$@"' bash "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"
}

# The tree as a packager has it: the tarball's files, and debian/ where Debian expects it.
rm -rf "$folder/dcpi"
mkdir "$folder/dcpi"
git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$folder/dcpi"
cp -r "$folder/dcpi/packaging/debian" "$folder/dcpi/debian"

began=$SECONDS
made build 'apt-get -qq -y --no-install-recommends build-dep /dcpi' build-essential dpkg-dev lintian
depends=$(sed -n '/^Depends:/,/^[^ ]/p' packaging/debian/tests/control | sed -n 's/^Depends: *//p' | tr -d , | tr ' ' '\n' |
	grep -vE '^(dcpi|libdbgdyn-dev)$' | tr '\n' ' ')
echo "$release: a system to build in, $((SECONDS - began)) s"

# ---- built ----------------------------------------------------------------------------------------
root=$folder/$release-build
for path in one another-longer-name; do
	rm -rf "${root:?}/$path"
	mkdir "$root/$path"
	cp -r "$folder/dcpi" "$root/$path/dcpi"
	began=$SECONDS
	inside "$root" sh -c "cd /$path/dcpi && DEB_BUILD_OPTIONS=noautodbgsym nice dpkg-buildpackage -us -uc -b -j$(nproc)" \
		>"$folder/$release.log" 2>&1 || { tail -n 40 "$folder/$release.log" && fail "cannot be built"; }
	# Of compilers and CMake: debhelper's variables are not ours, nor what Debian diverts, of which dpkg-shlibdeps warns.
	! grep -E '\[-W[a-z]|CMake Warning (at|\(dev)|lto-wrapper: warning' "$folder/$release.log" || fail "is built with warnings"
	rm -rf "$root/$path/dcpi"
	echo "$release: built in /$path by $(inside "$root" gcc -dumpfullversion) in $((SECONDS - began)) s"
done
for deb in "$root"/one/*.deb; do
	cmp "$deb" "$root/another-longer-name/${deb##*/}" || fail "${deb##*/} differs by the path that it is built in"
done
echo "$release: $(ls "$root"/one/*.deb | wc -l) packages are the same from both paths"
inside "$root" sh -c 'lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs /one/*.changes' ||
	fail "lintian has something to say"

# ---- installed ------------------------------------------------------------------------------------
# What the packages depend on, all but themselves: it is there before, as the comparison of names asks.
needs=$(for deb in "$root"/one/*.deb; do dpkg-deb -f "$deb" Depends; done | tr ',' '\n' | sed 's/^ *//; s/[ |(].*//' | sort -u |
	grep -vE '^(dcpi|libdbgdyn|libsprofil|libuvprof|libopagent)' | paste -sd, -)
echo "$release: the packages need $needs"
began=$SECONDS
made run "apt-get -qq -y --no-install-recommends satisfy \"$needs\"" systemd man-db $depends
echo "$release: a system to run in, $((SECONDS - began)) s"
DCPI_SRC=$source DCPI_SYSTEM=$folder/$release-run DCPI_DEBS=$root/one bash tests/system/package.sh ||
	fail "installed, used and purged"
