/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a process's life is told to all that waits for it. */
#include <stdlib.h>

#include "trace_parts.h"

static void end_ticket(struct trace_ticket *k, int32_t tgid, struct trace_past *past)
{
	if (k->over || k->w.tgid != (uint32_t)tgid)
		return;
	k->over = true;
	k->past = trace_past_get(past);
}

/* Close the tickets: the addresses will belong to another process. @past may be NULL. */
static void end_tickets(struct trace_values *v, int32_t tgid, struct trace_past *past)
{
	void *k;

	for (struct trace_ticket *i = v->first; i; i = i->next)
		end_ticket(i, tgid, past);
	for (size_t pos = 0; base_map_next(&v->sent, &pos, &k);)
		end_ticket(k, tgid, past);
}

/* All that will be known of @p is; a life that has not been listed since is as its events told. */
static void end_waiting(struct traces *t, const struct process *p)
{
	for (size_t i = 0; t->unsettled_ns != UINT64_MAX && i < t->nr_waiting; i++)
		if (t->waiting[i]->p == p && t->waiting[i]->unsettled)
			trace_place_listed(&t->config, t->waiting[i]);
}

/* The life @p (may be NULL) of @tgid ended at @time_ns; what it had mapped is still known. */
static void life_ended(struct traces *t, struct process *p, int32_t tgid, uint64_t time_ns)
{
	struct trace_values *v = &t->values;
	struct values_owner *o = base_map_del(&v->owners, &tgid, sizeof(tgid));
	struct trace_past *past = NULL;

	if (o)
		values_owner_end(o, time_ns);
	/* A list read after the end belongs to another life. */
	if (p && p->known_ns <= time_ns)
		end_waiting(t, p);
	if (p && p->known_ns <= time_ns && (v->nr_queued || v->nr_sent || t->nr_waiting))
		past = trace_past_new(p, o);
	end_tickets(v, tgid, past);
	for (size_t i = 0; past && i < t->nr_waiting; i++)
		if (t->waiting[i]->p == p && !t->waiting[i]->past)
			t->waiting[i]->past = trace_past_get(past);
	trace_past_put(past);
	values_owner_put(o);
}

/*
 * The life's last traces, and the question for its owner, may concern another process with that
 * number.
 */
static void life_end_lost(struct traces *t, int32_t tgid)
{
	struct values_owner *o;

	o = base_map_del(&t->values.owners, &tgid, sizeof(tgid));
	if (o)
		values_owner_end(o, 0);
	end_tickets(&t->values, tgid, NULL);
	values_owner_put(o);
}

void trace_take_ends(struct traces *t)
{
	const struct follow_ends *ends = &t->config.follow->ends;

	for (size_t i = 0; i < ends->nr; i++) {
		const struct follow_end *e = &ends->items[i];

		if (e->lost)
			life_end_lost(t, e->pid);
		else
			life_ended(t, e->p, e->pid, e->time_ns);
	}
	if (ends->lost)
		trace_events_lost(t, t->config.follow->now_ns);
}
