#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpitimeline, -since and -until: a load of two phases, over an hour's change of epoch and a gap; images, procedures
# and workloads; sums of slices against dcpiprof's; an epoch without minutes; times that are no times.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
export TZ=UTC LC_ALL=C COLUMNS=80

lib=$DCPI_SRC/tests/data/stripped/libapp.so
# minutes WORKLOAD FROM TO COUNT WHERE: so many in each.
minutes()
{
	local i
	for ((i = $2; i < $3; i++)); do
		echo "w $1 cpu-clock $i $4 $5"
	done
}
# The epoch of 23:00 has alpha to 23:20, then beta in the same block; nothing from 23:30 to 23:40. The flush of 00:00
# was some seconds late.
"$mkdb" two <<-END
	platform box
	epoch 1700002800
	profile file /opt/app/libapp.so $lib
	event cpu-clock 1000000
	at hot+22 2000
	at 0x323 3020
	profile named idle
	event cpu-clock 1000000
	at 0 2500
	workload alpha comm=alpha exe=/opt/alpha uid=1000 pid=10 thread=worker\s1 processes=1
	workload beta comm=beta exe=/opt/beta uid=1001 cgroup=/system.slice/beta.service processes=3
	workload nobody comm=(idle)
	$(minutes alpha 0 20 100 hot+22@libapp.so)
	$(minutes beta 20 30 102 0x323@libapp.so)
	$(minutes beta 40 60 100 0x323@libapp.so)
	$(minutes nobody 0 30 50 0@idle)
	$(minutes nobody 40 60 50 0@idle)
	finish
	epoch 1700006403
	profile file /opt/app/libapp.so $lib
	event cpu-clock 1000000
	event imiss 4096
	at hot+22 300 8
	at 0x323 100
	workload beta comm=beta exe=/opt/beta uid=1001 cgroup=/system.slice/beta.service processes=3
	$(minutes beta 0 10 30 hot+22@libapp.so)
	$(minutes beta 0 10 10 0x323@libapp.so)
	finish
END
# Its last flush is its end.
touch -d '2023-11-15 00:00:02' two/202311142300/box/.commit
touch -d '2023-11-15 00:10:02' two/202311150000/box/.commit
"$mkdb" old <<-END
	platform box
	epoch 1700002800
	profile file /opt/app/libapp.so $lib
	event cpu-clock 1000000
	at hot+22 10
	finish
	epoch 1700006400
	profile file /opt/app/libapp.so $lib
	event cpu-clock 1000000
	at hot+22 20
	finish
END
touch -d '2023-11-15 00:00:02' old/202311142300/box/.commit
touch -d '2023-11-15 00:10:02' old/202311150000/box/.commit

# Samples of two labels in an epoch with minutes; the one before it has none.
profiles()
{
	cat <<-END
		profile file /opt/app/libapp.so $lib
		event cpu-clock 1000000
		at hot+22 $1
		profile file /opt/app/libapp.so $lib
		word label night
		event cpu-clock 1000000
		at hot+22 $2
	END
}
"$mkdb" labels <<-END
	platform box
	epoch 1699999200
	$(profiles 7 5)
	finish
	epoch 1700002800
	$(profiles 300 200)
	workload day comm=app exe=/opt/app/app uid=1000
	workload night comm=app exe=/opt/app/app uid=1000 label=night
	$(minutes day 0 10 30 hot+22@libapp.so)
	$(minutes night 0 10 20 hot+22@libapp.so)
	finish
END
touch -d '2023-11-14 23:00:02' labels/202311142200/box/.commit
touch -d '2023-11-15 00:00:02' labels/202311142300/box/.commit

# A second epoch of a minute has the name of the first in its own.
"$mkdb" second <<-END
	platform box
	epoch 1700002800
	$(profiles 300 200)
	workload app comm=app exe=/opt/app/app uid=1000
	$(minutes app 0 10 50 hot+22@libapp.so)
	finish
	epoch 1700002830
	$(profiles 7 5)
	finish
END
touch -d '2023-11-14 23:10:02' second/202311142300/box/.commit
touch -d '2023-11-14 23:20:02' second/20231114230030/box/.commit

