/* SPDX-License-Identifier: BSD-2-Clause */
/* The last part of "dcpid -check": what sampling costs here. */
#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "check_internal.h"

enum { FREQUENCY = 1000 };

/* The scheduler's ticks a second: the coarse clock moves with them. 0: not known. */
static unsigned int ticks_per_second(void)
{
	struct timespec t;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &t) < 0 || t.tv_sec || t.tv_nsec <= 0)
		return 0;
	return (unsigned int)((1000000000 + t.tv_nsec / 2) / t.tv_nsec);
}

static double microseconds(uint64_t ns)
{
	return (double)ns / 1000;
}

/* Of a second, in percent. */
static double percent(uint64_t ns, double frequency)
{
	return (double)ns * frequency / 1e7;
}

static void tell_interrupt(struct check_report *c, struct check_cost *cost)
{
	int r = check_cost_measure(cost);

	if (r < 0)
		check_item(c, "interrupt of a sample", "not measured: %s", base_strerror(r));
	else if (!cost->measured)
		check_item(c, "interrupt of a sample",
			   "not measured: too much else runs here (%zu interruptions)", cost->nr);
	else
		check_item(
			c, "interrupt of a sample",
			"%.1f us of a busy CPU, nine of ten below %.1f us (%zu of cpu-clock, %s)",
			microseconds(cost->gap_ns), microseconds(cost->gap_90_ns), cost->nr,
			cost->own ? "this process's own" : "counting not included");
}

static void tell_program(struct check_report *c, const char *event, struct check_program *p)
{
	char what[32];
	int r = check_bpf_measure(event, p);

	snprintf(what, sizeof(what), "counting, %s", event);
	if (r < 0) {
		*p = (struct check_program){ 0 };
		check_item(c, what, "not measured: %s", base_strerror(r));
		return;
	}
	check_item(c, what,
		   "%" PRIu64 " ns a sample (%" PRIu64 " samples, %" PRIu64
		   " runs, of each an empty program's %" PRIu64 " ns taken off)",
		   p->ns, p->nr, p->runs, p->empty);
}

static void tell_idle(struct check_report *c, struct check_idle *idle)
{
	int r = check_idle_measure(FREQUENCY, idle);

	if (r == -EBUSY)
		check_item(c, "an idle CPU",
			   "not measured: other work came up (CPU %d idle %.0f %%, then %.0f %%)",
			   idle->cpu, 100 * idle->idle, 100 * idle->idle_on);
	else if (r < 0)
		check_item(c, "an idle CPU", "not measured: %s",
			   r == -EOPNOTSUPP ? "this kernel does not account for idling"
					    : base_strerror(r));
	else
		check_item(
			c, "an idle CPU",
			"%.0f samples of %d a second; woken %.0f times a second, else %.0f; idle "
			"%.1f %%, else %.1f %% (CPU %d)",
			idle->samples, FREQUENCY, idle->wakes_on, idle->wakes, 100 * idle->idle_on,
			100 * idle->idle, idle->cpu);
	idle->measured = r >= 0;
}

static void summarize(struct check_report *c, const struct check_cost *cost,
		      const struct check_idle *idle, const struct check_program *clock,
		      const struct check_program *tick)
{
	unsigned int hz = ticks_per_second();
	double lost = 100 * (idle->idle - idle->idle_on);

	if (cost->measured)
		check_item(c, "cpu-clock at 1000 Hz", "costs about %.2g %% of a busy CPU",
			   percent(cost->gap_ns + clock->ns, FREQUENCY));
	if (idle->measured && lost > 0.1)
		check_item(c, "", "and about %.1f %% of an idle one", lost);
	else if (idle->measured)
		check_item(c, "", "and below what can be seen (0.1 %%) of an idle one");
	if (c->has_tick && tick->nr && hz)
		check_item(c, "tick",
			   "at %u Hz about %.2g %% of a busy CPU, nothing of an idle one", hz,
			   percent(tick->ns, hz));
	else if (hz)
		check_item(c, "tick", "comes %u times a second; its samples cannot be had here",
			   hz);
}

void check_costs(struct check_report *c)
{
	struct check_program clock = { 0 }, tick = { 0 };
	struct check_idle idle = { 0 };
	struct check_cost cost = { 0 };

	check_head(c, "cost, measured now");
	tell_interrupt(c, &cost);
	if (c->has_bpf)
		tell_program(c, "cpu-clock", &clock);
	if (c->has_tick)
		tell_program(c, "tick", &tick);
	tell_idle(c, &idle);
	summarize(c, &cost, &idle, &clock, &tick);
}
