#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Workloads: every tool restricts its samples to some, and dcpiprof -by puts them into groups, whose sums are the flat
# total; databases without them say so, and answer everything else.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

id=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
pod=12345678_9abc_def0_1234_56789abcdef0
kube=/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod$pod.slice/cri-containerd-$id.scope

# 200 samples of a clock at 100 Hz: app 110 (hot 70, warm 40), the kernel 60, idle 30.
profiles()
{
	cat <<-END
		platform $1
		epoch $2
		profile file /opt/app/app $app/app
		event cpu-clock 10000000
		at hot+17 30
		at hot+19 10
		at warm 40
		profile file /opt/app/app $app/app
		word label night
		event cpu-clock 10000000
		at hot+17 20
		at hot+19 10
		symbol hot 0x1000 0x100
		kernel vmlinux-6.1.0 00112233445566778899aabbccddeeff00112233 0x2000
		profile kernel vmlinux-6.1.0
		event cpu-clock 10000000
		at hot+0x10 60
		profile named idle
		event cpu-clock 10000000
		at 0 30
	END
}

# "app" has two threads, and runs in a container too, where its name is hostile. The compiler's processes were too small.
workloads()
{
	cat <<-END
		workload main comm=app exe=/opt/app/app cgroup=/system.slice/app.service uid=0 pid=200 thread=app
		workload worker comm=app exe=/opt/app/app cgroup=/system.slice/app.service uid=0 pid=200 thread=worker
		workload cc comm=cc exe=/usr/lib/cc cgroup=/user.slice/user-1000.slice/user@1000.service/app.slice/make-7.scope uid=1000 processes=10000
		workload boxed comm=$(printf '\033[31mx') exe=/app cgroup=$kube uid=1001 pid=300 thread=[x] label=night
		workload idle comm=(idle) uid=4294967295
		w main cpu-clock 0 20 hot+17@app
		w main cpu-clock 1 10 hot+17@app
		w main cpu-clock 1 10 hot+19@app
		w worker cpu-clock 1 40 warm@app
		w worker cpu-clock 1 15 hot+0x10@vmlinux-6.1.0
		w cc cpu-clock 0 45 hot+0x10@vmlinux-6.1.0
		w boxed cpu-clock 2 20 hot+17@app
		w boxed cpu-clock 2 10 hot+19@app
		w idle cpu-clock 0 30 0@idle
	END
}
# Of 200 samples 22 have a path: whose each is, is kept of all but two.
paths()
{
	cat <<-END
		owner main
		callpath cpu-clock complete 3 hot+17@app warm+8@app _start+1@app
		owner worker
		callpath cpu-clock complete 4 warm@app _start+1@app
		callpath cpu-clock cut 1 hot+0x10@vmlinux-6.1.0 warm+8@app
		owner cc
		callpath cpu-clock complete 5 hot+0x10@vmlinux-6.1.0 helper+2@app
		owner boxed
		callpath cpu-clock complete 2 hot+17@app helper+2@app
		owner idle
		callpath cpu-clock complete 5 0@idle
	END
}
{ profiles box 1700000000; workloads; echo finish; } | "$mkdb" new
{
	profiles box 1700000000
	echo "callpath cpu-clock complete 2 hot+17@app _start+1@app"
	workloads
	paths
	echo finish
} | "$mkdb" called
{ profiles box 1700000000; workloads; echo flush; profiles box 1700003600 | sed 1d; echo finish; } | "$mkdb" mixed
{ profiles box 1700000000; workloads; echo finish; } | "$mkdb" hosts
{ profiles lab 1700000000; workloads; echo finish; } | "$mkdb" hosts

# A program that ran on one of two hosts.
{
	profiles box 1700000000
	workloads
	echo finish
} | "$mkdb" alone
"$mkdb" alone <<-END
	platform lab
	epoch 1700000000
	profile file /opt/tool $app/app
	id fedcba9876543210fedcba9876543210fedcba98
	event cpu-clock 10000000
	at hot+17 40
	workload tool comm=tool exe=/opt/tool uid=0 pid=7
	w tool cpu-clock 0 40 hot+17@tool
	finish
END

# Names that would act on a terminal, in a browser or in a parser.
evil=$(printf '\033]0;x\007\342\200\256<b>"\\\377')
"$mkdb" evil <<-END
	platform box
	epoch 1700000000
	profile file /opt/app/app $app/app
	word label $evil
	event cpu-clock 10000000
	at hot+17 40
	workload evil comm=$evil exe=/opt/$evil cgroup=/system.slice/docker-${id%??}$evil.scope/$evil.service uid=0 pid=7 thread=$evil label=$evil
	w evil cpu-clock 0 40 hot+17@app
	finish
END

