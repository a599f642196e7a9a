#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Four programs of three users, in two cgroups and a container-like one with namespaces of its own, with named threads,
# that share libc and the kernel: each "dcpiprof -by" gives each group its CPU time, the kernel's and libc's part goes to
# the program that was in it, and all sums are the flat total.
set -eu -o pipefail
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
reachable_programs
cp "$DCPI_BUILD/tests/named" "$work/user"
cp "$work/user" "$work/named"
cp "$(command -v dd)" "$work/kern"
# Its time is memset's.
gcc -O1 -fno-builtin -x c -o "$work/libc" - <<-'END'
	#include <string.h>
	#include <time.h>
	static char block[1 << 15];
	int main(void) { while (clock() < 2 * CLOCKS_PER_SEC) for (int i = 0; i < 1000; i++) memset(block, i, sizeof(block)); }
END
chmod 755 "$work"/{user,named,kern,libc}

# In the unified hierarchy, or in one of version 1 that the kernel lists first.
hierarchy='' made=''
for folder in /sys/fs/cgroup/systemd "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)"; do
	[ -w "$folder/cgroup.procs" ] && mkdir "$folder/dcpi-$$.slice" 2>/dev/null || continue
	hierarchy=$folder
	break
done
[ -n "$hierarchy" ] || { echo "skipped: no cgroup can be made here"; exit 77; }
id=$(printf '%064d' $$)
for group in "dcpi-$$.slice/one-$$.service" "dcpi-$$.slice/docker-$id.scope"; do
	mkdir "$hierarchy/$group"
	made="$hierarchy/$group $made"
done
made="$made $hierarchy/dcpi-$$.slice"

# timed NAME COMMAND…: $work/NAME.time gets the CPU seconds that getrusage has of it, of the user's and of the kernel.
timed()
{
	local TIMEFORMAT='%U %S'
	{ time "${@:2}" >"$work/$1.out" 2>"$work/$1.err"; } 2>"$work/$1.time"
}
# in_group GROUP COMMAND…
in_group() { sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$hierarchy/dcpi-$$.slice/$1" "${@:2}"; }
as() { setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"; }

start_daemon
timed user in_group "one-$$.service" setpriv --reuid 65534 --regid 65534 --clear-groups "$work/user" 1500000000 alpha beta &
jobs=($!)
timed named "$work/named" 2000000000 gamma &
jobs+=($!)
timed kern in_group "docker-$id.scope" unshare -mnp --fork setpriv --reuid 65533 --regid 65533 --clear-groups \
	"$work/kern" if=/dev/zero of=/dev/null bs=4k count=4000000 &
jobs+=($!)
timed libc as 65533 "$work/libc" &
jobs+=($!)
# The user of a process can be asked while it lives (docs/decisions/workloads.md).
sleep 1
"$DCPI_BIN/dcpiflush" || fail "a flush meanwhile"
for job in "${jobs[@]}"; do
	wait "$job" || fail "a program: $(cat "$work"/*.err)"
done
flush_stored "groups"
for folder in $made; do
	rmdir "$folder" || fail "rmdir $folder"
done
account_holds "by groups"
stop_daemon

# has NAME…: CPU seconds of these programs; PART 1: the user's, 2: the kernel's, else both.
PART=''
has()
{
	local name
	for name; do cat "$work/$name.time"; done |
		awk -v part="$PART" '{ n += part == 1 ? $1 : part == 2 ? $2 : $1 + $2 } END { print n }'
}
all=$(has user named kern libc)
# of KEY GROUP OPTION…: samples of that group.
of()
{
	"$DCPI_BIN/dcpiprof" -by "$1" -no_header "${@:3}" >"$work/report" 2>"$work/err" || fail "-by $1: $(cat "$work/err")"
	awk -v g="$2" '$1 ~ /^[0-9]+$/ && index(" " $0 " ", " " g " ") { n += $1 } END { print n + 0 }' "$work/report"
}
sum=0
for name in user named kern libc; do
	sum=$((sum + $(of comm $name)))
done
# share TEXT SAMPLES SECONDS: its percentage of the four programs, within 3 points and what chance makes.
share()
{
	within "$1" "$(awk -v n="$2" -v all="$sum" 'BEGIN { print 100 * n / all }')" \
		"$(awk -v n="$3" -v all="$all" 'BEGIN { print 100 * n / all }')" \
		"$(awk -v all="$sum" 'BEGIN { print 3 + 4 * 50 / sqrt(all) }')"
}
# Other programs of these users may run besides: the parser of the daemon's is one.
ours=(-exe "$work/user" -exe "$work/named" -exe "$work/kern" -exe "$work/libc")
for name in user named kern libc; do
	share "-by comm: $name" "$(of comm $name)" "$(has $name)"
	share "-by exe: $name" "$(of exe "$work/$name")" "$(has $name)"
done
share "-by pid: named" "$(of pid named)" "$(has named)"
share "-by uid: 65534" "$(of uid 65534 "${ours[@]}")" "$(has user)"
share "-by uid: 65533" "$(of uid 65533 "${ours[@]}")" "$(has kern libc)"
share "-by uid: 0" "$(of uid 0 "${ours[@]}")" "$(has named)"
share "-by unit" "$(of unit "one-$$.service")" "$(has user)"
share "-by container" "$(of container "$(printf '%.12s' "$id")")" "$(has kern)"
share "-by cgroup: a service" "$(of cgroup "/dcpi-$$.slice/one-$$.service")" "$(has user)"
share "-by cgroup: a container" "$(of cgroup "/dcpi-$$.slice/docker-$id.scope")" "$(has kern)"
for thread in alpha beta; do
	share "-by thread: $thread" "$(of thread $thread)" "$(awk -v t=$thread '$1 == t { print $2 / 1e9 }' "$work/user.out")"
done
share "-by thread: gamma" "$(of thread gamma)" "$(has named)"

# in_image NAME IMAGE: samples of that program in it.
in_image()
{
	"$DCPI_BIN/dcpiprof" -i -no_header -comm "$1" >"$work/report" 2>"$work/err" || fail "-comm $1: $(cat "$work/err")"
	awk -v re="$2" '$1 ~ /^[0-9]+$/ && $NF ~ re { n += $1 } END { print n + 0 }' "$work/report"
}
for name in user named kern libc; do
	PART=2
	share "the kernel for $name" "$(in_image $name '^vmlinux')" "$(has $name)"
	PART=1
	share "code of users in $name" "$(in_image $name '^/')" "$(has $name)"
done
[ "$(in_image libc '/libc[.-]')" -ge $(($(in_image libc '^/') * 9 / 10)) ] || fail "memset is in no libc: $(cat "$work/report")"

# Each way of grouping has the flat total.
flat=$("$DCPI_BIN/dcpiprof" -i -no_header | awk '$1 ~ /^[0-9]+$/ && $NF != "total" { n += $1 } END { print n }')
for key in comm exe pid uid cgroup unit container thread label host; do
	"$DCPI_BIN/dcpiprof" -by $key -no_header >"$work/report"
	grouped=$(awk '$1 ~ /^[0-9]+$/ && $NF != "total" { n += $1 } END { print n }' "$work/report")
	[ "$grouped" = "$flat" ] || fail "-by $key has $grouped samples, -i $flat: $(cat "$work/report")"
done
