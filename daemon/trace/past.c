/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes whose life was over before all of their traces were placed, or had given values. */
#include <stdlib.h>

#include "trace_parts.h"

struct trace_past *trace_past_new(const struct process *p, struct values_owner *owner)
{
	struct trace_past *past = calloc(1, sizeof(*past));

	if (!past)
		return NULL;
	past->refs = 1;
	past->owner = owner;
	if (owner)
		owner->refs++;
	/* A process that announced code in a file's mapping can only be asked while it lives. */
	if (!p->dyn && map_copy(&past->p, p) < 0) {
		trace_past_put(past);
		return NULL;
	}
	return past;
}

struct trace_past *trace_past_get(struct trace_past *past)
{
	if (past)
		past->refs++;
	return past;
}

void trace_past_put(struct trace_past *past)
{
	if (!past || --past->refs)
		return;
	values_owner_put(past->owner);
	map_clear(&past->p);
	free(past->p.maps);
	free(past);
}

const struct process *trace_mapped_by(const struct traces *t, const struct trace_ticket *k)
{
	if (k->over)
		return k->past ? &k->past->p : NULL;
	return processes_find(t->config.follow->processes, (int32_t)k->w.tgid);
}
