#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A program whose functions do 60, 30 and 10 % of its work, dynamic, static, static-pie, and running
# before the daemon: its shares, and how much of it is unknown. The kernel's vdso has its own image.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
need_root

cat >"$work/spin.c" <<'END'
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

#define SPIN(name)                                                                                 \
	__attribute__((noinline)) static void name(unsigned long n)                                \
	{                                                                                          \
		for (unsigned long i = 0; i < n; i++)                                              \
			sink = sink * 3 + i;                                                       \
	}
SPIN(sixty)
SPIN(thirty)
SPIN(ten)

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	/* Rounds differ in length, so that the sampler's period does not keep step with them. */
	for (unsigned long round = 0; clock() < end; round++) {
		unsigned long unit = 20000 + round * 7919 % 80000;

		sixty(6 * unit);
		thirty(3 * unit);
		ten(unit);
	}
	return 0;
}
END
cc -O1 -o "$work/spin" "$work/spin.c"
cc -O1 -static -o "$work/spin-static" "$work/spin.c"
cc -O1 -static-pie -o "$work/spin-static-pie" "$work/spin.c"
cp "$work/spin" "$work/spin-early"
cat >"$work/clock.c" <<'END'
#include <stdio.h>
#include <time.h>

int main(void)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		for (int i = 0; i < 1000; i++)
			clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_sec - start.tv_sec < 2);
	return 0;
}
END
cc -O1 -o "$work/clock" "$work/clock.c"

"$work/spin-early" 4 &
early=$!
start_daemon
"$work/spin" 3 &
wait $! $early
"$work/spin-static" 3 &
one=$!
"$work/spin-static-pie" 3 &
wait $one $!
"$work/clock"
"$DCPI_BIN/dcpictl" flush

# share PROGRAM PROCEDURE: percent of the program's samples.
share()
{
	"$DCPI_BIN/dcpiprof" -no_header "$work/$1" 2>>"$work/err" |
		awk -v p="$2" '$NF == "total" { total = $1; next } $4 == p { n = $1 }
			END { printf "%.2f\n", total ? 100 * n / total : -1 }'
}
# Each ran alone on one of two CPUs: 2,500 samples or more, so that 3 points are 3 standard deviations.
for program in spin spin-early spin-static spin-static-pie; do
	within "$program sixty" "$(share $program sixty)" 60 3
	within "$program thirty" "$(share $program thirty)" 30 3
	within "$program ten" "$(share $program ten)" 10 3
done

# Where the clock source can be read without a system call, reading it is the vdso's work.
vdso=$("$DCPI_BIN/dcpiprof" -no_header | awk '$NF == "[vdso]" && $(NF - 1) ~ /gettime/ { s += $1 } END { print s + 0 }')
clock=$("$DCPI_BIN/dcpiprof" -no_header "$work/clock" | awk '$NF == "total" { print $1 }')
echo "clock source $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource): $vdso samples in the vdso's gettime, $clock in the program"
case $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource) in
tsc | kvm-clock) [ "$vdso" -gt "$clock" ] || fail "the vdso's samples are elsewhere" ;;
esac

# All that is unknown on the machine is below 1 % of these processes' samples alone.
samples=$("$DCPI_BIN/dcpiprof" -no_header -i | awk -v w="$work/spin" 'index($NF, w) == 1 { s += $1 } END { print s + 0 }')
unknown=$("$DCPI_BIN/dcpictl" status -json | grep -oE '"(unknown|unknown process|dynamic, unknown)":[0-9]+' |
	awk -F: '{ s += $2 } END { print s + 0 }')
echo "samples of the programs: $samples, unknown on the machine: $unknown"
[ "$samples" -gt 5000 ] || fail "only $samples samples of four programs that ran for 3 s each"
[ $((unknown * 100)) -le "$samples" ] || fail "$unknown samples are unknown"
stop_daemon
