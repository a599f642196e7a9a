#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# One test in an emulated machine: boots a kernel of Debian's under QEMU, without KVM, network or disk; its RAM disk
# holds our programs, the libraries that these need, a static bash and busybox, and the tests. usage: run.sh ARCH NAME
# The test is NAME.sh of this folder; the line "# machine: WORD…" of it says on what it runs:
#   aarch64, x86-64   architectures
#   newest            with the newest kernel that the release has, not its usual one
#   of-SUITE          with the kernel of another suite of Debian's (of-sid: the newest of all)
#   exact             one CPU that executes an instruction each nanosecond of its own time: two boots are the same
#   two-cpus          two CPUs whose time is the host's; all others have one that executes an instruction each 8 ns of its
#                     own time, however busy the host is
#   twice             two boots, whose /out must be equal
#   systemd           systemd is the first process, and the test a unit of it
#   back              the tools of this machine print of its database (/out/db) what its own did (images, listing)
# "# programs: NAME…" which of build/tests it needs, and "# shows: ARCH N, …" for which of these it stands (scripts/test
# --long machine counts them):
#   aarch64 1  N events at period P give N / P samples     x86-64 1  the main job of scripts/demo
#           2  each instruction of a loop has its share            2  code at one address in turn
#           3  what is lost while interrupts are off               3  instruction traces
#           4  more events than counters                           4  values
#           5  two boots leave the same                            5  the tick
#           6  the main job of scripts/demo                        6  what -check says is what dcpid(8) has
# Its files of /out are then in build-machine/ARCH/NAME. Exit status: that of the test.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
. scripts/packages.sh
arch=$1 name=$2 top=$PWD
programs=$(sed -n 's/^# programs: //p' tests/machine/*.sh)
words=" $(sed -n 's/^# machine: //p' "tests/machine/$name.sh") "
case $arch in
aarch64) debian=arm64 build=$top/build-aarch64 tests=$top/build-aarch64/tests
	triplet=aarch64-linux-gnu strip=aarch64-linux-gnu-strip ;;
x86-64) debian=amd64 build=$top/build tests=$top/build-dev/tests
	triplet=x86_64-linux-gnu strip=strip ;;
esac
state=$top/build-machine/$arch
out=$state/$name
mkdir -p "$state"

has() { [[ $words == *" $1 "* ]]; }
# kernel_package: the name of the image package without signatures' or flavours' variants.
kernel_package()
{
	local meta=linux-image-cloud-$debian
	! has newest || meta=$(apt-cache search --names-only "^linux-image-[0-9.]+-cloud-$debian\$" |
		cut -d' ' -f1 | grep -E '^linux-image-[0-9]+\.[0-9]+-' | sort -V | tail -n 1)
	apt-cache depends "${meta:-linux-image-cloud-$debian}:$debian" | sed -n 's/^ *Depends: //p' | head -n 1
}

# need_image: the files of the kernel's package, in $kernel.
need_image()
{
	local package suite=
	[[ $words != *" of-"* ]] || suite=$(sed -E 's/.* of-([a-z]+) .*/\1/' <<<"$words")
	if [ -n "$suite" ]; then
		kernel=$state/kernel-of-$suite
		need_kernel "$kernel" "$debian" "$suite"
	else
		package=$(kernel_package)
		kernel=$state/${package%:*}
		need_unpacked "$kernel" "$package"
	fi
}

