#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpid -gc -join: several epochs become one, and every sum is what it was.
set -eu
export LC_ALL=C TZ=UTC
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
tests=$DCPI_BIN/../tests

# epoch UTC-SECONDS PERIOD: of two machines.
epoch()
{
	cat <<-END
		epoch $1
		profile file /bin/prog
		id abcd
		word colour red
		event cycles $2
		event imiss 500
		at 0x10 1 2
		at 0x20 $(($1 % 1000)) 4
		profile named unknown
		event cycles $2
		at 0 7
		finish
	END
}
nov=1698796800 # 2023-11-01, a Wednesday
for box in one two; do
	{
		echo "platform $box"
		epoch $((nov + 100)) 1000
		epoch $((nov + 40000)) 1000
		epoch $((nov + 86400 * 4 + 300)) 3000
		epoch $((nov + 86400 * 6 + 301)) 1000
		epoch $((nov + 86400 * 29)) 1000
		epoch $((nov + 86400 * 31)) 1000
	} | "$tests/mkdb" db
done
find db \( -name .commit -o -path 'db/*/*' -type d \) -exec touch -d 2023-12-10 {} +

run()
{
	local code=0
	echo "\$ dcpid $*"
	"$DCPI_BIN/dcpid" "$@" 2>err || code=$?
	sed 's/^/! /' err
	[ $code = 0 ] || echo "exit $code"
}
epochs() { (cd db && echo "#" 2*); }
counts()
{
	"$DCPI_BIN/dcpiprof" -db db -epoch all -i -csl
	for p in one two; do "$DCPI_BIN/dcpiprof" -db db -epoch all -i -csl -platform $p; done
}

counts >before
# Each machine's part of each epoch is indexed now: the sums are the same.
[ "$(echo db/*/*/.index | wc -w)" = 12 ] || { echo "no indexes"; exit 1; }
counts >after
diff -u before after
{
	cat before
	run -gc -n -join day db
	run -gc -join day db
	epochs
	run -gc -join week db
	epochs
	run -gc -join month -older 36500 db
	run -gc -join month db
	epochs
	run -gc -join month db
	"$DCPI_BIN/dcpicat" db/*/one/prog.*
	run -gc -join year db
	run -join day db
	run -gc -older 8 db
} >out 2>&1
counts >after
diff -u before after
[ ! "${DCPI_UPDATE:-}" ] || cp out "$DCPI_SRC/tests/golden/dcpid_join.expected"
diff -u "$DCPI_SRC/tests/golden/dcpid_join.expected" out
