#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# One program run twice, each time at other addresses and with a daemon and a database of its own. Where it is
# deterministic and its code holds no absolute address (hello, calc): with -keep_all equal build-ids, and always
# equal code by dcpidiff. Where it does (absolute_jit): code that differs only in operands; one constant is
# another in each run, and that routine differs. What did not change is shown as no change.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
need_root

# record NAME OPTION…: both programs, into the database NAME.
record()
{
	db=$work/$1
	shift
	start_daemon "$@"
	"$DCPI_BIN/examples/hello" 1 >/dev/null || fail "hello"
	"$DCPI_BIN/calc" -time 2 "$DCPI_SRC/examples/jit/calc/demo.calc" >/dev/null || fail "calc"
	nr=$((nr + 1))
	"$DCPI_BUILD/tests/absolute_jit" 1 $nr || fail "absolute_jit"
	stop_daemon
}
nr=0

build_id() { (db=$work/$1 && eu-readelf -n "$(image "$2")" | awk '/Build ID:/ { print $3 }'); }

# code A B FACILITY: "ROUTINE|WHAT OF ITS CODE" of dcpidiff's rows (those of the program itself, which has
# the same name, left out). No row is farther from 0 than chance
# takes it: 6 standard errors, of some ten rows in six comparisons, one in some million runs; and beyond the
# bound (one comparison in a hundred) or not, the column says it.
code()
{
	"$DCPI_BIN/dcpidiff" -json -set -db "$work/$1" "$3" -set -db "$work/$2" "$3" >"$work/diff" ||
		fail "dcpidiff $*"
	awk -F'[:,]' '
		function number(s) { gsub(/[" ]/, "", s); return s + 0 }
		/"bound":/ { bound = number($2) }
		/"procedure":/ { name = $0; sub(/^[^:]*:"?/, "", name); sub(/"?,$/, "", name) }
		/"kind":/ { dynamic = /"dynamic"/ }
		/"difference":/ { difference = number($2) }
		/"standard_error":/ { error = number($2) }
		/"change":/ { change = number($2) }
		/"code":/ && dynamic {
			text = $0
			sub(/^[^:]*:"?/, "", text)
			sub(/"?,?$/, "", text)
			z = (difference < 0 ? -difference : difference) / error
			if (z > 6 || (change != 0) != (z > bound)) print name "|" z " standard errors, change " change
			else if (name != "null") print name "|" text
		}' "$work/diff" | sort
}

# code_is A B FACILITY WHAT: of each routine.
code_is()
{
	code "$1" "$2" "$3" >"$work/code"
	cat "$work/code"
	[ -s "$work/code" ] || fail "no routines of $3"
	! grep -vE "\|$4\$" "$work/code" || fail "$3 in $1 and $2: not '$4'"
}

record all_1 -keep_all
record all_2 -keep_all
record some_1
record some_2
for runs in all some; do
	for run in 1 2; do
		eval "${runs}_$run=$(build_id ${runs}_$run hello)"
	done
done
echo "build-ids of hello: $all_1 $all_2, of what was sampled $some_1 $some_2"
[ -n "$all_1" ] && [ "$all_1" = "$all_2" ] || fail "other build-ids"
calc=$(build_id all_1 calc)
[ -n "$calc" ] && [ "$calc" = "$(build_id all_2 calc)" ] || fail "build-ids of calc: $calc, $(build_id all_2 calc)"
code_is all_1 all_2 hello equal
[ "$(wc -l <"$work/code")" = 3 ] || fail "three routines are all of them"
code_is some_1 some_2 hello equal
code_is all_1 some_1 hello equal
for runs in all some; do
	code_is ${runs}_1 ${runs}_2 calc '(equal|only in [AB])'
	grep -q '|equal$' "$work/code" || fail "no routine of calc is in both"
	code ${runs}_1 ${runs}_2 absolute >"$work/code"
	cat "$work/code"
	printf '%s\n' 'absolute|bytes differ only in operands' 'alone|equal' 'stepped|differ' | cmp - "$work/code" ||
		fail "absolute_jit"
done
