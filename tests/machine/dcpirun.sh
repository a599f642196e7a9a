# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 x86-64
# A user's own program, sampled from inside it and by perf events, with the routines that it makes.
. /src/tests/support/daemon.sh
echo 2 >/proc/sys/kernel/perf_event_paranoid
chmod 777 "$work"
for source in inprocess perf; do
	su -s /bin/bash nobody -c "dcpirun -source $source -db $work/$source /bin/examples/hello 2" || fail "dcpirun -source $source"
	dcpiprof -db "$work/$source" 2>/dev/null >"$work/prof"
	head -n 12 "$work/prof"
	for routine in sixty thirty ten; do
		grep -q " $routine  *hello\[" "$work/prof" || fail "$source: no routine '$routine'"
	done
done
