/* SPDX-License-Identifier: BSD-2-Clause */
/* How often a sample gets a trace by default, so that traces cost no more than their part of the
 * machine. */
#include "trace_parts.h"

/* In parts per million of all CPUs. What finds no account (a trace's flush to disk, the turns for
 * them) comes on top. */
enum { PART_PPM = 550 };
/* The time after which what was not spent is forgotten, and what was spent too early made good. */
#define HORIZON_NS  30000000000ull
#define INTERVAL_NS 1000000000ull
enum {
	EVERY_MIN = 10,
	EVERY_MAX = 512,
	STEPS = 4, /* so many looks for most of the way to another pace */
	BURST = 4, /* times the part where nothing was spent for that long: at the start, too */
};

static double part_of(const struct trace_pace *p, uint64_t ns)
{
	return (double)ns * p->nr_cpus * PART_PPM / 1e6;
}

static double limited(double v, double low, double high)
{
	return v < low ? low : v > high ? high : v;
}

void trace_pace_begin(struct trace_pace *p, uint32_t every, uint32_t nr_cpus, uint64_t now_ns)
{
	*p = (struct trace_pace){ .every = every, .nr_cpus = nr_cpus, .looked_ns = now_ns };
	p->left_ns = part_of(p, HORIZON_NS);
}

/* How often the part may be spent now. */
static double times_now(const struct trace_pace *p)
{
	double left = p->left_ns / part_of(p, HORIZON_NS);

	return left > 0 ? 1 + (BURST - 1) * left : limited(1 + left, 1. / STEPS, 1);
}

bool trace_pace_look(struct trace_pace *p, uint64_t now_ns, uint64_t spent_ns)
{
	const double all = part_of(p, HORIZON_NS);
	uint64_t passed = now_ns - p->looked_ns;
	double due, spent, wanted;
	uint32_t before = (uint32_t)p->every;

	if (passed < INTERVAL_NS)
		return false;
	due = part_of(p, passed);
	spent = (double)(spent_ns - p->spent_ns);
	p->looked_ns = now_ns;
	p->spent_ns = spent_ns;
	p->left_ns = limited(p->left_ns + due - spent, -all, all);
	wanted = p->every * spent / (due * times_now(p));
	p->every = limited(p->every + (wanted - p->every) / STEPS, EVERY_MIN, EVERY_MAX);
	return (uint32_t)p->every != before;
}
