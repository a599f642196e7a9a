#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# On a terminal rows fit its width, the first column of names finds its procedure, long tables are cut, shares are coloured,
# and a pager shows the rest; parts of names and names without arguments find procedures.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
unset NO_COLOR DCPI_PAGER PAGER LESS COLUMNS
export TERM=xterm DCPI_PAGER=cat

vector=_ZNSt6vectorISt4pairINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEiESaIS7_EE9push_backERKS7_
find=_ZNSt3mapINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEiSt4lessIS5_ESaISt4pairIKS5_iEEE4findERS9_
"$mkdb" names </dev/null
{
	echo "image 62 cxx 4711 box /opt/a-folder-with-a-long-name/cxx"
	echo "run 0x7f0000001000 0 0x8000"
	echo "routine 0x7f0000001040 $vector e83b000000c3"
	echo "routine 0x7f0000001080 $find 89f8c3"
	echo "routine 0x7f00000010c0 a_routine_of_c_whose_name_is_far_longer_than_any_line_of_a_terminal_should_ever_be 89f8c3"
	for i in $(seq 60); do
		printf 'routine 0x7f0000002%02x0 step_%d 89f8c3\n' "$i" "$i"
	done
} | "$DCPI_BIN/../tests/mkjob" names/dyn/cxx.box.1.dyn >/dev/null
# Another process has other code of "twice".
for i in 2 3; do
	"$DCPI_BIN/../tests/mkjob" names/dyn/cxx.box.$i.dyn >/dev/null <<-END
		image 62 cxx 471$i box /opt/cxx
		run 0x7f0000001000 0 0x1000
		routine 0x7f0000001040 twice $([ $i = 2 ] && echo 89f801c0c3 || echo 8d043fc3)
	END
done
{
	printf 'platform box\nepoch 1700000000\nprofile dynamic cxx.box.1.dyn\nevent cpu-clock 1000000\n'
	echo "at $vector 400"
	echo "at $find 20"
	echo "at a_routine_of_c_whose_name_is_far_longer_than_any_line_of_a_terminal_should_ever_be 10"
	for i in $(seq 60); do
		echo "at step_$i 1"
	done
	for i in 2 3; do
		printf 'profile dynamic cxx.box.%d.dyn\nevent cpu-clock 1000000\nat twice %d\n' $i $((i * 2))
	done
	echo finish
} | "$mkdb" names
{
	printf 'platform box\nepoch 1700002800\nprofile named idle\nevent cpu-clock 1000000\nat 0 600\n'
	printf 'workload idle comm=(idle)\n'
	seq 0 59 | sed 's/.*/w idle cpu-clock & 10 0@idle/'
	echo finish
} | "$mkdb" hour
# Names and paths that are both too long: names get more of the row.
"$mkdb" both </dev/null
cp names/dyn/cxx.box.1.dyn both/dyn/
"$mkdb" both <<-END
	platform box
	epoch 1700000000
	profile dynamic cxx.box.1.dyn
	event cpu-clock 1000000
	at $vector 400
	at $find 20
	profile file /usr/lib/a-runtime-17-amd64/lib/server/of-its-own/libjvm.so $app/app
	event cpu-clock 1000000
	at hot+17 60
	callpath cpu-clock complete 30 $vector+5@cxx.box.1.dyn hot+8@libjvm.so
	$(for i in $(seq 15); do
		echo "callpath cpu-clock complete 2 $vector+5@cxx.box.1.dyn$(seq -f ' step_%g+2@cxx.box.1.dyn' "$i" -1 1 | tr -d '\n') hot+8@libjvm.so"
	done)
	finish
END
# Over two hours, an image by a long path, another by a short one, and a process in a long cgroup.
{
	cat <<-END
		platform box
		epoch 1700002800
		profile file /usr/lib/a-runtime-17-amd64/lib/server/of-its-own/libjvm.so $app/app
		event cpu-clock 1000000
		at hot+17 600
		profile dynamic cxx.box.1.dyn
		event cpu-clock 1000000
		at $vector 300
		at $find 300
		workload jvm comm=java exe=/usr/lib/a-runtime-17-amd64/bin/java cgroup=/kubepods.slice/kubepods-burstable.slice/run-7.scope
	END
	seq 0 59 | sed 's/.*/w jvm cpu-clock & 10 hot+17@libjvm.so/'
	seq 0 29 | sed "s/.*/w jvm cpu-clock & 10 $vector@cxx.box.1.dyn/"
	seq 30 59 | sed "s/.*/w jvm cpu-clock & 10 $find@cxx.box.1.dyn/"
	printf 'note start 1\nnote clock 2500 -90\n'
	printf 'note suspend 6000 3000\nnote clock 6001 3000\n'
	seq 100 119 | sed 's/.*/w jvm cpu-clock & 10 hot+17@libjvm.so/'
	echo finish
} >long.in
"$mkdb" long </dev/null
cp names/dyn/cxx.box.1.dyn long/dyn/
"$mkdb" long <long.in
export DCPIDB=names

