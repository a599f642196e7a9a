#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpid -gc: what no epoch refers to goes, be it by its own build-id, one that it replaces, or its
# name; and what beside a daemon may yet be referred to stays.
set -eu
export LC_ALL=C TZ=UTC
work=$(mktemp -d)
trap 'kill $holder 2>/dev/null || :; rm -rf "$work"' EXIT
holder=
cd "$work"
tests=$DCPI_BIN/../tests
replaced=1111111111111111111111111111111111111111

# image NAME [RECORD]: with a routine of its own, so that its build-id is.
nr=0
image()
{
	nr=$((nr + 1))
	"$tests/mkjob" "db/dyn/$1" >/dev/null <<-END
		image 62 jit $nr box /opt/jit
		run 0x7f0000001000 0 0x1000
		${2:-}
		routine 0x7f0000001040 r$nr 89f8c3
	END
	touch -d "2023-11-14 22:00:$(printf %02d $nr)" "db/dyn/$1"
}

"$tests/mkdb" db </dev/null
image used.dyn
image first.dyn
image grown.dyn "moved $replaced 0 0 0x1000"
image folded.dyn "moved 2222222222222222222222222222222222222222 0x40 0x40 0x40"
image second.dyn
image alone.dyn
image named.dyn
image caller.dyn
image called_from.dyn "moved 5555555555555555555555555555555555555555 0 0 0x1000"
image valued.dyn
image further.dyn
mkdir db/dyn/folder.dyn
echo no ELF >db/dyn/damaged.dyn
touch -d "2023-11-14 21:00" db/dyn/damaged.dyn
: >db/dyn/.tmp-1-0-cut.dyn
touch -d "2023-11-14 21:00" db/dyn/.tmp-1-0-cut.dyn
echo of somebody else >db/dyn/README
"$tests/mkdb" db <<-END
	platform box
	epoch 1700000000
	profile dynamic used.dyn
	event cpu-clock 1000000
	at 0x40 1
	values vp-test
	context caller.dyn 4444444444444444444444444444444444444444
	context before.dyn 5555555555555555555555555555555555555555
	value 0x40 1 7 1 0x40
	profile dynamic valued.dyn
	event cpu-clock 1000000
	values vp-test
	value 0x40 1 7
	profile dynamic long-ago.dyn db/dyn/used.dyn
	id $replaced
	event cpu-clock 1000000
	at 0x40 2
	profile dynamic gone.dyn db/dyn/used.dyn
	id 2222222222222222222222222222222222222222
	event cpu-clock 1000000
	at 0x40 4
	profile dynamic named.dyn
	path /elsewhere/further.dyn
	id 3333333333333333333333333333333333333333
	event cpu-clock 1000000
	at 0x40 8
	finish
	epoch 1700000300
	profile dynamic alone.dyn
	event cpu-clock 1000000
	at 0x40 16
	finish
END

rm db/202311142213/box/valued.dyn.dynamic # its values are left

# run ARGUMENT…: sizes differ from machine to machine.
run()
{
	local code=0
	echo "\$ dcpid $*"
	"$DCPI_BIN/dcpid" "$@" 2>err | sed -E 's/[0-9]+ bytes/N bytes/g' || code=${PIPESTATUS[0]}
	sed -E 's/^/! /; s/[0-9]+ bytes/N bytes/' err
	[ $code = 0 ] || echo "exit $code"
}
total() { "$DCPI_BIN/dcpiprof" -db db -epoch all -no_header 2>/dev/null | awk '$NF == "total" { print $1 }'; }
names() { echo "# dyn/: $(cd db/dyn && echo * .tmp*)"; }

