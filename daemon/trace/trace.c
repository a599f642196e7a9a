/* SPDX-License-Identifier: BSD-2-Clause */
/* The blocks of a trace get images and offsets, its words become edges, and it is stored or lost;
 * traces that come ahead of their time wait. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace_parts.h"

/* ---- single steps ---------------------------------------------------------------------------- */

/*
 * Traces of single steps come as soon as they are there, ahead of the events that tell what their
 * process has mapped: they wait for these.
 */

enum { EARLY_MAX = 4096 };

static bool is_stepped(const struct insn_trace *w)
{
	return w->has & INSN_TRACE_STEPPED;
}

/* Where @w is accounted for. */
static struct trace_stats *account_of(struct traces *t, const struct insn_trace *w)
{
	return is_stepped(w) ? &t->stepped.stats : &t->stats;
}

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

/* The next one whose time is up to @time_ns, to be freed by the caller; or NULL. */
static struct trace_early *stepped_next(struct traces *t, uint64_t time_ns)
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

/* The next one whose time is up to @time_ns, to be freed by the caller; or NULL. */
static void stepped_release(struct trace_stepped *s)
{
	while (s->first) {
		struct trace_early *e = s->first;

		s->first = e->next;
		free(e);
	}
	*s = (struct trace_stepped){ 0 };
}

/* ---- where a block is ------------------------------------------------------------------------ */

static void lose(struct trace_step *s, enum trace_loss loss)
{
	s->where = TRACE_LOST;
	s->loss = loss;
}

/* @s is in @image (may be NULL) from now on, as far as is known. */
static void step_put(struct trace_step *s, struct image *image)
{
	image_put(s->image);
	s->image = image_get(image);
}

