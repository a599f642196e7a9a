#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpilabel: a program's samples by label, over fork, exec and dynamic code. The sums by label are those
# of the processes that ran under it, to the sample (dcpid -bypid tells these); what they spent, their
# own clocks say.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
need_root
spin=$DCPI_BUILD/tests/spin_slot_0
label=$DCPI_BIN/dcpilabel
export spin

start_daemon -bypid spin_slot_0
# A run: the program itself, then as the child of a child, by fork and exec. Their pids, and what each
# took of the CPU (the third word of "SLOT NANOSECONDS" lines), go to files.
cat >"$work/program" <<'END'
#!/bin/sh
sh -c 'echo $$ >>"$0.pids"; exec "$spin" 3 "$1" 3>>"$0.ns"' "$1" "$2"
(sh -c 'echo $$ >>"$0.pids"; exec "$spin" 3 "$1" 3>>"$0.ns"' "$1" "$2")
exec sh -c 'echo $$ >>"$0.pids"; exec "$spin" 3 "$1" 3>>"$0.ns"' "$1" "$2"
END
chmod +x "$work/program"
"$label" a "$work/program" "$work/a" 200000000 &
"$label" b/2 "$work/program" "$work/b" 400000000 &
"$label" a "$DCPI_BIN/examples/hello" 1 >/dev/null &
"$label" b/2 "$DCPI_BIN/examples/hello" 1 >/dev/null &
"$DCPI_BIN/examples/hello" 1 >/dev/null
wait %1 %2 %3 %4 || fail "a run"
# The same label again goes on in the same profiles.
"$label" a "$work/program" "$work/a" 100000000 || fail "a run"
"$work/program" "$work/none" 100000000 || fail "a run"
"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
account_holds "labels"

# samples NAME [OPTION…]: of the images of that name
samples()
{
	"$DCPI_BIN/dcpiprof" -i -no_header "${@:2}" 2>/dev/null |
		awk -v name="$1" '{ sub(/.*\//, "", $NF) } $NF ~ "^" name "(\\[|$)" { sum += $1 } END { print sum + 0 }'
}
# by_pid FILE: of the processes in it
by_pid()
{
	"$DCPI_BIN/dcpiprof" -i -no_header -pids 2>/dev/null | awk -v file="$1" '
		BEGIN { while ((getline pid < file) > 0) want["spin_slot_0[" pid "]"] = 1 }
		{ sub(/.*\//, "", $NF) }
		$NF in want { sum += $1; nr++ }
		END { print sum + 0, nr + 0 }'
}
all=$(samples spin_slot_0)
sum=0
for run in a b none; do
	spent=$(awk '{ sum += $2 } END { printf "%d\n", sum / 1e6 }' "$work/$run.ns")
	read -r of nr < <(by_pid "$work/$run.pids")
	[ "$nr" = "$(wc -l <"$work/$run.pids")" ] || fail "$nr processes of $run"
	# A sample for each millisecond of CPU time; what a virtual CPU was away for counts as that too.
	within "samples of $run by its clock" "$of" "$spent" \
		"$(awk -v n="$spent" -v m="$(missed)" 'BEGIN { printf "%d\n", 5 * sqrt(n) + n / 10 + m }')"
	case $run in
	a) labelled=$(samples spin_slot_0 -label a) ;;
	b) labelled=$(samples spin_slot_0 -label b/2) ;;
	none) labelled=$((all - sum)) ;;
	esac
	sum=$((sum + labelled))
	[ "$labelled" = "$of" ] || fail "$run: $labelled by label, $of by process"
done
[ $sum = "$all" ] || fail "$sum by label, $all in all"

# Dynamic code: each run its own, that without a label the rest; each had a second to spin in, of which
# the three of them and two others shared the CPUs.
a=$(samples hello -label a) b=$(samples hello -label b/2) hello=$(samples hello)
echo "hello: $a of a, $b of b/2, $hello in all"
[ "$a" -gt 10 ] && [ "$b" -gt 10 ] && [ $((a + b)) -lt "$hello" ] || fail "dynamic code by label"
"$DCPI_BIN/dcpiprof" -no_header -label a hello 2>/dev/null | grep -q ' sixty' || fail "no routine under a label"
"$DCPI_BIN/dcpicat" "$db"/2*/*/hello-*.dynamic | grep -c '^label' >"$work/labels"
[ "$(cat "$work/labels")" = 2 ] || fail "$(cat "$work/labels") profiles of dynamic code with a label"

# It ends as its program does.
ends()
{
	local want=$1 status=0
	shift
	"$@" 2>"$work/err" || status=$?
	[ $status = "$want" ] || fail "'$*' ends with $status: $(cat "$work/err")"
}
ends 7 "$label" x sh -c 'exit 7'
ends 137 "$label" x sh -c 'kill -9 $$'
ends 0 "$DCPI_BIN/dcpictl" label x sh -c '[ "$1" = -n ]' sh -n
ends 127 "$label" x "$work/none-such"
ends 126 "$label" x "$work"
ends 2 "$label" x
ends 125 "$label" "two words" true
grep -q 'no label' "$work/err" || fail "a bad label: $(cat "$work/err")"

# Who has a label keeps it when the daemon is killed, and another one begins.
"$label" kept "$spin" 3 60000000000 3>/dev/null &
spinning=$!
at_end 'kill $spinning 2>/dev/null'
for ((i = 0; i < 600; i++)); do
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	grep -s "^$spinning .* kept\$" "$DCPI_RUN/labels" >/dev/null && break
	sleep 0.05
done
[ $i -lt 600 ] || fail "no label is kept: $(cat "$DCPI_RUN/labels")"
kill -KILL "$daemon"
wait_for_end "$daemon" || fail "a killed daemon does not end"
daemon=
before=$(samples spin_slot_0 -epoch all -label kept)
start_daemon
for ((i = 0; i < 600; i++)); do
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	[ "$(samples spin_slot_0 -epoch all -label kept)" -le $((before + 20)) ] || break
	sleep 0.05
done
[ $i -lt 600 ] || fail "no sample has the label that was kept: $(cat "$DCPI_RUN/labels")"
kill $spinning

# The log: root's, as many lines as are asked for, the last one last; the daemon may have said more since.
"$DCPI_BIN/dcpiepoch" >"$work/epoch" || fail "dcpiepoch"
"$DCPI_BIN/dcpictl" log -n 20 >"$work/lines"
cut -d ' ' -f 2- "$work/lines" | grep -qxF "info: $(cat "$work/epoch")" || fail "log: $(cat "$work/lines")"
[ "$("$DCPI_BIN/dcpictl" log -n 1 | wc -l)" = 1 ] || fail "not one line of log"
[ "$("$DCPI_BIN/dcpictl" log | wc -l)" -gt 1 ] || fail "one line of log"
stop_daemon
