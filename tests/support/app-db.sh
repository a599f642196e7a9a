# SPDX-License-Identifier: BSD-2-Clause
# Sourced by golden tests: a database with samples of tests/data/app, of a JIT's routines and of a
# kernel, whose sums are easy to check. Sets $work and $DCPIDB (in $work, relative, as is every path
# that is printed); runs there.

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdb=$DCPI_BIN/../tests/mkdb
app=$DCPI_SRC/tests/data/app
export DCPIDB=db DCPI_DEBUG_PATH=root
unset DEBUGINFOD_URLS
mkdir -p root/.build-id/01
cp "$app/app" root/.build-id/01/23456789abcdef0123456789abcdef01234567
cp "$app/app.c" "$app/other.c" .
printf 'fun triple(n)\n  sum = 0\n  loop n times\n    sum = sum + 3\n  return sum\n' >triple.hi

"$mkdb" db </dev/null
# "triple" has the code of app's "hot"; "leaf" is two instructions.
"$DCPI_BIN/../tests/mkjob" db/dyn/hi.box.1.dyn >/dev/null <<-END
	image 62 hi 4711 box /opt/hi
	run 0x7f0000001000 0 0x1000
	file ./triple.hi
	line 0 1 0
	line 7 2 0
	line 17 4 0
	line 19 3 0
	line 26 5 0
	routine 0x7f0000001040 triple 85ff7e198d0c7fb800000000ba0000000001c283c00339c875f789d0c3ba00000000ebf6
	routine 0x7f0000001080 leaf 89f8c3
END

# 214 samples of cpu-clock: app 100 (hot 50, warm 20, the helpers 10 and 5, none 15), the JIT 64
# (triple 60, 1 of them between instructions, leaf 1, none 3), the kernel 40 (hot 36, its neighbour
# 4), a bucket 7, an image that is gone 3. imiss: 8 + 2.
"$mkdb" db <<-END
	platform box
	epoch ${app_epoch:-1700000000}
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	event imiss 4096
	at hot+17 30 5
	at hot+19 12 0
	at hot+22 8 3
	at warm 20 0
	at 0x10c 10
	at 0x15b 5
	at 0x500 15
	profile dynamic hi.box.1.dyn
	event cpu-clock 1000000
	at triple 2
	at triple+17 40
	at triple+19 10
	at triple+20 1
	at triple+24 7
	at leaf+2 1
	at 0xffe 3
	symbol hot 0x1000 0x100
	symbol hotter 0x1100 0
	kernel vmlinux-6.1.0 00112233445566778899aabbccddeeff00112233 0x2000
	profile kernel vmlinux-6.1.0
	event cpu-clock 1000000
	at hot+0x10 30
	at hot+0x20 6
	at hotter+0x80 4
	profile named idle
	event cpu-clock 1000000
	at 0 7
	profile file /opt/gone/lib.so $app/app
	id ffffffffffffffffffffffffffffffffffffffff
	event imiss 4096
	event cpu-clock 1000000
	at 0x10 2 3
	finish
END

# run NAME [ARGUMENT …]: print the command, its output, its errors and its exit code.
run()
{
	local code=0
	echo "\$ $*"
	"$DCPI_BIN/$1" "${@:2}" 2>err || code=$?
	sed 's/^/! /' err
	[ $code = 0 ] || echo "exit $code"
	echo
}

# compare TEST: what was printed against the file beside it.
compare()
{
	if [ "${DCPI_UPDATE:-}" ]; then
		cp out "$DCPI_SRC/tests/golden/$1.expected"
	fi
	diff -u "$DCPI_SRC/tests/golden/$1.expected" out
}
