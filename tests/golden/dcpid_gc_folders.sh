#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpid -gc: files of kernels, costs of blocks, and copies of removed files that no epoch refers to.
set -eu
export LC_ALL=C TZ=UTC
work=$(mktemp -d)
trap 'kill $holder 2>/dev/null || :; rm -rf "$work"' EXIT
holder=
cd "$work"
tests=$DCPI_BIN/../tests
a=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
b=bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
c=cccccccccccccccccccccccccccccccccccccccc
d=dddddddddddddddddddddddddddddddddddddddd
e=eeeeeeeeeeeeeeee
f=ffffffffffffffffffffffffffffffffffffffff
removed=7777777777777777777777777777777777777777
replaced=1111111111111111111111111111111111111111

"$tests/mkdb" db </dev/null
mkdir -p db/costs db/dyn
"$tests/mkjob" db/dyn/jit.dyn >/dev/null <<-END
	image 62 jit 1 box /opt/jit
	run 0x7f0000001000 0 0x1000
	moved $replaced 0 0 0x1000
	routine 0x7f0000001040 r 89f8c3
END
"$tests/mkdb" db <<-END
	platform box
	symbol schedule 0x40 0x40
	kernel vmlinux-6.1-${a:0:20}.elf $a 0x1000
	symbol schedule 0x40 0x40
	kernel vmlinux-6.2-${b:0:20}.elf $b 0x1000
	symbol ext4_read 0x40 0x40
	kernel ext4.ko-${c:0:20}.elf $c 0x1000
	symbol fb_write 0 0x40
	kernel fb.ko-${f:0:20}.elf $f 0x40
	symbol probe 0 0x40
	kernel an_odd-name-$e.elf $e 0x40
	epoch 1700000000
	profile kernel vmlinux-6.1 db/kernel/vmlinux-6.1-${a:0:20}.elf
	event cpu-clock 1000000
	at 0x40 1
	profile file /tmp/removed.so
	id $removed
	event cpu-clock 1000000
	at 0x40 1
	profile dynamic jit.dyn
	event cpu-clock 1000000
	at 0x40 1
	values vp-test
	context ext4.ko $c
	context fb.ko 9999999999999999999999999999999999999999
	value 0x40 1 7 1 0x40
	finish
	epoch 1700000300
	profile kernel vmlinux-6.2 db/kernel/vmlinux-6.2-${b:0:20}.elf
	event cpu-clock 1000000
	at 0x40 1
	finish
END
echo code >db/kernel/vmlinux-6.2-${b:0:20}.code
echo text >db/kernel/vmlinux-6.2-${b:0:20}.text
echo vdso >db/kernel/vdso-${d:0:20}.so
echo half >"db/kernel/.tmp-1-0-vmlinux-6.2-${b:0:20}.code"
echo "of somebody else" >db/kernel/README
echo "of somebody else" >db/kernel/vmlinux-none.elf
for id in $a $replaced $d $e; do
	echo costs >db/costs/$id.cpu-clock
done
echo "of somebody else" >db/costs/README
# The names tell what they are copies of, and nothing else does.
for copy in $removed $removed-$a $f-$a; do
	cp db/dyn/jit.dyn db/dyn/$copy.file
done
echo "of somebody else" >db/dyn/library.file
touch -d 2023-11-14 db/dyn/* db/kernel/* db/kernel/.tmp* db/costs/*
touch -d "$(date -d '6 days ago' +%F)" db/costs/$d.cpu-clock # measured lately

run()
{
	local code=0
	echo "\$ dcpid $*"
	"$DCPI_BIN/dcpid" "$@" 2>err | sed -E 's/[0-9]+ bytes/N bytes/g' | LC_ALL=C sort || code=${PIPESTATUS[0]}
	sed -E 's/^/! /' err
	[ $code = 0 ] || echo "exit $code"
}
names() { (cd db && ls -A dyn kernel costs); }

set -o pipefail
{
	# Of a kernel whose code was written since a daemon's last flush everything stays.
	mkdir -p db/202311142300/box
	: >db/202311142300/box/.open
	touch -d 2023-11-15 db/202311142300/box/.open
	echo new >db/kernel/an_odd-name-$e.code
	flock db/.lock-box sleep 100 &
	holder=$!
	while flock -n db/.lock-box true; do sleep 0.01; done
	run -gc -n db
	kill $(ps -o pid= --ppid $holder) $holder 2>/dev/null || :
	wait $holder || :
	while ! flock -n db/.lock-box true; do sleep 0.01; done
	rm db/.lock-box
	# Where a quota is kept, that of pseudo-images, these stay.
	run -gc -n -quota 1 db
	# What cannot be read may be of any kernel, or of any image that costs were measured of.
	echo damaged >db/202311142213/box/x.kernel.$d
	run -gc -n db
	mv db/202311142213/box/x.kernel.$d db/202311142213/box/x.vdso.$d
	echo damaged >db/202311142213/box/y.file.$d
	run -gc -n db
	rm db/202311142213/box/x.vdso.$d
	run -gc -n db
	# Callers of values lie anywhere, in pseudo-images too.
	mv db/202311142213/box/y.file.$d db/202311142213/box/y.file.$d.vp-test.values
	run -gc -n db
	rm db/202311142213/box/y.file.$d.vp-test.values
	run -gc db
	names
	run -gc db
	# With their epochs.
	rm -r db/202311142213
	run -gc db
	names
} >out 2>&1
[ ! "${DCPI_UPDATE:-}" ] || cp out "$DCPI_SRC/tests/golden/dcpid_gc_folders.expected"
diff -u "$DCPI_SRC/tests/golden/dcpid_gc_folders.expected" out