on() # on COLUMNS COMMAND [ARGUMENT …]
{
	"$DCPI_SRC/tests/support/terminal.py" "$1" "$DCPI_BIN/$2" "${@:3}" || echo "exit $?"
}
show()
{
	echo "\$ $*"
	on "$@" | sed 's/\x1b\[\([0-9;]*\)m/<\1>/g'
	echo
}
{
	show 80 dcpiprof -keep 95
	NO_COLOR=1 show 110 dcpiprof -no_header
	NO_COLOR=1 show 80 dcpiprof -no_header -wide -keep 90
	NO_COLOR=1 show 80 dcpilist push_back
	NO_COLOR=1 show 80 dcpiprof -no_header -db both
	# Of deep levels the innermost are seen.
	NO_COLOR=1 show 80 dcpicalltree -unchecked -no_header -db both -cut 2
	# Code is cut at its end, addresses are whole, and images and sums go first where there is little room.
	NO_COLOR=1 show 80 dcpitopcounts -no_header -n 3 -db both
	NO_COLOR=1 show 150 dcpitopcounts -no_header -n 3 -db both
	NO_COLOR=1 show 60 dcpitopcounts -no_header -lines -n 3 -db both
	NO_COLOR=1 show 40 dcpilist -no_header -source -db both hot
	DCPI_PAGER="sed 's/^/> /'" NO_COLOR=1 show 80 dcpiprof -no_header -keep 90
	DCPI_PAGER="sed 's/^/> /'" NO_COLOR=1 show 80 dcpiprof no-such-image
	# The terminal has its columns behind a pager too, an interrupted command waits for its pager, and an answer that goes
	# to a file needs none.
	TZ=UTC LC_ALL=C DCPI_PAGER="sed 's/^/> /'" NO_COLOR=1 show 132 dcpitimeline -db hour
	# Bars have their room, and names what is left.
	export TZ=UTC LC_ALL=C.UTF-8
	show 80 dcpitimeline -db long -no_header
	NO_COLOR=1 show 80 dcpitimeline -db long -no_header -by procedure
	NO_COLOR=1 show 110 dcpitimeline -db long -no_header -by procedure
	NO_COLOR=1 show 80 dcpitimeline -db long -no_header -by cgroup
	unset LC_ALL
	# shellcheck disable=SC2016
	DCPI_PAGER='kill -INT $PPID; cat >/dev/null; echo the pager is left' show 80 dcpiprof
	DCPI_PAGER='echo there is a pager; cat' show 80 dcpireport -o page.html
	DCPI_PAGER='echo there is a pager; cat' show 80 dcpiexport -o folded.txt folded
	DCPI_PAGER='echo there is a pager; cat' show 80 dcpiexport -db hour folded
	run dcpilist -no_header std::map::find
	run dcpilist -no_header step_1
	run dcpilist -no_header step_
	run dcpilist -no_header twice
	run dcpilist -no_header pop_back
} >out
compare terminal

export NO_COLOR=1
for columns in 80 110; do
	on $columns dcpiprof -all -no_header >all
	[ "$(wc -l <all)" = 65 ] || { echo "-all leaves out rows"; exit 1; }
	if grep -E "^.{$((columns + 1))}" all; then
		echo "these rows are longer than $columns columns"
		exit 1
	fi
	# Behind the shares is a name, up to two blanks; the last of these is a version of two.
	sed -E 's/^ *[0-9]+ +[0-9.]+% +[0-9.]+% +([0-9]+[.][0-9]+ +)?//; s/  .*//; 5q' all >pasted
	while read -r name; do
		"$DCPI_BIN/dcpilist" "$name" >listing || { echo "'$name' finds nothing"; exit 1; }
	done <pasted
done
for by in image procedure cgroup; do
	on 80 dcpitimeline -db long -by $by >rows
	! LC_ALL=C.UTF-8 grep -E '^.{81}' rows || { echo "dcpitimeline -by $by is wider than 80 columns"; exit 1; }
done
on 80 dcpicalltree -unchecked -db both -cut 0 >rows
! LC_ALL=C.UTF-8 grep -E '^.{81}' rows || { echo "dcpicalltree is wider than 80 columns"; exit 1; }
# Elsewhere nothing is shortened, left out or coloured.
unset NO_COLOR
"$DCPI_BIN/dcpiprof" -no_header >plain
[ "$(wc -l <plain)" = 65 ]
grep -q 'std::char_traits<char>' plain
! grep -q "$(printf '\033\|\xe2\x80\xa6')" plain
