#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The Debian package: built, liked by lintian, installed into a copy of this machine that is thrown away, used
# there, removed, purged; and then nothing of it is left. DCPI_SYSTEM: a copy of that system, not of this machine;
# DCPI_DEBS: the packages, built already (tests/support/fresh.sh).
set -eu -o pipefail
fail()
{
	echo "FAILED: $*" >&2
	exit 1
}
[ "$(id -u)" = 0 ] || {
	echo "skip: needs root to install packages"
	exit 77
}
command -v dpkg >/dev/null || {
	echo "skip: no Debian system"
	exit 77
}

# The second half, in a mount namespace of its own: a tmpfs over everything takes what is written. No socket of a
# daemon outside is seen there.
if [ "${1:-}" = inside ]; then
	work=$2
	mount -t tmpfs tmpfs "$work/over"
	mkdir "$work/over/upper" "$work/over/work" "$work/root"
	mount -t overlay -o "lowerdir=${DCPI_SYSTEM:-/},upperdir=$work/over/upper,workdir=$work/over/work" overlay "$work/root"
	for dir in proc sys dev; do
		mount --rbind "/$dir" "$work/root/$dir"
	done
	mount -t tmpfs tmpfs "$work/root/run"
	mkdir -p "$work/root/root"
	cp "$work"/*.deb "$work/main" "$work/script" "$work/root/root/"
	exec chroot "$work/root" bash -eu /root/script
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
debs=${DCPI_DEBS:-$DCPI_BUILD/deb}
[ -n "${DCPI_DEBS:-}" ] || DEB_BUILD_OPTIONS=noautodbgsym "$DCPI_SRC/packaging/build-deb" "$debs"
cp "$debs"/*.deb "$DCPI_SRC/packaging/debian/tests/main" "$work"
version=$(sed -n 's/.*dcpi VERSION \([0-9.]*\).*/\1/p' "$DCPI_SRC/CMakeLists.txt")-1
[ -f "$work/dcpi_${version}_$(dpkg --print-architecture).deb" ] || fail "the package is not of version $version"

