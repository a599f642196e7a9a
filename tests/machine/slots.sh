# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 exact
# Two slots take turns of a second: each event's samples, divided by the part of the time that the profile keeps for it, are
# those of a whole count within what a turn more or less makes. Cycles are instructions here.
. /test/oracle.sh
n=6000000000 p=10000019
begin -slot cycles:u:$p -slot "armv8_pmuv3/event=8,name=insns/u:$p"
/tests/counted $((n / 100))
end slots several
dcpicat "$db"/*/*/counted* | awk -v n=$n -v p=$p '
	$1 == "event" {
		k = split($3, part, ":")
		share = part[k] / 10000
		printf "%s: %d samples in %.2f of the time: %.1f of %.1f\n", part[1], $2, share, $2 / share, n / p
		good += share > 0.3 && share < 0.7 && $2 / share > 0.75 * n / p && $2 / share < 1.25 * n / p
		sum += $2
		shares += share
	}
	END {
		printf "%d samples of both, %.1f expected; %.3f of the time\n", sum, n / p, shares
		exit !(good == 2 && sum > n / p * 0.99 - 3 && sum < n / p + 3 && shares > 0.98 && shares < 1.01)
	}' || fail "turns"
