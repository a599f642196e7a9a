/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples of hardware events, cache misses for example, as evidence for causes of stalls. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "estimate.h"
#include "evidence.h"

/* The longest time that one event can take, in cycles and in nanoseconds. */
struct most {
	double cycles, ns;
};

static const struct most memory = { 600, 200 }, flush = { 100, 40 }, hit = { 100, 40 };

struct kind {
	const char *name;
	enum stall_cause cause;
	bool adds;	 /* can occur without the cause's other events */
	bool last_cache; /* counts misses of the last cache only */
	const struct most *most;
};

static const struct kind kinds[] = {
	{ "imiss", STALL_FRONT_END, false, false, &memory },
	{ "L1-icache-load-misses", STALL_FRONT_END, false, false, &memory },
	{ "itbmiss", STALL_FRONT_END, true, false, &memory },
	{ "iTLB-load-misses", STALL_FRONT_END, true, false, &memory },
	{ "branchmp", STALL_BRANCH, false, false, &flush },
	{ "branch-misses", STALL_BRANCH, false, false, &flush },
	{ "dmiss", STALL_MEMORY, false, false, &memory },
	{ "L1-dcache-load-misses", STALL_MEMORY, false, false, &memory },
	{ "bmiss", STALL_MEMORY, false, true, &memory },
	{ "cache-misses", STALL_MEMORY, false, true, &memory },
	{ "LLC-load-misses", STALL_MEMORY, false, true, &memory },
	{ "dtbmiss", STALL_MEMORY, true, false, &memory },
	{ "dTLB-load-misses", STALL_MEMORY, true, false, &memory },
	{ "L1-dcache-store-misses", STALL_STORE, false, false, &memory },
	{ "dTLB-store-misses", STALL_STORE, true, false, &memory },
};

static const struct kind *kind_of(const char *event)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (estimate_event_is(event, kinds[i].name))
			return &kinds[i];
	return NULL;
}

/* The samples of time for one unit of the event's time. */
static double per_unit(const struct evidence_input *in)
{
	return 1 / analysis_sample_units(in->a, in->ai, in->time);
}

static double units(const struct most *m, const struct analysis_event *time)
{
	return strstr(time->name, "cycles") ? m->cycles : m->ns;
}

static double nr_loads(const struct flow *f, uint32_t block)
{
	const struct flow_block *b = &f->blocks[block];
	double n = 0;

	for (uint32_t i = 0; i < b->nr_insns; i++)
		n += f->insns[b->insn + i].kinds & INSN_LOAD ? 1 : 0;
	return n;
}

/* Indexed by block: the time of its loads if each hits the last cache; NULL where memory lacks. */
static double *hits(const struct flow *f, const double *runs, double each)
{
	double *v = calloc((size_t)f->nr_blocks + 1, sizeof(*v));

	for (uint32_t b = 0; v && b < f->nr_blocks; b++)
		v[b] = runs[b] * nr_loads(f, b) * each;
	return v;
}

static int add(const struct evidence_input *in, const struct kind *k, size_t event,
	       struct evidence *out)
{
	const struct analysis *a = in->a;
	struct stall_evidence *e = &out->v[out->nr];
	double *samples = in->samples(in->context, event), *beside = NULL;
	double unit = per_unit(in);

	if (k->last_cache)
		beside = hits(in->flow, in->runs, units(&hit, &a->events[in->time]) * unit);
	*e = (struct stall_evidence){
		.cause = k->cause,
		.adds = k->adds,
		.samples = samples,
		.each = analysis_sample_units(a, in->ai, event) *
			units(k->most, &a->events[in->time]) * unit,
		.beside = beside,
	};
	out->event[out->nr++] = event;
	return samples && (beside || !k->last_cache) ? 0 : -ENOMEM;
}

bool evidence_speaks(const char *event)
{
	return kind_of(event) != NULL;
}

int evidence_gather(const struct evidence_input *in, struct evidence *out)
{
	const struct analysis *a = in->a;
	int r = 0;

	if (!a->events[in->time].period)
		return 0;
	for (size_t i = 0; i < a->nr_events && r >= 0; i++) {
		const struct kind *k = kind_of(a->events[i].name);

		if (!k || !a->events[i].period || (k->last_cache && !in->runs))
			continue;
		r = add(in, k, i, out);
	}
	return r;
}

void evidence_release(struct evidence *e)
{
	for (size_t i = 0; i < e->nr; i++) {
		free((double *)e->v[i].samples);
		free((double *)e->v[i].beside);
	}
	memset(e, 0, sizeof(*e));
}
