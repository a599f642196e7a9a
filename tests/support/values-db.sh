# SPDX-License-Identifier: BSD-2-Clause
# Sourced by golden tests behind app-db.sh: a database "values" beside "db", of the same images, as a
# daemon with -vprof, -vcontext and vp-ldlatency would leave it, and the default from then on.
#
# "warm" called "hot" a hundred times, with 5 (60 times) and 7; "triple" was called by "warm" 200 times
# with 100. Windows know all of it: 3 * 5 * (5 - 1) / 2 = 30 is what hot(5) returns, hot(7) 63.
export DCPIDB=values

"$mkdb" values </dev/null
cp db/dyn/hi.box.1.dyn values/dyn/
"$mkdb" values <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	at hot+17 30
	at hot+19 12
	at hot+22 8
	at warm 14
	at warm+29 6
	at 0x10c 10
	values values
	value hot+4 60 15
	value hot+4 40 21
	value hot+7 100 0
	value hot+12 100 0
	value hot+17 100 0
	value hot+17 100 3
	value hot+17 100 9
	value hot+17 100 18
	value hot+17 100 30
	value hot+17 40 45
	value hot+17 40 63
	value hot+19 100 3
	value hot+19 100 6
	value hot+19 100 9
	value hot+19 100 12
	value hot+19 100 15
	value hot+19 40 18
	value hot+19 40 21
	value hot+24 480 1
	value hot+24 100 0
	value hot+26 60 30
	value hot+26 40 63
	value warm 100 0x7ffc00001000
	value warm+1 100 0
	value warm+2 60 5
	value warm+2 40 7
	value warm+13 60 30
	value warm+13 40 63
	value 0x10c 60 40
	value 0x10c 40 56
	values values.arg0
	context /opt/app/app 0123456789abcdef0123456789abcdef01234567
	value hot 60 5 1 0x147
	value hot 40 7 1 0x147
	value 0x10c 60 5 1 0x150
	value 0x10c 40 7 1 0x150
	values values.arg1
	context /opt/app/app 0123456789abcdef0123456789abcdef01234567
	value hot 100 0xdead 1 0x147
	values vp-addr
	value warm 100 0x7ffc00000ff8
	value warm+1 100 0x7ffc00000ff0
	values vp-ldlatency
	value warm+28 70 0
	value warm+28 20 10
	value warm+28 10 100
	value warm+29 40 0
	value warm+29 10 5000
	profile dynamic hi.box.1.dyn
	event cpu-clock 1000000
	at triple+17 40
	at triple+19 10
	values values 65534
	value triple+4 200 300
	value triple+7 200 0
	value triple+12 200 0
	value triple+17 1 1
	value triple+17 2 2
	value triple+17 3 3
	value triple+26 200 14850
	values values.arg0
	context /opt/app/app 0123456789abcdef0123456789abcdef01234567
	value triple 200 100 1 0x147
	finish
END