# libraries PROGRAM…: the libraries that these need, and the loader, go into $root/lib.
libraries()
{
	local file library from todo=("$@")
	while [ ${#todo[@]} -gt 0 ]; do
		file=${todo[0]}
		todo=("${todo[@]:1}")
		for library in $(readelf -dlW "$file" 2>/dev/null |
			sed -nE 's/.*NEEDED.*\[(.*)\]/\1/p; s/.*interpreter: .*\/(.*)\]/\1/p'); do
			[ ! -e "$root/lib/$library" ] || continue
			for from in "$build/lib" "/usr/$triplet/lib" "/lib/$triplet" "/usr/lib/$triplet" "/usr/lib/$triplet/systemd" /lib/systemd; do
				if [ -e "$from/$library" ]; then
					cp "$from/$library" "$root/lib/$library"
					todo+=("$root/lib/$library")
					break
				fi
			done
		done
	done
}

# make_root FOLDER: all but the kernel.
make_root()
{
	local root=$1 static=$state/userland program
	need_unpacked "$static" "busybox-static:$debian" "bash-static:$debian" "mawk:$debian"
	rm -rf "$root"
	mkdir -p "$root"/{bin/examples,lib,dev,proc,sys,etc,root,var/tmp,src/tests,test,tests}
	ln -s lib "$root/lib64"
	cp "$static/bin/busybox" "$root/bin"
	cp "$static/bin/bash-static" "$root/bin/bash"
	cp "$static/usr/bin/mawk" "$root/bin/awk" # busybox's cannot compute square roots
	cp -P "$build"/bin/dcpi* "$build/bin/calc" "$root/bin"
	cp "$build"/bin/examples/{hello,dst} "$root/bin/examples"
	for program in $programs; do
		[ ! -f "$tests/$program" ] || cp "$tests/$program" "$root/tests"
	done
	cp -P "$build"/lib/lib{dbgdyn,dcpirun}.so* "$root/lib"
	libraries "$root"/bin/* "$root"/bin/examples/* "$root"/lib/*.so "$root"/tests/*
	$strip --strip-debug "$root"/bin/dcpi* "$root"/lib/*
	cp -r tests/support tests/system "$root/src/tests"
	cp SECURITY.md "$root/src"
	mkdir -p "$root/src/examples/jit/calc" "$root/src/man"
	cp man/dcpid.8.in "$root/src/man"
	cp examples/jit/calc/demo.calc "$root/src/examples/jit/calc"
	cp tests/machine/*.sh "$root/test"
	cp tests/machine/init "$root/init"
	chmod 755 "$root/init"
	echo root:x:0:0:root:/root:/bin/sh >"$root/etc/passwd"
	echo nobody:x:65534:65534:nobody:/:/bin/sh >>"$root/etc/passwd"
	echo dcpi:x:990:990:dcpi:/var/lib/dcpi:/bin/sh >>"$root/etc/passwd"
	echo dcpi:x:990: >"$root/etc/group"
}

# make_systemd FOLDER: what systemd needs beside that, and dcpid's unit as it is installed, but for its paths.
make_systemd()
{
	local root=$1 target
	rm -rf "$root"
	mkdir -p "$root"/{bin,lib/systemd/system,etc/dcpi}
	cp /lib/systemd/systemd "$root/lib/systemd"
	cp "$(command -v systemctl)" "$root/bin"
	libraries "$root/lib/systemd/systemd" "$root/bin/systemctl"
	for target in sysinit basic shutdown; do
		printf '[Unit]\nDescription=%s\nDefaultDependencies=no\n' $target >"$root/lib/systemd/system/$target.target"
	done
	cat >"$root/lib/systemd/system/test.service" <<-'EOF'
		[Unit]
		Description=The test
		DefaultDependencies=no
		[Service]
		Type=oneshot
		EnvironmentFile=/etc/test
		ExecStart=/init
		StandardOutput=file:/dev/console
	EOF
	sed 's|^ExecStart=[^ ]* -config [^ ]*|ExecStart=/bin/dcpid -config /etc/dcpi/dcpid.json|' \
		"$build/packaging/dcpid.service" >"$root/lib/systemd/system/dcpid.service"
	cp packaging/dcpid.json "$root/etc/dcpi"
}

# boot FOLDER: its console is in FOLDER.console.
boot()
{
	local kernel qemu=() append="loglevel=4 panic=-1 TEST=$name.sh" disk=$state/initrd
	need_image
	case $arch in
	aarch64) qemu=(qemu-system-aarch64 -M "virt,gic-version=3,dtb-randomness=off" -cpu cortex-a57) append+=" console=ttyAMA0" ;;
	x86-64) qemu=(qemu-system-x86_64 -M q35 -cpu max) append+=" console=ttyS0" ;;
	esac
	if has systemd; then
		append+=" SYSTEMD=1 systemd.show_status=no"
		disk=$state/initrd-systemd
		make_systemd "$state/systemd"
		(cat "$state/initrd" && cd "$state/systemd" && find . | cpio -o -H newc --quiet | gzip -1) >"$disk"
	fi
	if has exact; then
		qemu+=(-icount "shift=0,sleep=off" -rtc "base=2026-01-01,clock=vm" -seed 1)
		append+=" nokaslr"
	elif has two-cpus; then
		qemu+=(-smp 2)
	else
		qemu+=(-icount "shift=3,sleep=off")
	fi
	timeout 900 "${qemu[@]}" -accel tcg -m 3072 -nodefaults -no-reboot -display none -monitor none -serial stdio \
		-kernel "$(find "$kernel" -name 'vmlinuz*' -type f)" -initrd "$disk" -append "$append" </dev/null >"$1.console" || :
	rm -rf "$1"
	mkdir "$1"
	sed -n '/^== out ==/,/^== end ==/p' "$1.console" | tr -d '\r' | sed '1d;$d' | base64 -d 2>/dev/null |
		tar -xzf - -C "$1" 2>/dev/null || { tail -n 30 "$1.console"; echo "the machine said no more within 900 s"; return 1; }
}

# read_back: a database of another machine, and perhaps another architecture.
read_back()
{
	local tools=$top/build-dev/bin
	"$tools/dcpiprof" -db "$out/db" -i -no_header 2>/dev/null | diff "$out/images" - &&
		"$tools/dcpilist" -db "$out/db" -asm -no_header escape "$(cat "$out/image")" | diff "$out/listing" - &&
		echo "read here: $(grep -c . "$out/images") images, $(grep -c . "$out/listing") instructions, as there"
}

exec 9>"$state/lock"
flock 9
[[ $words == *" $arch "* ]] || { echo "skip: $name is not for $arch"; exit 77; }
# Not every program is for each architecture.
here=$(for program in $programs; do [ ! -f "$tests/$program" ] || echo "$tests/$program"; done)
if [ ! -f "$state/initrd" ] || [ -n "$(find tests/machine tests/support tests/system "$build/bin" "$build"/lib/*.so* \
	examples/jit/calc/demo.calc man/dcpid.8.in SECURITY.md $here -newer "$state/initrd")" ]; then
	make_root "$state/root"
	(cd "$state/root" && find . | cpio -o -H newc --quiet | gzip -1) >"$state/initrd.new"
	mv "$state/initrd.new" "$state/initrd"
fi
boot "$out"
cat "$out/log"
status=$(cat "$out/status")
if has twice && [ "$status" = 0 ]; then
	boot "$out-again"
	diff -r "$out" "$out-again" && echo "two boots left the same" || status=1
fi
if has back && [ "$status" = 0 ]; then
	read_back || status=1
fi
exit "$status"