cat >"$work/script" <<'END'
fail()
{
	echo "FAILED: $*" >&2
	exit 1
}
# Names, and what accounts there are. Logs, caches and dpkg's own notes are for others to keep.
state()
{
	find /bin /boot /etc /lib* /opt /sbin /srv /usr /var -xdev \( -path /var/lib/dpkg -o -path /var/log \
		-o -path /var/cache -o -path /var/lib/systemd \) -prune -o -print |
		grep -vE '^/etc/(passwd|group|shadow|gshadow)-$|^/etc/\.pwd\.lock$|^/etc/ld\.so\.cache$' | sort
	sort /etc/passwd /etc/group
}
state >/tmp/before
# What the package asks of systemd, which does not run here.
mkdir -p /run/systemd/system /tmp/asked
printf '#!/bin/sh\necho "$*" >>/tmp/asked/list\n' >/tmp/asked/deb-systemd-invoke
chmod 755 /tmp/asked/deb-systemd-invoke
export PATH=/tmp/asked:$PATH
asked()
{
	touch /tmp/asked/list
	[ "$(cat /tmp/asked/list)" = "$1" ] || fail "$2: systemd was asked to '$(cat /tmp/asked/list)'"
	rm /tmp/asked/list
}
dpkg -i /root/*.deb >/tmp/dpkg 2>&1 || fail "dpkg -i: $(cat /tmp/dpkg)"
asked "start dcpid.service dcpiship.service" "installed" # which does not start what is not enabled, as seen below

# A user and a group, a service that is there but not enabled, a configuration.
getent passwd dcpi | grep -c ':/var/lib/dcpi:' >/dev/null || fail "no user dcpi"
getent group dcpi >/dev/null || fail "no group dcpi"
[ "$(SYSTEMD_OFFLINE=1 systemctl is-enabled dcpid.service)" = disabled ] || fail "the service is enabled"
dpkg-query -W -f '${Conffiles}\n' dcpi | grep -c ' /etc/dcpi/dcpid.json ' >/dev/null || fail "no configuration file"
systemd-analyze verify --man=no /lib/systemd/system/dcpid.service 2>&1 | tee /tmp/verify
[ ! -s /tmp/verify ] || fail "systemd-analyze verify"
man -w dcpid dcpid.json dbgdyn >/dev/null || fail "no pages"

# The guide's programs are there, and what it says builds them.
cc /usr/share/doc/libdbgdyn-dev/examples/jit/hello.c $(pkg-config --cflags --libs dbgdyn) -o /tmp/hello
DCPI_RUN=/tmp DCPI_QUEUE=/dcpi-none /tmp/hello 0.1 >/tmp/said || fail "hello: $(cat /tmp/said)"
[ -f /usr/share/doc/dcpi/docs/RUNTIMES.md.gz ] || fail "no guides"

# The main job of the packages, as autopkgtest would run it.
/root/main >/tmp/said 2>&1 || fail "the main job: $(cat /tmp/said)"

# As the unit would run it. The copy shares the machine's processes, so it samples.
install -d -o dcpi -g dcpi /var/lib/dcpi /run/dcpi
sets=$(sed -n 's/^AmbientCapabilities=//p' /lib/systemd/system/dcpid.service | tr 'A-Z' 'a-z' | sed 's/cap_/+/g; s/ /,/g')
export DCPI_QUEUE=/dcpi-test-$$
setpriv --reuid=dcpi --regid=dcpi --init-groups --no-new-privs --inh-caps="-all,$sets" --ambient-caps="-all,$sets" \
	--bounding-set="-all,$sets" dcpid -config /etc/dcpi/dcpid.json 2>/tmp/log &
daemon=$!
for i in $(seq 120); do
	! dcpictl status >/tmp/status 2>&1 || break
	sleep 0.5
done
grep -q '^database  */var/lib/dcpi$' /tmp/status || { kill $daemon; fail "$(cat /tmp/status /tmp/log)"; }
timeout 1 sh -c 'while :; do :; done' || :
# As for another copy's: nothing is taken from under a daemon that runs.
/var/lib/dpkg/info/dcpi.postrm purge 2>/tmp/said || fail "postrm: $(cat /tmp/said)"
grep -q 'dcpid that is running: .* stay$' /tmp/said || fail "does not say what stays: $(cat /tmp/said)"
[ -d /var/lib/dcpi/dyn ] && [ -S /run/dcpi/control ] || fail "purged what is in use"
getent passwd dcpi >/dev/null || fail "purged the user of a daemon"
dcpictl quit
wait $daemon || fail "dcpid ended with $?: $(cat /tmp/log)"
dcpiprof -db /var/lib/dcpi -i -no_header 2>/dev/null | grep total || fail "nothing was sampled"
[ "$(stat -c %U /var/lib/dcpi/dyn)" = dcpi ] || fail "the database is not dcpi's"

# Another command's to remove, which is named.
! dcpiuninstall 2>/tmp/log || fail "dcpiuninstall removes a package"
grep -q '^hint: .*apt-get remove dcpi$' /tmp/log || fail "dcpiuninstall: $(cat /tmp/log)"

# Another release: a service that ran runs on, as the new one.
dpkg -i /root/dcpi_*.deb >/tmp/dpkg 2>&1 || fail "dpkg -i again: $(cat /tmp/dpkg)"
asked "restart dcpid.service dcpiship.service" "upgraded"

# Removed: the service ends, what was configured and sampled stays. Purged: nothing does.
dpkg -r dcpi >/tmp/dpkg 2>&1 || fail "dpkg -r: $(cat /tmp/dpkg)"
asked "stop dcpid.service dcpiship.service" "removed"
[ -f /etc/dcpi/dcpid.json ] && [ -d /var/lib/dcpi/dyn ] || fail "removal took too much"
packages="dcpi libdbgdyn-dev libdbgdyn0 libopagent1 libsprofil0 libuvprof0"
dpkg -P $packages >/tmp/dpkg 2>&1 || fail "dpkg -P: $(cat /tmp/dpkg)"
state >/tmp/after
diff /tmp/before /tmp/after || fail "not everything is gone"
! dpkg-query -W $packages 2>/dev/null | grep . || fail "dpkg remembers the packages"
echo "installed, used, purged: $(wc -l </tmp/after) names as before"
END
mkdir "$work/over"
unshare -m -n bash "$0" inside "$work"
[ -z "$(getent passwd dcpi)" ] || fail "the user dcpi is on the real system"
