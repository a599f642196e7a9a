/* SPDX-License-Identifier: BSD-2-Clause */
/* The sampler's statistics and description. */
#include <inttypes.h>

#include "perf_internal.h"

/* ---- counting -------------------------------------------------------------------------------- */

/* A clock that some mode stops goes on while its samples are kept back: nothing tells them. */
static bool tells_missed(const struct perf_sampler *s, size_t event)
{
	const struct event_spec *spec = &s->specs[event];

	return spec->clock && s->pid < 0 && !spec->exclude_user && !spec->exclude_kernel;
}

static void account_event(struct perf_sampler *s, size_t event, bool received)
{
	uint64_t value = 0, running = 0, all_ns = 0, came = s->somewhere[event], lost = 0,
		 missed = 0;
	struct driver_stats *st = &s->d->stats;
	struct driver_event *e = &s->d->events[event];

	for (size_t i = 0; i < s->nr_cpus; i++) {
		struct perf_count *c = &s->cpus[i].events[event].count;

		if (received && tells_missed(s, event))
			perf_count_miss(c);
		missed += c->missed;
		value += perf_count_value(c);
		running += perf_count_running_ns(c);
		if (!s->cpus[i].events[event].absent)
			all_ns += perf_count_running_ns(&s->cpus[i].track);
		came += c->received;
		lost += perf_count_lost(c);
	}
	/* A sample received without its CPU counts as missed on that CPU. */
	if (missed > st->missed[event] + s->somewhere[event])
		st->missed[event] = missed - s->somewhere[event];
	e->enabled = perf_count_enabled(running, all_ns);
	if (received && !s->periods[event] && came + lost)
		e->period = value / (came + lost);
	if (s->in_kernel)
		return;
	/* The kernel counts records by event: samples but for a few notes of throttling. */
	lost = (s->features & PERF_USE_LOST ? lost : s->lost_said[event]) + s->unsent[event];
	st->lost_ring += lost;
	st->received[event] = came + lost;
}

/* Before PERF_FORMAT_LOST, whatever a ring lost may have been a load event, a sample or not. */
uint64_t perf_sampler_lost_load(const struct perf_sampler *s)
{
	uint64_t lost = s->load_bad;

	for (size_t i = 0; i < s->nr_cpus; i++)
		lost += perf_count_lost(&s->cpus[i].track);
	for (size_t i = 0; i < s->d->nr_events && !(s->features & PERF_USE_LOST); i++)
		lost += s->lost_said[i];
	return lost;
}

void perf_sampler_account(struct perf_sampler *s, bool received)
{
	struct driver_stats *st = &s->d->stats;

	s->counted = false;
	st->lost_load = perf_sampler_lost_load(s);
	st->held = s->order.nr_samples;
	st->lost_ring = 0;
	for (size_t i = 0; i < s->d->nr_events; i++) {
		if (!s->specs[i].tick)
			account_event(s, i, received);
	}
	/* The event of these samples is unknown. */
	st->lost_bad = s->sample_bad;
	if (!s->in_kernel)
		st->received[0] += s->sample_bad;
}

/* ---- description ----------------------------------------------------------------------------- */

/* CPUs whose kind has no such event. */
static size_t nr_absent(const struct perf_sampler *s, size_t event)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->nr_cpus; i++)
		nr += s->cpus[i].track_fd >= 0 && s->cpus[i].events[event].absent;
	return nr;
}

static size_t describe_event(const struct perf_sampler *s, size_t event, char *to, size_t len)
{
	const struct event_spec *spec = &s->specs[event];
	int n;
	char often[32] = "", where[48] = "";

	if (spec->period)
		snprintf(often, sizeof(often), " each %" PRIu64, spec->period);
	else if (!spec->tick)
		snprintf(often, sizeof(often), " at %" PRIu64 " Hz", s->frequency);
	if (nr_absent(s, event))
		snprintf(where, sizeof(where), " (not on %zu)", nr_absent(s, event));
	n = snprintf(to, len, "%s%s%s", spec->name, often, where);
	return n < 0 ? len : (size_t)n;
}

static size_t describe_events(const struct perf_sampler *s, char *to, size_t len)
{
	size_t at = 0;

	to[0] = '\0';
	for (uint32_t slot = 0; slot < s->turn.nr_slots; slot++) {
		const char *between = slot ? ", " : "";

		for (size_t i = 0; i < s->d->nr_events && at < len; i++) {
			if (!(s->specs[i].slots >> slot & 1))
				continue;
			at += (size_t)snprintf(to + at, len - at, "%s", between);
			if (at < len)
				at += describe_event(s, i, to + at, len - at);
			between = " + ";
		}
	}
	return at;
}

static void describe_place(const struct perf_sampler *s, char *to, size_t len)
{
	size_t open = 0;

	for (size_t i = 0; i < s->nr_cpus; i++)
		open += s->cpus[i].track_fd >= 0;
	if (s->pid > 0)
		snprintf(to, len, "of process %d", s->pid);
	else
		snprintf(to, len, "on %zu CPU%s", open, open == 1 ? "" : "s");
}

void perf_sampler_describe(struct perf_sampler *s)
{
	char events[192], place[32];

	if (describe_events(s, events, sizeof(events)) >= sizeof(events))
		snprintf(events, sizeof(events), "%zu events", s->d->nr_events);
	describe_place(s, place, sizeof(place));
	snprintf(s->d->describe, sizeof(s->d->describe), "%s: %s %s%s%s%s",
		 s->in_kernel ? "bpf" : "perf", events, place, s->why, s->trouble, s->d->refused);
}
