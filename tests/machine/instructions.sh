# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 exact
# shows: aarch64 1
# A program of N instructions, sampled each P of them, has N / P samples, give or take one: ten N and P by the event
# instructions, ten by cycles, each of which is an instruction here, five of them by the source perf.
# QEMU 7.2 sees that a counter of instructions has run over at the next exception only, the tick at the latest, 4,000,000
# instructions on: the periods of that event are long against this.
. /test/oracle.sh

# expect EVENT N P
expect()
{
	local samples
	begin -event "$1:u:$3"
	/tests/counted $(($2 / 100)) || fail "counted"
	end "$1"
	samples=$(samples_of /tests/counted)
	awk -v event="$1" -v n="$2" -v p="$3" -v s="${samples:-0}" 'BEGIN {
		printf "%s, %d of them, each %d: %d samples, %.2f expected\n", event, n, p, s, n / p
		exit !(s >= n / p - 1 && s <= n / p + 1) }' || fail "more than one off"
}

for pair in 220000000:40000000 300000000:40000000 250000000:100000000 350000000:100000000 450000000:60000000 \
	500000000:40000000 275000000:50000000 375000000:50000000 425000000:50000000 600000000:48000000; do
	expect instructions ${pair%:*} ${pair#*:}
done
source=bpf
for pair in 2000000:20011 3333300:33331 10000000:100003 12345600:54321 20000000:1000003 \
	40000000:65537 50000000:200003 77777700:333337 100000000:50021 200000000:1000000; do
	expect cycles ${pair%:*} ${pair#*:}
	[ $source = bpf ] && source=perf || source=bpf
done