# The same load, and the daemon noted what happened: no daemon ran up to 23:40, the clock was set back, the machine slept
# for less than a slice, and a daemon was started again at once. The first start is no news.
"$mkdb" noted <<-END
	platform box
	epoch 1700002800
	profile file /opt/app/libapp.so $lib
	event cpu-clock 1000000
	at hot+22 3000
	workload alpha comm=alpha exe=/opt/alpha uid=1000 pid=10
	$(minutes alpha 0 20 100 hot+22@libapp.so)
	$(minutes alpha 40 50 100 hot+22@libapp.so)
	note start 1
	note idle 600 300000 1200000
	note start 2399
	note idle 2460 30000 120000
	note clock 2500 -90
	note suspend 2700 20
	note start 2710
	finish
	epoch 1700006400
	profile file /opt/app/libapp.so $lib
	event cpu-clock 1000000
	at hot+22 1000
	workload alpha comm=alpha exe=/opt/alpha uid=1000 pid=10
	$(minutes alpha 10 20 100 hot+22@libapp.so)
	note suspend 600 480
	note clock 601 540
	finish
END
touch -d '2023-11-14 23:50:02' noted/202311142300/box/.commit
touch -d '2023-11-15 00:20:02' noted/202311150000/box/.commit

cp -a two mixed
cp -a old/202311142300 mixed/202311142200

# without PATHS OF THIS MACHINE
on() { run "$@" -p "$lib" | sed "s,$lib,LIB,"; }
export DCPIDB=two
{
	on dcpitimeline -epoch all
	LC_ALL=C.UTF-8 on dcpitimeline -epoch all -slice 10m -by procedure
	on dcpitimeline -since '2023-11-14 23:15' -until '2023-11-14 23:45' -slice 5m -by comm
	on dcpitimeline -epoch 202311142300 -no_header -slice 15m -by unit
	on dcpitimeline -no_header -by pid -n 1 -epoch all -slice 30m
	on dcpitimeline -epoch 202311150000 -no_header -by procedure -slice 5m libapp.so
	on dcpitimeline -epoch 202311150000 -json -by procedure -slice 5m
	TZ=XXX-5:30 on dcpitimeline -epoch all -slice 1h -no_header
	run dcpitimeline -by colour
	run dcpitimeline -slice 90s
	run dcpitimeline -slice 1m -since 1990-01-01
	run dcpitimeline -db old
	on dcpitimeline -db mixed -epoch all -slice 30m
	run dcpitimeline libnone.so
	on dcpitimeline -db noted -epoch all -slice 5m
	on dcpitimeline -db noted -epoch all -no_header -slice 1h
	on dcpitimeline -db noted -epoch all -json -slice 30m | sed -n '/"notes"/,/\]/p'
	run dcpicat noted/202311142300/box/workloads | sed -n '/^note/p'
	run dcpicat -json noted/202311150000/box/workloads | sed -n '/"notes"/,/\]/p'
	on dcpitimeline -no_header -epoch all -slice 10m -comm beta
	on dcpiprof -since '2023-11-14 23:15' -until '2023-11-14 23:25' -i -comm beta
	on dcpiprof -since '2023-11-14 23:15' -until '2023-11-14 23:25' -by comm -no_header
	on dcpiprof -db mixed -until '2023-11-14 23:05' -by unit
	on dcpiprof -db mixed -since '2023-11-14 22:15' -until '2023-11-14 23:25' -i -comm beta
	on dcpiprof -db second -i -since '2023-11-14 23:05'
	on dcpiprof -db second -i -since '2023-11-14 23:05' -json | sed -n '1p; /"window"/,/\]/p'
	on dcpiprof -db labels -no_header -epoch all -by label
	on dcpiprof -db labels -no_header -until '2023-11-14 23:05' -by label
	on dcpiprof -db labels -no_header -until '2023-11-15 00:20' -by label
	on dcpiprof -db old -since '2023-11-14 23:15' -until '2023-11-14 23:25' -comm beta
	on dcpiprof -since '2023-11-14 23:15' -until '2023-11-14 23:25'
	on dcpiprof -since '2023-11-14 23:55' -until '2023-11-15 00:05:30' -i
	on dcpiprof -since '2023-11-14' -until '2023-11-16'
	on dcpiprof -since '2023-11-14 23:55' -i
	on dcpiprof -since '2023-11-14 23:55' -i -event cpu-clock
	on dcpiprof -until '2023-11-14 23:30' -json -i
	on dcpiprof -db old -since '2023-11-14 23:15' -until '2023-11-14 23:25'
	on dcpiprof -db old -since '2023-11-15'
	on dcpiprof -no_header -db mixed -i -since '2023-11-14 22:15' -until '2023-11-14 23:05'
	on dcpiprof -db mixed -i -since '2023-11-14 22:15' -until '2023-11-14 23:05'
	on dcpiprof -since '2023-11-14 23:31' -until '2023-11-14 23:32'
	run dcpiprof -since 2023-11-16
	run dcpiprof -since 2023-11-15 -until 2023-11-14
	run dcpiprof -since 10:61
	run dcpiprof -since 9999-01-01
	run dcpiprof -since teatime
} >out
compare dcpitimeline
