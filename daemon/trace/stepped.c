/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces of single steps come as soon as they are there, ahead of the events that tell what their
 * process has mapped: they wait for these.
 */
#include <stdlib.h>
#include <string.h>

#include "trace_parts.h"

enum { EARLY_MAX = 4096 };

static void take_early(void *ctx, const struct insn_trace *w, const uint64_t *words)
{
	struct traces *t = ctx;
	struct trace_stepped *s = &t->stepped;
	size_t len = insn_trace_words(w) * sizeof(*words);
	struct trace_early *e = s->nr < EARLY_MAX ? malloc(sizeof(*e) + len) : NULL;

	s->stats.received++;
	if (!e) {
		s->stats.lost[TRACE_LOST_MEMORY]++;
		return;
	}
	e->next = NULL;
	e->w = *w;
	memcpy(e->words, words, len);
	if (s->last)
		s->last->next = e;
	else
		s->first = e;
	s->last = e;
	s->nr++;
	s->stats.pending++;
	trace_values_met(t, w);
}

void trace_step_turn(struct traces *t)
{
	if (t->config.step)
		step_receive(t->config.step, take_early, t);
}

struct trace_early *trace_stepped_next(struct traces *t, uint64_t time_ns)
{
	struct trace_stepped *s = &t->stepped;
	struct trace_early *e = s->first;

	if (!e || e->w.time_ns > time_ns)
		return NULL;
	s->first = e->next;
	s->last = s->first ? s->last : NULL;
	s->nr--;
	s->stats.pending--;
	return e;
}

bool trace_stepped_stats_get(const struct traces *t, struct trace_stats *out)
{
	*out = t->stepped.stats;
	return t->config.step;
}

void trace_stepped_release(struct trace_stepped *s)
{
	while (s->first) {
		struct trace_early *e = s->first;

		s->first = e->next;
		free(e);
	}
	*s = (struct trace_stepped){ 0 };
}
