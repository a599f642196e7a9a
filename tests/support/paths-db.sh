# SPDX-License-Identifier: BSD-2-Clause
# Sourced by golden tests: a database with call paths through tests/data/app, a JIT's routines, of which one has others
# inlined, and a kernel. Of 512 samples of cpu-clock 64 have a path; of switches none. Sets what app-db.sh sets, with
# which it begins.

. "$DCPI_SRC/tests/support/app-db.sh"

"$mkdb" paths </dev/null
"$DCPI_BIN/../tests/mkjob" paths/dyn/jit.box.7.dyn >/dev/null <<-END
	image 62 jit 7 box /opt/jit
	run 0x7f0000001000 0 0x1000
	file a.c
	file b.c
	file cube
	file _Z6squarei
	inline 0 3 7 2 0 30
	inline 1 3 3 3 0 5
	line 0 28 0
	line 3 12 1
	line 6 6 0
	line 10 31 0
	routine 0x7f0000001040 outer 4889f80fafc001c201c283c003c3
	routine 0x7f0000001080 fib 89f8c3
END
"$mkdb" paths <<-END
	platform box
	epoch ${app_epoch:-1700000000}
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	event imiss 4096
	at hot+17 150 5
	at hot+22 50 3
	at warm 30
	at 0x10c 10
	profile dynamic jit.box.7.dyn
	event cpu-clock 1000000
	at outer+3 60
	at outer+6 20
	at outer+10 30
	at fib 100
	symbol sys_read 0x1000 0x100
	symbol entry 0x1100 0x100
	kernel vmlinux-6.1.0 00112233445566778899aabbccddeeff00112233 0x2000
	profile kernel vmlinux-6.1.0
	event cpu-clock 1000000
	event switches 1
	at sys_read+0x10 40 1
	profile named idle
	event cpu-clock 1000000
	at 0 12
	profile file /opt/gone/lib.so $app/app
	id ffffffffffffffffffffffffffffffffffffffff
	event cpu-clock 1000000
	at 0x10 10
	# A program that only calls.
	profile file /opt/gone/run $app/app
	id eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee
	# hot: 25 paths, of 200 samples
	callpath cpu-clock complete 12 hot+17@app warm+8@app _start+1@app
	callpath cpu-clock complete 4 hot+22@app warm+8@app _start+1@app
	callpath cpu-clock complete 6 hot+17@app outer+5@jit.box.7.dyn fib@jit.box.7.dyn _start+1@app
	callpath cpu-clock complete 2 hot+17@app warm+8@app 0x20@run
	callpath cpu-clock unreadable 1 hot+17@app
	callpath imiss complete 1 hot+17@app warm+8@app _start+1@app
	# warm: 4 of 30
	callpath cpu-clock complete 4 warm@app _start+1@app
	# outer: 14 of 110, 8 of them in square
	callpath cpu-clock complete 8 outer+3@jit.box.7.dyn fib@jit.box.7.dyn _start+1@app
	callpath cpu-clock complete 2 outer+6@jit.box.7.dyn fib@jit.box.7.dyn _start+1@app
	callpath cpu-clock complete 4 outer+10@jit.box.7.dyn _start+1@app
	# fib: 13 of 100
	callpath cpu-clock complete 5 fib@jit.box.7.dyn _start+1@app
	callpath cpu-clock complete 3 fib@jit.box.7.dyn fib@jit.box.7.dyn fib@jit.box.7.dyn _start+1@app
	callpath cpu-clock complete 2 fib@jit.box.7.dyn outer+10@jit.box.7.dyn fib@jit.box.7.dyn _start+1@app
	callpath cpu-clock cut 3 fib@jit.box.7.dyn fib@jit.box.7.dyn
	# sys_read: 6 of 40
	callpath cpu-clock complete 4 sys_read+0x10@vmlinux-6.1.0 entry+8@vmlinux-6.1.0 warm+8@app _start+1@app
	callpath cpu-clock no_rows 1 sys_read+0x10@vmlinux-6.1.0 entry+8@vmlinux-6.1.0 0x10@lib.so
	callpath cpu-clock contradicted 1 sys_read+0x10@vmlinux-6.1.0
	# lib.so: 2 of 10; of helper and of idle none
	callpath cpu-clock no_rows 2 0x10@lib.so
	finish
END
export DCPIDB=paths
