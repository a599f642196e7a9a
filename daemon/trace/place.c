/* SPDX-License-Identifier: BSD-2-Clause */
/* The blocks of a trace get images and offsets, as far as these are known by now. */
#include "trace_parts.h"

/* ---- where a block is ------------------------------------------------------------------------ */

static void lose(struct trace_step *s, enum trace_loss loss)
{
	s->where = TRACE_LOST;
	s->loss = loss;
}

void trace_step_put(struct trace_step *s, struct image *image)
{
	image_put(s->image);
	s->image = image_get(image);
}

static void place(struct trace_step *s, struct image *image, uint64_t off, uint64_t last_off)
{
	trace_step_put(s, image);
	s->where = TRACE_PLACED;
	s->off = off;
	s->last_off = last_off;
}

/* A block that reaches into the next mapping is in neither. */
static void place_mapped(const struct trace_config *c, const struct process *p,
			 struct trace_step *s, const struct map *m)
{
	const struct images_owner owner = process_owner(p);
	struct image *image = images_of(c->attribute->images, m->image, &owner);
	bool claimed = c->attribute->dyn && (dyn_claims(p, s->pc) || dyn_claims(p, s->last));

	if (!image) {
		lose(s, TRACE_LOST_MEMORY);
		return;
	}
	if (s->last >= m->end) {
		lose(s, TRACE_LOST_AMBIGUOUS);
		return;
	}
	place(s, image, m->file_off + (s->pc - m->start), m->file_off + (s->last - m->start));
	s->mapped_ns = m->since_ns;
	if (claimed)
		s->where = TRACE_OPEN;
}

/* It is older than the reading of /proc that its process's mappings come from, or waits for one. */
bool trace_is_unsettled(const struct trace_config *c, const struct process *p,
			const struct insn_trace *w)
{
	return p && !p->exited && (c->follow->events_lost || w->time_ns < p->known_ns);
}

/* @m: of the address, or NULL. */
static void place_user(const struct trace_config *c, struct process *p, const struct insn_trace *w,
		       struct trace_step *s, const struct map *m)
{
	if (m && m->kind == MAP_DYNAMIC) {
		s->memory = m->start;
		if (c->attribute->dyn && c->attribute->live)
			dyn_watch(c->attribute->dyn, p);
	}
	/* Events still to come may tell that what /proc listed is younger than the trace. Those
	 * that were lost tell nothing, but what /proc lists next may. */
	if (trace_is_unsettled(c, p, w) &&
	    (c->follow->events_lost || (m && m->listed && !m->since_ns)))
		return;
	if (m && m->since_ns > w->time_ns)
		lose(s, TRACE_LOST_AMBIGUOUS);
	else if (m && m->kind == MAP_IMAGE)
		place_mapped(c, p, s, m);
	else if (!m && !p->dyn)
		lose(s, p->placeholder ? TRACE_LOST_PROCESS : TRACE_LOST_UNKNOWN);
}

static void place_kernel(const struct trace_config *c, const struct insn_trace *w,
			 struct trace_step *s)
{
	struct driver_count at = { .mode = DRIVER_KERNEL,
				   .first_ns = w->time_ns,
				   .time_ns = w->time_ns,
				   .addr = s->pc,
				   .count = 1 };
	const struct verdict first = attribute_kernel(c->attribute, &at);
	struct verdict last;

	at.addr = s->last;
	last = attribute_kernel(c->attribute, &at);
	if (first.kind == VERDICT_IMAGE && last.kind == VERDICT_IMAGE && last.image == first.image)
		place(s, first.image, first.off, last.off);
	else
		lose(s, TRACE_LOST_UNKNOWN);
}

void trace_place(const struct trace_config *c, struct process *p, const struct insn_trace *w,
		 struct trace_step *steps, size_t nr)
{
	const struct map *m = NULL; /* most blocks lie where the one before does */

	for (size_t i = 0; i < nr; i++) {
		if (steps[i].where != TRACE_OPEN)
			continue;
		if (w->has & INSN_TRACE_KERNEL) {
			place_kernel(c, w, &steps[i]);
			continue;
		}
		if (!m || m->kind == MAP_DYNAMIC || steps[i].pc < m->start || steps[i].pc >= m->end)
			m = map_find(p, steps[i].pc);
		place_user(c, p, w, &steps[i], m);
	}
}

/* ---- code that programs made ----------------------------------------------------------------- */

static enum dyn_where look_up(const struct trace_config *c, const struct trace_pending *k,
			      const struct trace_step *s, uint64_t addr, bool last,
			      struct image **image, uint64_t *off)
{
	const struct dyn_query q = { .addr = addr,
				     .first_ns = k->w.time_ns,
				     .time_ns = k->w.time_ns,
				     .count = 1,
				     .generation = s->generation,
				     .generation_read = s->generation != 0,
				     .last = last,
				     .dynamic = s->memory && c->attribute->live,
				     .map_start = s->memory,
				     .mapped_ns = s->mapped_ns };

	return c->attribute->dyn ? dyn_lookup(c->attribute->dyn, k->p, &q, image, off) : DYN_NONE;
}

/* The image stays if the process announced no code there. */
static void place_unnamed(const struct trace_pending *k, struct trace_step *s)
{
	if (s->image)
		s->where = TRACE_PLACED;
	else
		lose(s, k->p->placeholder ? TRACE_LOST_PROCESS : TRACE_LOST_UNKNOWN);
}

/* False: a later reading of the registry may tell. A block of two routines is in neither. */
bool trace_place_dynamic(const struct trace_config *c, const struct trace_pending *k,
			 struct trace_step *s, bool last)
{
	struct image *image = NULL, *end = NULL;
	uint64_t off = 0, end_off = 0;
	enum dyn_where where = look_up(c, k, s, s->pc, last, &image, &off);

	if (where == DYN_FOUND && s->last != s->pc) {
		where = look_up(c, k, s, s->last, last, &end, &end_off);
		if (where == DYN_FOUND && (end != image || end_off - off != s->last - s->pc))
			where = DYN_REUSED;
	}
	if (where == DYN_LATER)
		return false;
	if (where == DYN_FOUND)
		place(s, image, off, off + (s->last - s->pc));
	else if (where == DYN_NONE)
		place_unnamed(k, s);
	else
		lose(s, where == DYN_REUSED ? TRACE_LOST_REUSED
			: where == DYN_NO_CAPACITY || where == DYN_NO_BUDGET
				? TRACE_LOST_QUOTA
				: TRACE_LOST_GENERATION);
	return true;
}

/* Place steps by the mappings that /proc listed, unless an event up to then contradicted them. */
void trace_place_listed(const struct trace_config *c, struct trace_pending *k)
{
	k->unsettled = false;
	for (size_t i = 0; i < k->nr; i++) {
		struct trace_step *s = &k->steps[i];
		const struct map *m = s->where == TRACE_OPEN ? map_find(k->p, s->pc) : NULL;

		if (m && m->since_ns > k->w.time_ns)
			lose(s, TRACE_LOST_AMBIGUOUS);
		else if (m && !s->image && m->kind == MAP_IMAGE)
			place_mapped(c, k->p, s, m);
		else if (m && m->kind == MAP_DYNAMIC)
			s->memory = m->start;
	}
}
