#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpictl register: code that a process has copied out of a file has that file's procedures, from then
# on; of one's own processes only, and only what is there. Then the same process by a perf map, a very long one.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
reachable_programs
object=$work/remap_0.so
cp "$DCPI_BUILD/tests/remap_0.so" "$object"
id=$(readelf -n "$object" | awk '/Build ID/ { print $3 }')
as() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }

start_daemon
# Another user, who asks as he likes, registers in a process of his own: only what he has opened to read himself, and
# of all else he learns nothing, not even whether it is there. The same file twice is known by its identity.
secret=$work/secret said=$work/said
cp "$object" "$secret"
objcopy --remove-section .note.gnu.build-id "$secret" || fail "objcopy"
chmod 600 "$secret"
cp "$secret" "$work/mine.so"
chmod 644 "$work/mine.so"
chown 65534 "$work/mine.so"
chmod 755 "$work"
coproc nobody { exec setpriv --reuid=65534 --regid=65534 --clear-groups "$DCPI_BUILD/tests/copy_code" "$object" 200; }
theirs=$nobody_PID
read -r at room <&"${nobody[0]}" || fail "copy_code of nobody"

# say IMAGE [HOW FILE]: a request of user 65534, as it stands; the answer without the image's name. Once more where the
# user's time is used up, which other programs of this user may take, and a reader that waits for a CPU.
say()
{
	local image=$1 where i
	shift
	where=$(stat -c '"dev_major":%Hd,"dev_minor":%Ld,"inode":%i' "$image" 2>/dev/null || echo '"inode":1')
	for ((i = 0; i < 60; i++)); do
		as "$DCPI_BUILD/tests/control_say" "{\"cmd\":\"register\",\"pid\":$theirs,\"start\":$((at)),\"size\":$room,$where,\"image\":\"$image\",\"name\":\"leaked\"}" "$@" >"$said" ||
			fail "control_say $*"
		grep -q 'too much was asked' "$said" || break
		sleep 1
	done
	sed -i "s,$image,IMAGE," "$said"
}
say "$work/nothing"
cp "$said" "$work/said-nothing"
grep -q '"ok":false' "$said" || fail "what is not there: $(cat "$said")"
for how in '' "p $secret" "r /etc/passwd" "r /proc/self/stat" "w $work/mine.so"; do
	say "$secret" $how
	cmp "$said" "$work/said-nothing" || fail "a file that others may not read, with '$how': $(cat "$said"), else $(cat "$work/said-nothing")"
done
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
! ls "$db"/2*/*/ | grep leaked || fail "a profile of a file that its client may not read"
say "$work/mine.so" r "$work/mine.so"
grep -q '"ok":true' "$said" || fail "his own file: $(cat "$said")"
echo >&"${nobody[1]}"
read -r spent <&"${nobody[0]}" || fail "copy_code of nobody does not end"
wait $theirs
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
ls "$db"/2*/*/ | grep -q leaked || fail "no profile of his own file: $(ls "$db"/2*/*/)"

coproc copier { exec "$DCPI_BUILD/tests/copy_code" "$object" 1500; }
pid=$copier_PID
read -r start size <&"${copier[0]}" || fail "copy_code"

refused()
{
	local text=$1 status=0
	shift
	"$@" 2>"$work/err" || status=$?
	[ $status = 1 ] && grep -q -- "$text" "$work/err" || fail "'$*' ends with $status: $(cat "$work/err")"
}
register="$DCPI_BIN/dcpictl register"
refused "process $pid is not yours" as $register $pid "$start" "$size" "$id" "$object" copied
refused "no process 99999999 " $register 99999999 "$start" "$size" "$id" "$object" copied
refused 'no executable memory' $register $pid 0x1000 "$size" "$id" "$object" copied
refused 'no executable memory' $register $pid "$start" 99999999 "$id" "$object" copied
# By itself its code would stand at its own addresses, where this process has nothing.
refused 'no executable memory' $register $pid "$object" copied
refused 'another identity' $register $pid "$start" "$size" 00ff "$object" copied
mkfifo "$work/fifo"
refused 'fifo' $register $pid "$start" "$size" "$id" "$work/fifo" copied

