# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 exact
# An event in user mode alone, in the kernel alone, and in both. Counted at the same time, the first two add up to the third;
# each by itself, its samples stand in its mode, but for what waited for the end of a stretch without interrupts. (QEMU's
# counters beside that of cycles tell late that they ran over, so that several say nothing of places.)
. /test/oracle.sh
p=100003
work()
{
	/tests/counted 500000
	dd if=/dev/zero of=/dev/null bs=1 count=100000 2>/dev/null
	dcpiflush >/dev/null || fail "dcpiflush"
}

begin -event cycles:u:$p -event cycles:k:$p -event cycles:$p
work
end "three events" several
# due EVENT: what came and what was missed.
due()
{
	tr '{}' '\n\n' <"$work/status" | tr -d '"' | awk -F'[:,]' -v event="$1" '
		index($0, "name:" event ",") == 1 { for (i = 1; i < NF; i++) if ($i == "received" || $i == "missed") n += $(i + 1) }
		END { print n + 0 }'
}
awk -v u="$(due cycles:u)" -v k="$(due cycles:k)" -v both="$(due cycles)" 'BEGIN {
	print "user mode", u, "kernel", k, "both", both
	d = u + k - both
	exit !(u > 490 && k > 490 && d <= 3 + both / 200 && d >= -3 - both / 200)
}' || fail "the sum"

# in_mode EVENT: sets how many samples are of counted, in user mode and in the kernel.
in_mode()
{
	begin -event "$1:$p"
	work
	end "$1"
	read -r counted user kernel < <(dcpiprof -i -no_header 2>/dev/null | awk '
		$NF == "total" { next }
		$NF == "/tests/counted" { counted = $1 }
		$NF ~ /vmlinux|kernel|idle|bpf_prog/ { kernel += $1; next }
		{ user += $1 }
		END { print counted + 0, user + 0, kernel + 0 }')
	echo "$1: $counted of counted, $user in user mode, $kernel in the kernel"
}
in_mode cycles:u
[ "$counted" -ge 499 ] && [ "$counted" -le 501 ] || fail "counted in user mode"
[ "$kernel" -le $((user / 100)) ] || fail "samples of user mode in the kernel"
in_mode cycles:k
[ "$counted" -le 25 ] || fail "counted in the kernel"
[ "$user" -le $((kernel / 10)) ] && [ "$kernel" -gt 490 ] || fail "samples of the kernel in user mode"
