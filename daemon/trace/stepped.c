/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Windows of single steps come as soon as they are there, ahead of the events that tell what their
 * process has mapped: they wait for these.
 */
#include <stdlib.h>
#include <string.h>

#include "trace_parts.h"

enum { EARLY_MAX = 4096 };

static void take_early(void *ctx, const struct vtrace_window *w, const uint64_t *words)
{
	struct windows *t = ctx;
	struct windows_stepped *s = &t->stepped;
	size_t len = vtrace_window_words(w) * sizeof(*words);
	struct windows_early *e = s->nr < EARLY_MAX ? malloc(sizeof(*e) + len) : NULL;

	s->stats.received++;
	if (!e) {
		s->stats.lost[WINDOWS_LOST_MEMORY]++;
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
	windows_values_met(t, w);
}

void windows_step_turn(struct windows *t)
{
	if (t->config.step)
		step_receive(t->config.step, take_early, t);
}

struct windows_early *windows_stepped_next(struct windows *t, uint64_t time_ns)
{
	struct windows_stepped *s = &t->stepped;
	struct windows_early *e = s->first;

	if (!e || e->w.time_ns > time_ns)
		return NULL;
	s->first = e->next;
	s->last = s->first ? s->last : NULL;
	s->nr--;
	s->stats.pending--;
	return e;
}

bool windows_stepped_stats_get(const struct windows *t, struct windows_stats *out)
{
	*out = t->stepped.stats;
	return t->config.step;
}

void windows_stepped_release(struct windows_stepped *s)
{
	while (s->first) {
		struct windows_early *e = s->first;

		s->first = e->next;
		free(e);
	}
	*s = (struct windows_stepped){ 0 };
}
