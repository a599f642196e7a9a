# SPDX-License-Identifier: BSD-2-Clause
# machine: x86-64
# programs: clocks.so named
# A daemon notes what happens to the time: a suspend, a clock that is set back, a restart; dcpitimeline says so, and what
# CPUs idled by the kernel's own account.
. /src/tests/support/daemon.sh
export TZ=UTC COLUMNS=120 DCPI_CLOCKS=$work/clocks
clocks() { printf '%19d\n%19d\n' "$1" "$2" | dd of="$work/clocks" conv=notrunc 2>/dev/null; }
# becomes FIELD NUMBER
becomes()
{
	local i
	for ((i = 0; i < 600; i++)); do
		[ "$(status_field "$1")" != "$2" ] || return 0
		sleep 0.1
	done
	fail "$1: $(status_field "$1")"
}
idle_cs() { awk '$1 == "cpu" { printf "%d\n", $5 + $6 }' /proc/stat; }
work_a_while() { "$DCPI_BUILD/tests/named" 1500000000 alpha >/dev/null || fail "named"; "$DCPI_BIN/dcpiflush" >/dev/null || fail "flush"; }
begin() { LD_PRELOAD=$DCPI_BUILD/tests/clocks.so start_daemon -source bpf -event cpu-clock -callpaths 0 -vwindows 0; }
clocks -7200 0
from=$(idle_cs)
begin
within=$(idle_cs)
work_a_while
clocks -6600 600 # ten minutes of sleep
becomes suspends 1
work_a_while
clocks -6900 600 # set back by five minutes
becomes clock_sets 1
work_a_while
within=$(($(idle_cs) - within))
stop_daemon
from=$(($(idle_cs) - from))
clocks -5000 600
begin
work_a_while
stop_daemon
find "$db" -name workloads -exec "$DCPI_BIN/dcpicat" {} \; | grep '^note'
"$DCPI_BIN/dcpitimeline" -epoch all -by comm -slice 1m >"$work/slices"
cat "$work/slices"
grep 'not recorded .* the machine was suspended for \(600\|599\) s' "$work/slices" || fail "no suspend"
grep 'the clock was set back by \(300\|299\|301\) s' "$work/slices" || fail "no clock"
grep 'UTC: no daemon ran' "$work/slices" || fail "no restart"
first=$(ls "$db" | grep '^2' | sed -n 1p)
"$DCPI_BIN/dcpiprof" -epoch "$first" -i
noted=$("$DCPI_BIN/dcpiprof" -epoch "$first" -i | sed -nE 's/^idle .*\(([0-9]+)\.([0-9]+) of .* s\)$/\1\2/p')
echo "idle: $noted noted, from $within to $from"
[ "$noted" -ge $((within - 10)) ] && [ "$noted" -le $((from + 10)) ] || fail "idle"
