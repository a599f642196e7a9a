# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 exact
# shows: aarch64 4
# Two events more than the CPU has counters for them take turns: each says for what part of the time it was counted, and
# its samples divided by that are those of a whole count, within three standard deviations of a number of samples.
. /test/oracle.sh
counters=$(dmesg | sed -nE 's/.* ([0-9]+) counters available.*/\1/p')
[ "${counters:-0}" -gt 1 ] || fail "the kernel names no counters"
events=$((counters + 1)) # one of the counters counts cycles alone
n=2000000000 p=5000003
for ((i = 1; i <= events; i++)); do
	specs+=(-event "armv8_pmuv3/event=8,name=i$i/u:$p")
done
begin "${specs[@]}"
/tests/counted $((n / 100))
end multiplex several
dcpicat "$db"/*/*/counted* | awk -v n=$n -v p=$p -v events=$events -v counters=$((counters - 1)) '
	$1 == "event" {
		split($3, part, ":")
		share = part[length(part)] / 10000
		whole = $2 / share
		error = 3 * sqrt(n / p / share)
		printf "%s: %d samples in %.2f of the time: %.1f of %.1f, give or take %.1f\n", part[1], $2, share, whole, n / p, error
		if (whole < n / p - error || whole > n / p + error || share > 0.95) bad++
		good++
		shares += share
	}
	END {
		printf "%.2f counters of %d in use\n", shares, counters
		exit bad || good != events || shares > counters * 1.01 || shares < counters * 0.95
	}' || fail "extrapolated counts"
