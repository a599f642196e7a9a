#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpiwhatcg: where the time of a program, a stripped library, a pseudo-image went; by time and by instructions;
# samples outside of procedures and blocks, images that cannot be analysed; that it all adds up.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
. "$DCPI_SRC/tests/support/stall-db.sh"

# Both wait for the front end, the one behind more than the one before it.
"$mkdb" both <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	at hot+0x13 30
	at hot+0x1c 10
	at warm 20
	at warm+1 15
	at warm+0x1d 60
	at warm+0x1e 5
	finish
END

{
	run dcpiwhatcg
	run dcpiwhatcg -no_header -conf_low
	run dcpiwhatcg -conf_low app 'hi[4711]'
	run dcpiwhatcg -no_header vmlinux-6.1.0
	run dcpiwhatcg -db strip
	run dcpiwhatcg -db events -conf_low app
	run dcpiwhatcg -db odd -conf_low
	run dcpiwhatcg -db waits -stall memory -pr app
	run dcpiwhatcg -db waits -no_header -stall 'unexplained stall' app
	run dcpiwhatcg -db both -no_header -conf_low -stall 'front end' app
	run dcpiwhatcg -db waits -no_header -cross_procedure selective app
	run dcpiwhatcg -db waits -no_header -cross_procedure pessimistic app
	run dcpiwhatcg -db insns -conf_high app
	run dcpiwhatcg -db waits -json -stall stores app
	run dcpiwhatcg -stall memory app hi
	run dcpiwhatcg -stall memory
	run dcpiwhatcg -stall thirst app
	run dcpiwhatcg -event imiss
	run dcpiwhatcg no_such_image
	run dcpiwhatcg -conf_low -conf_med
	# Less than half is covered: the first line says so, and what to turn on.
	run dcpiwhatcg -conf_high app
} >out
compare dcpiwhatcg

# All samples are in one part: causes, unexplained, execution, or not tallied.
for db in db strip odd waits insns events; do
	for how in "" -conf_low "-conf_high -cross_procedure pessimistic" "-cross_procedure selective"; do
		# shellcheck disable=SC2086
		"$DCPI_BIN/dcpiwhatcg" -db $db -json $how 2>/dev/null | awk -v db="$db $how" -F'[:,]' '
			$1 ~ /"event"/ { ours = 1 }
			ours && $1 ~ /"samples"/ && !nr++ { total = $2 }
			$1 ~ /"tallied"/ { tallied = $2 }
			$1 ~ /"not_tallied"/ { rest = 1 }
			$1 ~ /"likely"/ { in_tally += $2 }
			rest && $1 ~ /"samples"/ { outside += $2 }
			END {
				printf "%s: %s %s %s %s\n", db, total, tallied, in_tally, outside
				off = in_tally - tallied; off = off < 0 ? -off : off
				exit !(total > 0 && tallied + outside == total && off < 1e-6)
			}'
	done
done
