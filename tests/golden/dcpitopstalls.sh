#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpitopstalls: stalled instructions of a program with DWARF, a stripped library, a pseudo-image; by time and by
# instructions; that rows and the others add up to what stalled, however many are listed.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
. "$DCPI_SRC/tests/support/stall-db.sh"

# One of the linker's stubs, and what stands in front of them, which has their section's name.
"$mkdb" stubs <<-END
	platform box
	epoch 1700000000
	profile file /opt/lib/strip.so $strip/strip.so
	event cpu-clock 1000000
	at 0x290 8
	at 0x296 2
	at 0x2a0 30
	at 0x2a6 12
END
# "warm" ran 10,000 times; the misses of the last cache do not explain its "pop %rbp", a load that hits it may.
"$mkdb" caches <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/app $app/app
	event instructions 100
	event cycles 1000
	event bmiss 10
$(for off in 0 1 2 4 6; do echo "	at warm+$off 100 10 0"; done)
$(for off in 8 0xd 0xf 0x11 0x16; do echo "	at warm+$off 50 5 0"; done)
	at warm+0x1a 100 10 0
	at warm+0x1c 100 10 0
	at warm+0x1d 100 900 60
	at warm+0x1e 100 10 0
	finish
END

{
	run dcpitopstalls
	run dcpitopstalls -no_header -conf_low
	run dcpitopstalls -n 1 -no_header 'hi[4711]'
	run dcpitopstalls -db strip
	run dcpitopstalls -db waits
	run dcpitopstalls -db waits -n 3 -cross_procedure selective
	run dcpitopstalls -db waits -no_header -cross_procedure pessimistic
	run dcpitopstalls -db insns -conf_high
	run dcpitopstalls -db events -conf_low
	run dcpitopstalls -db caches -no_header -conf_low
	run dcpicalc -db caches warm app
	run dcpitopstalls -db waits -json -n 2
	run dcpitopstalls -db stubs -no_header -conf_low
	run dcpiflow -db stubs '[.plt]'
	run dcpitopstalls -event imiss
	run dcpitopstalls no_such_image
	run dcpitopstalls -n 0
} >out
compare dcpitopstalls

for n in 1 2 3 100; do
	"$DCPI_BIN/dcpitopstalls" -db waits -json -n $n | awk -v n=$n -F'[:,]' '
		$1 ~ /"stalled"/ && !all { all = $2; next }
		$1 ~ /"stalled"/ { sum += $2; rows++ }
		$1 ~ /"others"/ { sum += $2 }
		END {
			printf "%d rows, %s of %s\n", rows, sum, all
			off = sum - all; off = off < 0 ? -off : off
			exit !(all > 0 && rows <= n && off < 1e-6)
		}'
done
