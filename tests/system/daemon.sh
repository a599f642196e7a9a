#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A program whose functions do 60, 30 and 10 % of its work and measure how much of its time that is
# (the same loop at another address can be slower by a fifth: 71 % were seen, by both clocks):
# dynamic, static, static-pie, and running before the daemon: its shares, and how much of it is
# unknown. The kernel's vdso has its own image.
set -eu
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
need_root

cat >"$work/spin.c" <<'END'
#include <stdio.h>
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

static const struct {
	const char *name;
	void (*run)(unsigned long n);
	unsigned long parts;
} work[] = { { "sixty", sixty, 6 }, { "thirty", thirty, 3 }, { "ten", ten, 1 } };

static double cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/*
 * CPU time goes on while a virtual machine's host runs something else, and one sample comes of it: a
 * step, which takes a millisecond or two, counts for 5 ms at most.
 */
static double step(double *last)
{
	double now = cpu_time(), d = now - *last;

	*last = now;
	return d < 5e-3 ? d : 5e-3;
}

/* For so many seconds of CPU time; then what share each function had of it. */
int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1, used[3] = { 0 }, last = cpu_time();

	while (used[0] + used[1] + used[2] < seconds) {
		/* Rounds of random length, so that the sampler's period does not keep step with them. */
		unsigned long unit = 10000 + (unsigned long)rand() % 40000;

		for (int i = 0; i < 3; i++) {
			work[i].run(work[i].parts * unit);
			used[i] += step(&last);
		}
	}
	for (int i = 0; i < 3; i++)
		printf("%s %.2f\n", work[i].name, 100 * used[i] / (used[0] + used[1] + used[2]));
	return 0;
}
END
cc -O1 -o "$work/spin" "$work/spin.c"
cc -O1 -static -o "$work/spin-static" "$work/spin.c"
cc -O1 -static-pie -o "$work/spin-static-pie" "$work/spin.c"
# An image of its own: equal files are one image.
cc -O1 -Wl,--build-id=0x$(printf '%040x' $$) -o "$work/spin-early" "$work/spin.c"
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

# run NAME SECONDS: the program, its own word of its shares into NAME.truth.
run()
{
	"$work/$1" "$2" >"$work/$1.truth"
}
# It stands still while the daemon starts: that takes seconds on a busy machine.
"$work/spin-early" 4 >"$work/spin-early.truth" &
early=$!
at_end 'kill -CONT $early 2>/dev/null'
sleep 0.2
kill -STOP $early
start_daemon
kill -CONT $early
run spin 3 &
wait $! $early
run spin-static 3 &
one=$!
run spin-static-pie 3 &
wait $one $!
"$work/clock"
"$DCPI_BIN/dcpictl" flush

for program in spin spin-early spin-static spin-static-pie; do
	cp "$work/$program.truth" "$work/truth"
	for procedure in sixty thirty ten; do
		share_holds $procedure "$work/$program"
	done
done

# Where the clock source can be read without a system call, reading it is the vdso's work.
vdso=$("$DCPI_BIN/dcpiprof" -no_header | awk '$NF == "[vdso]" && $(NF - 1) ~ /gettime/ { s += $1 } END { print s + 0 }')
clock=$("$DCPI_BIN/dcpiprof" -no_header "$work/clock" | awk '$NF == "total" { print $1 }')
echo "clock source $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource): $vdso samples in the vdso's gettime, ${clock:-0} in the program"
case $(cat /sys/devices/system/clocksource/clocksource0/current_clocksource) in
tsc | kvm-clock) [ "$vdso" -gt "${clock:-0}" ] || fail "the vdso's samples are elsewhere" ;;
esac

# All that is unknown on the machine is below 1 % of these processes' samples alone.
samples=$("$DCPI_BIN/dcpiprof" -no_header -i | awk -v w="$work/spin" 'index($NF, w) == 1 { s += $1 } END { print s + 0 }')
unknown=$("$DCPI_BIN/dcpictl" status -json | grep -oE '"(unknown|unknown process|dynamic, unknown)":[0-9]+' |
	awk -F: '{ s += $2 } END { print s + 0 }')
echo "samples of the programs: $samples, unknown on the machine: $unknown"
[ "$samples" -gt 5000 ] || fail "only $samples samples of four programs that ran for 3 s each"
[ $((unknown * 100)) -le "$samples" ] || fail "$unknown samples are unknown"
stop_daemon
