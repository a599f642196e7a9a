# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 exact
# shows: aarch64 3
# programs: deaf
# An interrupt that keeps all others away for a known time: of the overflows within, one sample comes, late, and none stands
# inside. The others are lost, as many as the time has periods: dcpid says so (missed), of a counter and of a clock. Where a
# period is longer than that time none is lost; late samples stand at the instruction that was interrupted, which has so many
# more than others of its loop.
. /test/oracle.sh
n=200000000

# deafened EVENT: counted runs while interrupts are away; sets $times and $ns of that, and $missed.
deafened()
{
	local before
	begin -event "$1"
	# Counts and samples are compared when the tables are read.
	dcpiflush >/dev/null
	before=$(missed)
	/tests/deaf /tests/counted $((n / 100)) >"$work/deaf" || fail "deaf"
	read -r times ns <"$work/deaf"
	dcpiflush >/dev/null
	missed=$(($(missed) - before))
	end "$1"
}

p=50021
deafened cycles:$p
samples=$(samples_of /tests/counted)
inside=$(dcpiprof -no_header 2>/dev/null | awk '/bpf_prog_[0-9a-f]*_deaf/ { n += $1 } END { print n + 0 }')
awk -v p=$p -v n=$n -v times="$times" -v ns="$ns" -v samples="$samples" -v inside="$inside" -v missed=$missed 'BEGIN {
	due = (n + ns) / p
	lost = ns / p - times
	printf "%d cycles, %d times %.0f more deaf: %.1f samples due, %.1f lost, %.1f left; %d came, %d inside\n",
		n, times, ns / times, due, lost, due - lost, samples, inside
	# The kernel switches interrupts off elsewhere, too.
	printf "%d missed, of which %.1f while deaf\n", missed, lost
	exit !(!inside && times > 10 && lost > due / 10 && samples > (due - lost) * 0.97 - 3 &&
		samples < (due - lost) * 1.03 + 3 && missed > lost * 0.97 - 3 && missed < lost * 1.3)
}' || fail "lost overflows"

p=433087
deafened cycles:$p
dcpicat "$db"/*/*/counted* | grep '^0x' | while read -r offset count _; do
	echo "at $(((offset >> 2) & 127)) $count"
done >"$work/places"
awk -v p=$p -v n=$n -v times="$times" -v ns="$ns" -v missed=$missed '
	$1 == "at" { got[$2] = $3; all += $3; places++; hits += deaf[$2]; next }
	FNR > 1 { deaf[$1] = $2 }
	END {
		for (i in got) {
			d = deaf[i] - hits / places
			cov += d * got[i]
			var += d * d
		}
		due = (n + ns) / p
		late = ns / times / p
		slope = cov / var
		sd = sqrt((all - late * hits) / places / var)
		printf "skid: %.1f samples due, %d came, %d missed, %.1f of them late; an instruction has %.2f more each time that it " \
			"is interrupted, give or take %.2f, of %.2f\n", due, all, missed, late * hits, slope, sd, late
		exit !(late < 1 && hits > 100 && all > due - 3 && all < due + 3 && missed <= 3 && sd < 0.3 &&
			slope > late - 3 * sd && slope < late + 3 * sd)
	}' "$work/deaf" "$work/places" || fail "skid"

p=50000
deafened cpu-clock:$p
awk -v p=$p -v times="$times" -v ns="$ns" -v missed=$missed 'BEGIN {
	lost = ns / p - times
	printf "a clock: %.1f lost, %d missed\n", lost, missed
	exit !(missed > lost - times && missed < lost + times)
}' || fail "missed"
