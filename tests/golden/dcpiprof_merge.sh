#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpiprof: processes of one facility are one table, as are profiles that dcpid -bypid kept apart;
# -pids takes them apart again. Every table has the same total.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

# The same two routines at other addresses in each worker, one of them twice in the third; a routine
# of equal name in another facility.
worker()
{
	local pid=$1 base=$2 extra=${3:-}
	"$DCPI_BIN/../tests/mkjob" "${5:-w}/dyn/worker.box.$pid.dyn" >/dev/null <<-END
		image 62 ${4:-worker} $pid box /opt/worker
		run ${base}000 0 0x1000
		routine ${base}040 serve 89f8c3
		routine ${base}080 parse 01c289d0c3
		$extra
	END
}
"$mkdb" w </dev/null
worker 100 0x7f0000001
worker 200 0x7f0000002
worker 300 0x7f0000003 "routine 0x7f00000030c0 serve 89f8c3"
worker 400 0x7f0000004 "" other

"$mkdb" w <<-END
	platform box
	epoch 1700000000
	profile dynamic worker.box.100.dyn
	event cpu-clock 1000000
	at serve 1
	at parse 2
	profile dynamic worker.box.200.dyn
	event cpu-clock 1000000
	at serve+2 10
	at 0xfff 20
	profile dynamic worker.box.300.dyn
	event cpu-clock 1000000
	at 0x40 100
	at 0xc2 200
	at parse 300
	at 0xffe 7
	profile dynamic worker.box.400.dyn
	event cpu-clock 1000000
	at serve 1000
	profile file /opt/app/app $app/app
	word process 100-5000
	event cpu-clock 1000000
	at hot 3
	profile file /opt/app/app $app/app
	word process 100-6000
	event cpu-clock 1000000
	at hot 4
	profile file /opt/app/app $app/app
	word process 200
	event cpu-clock 1000000
	at warm 5
	finish
END
# Names of which not all find room in a line.
"$mkdb" long </dev/null
for pid in 500 600 700; do
	worker $pid 0x7f0000$pid "" "a_facility_whose_name_takes_sixty_four_characters_as_some_do_$pid" long
done
"$mkdb" long <<-END
	platform box
	epoch 1700000000
	profile dynamic worker.box.500.dyn
	event cpu-clock 1000000
	at serve 30
	profile dynamic worker.box.600.dyn
	event cpu-clock 1000000
	at serve 20
	profile dynamic worker.box.700.dyn
	event cpu-clock 1000000
	at serve 10
	finish
END
export DCPIDB=w
{
	run dcpiprof
	run dcpiprof -pids -no_header
	run dcpiprof -i -no_header
	run dcpiprof -i -pids -no_header
	run dcpiprof worker
	run dcpiprof 'worker[200]' -no_header
	run dcpiprof -json worker
	# The routine of all workers, at the addresses of the one with most samples; of one of them.
	run dcpilist parse
	run dcpilist -no_header parse 'worker[100]'
	# Twice in one worker, and in another facility: not the same routine.
	run dcpilist serve
	run dcpilist -no_header serve worker
	# An address is there whole, or not at all.
	run dcpilist -db long serve
} >out
compare dcpiprof_merge

for options in "" -pids -i "-i -pids"; do
	"$DCPI_BIN/dcpiprof" $options -no_header | awk '
		/ total$/ { total = $1; next } { sum += $1 } END { exit !(sum == 1652 && total == sum) }'
done
