/* SPDX-License-Identifier: BSD-2-Clause */
#include "perf_internal.h"

/* New periods break the running one off; at most a two-hundredth of all is lost by that. */
enum { PERIODS_BETWEEN_DRAWS = 100 };

static void grow(uint64_t *to, uint64_t value)
{
	if (value > *to)
		*to = value;
}

void perf_count_read(struct perf_count *c, const struct perf_reading *r)
{
	grow(&c->now.value, r->value);
	grow(&c->now.enabled_ns, r->enabled_ns);
	grow(&c->now.running_ns, r->running_ns);
	grow(&c->now.lost, r->lost);
}

/* A clock's value is the time that it ran; that of others says nothing of what was missed. */
static uint64_t periods_since_draw(const struct perf_count *c)
{
	return c->period ? (c->now.running_ns - c->drawn.running_ns) / c->period : 0;
}

bool perf_count_may_draw(const struct perf_count *c)
{
	return c->period && (c->now.value - c->drawn.value) / PERIODS_BETWEEN_DRAWS >= c->period;
}

void perf_count_draw(struct perf_count *c, uint64_t period)
{
	c->due += periods_since_draw(c);
	c->drawn = c->now;
	c->period = period;
}

void perf_count_close(struct perf_count *c)
{
	c->due += periods_since_draw(c);
	c->past.value += c->now.value;
	c->past.running_ns += c->now.running_ns;
	c->past.lost += c->now.lost;
	c->now = c->drawn = (struct perf_reading){ 0 };
}

/* It never shrinks: a sample may come late. */
void perf_count_miss(struct perf_count *c)
{
	uint64_t due = c->due + periods_since_draw(c), had = c->received + perf_count_lost(c);

	if (due > had)
		grow(&c->missed, due - had);
}

uint64_t perf_count_value(const struct perf_count *c)
{
	return c->past.value + c->now.value;
}

uint64_t perf_count_running_ns(const struct perf_count *c)
{
	return c->past.running_ns + c->now.running_ns;
}

uint64_t perf_count_lost(const struct perf_count *c)
{
	return c->past.lost + c->now.lost;
}

double perf_count_enabled(uint64_t running_ns, uint64_t all_ns)
{
	double part = all_ns ? (double)running_ns / (double)all_ns : 1;

	return part > 0.999 ? 1 : part;
}
