#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpisumxct: counts, edges, runs and paths added; what cannot be added is said, and nothing is written then.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

cat >a.xct <<'END'
dcpi-xct 1
run 1700000000 1 0 hand-1 loop one
image file 0123456789abcdef
path /bin/loop
n 1000 1 3 5
n 100a 10 2 2 3
n 1013 1
e 1011 100a 9
e 1013 - 1
image process 42
path [dynamic]
n 7f0000000000 5
crc32c 5fc3921b
END
cat >b.xct <<'END'
dcpi-xct 1
run 1700000060 2 1 hand-1 loop \\ two\x0a
image dynamic ab
path calc
n 0 7 4
image file 0123456789abcdef
path /usr/bin/loop
n ff0 3
n 100a 5
n 1013 2
e 1011 100a 4
e 1012 - 4
crc32c 5e9bb836
END
cat >most.xct <<'END'
dcpi-xct 1
image file 0123456789abcdef
path /bin/loop
n 1013 18446744073709551615
crc32c 23879543
END
sed 's/^n 1013 1$/n 1013 2/' a.xct >damaged.xct
sed '$d' a.xct >cut.xct
sed '1s/1$/2/' a.xct >later.xct
{
	run dcpisumxct a.xct
	run dcpisumxct a.xct b.xct
	run dcpisumxct b.xct a.xct a.xct -o sum.xct
	cat sum.xct
	cp sum.xct same.xct
	run dcpisumxct -json b.xct a.xct a.xct -o sum.xct
	cmp sum.xct same.xct
	run dcpisumxct -json a.xct b.xct
	run dcpisumxct -json a.xct most.xct
	run dcpisumxct sum.xct sum.xct -o sum.xct
	grep '^[ne]' sum.xct
	run dcpisumxct a.xct most.xct -o none.xct
	run dcpisumxct damaged.xct -o none.xct
	run dcpisumxct cut.xct -o none.xct
	run dcpisumxct later.xct -o none.xct
	run dcpisumxct a.xct app.c -o none.xct
	run dcpisumxct a.xct missing.xct -o none.xct
	run dcpisumxct
	ls none.xct 2>&1 || :
} >out 2>&1
compare dcpisumxct