static void place(struct trace_step *s, struct image *image, uint64_t off, uint64_t last_off)
{
	step_put(s, image);
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

/* The trace is older than the poll of /proc that its process's mappings come from, or waits for
 * one. */
static bool is_unsettled(const struct trace_config *c, const struct process *p,
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
	if (is_unsettled(c, p, w) && (c->follow->events_lost || (m && m->listed && !m->since_ns)))
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

/* The mappings of @p (NULL: the kernel's code) say where the blocks of @w are; what they do not say
 * stays OPEN. */
static void trace_place(const struct trace_config *c, struct process *p, const struct insn_trace *w,
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

/* The registries of its process say it. False: a later poll may; not where @last. False: a later
 * reading of the registry may tell. A block of two routines is in neither. */
static bool place_dynamic(const struct trace_config *c, const struct trace_pending *k,
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

/* ---- from words to blocks -------------------------------------------------------------------- */

static bool is_transfer(uint8_t class)
{
	switch (class) {
	case VTRACE_CLASS_BRANCH:
	case VTRACE_CLASS_JUMP:
	case VTRACE_CLASS_JUMP_INDIRECT:
	case VTRACE_CLASS_CALL:
	case VTRACE_CLASS_CALL_INDIRECT:
	case VTRACE_CLASS_RETURN:
		return true;
	default:
		return false;
	}
}

/* Behind which of its instructions the visit ended, or negative. */
static int fill(struct trace_step *s, const struct vtrace_code *c, const struct vtrace_visit *v)
{
	int first = vtrace_code_at(c, v->pc), end = first + (int)v->nr_insns;
	const struct vtrace_insn *last;
	uint64_t start;

	if (first < 0 || end > c->block.nr_insns)
		return -DCPI_EFORMAT;
	start = v->pc - c->insns[first].offset;
	last = &c->insns[v->nr_insns ? end - 1 : first];
	*s = (struct trace_step){ .pc = v->pc,
				  .next = start + c->block.len,
				  .last = start + last->offset,
				  .ran = v->nr_insns > 0,
				  .transfers = v->nr_insns && is_transfer(last->class),
				  .generation = v->generation };
	return end;
}

/* Its last instruction led there, and was the last one of its block, which ended behind @end. */
static size_t add_target(const struct insn_trace *w, struct trace_step *steps, size_t nr,
			 const struct vtrace_code *c, int end)
{
	if (!nr || !steps[nr - 1].transfers || end != c->block.nr_insns)
		return nr;
	steps[nr] = (struct trace_step){ .pc = w->end_pc,
					 .last = w->end_pc,
					 .next = w->end_pc + 1,
					 .generation = w->end_generation };
	return nr + 1;
}

/* A trace whose first block was not translated still counts as begun there. */
static int walk_nothing(const struct insn_trace *w, struct trace_step *steps)
{
	if (w->nr_insns)
		return -DCPI_EFORMAT;
	steps[0] = (struct trace_step){
		.pc = w->pc, .last = w->pc, .next = w->pc + 1, .generation = w->generation
	};
	return 1;
}

/*
 * The blocks of @w in the order in which they ran, and, where the last instruction was a transfer
 * that ran, the place that it led to. How many (at most TRACE_STEPS), or -DCPI_EFORMAT.
 */
static int trace_walk(vtrace_block_fn *get, void *ctx, const struct insn_trace *w,
		      const uint64_t *words, struct trace_step *steps)
{
	const struct vtrace_code *c = NULL;
	struct vtrace_visit v = { 0 };
	uint32_t sum = 0;
	size_t nr = 0;
	int r, end = 0;

	if (!w->nr_words)
		return walk_nothing(w, steps);
	if (w->nr_words > VTRACE_NR_WORDS)
		return -DCPI_EFORMAT;
	while ((r = vtrace_visit_read(words, w->nr_words, v.end, &v)) > 0) {
		/* Only the last block may be one that was entered and no more. */
		if (nr == TRACE_STEPS - 1 || (nr && !steps[nr - 1].ran))
			return -DCPI_EFORMAT;
		c = get(ctx, v.id);
		end = c ? fill(&steps[nr++], c, &v) : -DCPI_EFORMAT;
		if (end < 0)
			return end;
		sum += v.nr_insns;
	}
	if (r < 0 || sum != w->nr_insns || (nr && steps[0].pc != w->pc))
		return -DCPI_EFORMAT;
	return (int)add_target(w, steps, nr, c, end);
}

/* ---- edges ----------------------------------------------------------------------------------- */

/* The part of a trace that lay in one image. */
struct row {
	struct image *image;
	uint64_t start, last; /* offsets; of the last instruction that ran */
	size_t at;	      /* its last step */
	bool ran;	      /* and where it led to was not told */
};

struct rows {
	struct row items[TRACE_STEPS];
	size_t nr;
	uint64_t count[2];
	struct image *image; /* image of the waiting steps */
	struct profdb_edge edge_counts[2 * TRACE_STEPS];
	size_t nr_edge_counts;
	int (*fn)(void *ctx, struct image *image, const struct profdb_edge *m, size_t nr);
	void *ctx;
	int result;
};

static void tell_all(struct rows *t)
{
	int result =
		t->nr_edge_counts ? t->fn(t->ctx, t->image, t->edge_counts, t->nr_edge_counts) : 0;

	if (result < 0 && t->result == 0)
		t->result = result;
	t->nr_edge_counts = 0;
}

static void tell(struct rows *t, const struct row *r, uint64_t from, uint64_t to)
{
	if (t->nr_edge_counts && t->image != r->image)
		tell_all(t);
	t->image = r->image;
	t->edge_counts[t->nr_edge_counts++] = (struct profdb_edge){
		.start = r->start, .from = from, .to = to, .count = { t->count[0], t->count[1] }
	};
}

static struct row *find(struct rows *t, const struct image *image)
{
	for (size_t i = 0; i < t->nr; i++)
		if (t->items[i].image == image)
			return &t->items[i];
	return NULL;
}

/* Where nothing ran, the trace only leads there: that is told of the image that it leads from. */
static bool is_announced(const struct trace_step *steps, size_t i)
{
	return steps[i].where == TRACE_PLACED &&
	       (steps[i].ran || i == 0 ||
		(steps[i - 1].where == TRACE_PLACED && steps[i - 1].image == steps[i].image));
}

static void go(struct rows *t, const struct trace_step *steps, size_t i)
{
	const struct trace_step *s = &steps[i];
	struct row *r = find(t, s->image);

	if (!r) {
		r = &t->items[t->nr++];
		*r = (struct row){ .image = s->image, .start = i ? PROFDB_OUTSIDE : s->off };
		tell(t, r, PROFDB_OUTSIDE, s->off);
	} else if (r->at + 1 != i || steps[i - 1].transfers) {
		tell(t, r, r->last, s->off);
		r->ran = false;
	}
	r->at = i;
	if (s->ran) {
		r->last = s->last_off;
		r->ran = true;
	}
}

/*
 * The edges (profdb.h) of the images in which @steps are PLACED; count is @count. Those of one
 * image that follow each other come in one call. Goes on when @fn fails, and returns its first
 * failure.
 */
static int trace_edges(const struct trace_step *steps, size_t nr, const uint64_t count[2],
		       int (*fn)(void *ctx, struct image *image, const struct profdb_edge *m,
				 size_t nr),
		       void *ctx)
{
	struct rows t; /* rows; most of them stay unused and are not cleared */

	t.nr = t.nr_edge_counts = 0;
	t.count[0] = count[0];
	t.count[1] = count[1];
	t.fn = fn;
	t.ctx = ctx;
	t.result = 0;
	for (size_t i = 0; i < nr; i++)
		if (is_announced(steps, i))
			go(&t, steps, i);
	for (size_t i = 0; i < t.nr; i++)
		if (t.items[i].ran)
			tell(&t, &t.items[i], t.items[i].last, PROFDB_OUTSIDE);
	tell_all(&t);
	return t.result;
}

/* So much may wait for registries: at 6,000 samples a second of JIT code, some 10 s of traces. */
enum { WAITING_BYTES = 64 << 20 };

static const struct trace_driver real_calls = {
	.missing = driver_traces_missing,
	.put = driver_block_put,
	.get = driver_block_get,
	.every = driver_trace_every,
	.stats = driver_trace_stats_get,
};

/* ---- what becomes of a trace ----------------------------------------------------------------- */

struct storing {
	struct store *store;
	const struct process *p;
	bool stored;
	bool certain;	     /* in an image that cannot be refused */
	struct image *first; /* else: the first in which it is */
};

static void note(struct storing *s, struct image *image)
{
	s->stored = true;
	s->certain |= image->kind != PROFDB_DYNAMIC;
	s->first = s->first ? s->first : image;
}

static int store_edge_counts(void *ctx, struct image *image, const struct profdb_edge *m, size_t nr)
{
	struct storing *s = ctx;
	size_t nr_stored = 0;
	int r = store_edges(s->store, image, s->p ? s->p->label : NULL, m, nr, &nr_stored);

	if (nr_stored)
		note(s, image);
	return r;
}

/* A trace of single steps has no edges: where it was is no matter of chance. */
static void note_images(struct storing *s, const struct trace_pending *k)
{
	for (size_t i = 0; i < k->nr; i++)
		if (k->steps[i].where == TRACE_PLACED && !k->steps[i].image->excluded)
			note(s, k->steps[i].image);
}

static enum trace_loss why(const struct trace_step *steps, size_t nr, int r)
{
	if (r < 0)
		return r == -DCPI_EOVERFLOW ? TRACE_LOST_OVERFLOW : TRACE_LOST_MEMORY;
	for (size_t i = 0; i < nr; i++)
		if (steps[i].where == TRACE_LOST)
			return steps[i].loss;
	return TRACE_LOST_EXCLUDED;
}

/* All of its blocks are placed or lost: it is stored, or lost by one name. */
static void store(struct traces *t, const struct trace_pending *k, const uint64_t *words)
{
	const uint64_t count[2] = { !(k->number & 1), k->number & 1 };
	struct storing s = { .store = t->config.store, .p = k->p };
	enum trace_loss loss;
	int r = 0;

	if (is_stepped(&k->w))
		note_images(&s, k);
	else
		r = trace_edges(k->steps, k->nr, count, store_edge_counts, &s);
	if (s.stored) {
		account_of(t, &k->w)->stored++;
		if (!s.certain)
			*(is_stepped(&k->w) ? &s.first->stepped : &s.first->traces) += 1;
		trace_values_add(t, k, words);
		return;
	}
	loss = why(k->steps, k->nr, r);
	account_of(t, &k->w)->lost[loss]++;
	if (t->config.log_unknown)
		base_log(BASE_LOG_INFO, "trace %s: pid %u (%s) at 0x%llx", trace_loss_name(loss),
			 k->w.tgid, k->p ? k->p->comm : "", (unsigned long long)k->w.pc);
}

void trace_given_up(struct traces *t, struct image *image)
{
	uint64_t values = image_values_total(image);

	t->stats.stored -= image->traces;
	t->stats.lost[TRACE_LOST_REFUSED] += image->traces;
	t->stepped.stats.stored -= image->stepped;
	t->stepped.stats.lost[TRACE_LOST_REFUSED] += image->stepped;
	image->traces = image->stepped = 0;
	t->values.stats.stored -= values;
	t->values.stats.unplaced += values;
}

static void release(struct trace_pending *k)
{
	for (size_t i = 0; i < k->nr; i++)
		step_put(&k->steps[i], NULL);
	trace_past_put(k->past);
	free(k->words);
	k->words = NULL;
}

static bool is_open(const struct trace_pending *k)
{
	for (size_t i = 0; i < k->nr; i++)
		if (k->steps[i].where == TRACE_OPEN)
			return true;
	return false;
}

static int keep_words(const struct traces *t, struct trace_pending *k, const uint64_t *words)
{
	size_t len = insn_trace_words(&k->w) * sizeof(*words);

	if (!t->values.client)
		return 0;
	k->words = malloc(len);
	if (!k->words)
		return -ENOMEM;
	memcpy(k->words, words, len);
	return 0;
}

/* Bytes of @k with its steps in use alone. */
static size_t used_size(const struct trace_pending *k)
{
	return offsetof(struct trace_pending, steps) + k->nr * sizeof(k->steps[0]);
}

/* Bytes of memory that @k takes while it waits. */
static size_t waiting_size(const struct trace_pending *k)
{
	return used_size(k) + (k->words ? insn_trace_words(&k->w) * sizeof(*k->words) : 0);
}

static void wait_for(struct traces *t, struct trace_pending *k, const uint64_t *words)
{
	struct trace_pending *copy = NULL;
	size_t len = used_size(k);

	if (keep_words(t, k, words) == 0 && t->waiting_bytes < WAITING_BYTES &&
	    base_grow(&t->waiting, &t->cap_waiting, t->nr_waiting + 1, sizeof(*t->waiting)) == 0)
		copy = malloc(len);
	if (!copy) {
		account_of(t, &k->w)->lost[TRACE_LOST_MEMORY]++;
		release(k);
		return;
	}
	memcpy(copy, k, len);
	t->waiting_bytes += waiting_size(k);
	trace_values_met(t, &k->w);
	if (is_unsettled(&t->config, k->p, &k->w)) {
		copy->unsettled = true;
		if (k->p->known_ns < t->unsettled_ns)
			t->unsettled_ns = k->p->known_ns;
	}
	t->waiting[t->nr_waiting++] = copy;
	account_of(t, &k->w)->pending++;
}

static struct process *process_of(struct traces *t, const struct insn_trace *w)
{
	struct process *p;

	if (w->has & INSN_TRACE_KERNEL)
		return NULL;
	p = follow_find(t->config.follow, (int32_t)w->tgid, w->time_ns, w->instance);
	trace_take_ends(t);
	follow_ends_clear(t->config.follow);
	return p;
}

static bool is_excluded(const struct trace_config *c, const struct insn_trace *w)
{
	return c->exclude && !(w->has & INSN_TRACE_KERNEL) &&
	       exclude_has_pid(c->exclude, (int32_t)w->tgid);
}

static void take(struct traces *t, const struct insn_trace *w, const uint64_t *words)
{
	struct trace_pending k; /* the pending trace; most of it stays unused and is not cleared */
	struct trace_stats *account = account_of(t, w);
	int nr = trace_walk(trace_block, t, w, words, k.steps);

	memcpy(&k.w, w, INSN_TRACE_LEN(w->has));
	k.number = t->number;
	k.words = NULL;
	k.until_ns = k.news = 0;
	k.unsettled = false;
	k.past = NULL;
	t->number += !is_stepped(w);
	if (nr <= 0 || is_excluded(&t->config, w)) {
		account->lost[nr <= 0 ? TRACE_LOST_BAD : TRACE_LOST_EXCLUDED]++;
		return;
	}
	k.nr = (size_t)nr;
	k.p = process_of(t, w);
	if (!k.p && !(w->has & INSN_TRACE_KERNEL)) {
		account->lost[TRACE_LOST_MEMORY]++;
		return;
	}
	trace_place(&t->config, k.p, w, k.steps, k.nr);
	if (is_open(&k)) {
		t->config.attribute->dynamic_ns = base_now_ns();
		wait_for(t, &k, words);
		return;
	}
	store(t, &k, words);
	release(&k);
}

/* Asking the clock for each would cost a part of what it takes. */
enum { TIMED = 16 };

void trace_take(struct traces *t, const struct insn_trace *w, const uint64_t *words)
{
	bool timed = t->pace.nr_cpus && t->number % TIMED == 0;
	uint64_t since_ns = timed ? base_clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;

	take(t, w, words);
	if (timed)
		t->taken_ns += TIMED * (base_clock_ns(CLOCK_THREAD_CPUTIME_ID) - since_ns);
}

/* ---- those that wait ------------------------------------------------------------------------- */

/* Traces of single steps whose time has come. */
static void take_stepped(struct traces *t, uint64_t time_ns)
{
	struct trace_early *e;

	while ((e = stepped_next(t, time_ns))) {
		trace_take(t, &e->w, e->words);
		free(e);
	}
}

static void pass_time(void *ctx, uint64_t time_ns)
{
	struct traces *t = ctx;

	take_stepped(t, time_ns);
	if (t->config.follow->events_lost || time_ns < t->unsettled_ns)
		return;
	t->unsettled_ns = UINT64_MAX;
	for (size_t i = 0; i < t->nr_waiting; i++) {
		struct trace_pending *k = t->waiting[i];

		if (k->unsettled && k->p->known_ns <= time_ns)
			trace_place_listed(&t->config, k);
		else if (k->unsettled && k->p->known_ns < t->unsettled_ns)
			t->unsettled_ns = k->p->known_ns;
	}
}

static uint64_t next_ns(const void *ctx)
{
	const struct traces *t = ctx;
	const struct trace_early *e = t->stepped.first;

	return e && e->w.time_ns < t->unsettled_ns ? e->w.time_ns : t->unsettled_ns;
}

/* Every event up to now was seen. False: it goes on waiting. */
static bool settle(struct traces *t, struct trace_pending *k, bool last)
{
	bool wait;

	if (k->unsettled && (last || k->p->exited))
		trace_place_listed(&t->config, k);
	if (k->unsettled)
		return false;
	if (k->news && !last && !t->config.attribute->flushing &&
	    !attribute_is_due(k->p, k->news)) {
		dyn_wait(k->p, k->w.time_ns);
		return false;
	}
	k->news = dyn_news(k->p);
	wait = !last && attribute_may_wait(t->config.attribute, k->p, &k->until_ns);
	for (size_t i = 0; i < k->nr; i++) {
		struct trace_step *s = &k->steps[i];

		if (s->where == TRACE_OPEN && !place_dynamic(&t->config, k, s, !wait))
			return false;
	}
	store(t, k, k->words);
	return true;
}

static void resolve_all(void *ctx, bool last)
{
	struct traces *t = ctx;
	size_t kept = 0;

	if (last)
		take_stepped(t, UINT64_MAX);
	for (size_t i = 0; i < t->nr_waiting; i++) {
		struct trace_pending *k = t->waiting[i];

		if (!settle(t, k, last)) {
			t->waiting[kept++] = k;
			continue;
		}
		account_of(t, &k->w)->pending--;
		t->waiting_bytes -= waiting_size(k);
		release(k);
		free(k);
	}
	t->nr_waiting = kept;
}

const struct attribute_later trace_later = { pass_time, next_ns, resolve_all };

/* ---- life ------------------------------------------------------------------------------------ */

int trace_open(const struct trace_config *config, struct traces **out, struct base_err *err)
{
	struct traces *t = calloc(1, sizeof(*t));
	int r = 0;

	*out = NULL;
	if (!t)
		return base_fail_errno(err, -ENOMEM, "cannot follow traces");
	t->config = *config;
	t->unsettled_ns = UINT64_MAX;
	t->calls = config->calls ? config->calls : &real_calls;
	trace_pace_begin(&t->pace, config->every, config->nr_cpus, base_now_ns());
	t->values.client = config->values;
	t->values.nr_profilers = config->nr_profilers;
	if (config->helper_dir)
		r = translator_open(config->helper_dir, &t->translator, err);
	if (r < 0) {
		trace_close(t);
		return r;
	}
	*out = t;
	return 0;
}

void trace_close(struct traces *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->nr_waiting; i++) {
		release(t->waiting[i]);
		free(t->waiting[i]);
	}
	free(t->waiting);
	trace_values_release(&t->values);
	stepped_release(&t->stepped);
	trace_code_release(&t->code);
	translator_close(t->translator);
	free(t);
}
