#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpicat on profile files made here byte by byte, as the old format's page has them; and on what it
# writes itself.
set -eu
export LC_ALL=C
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd "$out"
PATH=$DCPI_BIN:$PATH

u32() { # little-endian
	local v
	for v in "$@"; do
		printf '%b' "$(printf '\\x%02x\\x%02x\\x%02x\\x%02x' $((v & 255)) $((v >> 8 & 255)) \
			$((v >> 16 & 255)) $((v >> 24 & 255)))"
	done
}

# old EVENT PERIOD WORD…: a 0.07 profile, its binary part in words
old() {
	local event=$1 period=$2
	shift 2
	printf '%s\n' "version 0.07" "image 199703041213140a1b2c" "path /usr/bin/x11perf" \
		"path /alt/x11 perf" "epoch 9612042334" "platform alpha1" "event $event" \
		"period $period" "tsize 8192" "cpuspeed 333" "tstart 0x120000000" \
		"weather fine" "samples"
	u32 "$@"
}

run() {
	local code=0
	echo "\$ $*"
	"$@" 2>&1 || code=$?
	[ $code = 0 ] || echo "exit $code"
}

{
	old cycles 63488 0x10 3 1 0 3 0x40 1 7 3 11 >cycles
	old imiss 4096 0x12 1 2 0x1000 1 5 2 7 >imiss
	run dcpicat cycles
	echo "# two events of one image, in version 1"
	run dcpicat -output both cycles imiss
	run head -n 13 both
	run dcpicat both
	run dcpicat -event imiss cycles both
	run dcpicat --json both
	echo "# and back"
	run dcpicat -format 0.07 -event cycles -output again both
	tail -c 40 cycles >a
	tail -c 40 again >b
	run cmp a b
	run dcpicat -format 0.06 -output older again
	run head -n 1 older
	echo "# names that would break a line or a terminal"
	old cycles 1 0x10 1 2 1 2 >odd
	sed -i "s|^path /usr.*|path $(printf '/a\033[2J\302\2051\303\251\377 b')|" odd
	run dcpicat odd
	run dcpicat -output odd1 odd
	run dcpicat odd1
	run dcpicat -json odd1
	echo "# what is refused"
	run dcpicat missing both
	head -c 300 both >cut
	run dcpicat cut
	{ head -c 40 both; printf X; tail -c +42 both; } >changed
	run dcpicat changed
	sed 's/version 0.07/version 1.01/' cycles >new
	run dcpicat new
	mkfifo fifo
	run dcpicat fifo
	run dcpicat -format 0.07 -output x both
	run dcpicat -format 0.08 -output x cycles
	run dcpicat -format 0.07 cycles
	run dcpicat -event cycles -output x both
	sed 's/^image 19/image 20/' imiss >other
	run dcpicat -output x cycles other
	echo "# without an identity the first path tells images apart"
	sed 's/^image .*/image 0/' cycles >none1
	sed 's/^image .*/image 0/' imiss >none2
	sed 's|^path /usr/.*|path /usr/bin/other|' none2 >none3
	run dcpicat -output x none1 none3
	run dcpicat -output nones none1 none2
	sed '/^version/a kind named' cycles | sed 's|^path /usr/.*|path idle|' >named1
	sed 's|^path idle|path unknown|' named1 >named2
	run dcpicat -output x named1 named2
	echo "# where windows went, and the old format's lack of it"
	cp "$DCPI_SRC/tests/fuzz/corpus/profile/moves" windows
	run dcpicat windows
	run dcpicat -moves windows
	run dcpicat -json windows
	run dcpicat -json -moves windows
	run dcpicat -output twice windows windows
	run dcpicat -moves twice
	run dcpicat -format 0.07 -output x windows
	run dcpicat -moves x
	run dcpicat -moves -output x windows
	cp "$DCPI_SRC/tests/fuzz/corpus/value_file/small" secret
	run dcpicat secret
	rm windows twice secret x
	echo "# call paths: callers above what they call"
	cp "$DCPI_SRC/tests/fuzz/corpus/callpaths/small" callpaths
	run dcpicat callpaths
	run dcpicat -json callpaths
	run dcpicat -event nope callpaths
	run dcpicat -output x callpaths
	cp "$DCPI_SRC/tests/fuzz/corpus/callpaths/ends" callpaths
	run dcpicat -event misses callpaths | tail -n 7
	rm callpaths
	echo "# workloads: whose samples they are, by place and by minute"
	cp "$DCPI_SRC/tests/fuzz/corpus/workloads/small" workloads
	run dcpicat workloads
	run dcpicat -json workloads
	run dcpicat -event nope workloads
	cp "$DCPI_SRC/tests/fuzz/corpus/workloads/many" workloads
	run dcpicat -event misses workloads | tail -n 7
	rm workloads
	echo "# of a program that is where it was the text's place and size, of one that has changed none"
	mkdir apps
	cp "$DCPI_SRC/tests/data/app/app" "$DCPI_SRC/tests/data/strip/strip.so" apps
	for name in app strip.so; do
		printf 'platform box\nepoch 1700000000\nprofile file %s/apps/%s %s/apps/%s\nevent cpu-clock 1000000\nat 0x120 3\n' \
			"$out" $name "$out" $name | "$DCPI_BIN/../tests/mkdb" mydb
		mv mydb/*/box/*.file.* apps/$name.profile
		rm -r mydb
	done
	run dcpicat apps/app.profile | sed "s|$out|DIR|"
	run dcpicat -json apps/app.profile | sed "s|$out|DIR|"
	run dcpicat apps/strip.so.profile | sed "s|$out|DIR|"
	cp apps/strip.so apps/app
	run dcpicat apps/app.profile | sed "s|$out|DIR|"
	rm -r apps
	echo "# who is to blame"
	run dcpicat -event nope -format 0.07 -output x both imiss
	(dcpicat -json both both both both both both both both both both >/dev/full) 2>&1 || :
	rm -f none1 none2 none3 nones named1 named2
	old cycles 1 0x10 1 0xffffffff 1 0xffffffff >full
	run dcpicat -output full2 full full
	run dcpicat -format 0.07 -output x full2
	run dcpicat
	run ls
} >got
diff -u "$DCPI_SRC/tests/golden/dcpicat.expected" got