{
	echo "# each group has its share of the kernel; the sums are those of the flat profile"
	for key in comm exe pid uid cgroup unit container thread label host; do
		run dcpiprof -db new -by $key
	done
	run dcpiprof -db hosts -by host -no_header
	run dcpiprof -db hosts -by host -no_header -no_idle
	run dcpiprof -db hosts -by host -no_header app
	run dcpiprof -db alone -by host -no_header /opt/tool
	run dcpiprof -db new -by pid -no_header -label night
	run dcpiprof -db new -i
	echo "# options"
	run dcpiprof -db new -by comm -no_idle -no_header
	run dcpiprof -db new -i -no_idle -no_header
	run dcpiprof -db new -by comm -keep 60 -no_header
	run dcpiprof -db new -by comm -csl
	run dcpiprof -db new -by comm -no_header vmlinux-6.1.0
	run dcpiprof -db new -by comm nothing
	run dcpiprof -db new -by pid -json
	run dcpiprof -db new -by name
	run dcpiprof -db new -by comm -i
	run dcpiprof -db new -by comm -total
	echo "# restricted: each key, several of one, several keys"
	set -f
	for only in "-comm app" "-exe /opt/*" "-exe cc" "-pid 200" "-uid 100?" "-uid root" "-cgroup /system.slice/*" \
		"-unit app.service" "-unit make*.scope" "-container 0123*" "-container ${pod//_/-}" "-thread worker" \
		"-thread [x]" "-comm app -comm cc" "-comm app -thread app" "-comm app -uid 1000"; do
		# shellcheck disable=SC2086
		run dcpiprof -db new -no_header $only
	done
	set +f
	run dcpiprof -db new -pid 200 -thread app
	run dcpiprof -db new -by thread -comm app -no_header
	run dcpiprof -db new -by comm -label night
	run dcpiprof -db new -uid nobody-has-this-name
	echo "# all tools"
	run dcpilist -db new -comm app -no_header hot app
	run dcpitopcounts -db new -unit app.service -no_header
	run dcpistats -db new -set -comm app -set -comm cc
	run dcpidiff -db new -set -thread app -set -thread worker
	run dcpiprof -db new -json -comm app -pid 200
	echo "# hostile names"
	for key in comm exe pid cgroup unit container thread label; do
		run dcpiprof -db evil -by $key -no_header
		TZ=UTC LC_ALL=C run dcpitimeline -db evil -by $key -no_header
	done
	run dcpiprof -db evil -i -comm '*<b>*' -unit '*.service' -thread '*"*'
	echo "# call paths of some: leaves are the samples of these"
	run dcpicalltree -db called -unchecked -no_header
	run dcpicalltree -db called -unchecked -comm app
	run dcpicalltree -db called -unchecked -comm cc -no_header
	run dcpicalltree -db called -unchecked -label night -no_header
	run dcpicalltree -db called -unchecked -thread worker
	run dcpicalltree -db called -unchecked -comm app -json
	run dcpicallers -db called -unchecked -uid 1001 -no_header hot
	run dcpiprof -db called -unchecked -total -exe '/opt/*' -no_header
	run dcpiprof -db called -unchecked -comm app -caller warm
	run dcpicat called/*/box/callpaths
	run dcpicat -json called/*/box/callpaths
	for only in "" "-comm app" "-comm cc" "-label night" "-uid 1001" "-pid 200" "-since 2023-11-14T22:14:00Z"; do
		echo "# folded $only"
		# shellcheck disable=SC2086
		"$DCPI_BIN/dcpiexport" folded -db called -unchecked $only | sort >folded
		cat folded
		# shellcheck disable=SC2086
		"$DCPI_BIN/dcpiprof" -db called -json $only 2>err >flat.json
		python3 -c 'import json, sys
sums = sum(int(x.rsplit(" ", 1)[1]) for x in open("folded")), json.load(open("flat.json"))["events"][0]["samples"]
sys.exit("dcpiexport has %d samples, dcpiprof %d" % sums if sums[0] != sums[1] else 0)'
	done
	echo "# not kept by workload"
	run dcpicallers -db new -comm app
	run dcpicalltree -db new -comm app
	run dcpiprof -db new -comm app -caller hot
	run dcpiprof -db new -comm app -pids
	run dcpilist -db new -comm app -vprof hot
	echo "# epochs without workloads"
	run dcpiprof -db mixed -epoch all -by comm
	run dcpiprof -db mixed -epoch all -comm app
	run dcpiprof -by comm -no_header
	run dcpiprof -by host -no_header
	run dcpiprof -by version -no_header
	run dcpiprof -by label -no_header
	run dcpiprof -comm app
	run dcpiprof -i -no_header
} >out
compare workloads
# Nothing of them acts, and JSON is JSON.
! LC_ALL=C grep -P '[\x01-\x08\x0b-\x1f\x7f\xff]|\xe2\x80\xae' out || { echo "a name acts on the terminal"; exit 1; }
for key in comm exe pid cgroup unit container thread label; do
	for command in "dcpiprof -by" "dcpitimeline -by"; do
		# shellcheck disable=SC2086
		"$DCPI_BIN"/$command $key -db evil -json 2>err >json
		python3 -c 'import json; rows = json.load(open("json"))["rows"]; assert len(rows) == 1, rows' ||
			{ echo "$command $key -json"; exit 1; }
	done
done