before=$(total)
set -o pipefail
{
	run -gc -n db
	names
	# A profile that cannot be read might refer to anything.
	echo damaged >db/202311142213/box/x.file.dyn.dynamic
	run -gc db
	rm db/202311142213/box/x.file.dyn.dynamic
	names

	# Beside a daemon whose last flush was before "second" was written. What it finished does not count.
	touch -d "2023-11-14 20:00" db/202311142213/box/.commit
	mkdir -p db/202311142300/box
	: >db/202311142300/box/.open
	touch -d "2023-11-14 22:00:05" db/202311142300/box/.open
	flock db/.lock-box sleep 100 &
	holder=$!
	while flock -n db/.lock-box true; do sleep 0.01; done
	run -gc -n db
	kill $(ps -o pid= --ppid $holder) $holder 2>/dev/null || : # the one ends with the other
	wait $holder || :
	while ! flock -n db/.lock-box true; do sleep 0.01; done
	rm db/.lock-box # as its owner does
	# It was killed: what it wrote last nothing will refer to.
	run -gc db
	names
	run -gc db

	rm -r db/202311142218 # as its user does, to be rid of it
	run -gc db
	# The oldest go, and no more than must; what is referred to counts, and stays.
	for i in 3 1 2; do
		image "big$i.dyn"
		truncate -s 1M "db/dyn/big$i.dyn"
		touch -d "2023-11-15 00:00:0$i" "db/dyn/big$i.dyn"
	done
	run -gc -n -quota 4 db
	# A name that a terminal would obey.
	: >$'db/dyn/.tmp-1-1-\e[31mred'
	touch -d "2023-11-14 21:00" db/dyn/.tmp-1-1-*
	run -gc -quota 2 db
	truncate -s 3M db/dyn/used.dyn
	run -gc -quota 1 db
	run -gc
	run -n db
	run -old_epochs db
	after=$(total || :)
	# The three newest stay, however old they are; what only the others refer to goes with them.
	for epoch in db/2*; do
		find "$epoch" -mindepth 1 -maxdepth 2 -exec touch -h -d "2023-11-20" {} +
	done
	touch -d "2023-11-20" db/2*/box/.commit db/2*/box
	# What goes anyway keeps nothing, though nobody can read it.
	last=$(ls -d db/2* | tail -n 1)
	echo damaged >"$last/box/x.dynamic"
	touch -d "2023-11-20" "$last/box/x.dynamic" "$last/box"
	rm -rf db/index
	mkdir db/index
	: >db/index/old.sym
	touch -d "2023-11-20" db/index/old.sym
	# One image by what it replaces, then by its name: it goes with the later one.
	image both.dyn "moved 6666666666666666666666666666666666666666 0 0 0x1000"
	"$tests/mkdb" db <<-END
		platform crate
		epoch 1701388860
		profile dynamic before.dyn db/dyn/both.dyn
		id 6666666666666666666666666666666666666666
		event cpu-clock 1000000
		at 0x40 1
		finish
		epoch 1701388920
		profile dynamic both.dyn
		id 7777777777777777777777777777777777777777
		event cpu-clock 1000000
		at 0x40 1
		finish
	END
	for i in 1 2 3; do
		mkdir -p db/20231201000$i/box
	done
	ls -d db/2*
	run -gc -n -old_epochs db
	ls db/index
	run -gc -old_epochs db
	ls db/index
	ls -d db/2*
	names
	# By size: the oldest first, and what only they refer to, until it fits; what is open stays.
	for i in 1 2 3; do
		head -c 1048576 /dev/zero >db/20231201000$i/box/pad.file.ab0$i
	done
	mkdir -p db/202312020000/box
	: >db/202312020000/box/.open
	head -c 1048576 /dev/zero >db/202312020000/box/pad.file.ab09
	run -gc -n -gc_size 4 db
	run -gc -n -gc_size 3 db
	ls -d db/2*
	# What can be made anew is not worth an epoch.
	for i in 1 2 3; do
		head -c 4194304 /dev/zero >db/index/$i.sym
	done
	run -gc -gc_size 100 db
	run -gc -n -gc_size 6 db
	ls db/index
	run -gc -gc_size 6 db
	ls db/index
	ls -d db/2*
	run -gc -gc_size 3 db
	ls -d db/2*
	run -gc -gc_size 1 db
	ls -d db/2*
	run -gc_size 1 db
	run -gc -gc_daily db
	run -gc -background db
	run -gc -event cycles db
	run -gc -record stream db
	run -gc nowhere
} >out 2>&1
[ "$after" = 15 ] && [ "$before" = 31 ] || { echo "totals: $before, $after"; exit 1; }
[ ! "${DCPI_UPDATE:-}" ] || cp out "$DCPI_SRC/tests/golden/dcpid_gc.expected"
diff -u "$DCPI_SRC/tests/golden/dcpid_gc.expected" out
