#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The rules of the original contract, each broken by an application: what comes of it is what
# docs/JIT-GUIDE.md says, nobody else is harmed, and what was left out is counted.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
need_root
tests=$DCPI_BIN/../tests

# bucket NAME: samples that are stored under it.
bucket()
{
	"$DCPI_BIN/dcpictl" status -json | grep -o "\"$1\" *: *[0-9]*" | grep -o "[0-9]*\$" || echo 0
}

# play CASE SECONDS: it ends well, and everything is on disk. Sets $bad, what was refused because of it.
play()
{
	local before
	before=$(status_field records_bad)
	timeout 200 "$tests/dst_rules" "$1" "$2" || fail "$1: status $?"
	"$DCPI_BIN/dcpiflush" || fail "$1: dcpiflush"
	bad=$(($(status_field records_bad) - before))
	echo "$1: $(samples "$1") samples, $bad refused"
}

# names FACILITY: of all routines in its image, one a line.
names()
{
	nm "$(image "$1")" | cut -d' ' -f3-
}

# sound FACILITY: a good file with whose build-id the profiles agree.
sound()
{
	lint_image "$(image "$1")"
}

start_daemon

# Code that runs before BEGIN or outside every range is nobody's.
before=$(bucket 'dynamic, unknown')
play outside 3
nobody=$(($(bucket 'dynamic, unknown') - before))
[ "$nobody" -gt 1200 ] || fail "outside: $nobody samples are nobody's, of 2000"
within "outside: share of the range" "$(share outside outside)" 100 5
[ "$(samples outside)" -lt 1500 ] || fail "outside: $(samples outside) samples, at most 1000 of them in the range"

# Code that no DST record tells of: the image's, and no routine's; after END too.
play nodst 3
within "nodst: share of no routine" "$(share '(no' nodst)" 100 3
[ "$(samples nodst)" -gt 2000 ] || fail "nodst: $(samples nodst) samples of 3000"
[ "$bad" = 0 ] || fail "nodst: $bad refused"

# A hole, or a rest that is no record, ends the DST there.
for case in hole rest; do
	play $case 2
	[ "$(names $case)" = before_$case ] || fail "$case: routines are $(names $case)"
	[ "$bad" = 1 ] || fail "$case: $bad refused, not 1"
	grep -q "DST of '$case-" "$work/log" || fail "$case: the log says nothing"
	sound $case
done
within "hole: share of what stands before it" "$(share before_hole hole)" 50 6
within "hole: share of what stands behind it" "$(share '(no' hole)" 50 6

# Changed code is another generation: both stand in the image, each with name, line and samples.
play changed 4
[ "$bad" = 1 ] || fail "changed: $bad refused, not 1"
file=$(image changed)
[ "$(names changed | sort | uniq -c | awk '{ print $1, $2 }')" = "2 patched" ] ||
	fail "changed: routines are $(names changed)"
sound changed
for addr in $(nm "$file" | cut -d' ' -f1); do
	objdump -d --start-address="0x$addr" --stop-address=$((0x$addr + 11)) "$file" >"$work/code.$addr"
	[ "$(addr2line -f -e "$file" "0x$addr" | tr '\n' ' ')" = "patched /src/rules.c:7 " ] ||
		fail "changed: $addr is $(addr2line -f -e "$file" "0x$addr")"
done
grep -q 'sub ' "$work"/code.* && grep -q 'add ' "$work"/code.* || fail "changed: not both of the codes"
within "changed: share of both" "$(share patched changed)" 100 3
[ "$(samples changed)" -gt 3000 ] || fail "changed: $(samples changed) samples of 4000"
"$DCPI_BIN/dcpicat" "$db"/*/*/changed* >"$work/cat" 2>&1 || fail "changed: dcpicat"

# Changed DST is refused: what was read first stays.
play dstchanged 1
[ "$(names dstchanged)" = said_first ] || fail "dstchanged: routines are $(names dstchanged)"
[ "$bad" = 1 ] || fail "dstchanged: $bad refused, not 1"

# What was read stays when its memory goes.
play unmapped 2
within "unmapped: share" "$(share was_there unmapped)" 100 3
[ "$bad" = 0 ] || fail "unmapped: $bad refused"

# Addresses below 4 GB in place of offsets.
play absolute 1
within "absolute: share" "$(share ported absolute)" 100 3
[ "$bad" = 0 ] || fail "absolute: $bad refused"
sound absolute

# Names of any bytes, ranges that overlap, are unmapped or huge.
play bad 2
sound bad
[ "$(names bad | wc -l)" = 7 ] || fail "bad: routines are $(names bad)"
for name in 'two\\nlines' 'nul\\x00byte' 'not\\xff\\xfeutf8' '../../../escape' '\\x1b\[31mred' '(unnamed)' 'n\{255\}'; do
	names bad | grep -qx "$name" || fail "bad: no '$name' in $(names bad)"
done
[ "$bad" -gt 0 ] || fail "bad: nothing is refused"
grep -q "ranges or routines of 'bad-.* overlap others" "$work/log" || fail "bad: overlaps are not told"
[ "$(samples bad)" -gt 1000 ] || fail "bad: $(samples bad) samples of 2000"
account_holds "after names and ranges of all kinds"

# Several facilities, ranges from several threads at any time.
play threads 1
[ "$(names threads | grep -c '^thread[0-3]_[0-9]*\(_more\)*$')" = 96 ] ||
	fail "threads: $(names threads | wc -l) routines"
[ "$bad" = 0 ] || fail "threads: $bad refused"
sound threads
sound second

[ -z "$(find "$db/dyn" ! -name '*.dyn' ! -name '*.file' ! -name dyn)" ] || fail "in dyn/: $(ls -A "$db/dyn")"
[ "$(status_field pid)" = "$daemon" ] || fail "the daemon is another one"
stop_daemon
