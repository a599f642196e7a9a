/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a process's life is told to all that waits for it. */
#include <stdlib.h>

#include "trace_parts.h"

static void end_ticket(struct windows_ticket *k, int32_t tgid, struct windows_past *past)
{
	if (k->over || k->w.tgid != (uint32_t)tgid)
		return;
	k->over = true;
	k->past = windows_past_get(past);
}

/* What is at its addresses later is another's. @past may be NULL. */
static void end_tickets(struct windows_values *v, int32_t tgid, struct windows_past *past)
{
	void *k;

	for (struct windows_ticket *i = v->first; i; i = i->next)
		end_ticket(i, tgid, past);
	for (size_t pos = 0; base_map_next(&v->sent, &pos, &k);)
		end_ticket(k, tgid, past);
}

/* All that will be known of @p is; a life that has not been listed since is as its events told. */
static void end_waiting(struct windows *t, const struct process *p)
{
	for (size_t i = 0; t->unsettled_ns != UINT64_MAX && i < t->nr_waiting; i++)
		if (t->waiting[i]->p == p && t->waiting[i]->unsettled)
			windows_place_listed(&t->config, t->waiting[i]);
}

/* The life @p (may be NULL) of @tgid ended at @time_ns; what it had mapped is still known. */
static void life_ended(struct windows *t, struct process *p, int32_t tgid, uint64_t time_ns)
{
	struct windows_values *v = &t->values;
	struct values_owner *o = base_map_del(&v->owners, &tgid, sizeof(tgid));
	struct windows_past *past = NULL;

	if (o)
		values_owner_end(o, time_ns);
	/* What was listed after it is of another life. */
	if (p && p->known_ns <= time_ns)
		end_waiting(t, p);
	if (p && p->known_ns <= time_ns && (v->nr_queued || v->nr_sent || t->nr_waiting))
		past = windows_past_new(p, o);
	end_tickets(v, tgid, past);
	for (size_t i = 0; past && i < t->nr_waiting; i++)
		if (t->waiting[i]->p == p && !t->waiting[i]->past)
			t->waiting[i]->past = windows_past_get(past);
	windows_past_put(past);
	values_owner_put(o);
}

/* Who had its number when its owner was asked for, and in its last windows, nobody knows. */
static void life_end_lost(struct windows *t, int32_t tgid)
{
	struct values_owner *o;

	o = base_map_del(&t->values.owners, &tgid, sizeof(tgid));
	if (o)
		values_owner_end(o, 0);
	end_tickets(&t->values, tgid, NULL);
	values_owner_put(o);
}

void windows_take_ends(struct windows *t)
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
		windows_doubted(t, t->config.follow->now_ns);
}
