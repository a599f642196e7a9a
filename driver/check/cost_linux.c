/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cost of a sample's interrupt on a busy CPU: a loop reads the clock as fast as it can; between
 * two distant readings something else had the CPU. While a clock event interrupts ten thousand
 * times a second, the median of these gaps belongs to that event, since nothing else is as
 * frequent.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "check_internal.h"
#include "perf.h"

enum {
	SPIN_NS = 400000000,
	PERIOD_NS = 100000,
	NR_STEPS = 1001,
	NR_GAPS = 32768,
	NR_MIN = 500, /* interrupts that must stand out, or the machine is too uneasy to tell */
};

struct gaps {
	uint64_t *ns;
	size_t nr;
};

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* How long one reading takes, when nothing interrupts. */
static uint64_t median_step(void)
{
	uint64_t steps[NR_STEPS], last = base_now_ns();

	for (size_t i = 0; i < NR_STEPS; i++) {
		uint64_t now = base_now_ns();

		steps[i] = now - last;
		last = now;
	}
	qsort(steps, NR_STEPS, sizeof(steps[0]), compare);
	return steps[NR_STEPS / 2];
}

static void spin_gaps(uint64_t step, struct gaps *g)
{
	uint64_t last = base_now_ns(), end = last + SPIN_NS, now;
	/* Nothing between a slow reading of the clock and a fast interrupt. */
	uint64_t least = step * 8 > 400 ? step * 8 : 400;

	for (g->nr = 0; last < end; last = now) {
		now = base_now_ns();
		if (now - last > least && g->nr < NR_GAPS)
			g->ns[g->nr++] = now - last - step;
	}
	if (g->nr)
		qsort(g->ns, g->nr, sizeof(*g->ns), compare);
}

void check_spin(uint64_t ns)
{
	uint64_t end = base_now_ns() + ns;

	while (base_now_ns() < end)
		;
}

/* This CPU's clock, or where that is not allowed this thread's. No ring: the bare interrupt. */
static int open_clock(bool *own)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_type = PERF_SAMPLE_IP,
		.sample_period = PERIOD_NS,
		.disabled = 1,
	};
	int fd = perf_event_try(&attr, -1, sched_getcpu());

	*own = fd == -EACCES || fd == -EPERM;
	if (!*own)
		return fd;
	attr.exclude_kernel = attr.exclude_hv = 1;
	return perf_event_try(&attr, 0, -1);
}

static int measure(struct gaps *g, struct check_cost *out)
{
	uint64_t step = median_step();
	size_t before;
	int fd;

	spin_gaps(step, g);
	before = g->nr;
	fd = open_clock(&out->own);
	if (fd < 0)
		return fd;
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	spin_gaps(step, g);
	close(fd);
	out->nr = g->nr;
	out->measured = g->nr > NR_MIN && g->nr > 3 * before;
	if (g->nr) {
		out->gap_ns = g->ns[g->nr / 2];
		out->gap_90_ns = g->ns[g->nr * 9 / 10];
	}
	return 0;
}

int check_pin(cpu_set_t *old)
{
	cpu_set_t one;
	int cpu = sched_getcpu();

	if (cpu < 0 || sched_getaffinity(0, sizeof(*old), old) < 0)
		return -errno;
	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one) < 0 ? -errno : 0;
}

int check_cost_measure(struct check_cost *out)
{
	struct gaps g = { .ns = calloc(NR_GAPS, sizeof(*g.ns)) };
	cpu_set_t old;
	int r = g.ns ? check_pin(&old) : -ENOMEM;

	*out = (struct check_cost){ 0 };
	if (r >= 0) {
		r = measure(&g, out);
		sched_setaffinity(0, sizeof(old), &old);
	}
	free(g.ns);
	return r;
}