$register $pid "$start" "$size" "$id" "$object" copied || fail "register"
echo >&"${copier[1]}"
read -r spent <&"${copier[0]}" || fail "copy_code does not end"
wait $pid
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
account_holds "registered"
"$DCPI_BIN/dcpiprof" -no_header -p "$object" "$object" >"$work/prof" || fail "dcpiprof: $(cat "$work/prof")"
cat "$work/prof"
count() { awk -v name="$1" 'NF > 1 && $(NF - 1) == name { sum += $1 } END { print sum + 0 }' "$work/prof"; }
# A sample for each millisecond of its CPU time, less what the clock's calls took and the kernel; the
# routines have half each. Five standard deviations, and as much as a virtual CPU that is away takes.
reach_of() { awk -v n="$1" -v m="$(missed)" 'BEGIN { printf "%d\n", 5 * sqrt(n) + n / 10 + m }'; }
reach=$(reach_of "$spent")
within "samples of copied code" $(($(count slot_0) + $(count shared))) "$spent" "$reach"
within "half of them in slot_0" "$(count slot_0)" $((spent / 2)) "$reach"
# It has the given name too.
"$DCPI_BIN/dcpicat" "$db"/2*/*/copied.file."$id"* >"$work/cat" || fail "dcpicat"
grep -qx 'path  *copied' "$work/cat" || fail "no name"
# What was sampled here says of what machine.
grep -qx "cpucount  *$(getconf _NPROCESSORS_ONLN)" "$work/cat" || fail "no number of CPUs: $(cat "$work/cat")"
stop_daemon
rm -rf "$db"

# Into a file that its runtime goes on in, as SBCL does in its core: the code is not the file's.
start_daemon
head -c 65536 /dev/zero >"$work/core"
coproc copier { exec "$DCPI_BUILD/tests/copy_code" "$object" 500 "$work/core"; }
pid=$copier_PID
read -r start size <&"${copier[0]}" || fail "copy_code"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
echo >&"${copier[1]}"
read -r spent <&"${copier[0]}" || fail "copy_code does not end"
wait $pid
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
account_holds "code written into a file's mapping"
"$DCPI_BIN/dcpiprof" -i -no_header >"$work/prof" || fail "dcpiprof -i"
dynamic=$(awk '/ copy_code: dynamic, unnamed/ { sum += $1 } END { print sum + 0 }' "$work/prof")
within "code in no file" "$dynamic" "$spent" "$(reach_of "$spent")"
! grep "$work/core" "$work/prof" || fail "the code is charged to the file"
stop_daemon
rm -rf "$db"

# In memory that could be shared, as PHP's JIT has it, with a perf map that goes when its program does: the daemon
# hears of the code at once, not at its next drain (ten minutes).
# Unwind tables of the files that run meanwhile, and traces, would take memory beside it.
start_daemon -drain 600000 -callpaths 0 -vwindows 0
before=$(status_field rss_kb)
coproc copier { exec "$DCPI_BUILD/tests/copy_code" "$object" 1000 shared; }
pid=$copier_PID map=/tmp/perf-$copier_PID.map
read -r start size <&"${copier[0]}" || fail "copy_code"
echo "${start#0x} $(printf %x "$size") by its map" >"$map"
# Very many lines.
awk 'BEGIN { for (i = 0; i < 400000; i++) printf "7e%08x 10 a routine with a name of some length, number %d\n", 16 * i, i }' >>"$map"
size_kb=$(($(wc -c <"$map") / 1024))
for ((i = 0; i < 600; i++)); do
	[ "$(status_field clients)" = 0 ] || break
	sleep 0.1
done
echo >&"${copier[1]}"
read -r spent <&"${copier[0]}" || fail "copy_code does not end"
wait $pid
rm -f "$map"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
"$DCPI_BIN/dcpiprof" -no_header copy_code >"$work/prof" || fail "dcpiprof"
grep -q 'by its map' "$work/prof" || { cat "$work/prof" >&2; fail "the perf map was not read in time"; }
# The daemon gives back the memory of a process that is gone. Three quarters of the map's text are much less than
# it took, and more than images of other programs take that ran meanwhile.
if ! sanitized; then
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	echo "memory before a perf map of $size_kb KiB $before KiB, after it $(status_field rss_kb)"
	[ "$(status_field rss_kb)" -le $((before + size_kb * 3 / 4)) ] || fail "the memory is kept"
fi
stop_daemon
