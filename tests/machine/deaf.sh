# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 exact
# shows: aarch64 3
# programs: deaf
# An interrupt that keeps all others away for a known time: of the overflows within, one sample comes, late, and stands at
# the instruction that was interrupted; none stands inside. The others are lost, as many as the time has periods: dcpid says so
# (missed), of a counter and of a clock.
. /test/oracle.sh
p=50021 n=200000000
begin -event cycles:$p
# Counts and samples are compared when the tables are read.
dcpiflush >/dev/null
before=$(missed)
read -r times ns < <(/tests/deaf /tests/counted $((n / 100)))
dcpiflush >/dev/null
after=$(missed)
end cycles
samples=$(samples_of /tests/counted)
inside=$(dcpiprof -no_header 2>/dev/null | awk '/bpf_prog_[0-9a-f]*_deaf/ { n += $1 } END { print n + 0 }')
awk -v p=$p -v n=$n -v times="$times" -v ns="$ns" -v samples="$samples" -v inside="$inside" -v missed=$((after - before)) 'BEGIN {
	due = (n + ns) / p
	lost = ns / p - times
	printf "%d cycles, %d times %.0f more deaf: %.1f samples due, %.1f lost, %.1f left; %d came, %d inside\n",
		n, times, ns / times, due, lost, due - lost, samples, inside
	# The kernel switches interrupts off elsewhere, too.
	printf "%d missed, of which %.1f while deaf\n", missed, lost
	exit !(!inside && times > 10 && lost > due / 10 && samples > (due - lost) * 0.97 - 3 &&
		samples < (due - lost) * 1.03 + 3 && missed > lost * 0.97 - 3 && missed < lost * 1.3)
}' || fail "lost overflows"

begin -event cpu-clock:50000
dcpiflush >/dev/null
before=$(missed)
read -r times ns < <(/tests/deaf /tests/counted $((n / 100)))
dcpiflush >/dev/null
after=$(missed)
end "a clock"
awk -v p=50000 -v times="$times" -v ns="$ns" -v missed=$((after - before)) 'BEGIN {
	lost = ns / p - times
	printf "a clock: %.1f lost, %d missed\n", lost, missed
	exit !(missed > lost - times && missed < lost + times)
}' || fail "missed"
