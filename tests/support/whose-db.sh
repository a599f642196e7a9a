# SPDX-License-Identifier: BSD-2-Clause
# Sourced by golden tests behind paths-db.sh: a database "whose" with workloads and call paths. Two programs, and two
# threads of one, share a library; 5 samples were not recorded by workload. A name is hostile.

"$mkdb" whose <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	event imiss 4096
	at hot+17 60 4
	at warm 10
	profile file /opt/other/other $app/app
	id eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee
	event cpu-clock 1000000
	at 0x20 5
	profile file /opt/lib/lib.so $app/app
	id ffffffffffffffffffffffffffffffffffffffff
	event cpu-clock 1000000
	at 0x10 45
	workload one comm=app exe=/opt/app/app uid=0 pid=7 cgroup=/system.slice/app.service thread=one label=night
	workload two comm=app exe=/opt/app/app uid=0 pid=7 cgroup=/system.slice/app.service thread=two label=night
	workload evil comm=$(printf '\342\200\256<b>;\033[31m') exe=/opt/other/other uid=1000 processes=3
	w one cpu-clock 0 40 hot+17@app
	w one imiss 0 3 hot+17@app
	w two cpu-clock 1 20 hot+17@app
	w two imiss 1 1 hot+17@app
	w two cpu-clock 1 10 warm@app
	w evil cpu-clock 2 5 0x20@other
	w one cpu-clock 0 12 0x10@lib.so
	w two cpu-clock 0 18 0x10@lib.so
	w evil cpu-clock 2 10 0x10@lib.so
	owner one
	callpath cpu-clock complete 2 0x10@lib.so warm+8@app _start+1@app
	callpath cpu-clock complete 1 0x10@lib.so hot+1@app _start+1@app
	owner evil
	callpath cpu-clock complete 1 0x10@lib.so 0x20@other
	finish
END
