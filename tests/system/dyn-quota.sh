#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Beside a running daemon: dcpid -gc leaves what it needs; over the quota the oldest images that nothing
# refers to go, and where none can, new code is refused by name.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
need_root
mkjob=$DCPI_BIN/../tests/mkjob

# junk NAME AGE: an image of 1 MiB that nothing refers to.
junk()
{
	"$mkjob" "$db/dyn/$1.dyn" >/dev/null <<-END || fail "mkjob"
		image 62 junk 1 box /opt/junk
		run 0x7f0000001000 0 0x1000
		routine 0x7f0000001040 $1 89f8c3
	END
	truncate -s 1M "$db/dyn/$1.dyn"
	touch -d "$2" "$db/dyn/$1.dyn"
}
in_dyn() { (cd "$db/dyn" && echo *); }
# Programs of the kernel's have images of their own, at their first sample.
of_hello() { (cd "$db/dyn" && echo hello-*); }
field() { "$DCPI_BIN/dcpictl" status -json | grep -o "\"$1\":[^,}]*" | head -n 1 | cut -d: -f2; }

# becomes WHAT COMMAND…: true within a minute.
becomes()
{
	local i what=$1
	shift
	for ((i = 0; i < 600; i++)); do
		"$@" && return 0
		sleep 0.1
	done
	fail "$what: $(in_dyn)"
}
is_gone() { [ ! -e "$db/dyn/$1.dyn" ]; }
is_over() { [ "$(field over_quota)" = "$1" ]; }

start_daemon -quota 2 -flush 3600
"$DCPI_BIN/examples/hello" 60 >"$work/truth" &
jit=$!
sleep 1
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
first=$(image hello)
junk old "2 hours ago"

# With samples on disk, and more in memory.
"$DCPI_BIN/dcpid" -gc "$db" >"$work/removed" || fail "dcpid -gc"
grep -q '^removed old\.dyn, 1048576 bytes$' "$work/removed" || fail "$(cat "$work/removed")"
# Others on this machine may make code that nobody names, and of a kernel's image no sample may be left.
[ "$(grep -c '^removed [^/]*\.dyn, ' "$work/removed")" = 1 ] || fail "$(cat "$work/removed")"
grep -q "; $(find "$db"/{dyn,kernel,costs} -type f 2>/dev/null | wc -l) stay" "$work/removed" ||
	fail "$(cat "$work/removed") $(ls "$db"/{dyn,kernel,costs})"
[ -e "$first" ] || fail "the image of a running process went"

# Over the quota, as the next image shows: the older one goes, and that suffices.
junk older "3 hours ago"
junk newer "1 hour ago"
"$DCPI_BIN/examples/hello" 1 >/dev/null || fail "hello"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
becomes "the oldest is not gone" is_gone older
becomes "still over" is_over false
[ -e "$db/dyn/newer.dyn" ] && [ -e "$first" ] || fail "too much went: $(in_dyn)"

# Nothing can go that suffices: what is on disk goes on, what is new is refused by name.
truncate -s 3M "$first"
"$DCPI_BIN/examples/hello" 1 >/dev/null || fail "hello"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
becomes "the other is not gone" is_gone newer
becomes "not over" is_over true
before=$(of_hello)
"$DCPI_BIN/examples/hello" 2 >/dev/null
flush_holds "over the quota"
account_holds "over the quota"
[ "$(of_hello)" = "$before" ] || fail "a new image: $(in_dyn), before $before"
[ "$(field routines_refused)" -ge 3 ] || fail "refused: $(field routines_refused)"
[ "$("$DCPI_BIN/dcpictl" status -json | grep -o '"dynamic, over quota":[0-9]*' | cut -d: -f2)" -gt 100 ] ||
	fail "the bucket: $("$DCPI_BIN/dcpictl" status -json)"
grep -q 'new dynamic code is refused' "$work/log" || fail "the log does not say it"
[ "$(samples hello)" -gt 1000 ] || fail "hello's samples: $(samples hello)"

# There is room again.
truncate -s 100K "$first"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
becomes "still over" is_over false
refused=$(field routines_refused)
"$DCPI_BIN/examples/hello" 1 >/dev/null || fail "hello"
flush_holds "with room"
[ "$(field routines_refused)" = "$refused" ] || fail "with room: $(field routines_refused) refused, before $refused"

# Where nobody can tell what an epoch refers to, nothing goes, and the log says so.
platform=$(echo "$db"/2*/*/ | awk '{ print $1 }')
echo damaged >"$platform/x.dynamic"
truncate -s 3M "$first"
junk spare "1 hour ago"
"$DCPI_BIN/examples/hello" 1 >/dev/null || fail "hello"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
becomes "the log does not say it" grep -q "none could be removed ('dcpid -gc' says why)" "$work/log"
[ -e "$db/dyn/spare.dyn" ] || fail "spare.dyn went"
rm "$platform/x.dynamic"
kill $jit
wait $jit 2>/dev/null
stop_daemon
rm -r "$db"/2*
"$DCPI_BIN/dcpid" -gc "$db" >"$work/removed" || fail "dcpid -gc"
[ "$(in_dyn)" = '*' ] || fail "after the last epoch: $(in_dyn)"
cat "$work/removed"
