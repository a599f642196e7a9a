#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpid where the record of a flush, or of joined epochs, is damaged or no file: which one it is, and what to do.
set -eu
export LC_ALL=C TZ=UTC
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

epoch()
{
	cat <<-END
		epoch $1
		profile file /bin/prog
		id abcd
		event cycles 1000
		at 0x10 1
		finish
	END
}
{ echo "platform box"; epoch 1700000000; epoch 1700000300; } | "$DCPI_BIN/../tests/mkdb" db
at=db/202311142218/box
cp $at/.commit good

run()
{
	local code=0
	echo "\$ dcpid $*"
	"$DCPI_BIN/dcpid" "$@" 2>err || code=$?
	sed -E 's/gap of [0-9]+ s/gap of N s/; s/^/! /' err
	[ $code = 0 ] || echo "exit $code"
}
# One that stores nothing; what was left open it closes.
replay() { printf 'dcpi-replay 1\nutc 1700000600\nevent cycles 1000\n' | run -platform box -replay - db; }

{
	echo damaged >$at/.commit
	run -gc db
	touch -d 2023-11-20 db/2*/box db/2*/box/.commit
	run -gc -join day db
	rm $at/.commit
	mkfifo $at/.commit
	run -gc db

	# Left open by a daemon that was killed.
	: >$at/.open
	replay
	rm $at/.commit
	echo damaged >$at/.commit
	echo half >$at/.new-2-prog.file.abcd
	replay
	(cd $at && ls -A)
	cp good $at/.commit
	run -gc db

	echo damaged >db/.commit
	run -gc -old_epochs db
	run -gc -join day db
	rm db/.commit

	# As a power failure may leave it, and as a version to come may have it.
	: >db/dcpi-database
	run -gc db
	echo dcpi-database 1 >db/dcpi-database
	run -gc db
	echo dcpi-database 2 >db/dcpi-database
	run -gc db
} >out 2>&1
[ ! "${DCPI_UPDATE:-}" ] || cp out "$DCPI_SRC/tests/golden/dcpid_damaged.expected"
diff -u "$DCPI_SRC/tests/golden/dcpid_damaged.expected" out
