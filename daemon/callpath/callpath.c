/* SPDX-License-Identifier: BSD-2-Clause */
/* The frames of a path get images and offsets, at once or when registries or /proc were read. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "callpath_internal.h"

/* So many may wait, so many of them with a stack of 4 KiB, and so many frames in them. */
enum { WAITING_MAX = 16384, STACKS_MAX = 1024, NODES_MAX = 1 << 19 };
/* The table of code that a program has just written may come so much later. */
#define TABLE_NS 500000000ull

static const struct callpath_driver real_calls = {
	.missing = driver_rows_missing,
	.put = driver_rows_put,
	.again = driver_rows_again,
	.forget = driver_rows_forget,
	.rule = driver_rows_rule,
	.stats = driver_callpath_stats_get,
};

/* ---- callers that were placed before --------------------------------------------------------- */

/* Most paths have the callers of one that was placed before: as long as nothing of their process
 * has changed, these need not be looked up again. */
enum { CALLERS_MIN = 3 };

/* How many frames of a path may be placed each time: those of the kernel, or the sampled one. */
static size_t inner_of(const struct driver_callpath *c)
{
	return c->nr_kernel ? c->nr_kernel : 1;
}

/* The callers of @k, whose node is not known; nr 0: they are looked up each time, as is code that a
 * program writes, and processes of a label. */
static struct callpath_callers callers_of(const struct callpaths *t,
					  const struct callpath_pending *k, const uint64_t *addrs)
{
	size_t inner = inner_of(&k->c), nr = k->c.nr > inner ? k->c.nr - inner : 0;
	uint64_t a = t->tree.seed, b = ~t->tree.seed;

	if (!k->p || k->p->dyn || k->p->label || nr < CALLERS_MIN)
		return (struct callpath_callers){ 0 };
	for (size_t i = inner; i < k->c.nr; i++) {
		a = (a ^ addrs[i]) * 0x9e3779b97f4a7c15u;
		a ^= a >> 32;
		b = ((b << 23 | b >> 41) + addrs[i]) * 0xd6e8feb86659fd93u;
	}
	return (struct callpath_callers){ .p = k->p,
					  .maps_version = k->p->maps_version,
					  .tree_version = t->tree_version,
					  .since_ns = k->c.first_ns,
					  .hash = { a, b },
					  .life = k->life,
					  .nr = (uint32_t)nr,
					  .end = k->c.end };
}

static struct callpath_callers *slot_of(const struct callpaths *t, const struct callpath_callers *c)
{
	return &t->callers[(c->hash[0] ^ c->hash[1] >> 32) % CALLPATH_NR_CALLERS];
}

/* The node of these callers, or -1. */
static int64_t find_callers(const struct callpaths *t, const struct callpath_callers *c)
{
	const struct callpath_callers *e = slot_of(t, c);

	if (!c->nr || e->p != c->p || e->hash[0] != c->hash[0] || e->hash[1] != c->hash[1] ||
	    e->nr != c->nr || e->maps_version != c->maps_version ||
	    e->tree_version != c->tree_version || e->life != c->life || e->end != c->end ||
	    c->since_ns < e->since_ns)
		return -1;
	return e->node;
}

/* Frames that are in no image may be in one the next time, and code of programs changes. */
static bool are_certain(const struct callpath_frame *frames, const uint64_t *addrs, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		enum profdb_kind kind = frames[i].image->kind;

		if (addrs[i] & DRIVER_FRAME_FUNCTION ||
		    (kind != PROFDB_FILE && kind != PROFDB_VDSO && kind != PROFDB_KERNEL))
			return false;
	}
	return true;
}

/* The callers @c of @k were placed as t->frames are, to @node. */
static void keep_callers(struct callpaths *t, const struct callpath_pending *k,
			 const struct callpath_callers *c, const uint64_t *addrs, int64_t node)
{
	size_t inner = inner_of(&k->c);
	struct callpath_callers *e = slot_of(t, c);

	if (!c->nr || !are_certain(t->frames + inner, addrs + inner, c->nr))
		return;
	*e = *c;
	e->node = (uint32_t)node;
}

/* ---- the account ----------------------------------------------------------------------------- */

void callpath_driver_stats_get(const struct callpaths *t, struct driver_callpath_stats *out)
{
	t->calls->stats(t->config.driver, out);
	out->by_end[DRIVER_CALLPATH_NO_ROWS] -= t->continued;
	for (size_t i = 0; i < DRIVER_NR_CALLPATH_ENDS; i++)
		out->by_end[i] += t->continued_to[i];
	out->frames += t->frames_found;
}

void callpath_stats_get(const struct callpaths *t, bool timed, struct callpath_stats *out)
{
	struct driver_callpath_stats d = { 0 };

	*out = timed ? t->times : t->stats;
	if (timed)
		return;
	callpath_driver_stats_get(t, &d);
	out->received = d.received;
	out->pending += d.held;
	out->lost[CALLPATH_LOST_RING] += d.lost_ring;
	out->lost[CALLPATH_LOST_BUSY] += d.lost_busy;
	out->lost[CALLPATH_LOST_READ] += d.lost_read;
	out->nodes = t->tree.nr;
	out->tables_put = t->rows.nr_put;
	out->tables_none = t->rows.nr_none;
	out->tables_waiting = t->rows.nr;
}

uint64_t callpath_lost(const struct callpath_stats *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < CALLPATH_NR_LOSSES; i++)
		sum += s->lost[i];
	return sum;
}

static void lose(struct callpaths *t, const struct driver_callpath *c, enum callpath_loss loss)
{
	callpath_account(t, c->event)->lost[loss] += c->count;
}

/* ---- storing --------------------------------------------------------------------------------- */

static enum profdb_callpath_end end_of(enum driver_callpath_end end)
{
	static const enum profdb_callpath_end ends[DRIVER_NR_CALLPATH_ENDS] = {
		[DRIVER_CALLPATH_COMPLETE] = PROFDB_CALLPATH_COMPLETE,
		[DRIVER_CALLPATH_CUT] = PROFDB_CALLPATH_CUT,
		[DRIVER_CALLPATH_UNREADABLE] = PROFDB_CALLPATH_UNREADABLE,
		[DRIVER_CALLPATH_NO_ROWS] = PROFDB_CALLPATH_NO_ROWS,
		[DRIVER_CALLPATH_ASTRAY] = PROFDB_CALLPATH_CONTRADICTED,
	};

	return ends[end];
}

/* A path that goes through an image that is not to be stored would tell of it. */
static bool has_excluded(const struct callpath_frame *frames, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (frames[i].image->excluded)
			return true;
	return false;
}

/* The first @nr frames below @node, or an error: they were placed. */
static void store_below(struct callpaths *t, const struct driver_callpath *c, int64_t node,
			const struct callpath_frame *frames, size_t nr)
{
	node = callpath_tree_below(&t->tree, node, frames, nr);
	if (node < 0) {
		lose(t, c, node == -DCPI_ELIMIT ? CALLPATH_LOST_FULL : CALLPATH_LOST_MEMORY);
		return;
	}
	callpath_tree_count(&t->tree, node, c->event, c->count);
	callpath_account(t, c->event)->stored += c->count;
}

/* True: the first @nr frames are not to be stored, and the path is lost. */
static bool is_lost(struct callpaths *t, const struct driver_callpath *c,
		    const struct callpath_frame *frames, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		if (frames[i].image)
			continue;
		lose(t, c, CALLPATH_LOST_MEMORY);
		return true;
	}
	if (has_excluded(frames, nr))
		lose(t, c, CALLPATH_LOST_EXCLUDED);
	return has_excluded(frames, nr);
}

/* @callers: NULL, or those of @addrs, which t->frames are of: they may be so the next time. */
static void store(struct callpaths *t, const struct callpath_pending *k,
		  const struct callpath_frame *frames, const struct callpath_callers *callers,
		  const uint64_t *addrs)
{
	const struct driver_callpath *c = &k->c;
	size_t inner = inner_of(c);
	int64_t node;

	if (is_lost(t, c, frames, c->nr))
		return;
	node = callpath_tree_top(&t->tree, end_of(c->end), k->life);
	node = callpath_tree_below(&t->tree, node, frames + inner, c->nr - inner);
	if (callers && node >= 0)
		keep_callers(t, k, callers, addrs, node);
	store_below(t, c, node, frames, inner);
}

/* ---- placing --------------------------------------------------------------------------------- */

/* Image NULL: there was no memory for it. */
static struct callpath_frame frame_of(const struct callpaths *t, const struct verdict *v)
{
	if (v->kind == VERDICT_IMAGE)
		return (struct callpath_frame){ v->image, v->off };
	return (struct callpath_frame){ images_bucket(t->config.attribute->images, v->bucket), 0 };
}

/* The address to look up: a return address stands behind its call. */
static uint64_t address_of(uint64_t frame, bool exact)
{
	return (frame & ~DRIVER_FRAME_EXACT) - !exact;
}

/* A wait stands in the place of a sampled address. */
static struct callpath_frame place_wait(const struct callpaths *t, const struct driver_callpath *c)
{
	return (struct callpath_frame){
		images_bucket(t->config.attribute->images, account_bucket_of(c->wait)), 0
	};
}

static struct callpath_frame
place_kernel(const struct callpaths *t, const struct driver_callpath *c, uint64_t frame, bool first)
{
	/* The idle task waits in its first frame alone: its callers have an image. */
	const struct driver_count at = { .mode = DRIVER_KERNEL,
					 .first_ns = c->first_ns,
					 .time_ns = c->time_ns,
					 .pid = first ? c->pid : -1,
					 .addr = first ? frame : frame - 1,
					 .count = 1 };
	const struct verdict v = attribute_kernel(t->config.attribute, &at);

	return frame_of(t, &v);
}

static struct sample sample_of(const struct callpath_pending *k, uint64_t frame, bool first)
{
	struct sample s = { .p = k->p,
			    .mode = DRIVER_USER,
			    .pid = k->c.pid,
			    .first_ns = k->c.first_ns,
			    .time_ns = k->c.time_ns,
			    .addr = address_of(frame, frame & DRIVER_FRAME_EXACT),
			    .count = 1,
			    .event = k->c.event,
			    .generation = first ? k->c.generation : 0,
			    .generation_read = first && k->c.generation_read,
			    .generation_unread = first && k->c.generation_unread };

	if (!(frame & DRIVER_FRAME_FUNCTION))
		sample_locate(&s);
	return s;
}

/*
 * Frames from @first up to @nr whose place is known by now go to t->frames; the others to t->open,
 * with their references. Returns how many are open.
 */
static size_t place(struct callpaths *t, const struct callpath_pending *k, const uint64_t *addrs,
		    size_t first, size_t nr)
{
	size_t nr_open = 0;

	for (size_t i = first; i < nr; i++) {
		struct sample s;
		struct verdict v;

		if (i < k->c.nr_kernel) {
			t->frames[i] = i == 0 && k->c.wait
					       ? place_wait(t, &k->c)
					       : place_kernel(t, &k->c, addrs[i], i == 0);
			continue;
		}
		s = sample_of(k, addrs[i], i == 0);
		v = addrs[i] & DRIVER_FRAME_FUNCTION
			    ? attribute_function(t->config.attribute, k->p,
						 DRIVER_FRAME_KEY(addrs[i]),
						 DRIVER_FRAME_INSTR(addrs[i]))
			    : attribute_sample(t->config.attribute, &s, false);
		if (v.kind == VERDICT_LATER) {
			t->frames[i] = (struct callpath_frame){ 0 };
			t->open[nr_open++] = (struct callpath_open){ .s = s, .frame = i };
		} else {
			t->frames[i] = frame_of(t, &v);
		}
	}
	return nr_open;
}

/* ---- paths that wait ------------------------------------------------------------------------- */

/* It ends where it ends now. */
static void drop_stack(struct callpaths *t, struct callpath_pending *k)
{
	if (k->stack) {
		t->nr_stacks--;
		k->p->nr_paths--;
	}
	free(k->stack);
	k->stack = NULL;
	k->c.state = NULL;
	k->c.stack = NULL;
}

static void free_pending(struct callpaths *t, struct callpath_pending *k)
{
	if (!k)
		return;
	drop_stack(t, k);
	for (size_t i = 0; k->frames && i < k->c.nr; i++)
		image_put(k->frames[i].image);
	for (size_t i = 0; i < k->nr_open; i++)
		image_put(k->open[i].s.image);
	free(k->addrs);
	free(k->frames);
	free(k->open);
	free(k);
}

static void *copy_of(const void *from, size_t nr, size_t len)
{
	void *to = malloc(nr ? nr * len : 1);

	return to ? memcpy(to, from, nr * len) : NULL;
}

static bool may_wait(struct callpaths *t)
{
	return t->nr_waiting < WAITING_MAX &&
	       base_grow(&t->waiting, &t->cap_waiting, t->nr_waiting + 1, sizeof(*t->waiting)) == 0;
}

static void add_waiting(struct callpaths *t, struct callpath_pending *k)
{
	t->waiting[t->nr_waiting++] = k;
	callpath_account(t, k->c.event)->pending += k->c.count;
}

/* Its mappings are not certain: all of it is placed later. */
static void wait_unsettled(struct callpaths *t, const struct callpath_pending *k,
			   const uint64_t *addrs)
{
	struct callpath_pending *copy = may_wait(t) ? copy_of(k, 1, sizeof(*k)) : NULL;

	if (copy)
		copy->addrs = copy_of(addrs, k->c.nr, sizeof(*addrs));
	if (!copy || !copy->addrs) {
		free_pending(t, copy);
		lose(t, &k->c, CALLPATH_LOST_MEMORY);
		return;
	}
	copy->unsettled = true;
	copy->p->unsettled = true;
	if (copy->p->known_ns < t->unsettled_ns)
		t->unsettled_ns = copy->p->known_ns;
	add_waiting(t, copy);
}

/* @k (NULL: there is none) holds what place() left. Where that fails, references are given back. */
static int hold(struct callpaths *t, struct callpath_pending *k, size_t nr_open)
{
	if (k) {
		k->frames = copy_of(t->frames, k->c.nr, sizeof(*t->frames));
		k->open = copy_of(t->open, nr_open, sizeof(*t->open));
	}
	if (!k || !k->frames || !k->open) {
		for (size_t i = 0; i < nr_open; i++)
			image_put(t->open[i].s.image);
		if (k) {
			free(k->frames);
			k->frames = NULL;
		}
		return -ENOMEM;
	}
	k->nr_open = nr_open;
	if (nr_open)
		t->config.attribute->dynamic_ns = base_now_ns();
	for (size_t i = 0; i < k->c.nr; i++)
		image_get(k->frames[i].image);
	return 0;
}

/* Where there is no memory it cannot continue. */
static void keep_stack(struct callpaths *t, struct callpath_pending *k, const uint64_t *addrs)
{
	const struct driver_callpath c = k->c;

	k->c.state = NULL;
	k->c.stack = NULL;
	if (!c.state)
		return;
	k->addrs = copy_of(addrs, c.nr, sizeof(*addrs));
	k->stack = k->addrs ? copy_of(c.stack, c.stack_len, 1) : NULL;
	if (!k->stack)
		return;
	t->nr_stacks++;
	k->p->nr_paths++;
	k->state = *c.state;
	k->c.state = &k->state;
	k->c.stack = k->stack;
	k->until_ns = base_now_ns() + TABLE_NS;
}

/* Frames in dynamic code are open, as the registries of its process are to be read first; or it may
 * continue. */
static void wait_open(struct callpaths *t, const struct callpath_pending *k, const uint64_t *addrs,
		      size_t nr_open)
{
	struct callpath_pending *copy = may_wait(t) ? copy_of(k, 1, sizeof(*k)) : NULL;

	if (copy)
		keep_stack(t, copy, addrs);
	if (hold(t, copy, nr_open) < 0) {
		free_pending(t, copy);
		lose(t, &k->c, CALLPATH_LOST_MEMORY);
		return;
	}
	add_waiting(t, copy);
}

/* Place @k, whose mappings are certain, and store it if no frame is open; else, how many are. */
static size_t settle(struct callpaths *t, const struct callpath_pending *k, const uint64_t *addrs)
{
	const struct callpath_callers callers = callers_of(t, k, addrs);
	int64_t node = find_callers(t, &callers);
	size_t inner = inner_of(&k->c), nr_open;

	if (node >= 0 && !place(t, k, addrs, 0, inner)) {
		if (!is_lost(t, &k->c, t->frames, inner))
			store_below(t, &k->c, node, t->frames, inner);
		return 0;
	}
	nr_open = place(t, k, addrs, 0, k->c.nr);
	if (!nr_open)
		store(t, k, t->frames, &callers, addrs);
	return nr_open;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/*
 * Events still to come may tell that a mapping found in /proc is younger than the path; of events
 * that were lost only what /proc lists next can tell.
 */
static bool is_unsettled(const struct callpaths *t, const struct callpath_pending *k,
			 const uint64_t *frames)
{
	if (!k->p || k->c.nr_kernel == k->c.nr)
		return false;
	if (t->config.follow->events_lost)
		return true;
	if (k->c.time_ns >= k->p->known_ns)
		return false;
	for (size_t i = k->c.nr_kernel; i < k->c.nr; i++) {
		uint64_t addr = address_of(frames[i], frames[i] & DRIVER_FRAME_EXACT);
		const struct map *m =
			frames[i] & DRIVER_FRAME_FUNCTION ? NULL : map_find(k->p, addr);

		if (m && m->listed && !m->since_ns)
			return true;
	}
	return false;
}

static bool makes_sense(const struct callpaths *t, const struct driver_callpath *c)
{
	return c->nr && c->nr <= DRIVER_NR_FRAMES && c->nr_kernel <= c->nr &&
	       c->end < DRIVER_NR_CALLPATH_ENDS && c->event < t->config.nr_events &&
	       c->wait < DRIVER_NR_WAITS && !c->wait == !callpath_is_timed(t, c->event);
}

static bool is_excluded(const struct callpaths *t, int32_t pid)
{
	return t->config.exclude && pid > 0 && exclude_has_pid(t->config.exclude, pid);
}

/* Its last frame has no table, which may come soon. */
static bool may_continue(const struct callpaths *t, const struct callpath_pending *k)
{
	return k->c.state && k->p && !k->p->exited && k->c.end == DRIVER_CALLPATH_NO_ROWS &&
	       t->nr_stacks < STACKS_MAX && t->nr_waiting < WAITING_MAX;
}

void callpath_take(struct callpaths *t, const struct driver_callpath *c, const uint64_t *frames,
		   struct process *p, uint32_t life)
{
	struct callpath_pending k = { .c = *c, .p = p, .life = t->config.workloads ? life : 0 };
	size_t nr_open;
	bool waits;

	if (c->wait)
		t->times.received += c->count;
	if (!makes_sense(t, c)) {
		(c->wait ? &t->times : &t->stats)->lost[CALLPATH_LOST_READ] += c->count;
		return;
	}
	if (is_excluded(t, c->pid)) {
		lose(t, c, CALLPATH_LOST_EXCLUDED);
		return;
	}
	if (is_unsettled(t, &k, frames)) {
		k.c.state = NULL;
		k.c.stack = NULL;
		wait_unsettled(t, &k, frames);
		return;
	}
	frames = callpath_continue(t, k.p, &k.c, frames, !may_continue(t, &k));
	waits = may_continue(t, &k);
	if (!waits)
		k.c.state = NULL;
	nr_open = waits ? place(t, &k, frames, 0, k.c.nr) : settle(t, &k, frames);
	if (waits || nr_open)
		wait_open(t, &k, frames, nr_open);
}

void callpath_function(struct callpaths *t, const struct driver_function *f)
{
	struct process *p;
	int r;

	if (is_excluded(t, f->pid))
		return;
	p = follow_find(t->config.follow, f->pid, f->time_ns, f->instance);
	r = p ? dyn_function_add(t->config.attribute->dyn, p, f) : 0;
	if (r < 0)
		base_log(BASE_LOG_DEBUG, "a function of process %d is not kept: %s", f->pid,
			 base_strerror(r));
}

/* ---- later ----------------------------------------------------------------------------------- */

/* True: it waits no more. */
static bool settle_listed(struct callpaths *t, struct callpath_pending *k)
{
	size_t nr_open = settle(t, k, k->addrs);

	k->unsettled = false;
	k->p->unsettled = false;
	if (!nr_open)
		return true;
	if (hold(t, k, nr_open) == 0)
		return false;
	lose(t, &k->c, CALLPATH_LOST_MEMORY);
	return true;
}

static void remove_done(struct callpaths *t, struct callpath_pending *k)
{
	callpath_account(t, k->c.event)->pending -= k->c.count;
	free_pending(t, k);
}

static void pass_time(void *ctx, uint64_t time_ns)
{
	struct callpaths *t = ctx;
	size_t kept = 0;

	if (t->config.follow->events_lost || time_ns < t->unsettled_ns)
		return;
	t->unsettled_ns = UINT64_MAX;
	for (size_t i = 0; i < t->nr_waiting; i++) {
		struct callpath_pending *k = t->waiting[i];

		if (k->unsettled && k->p->known_ns <= time_ns && settle_listed(t, k)) {
			remove_done(t, k);
			continue;
		}
		if (k->unsettled && k->p->known_ns < t->unsettled_ns)
			t->unsettled_ns = k->p->known_ns;
		t->waiting[kept++] = k;
	}
	t->nr_waiting = kept;
}

static uint64_t next_ns(const void *ctx)
{
	const struct callpaths *t = ctx;

	return t->unsettled_ns;
}

/* Frames in dynamic code are looked up as counts are. False: a later reading of the registry may
 * tell. */
static bool resolve_open(struct callpaths *t, struct callpath_pending *k, bool last)
{
	size_t kept = 0;

	for (size_t i = 0; i < k->nr_open; i++) {
		struct callpath_open *o = &k->open[i];
		const struct verdict v = attribute_sample(t->config.attribute, &o->s, last);

		if (v.kind == VERDICT_LATER) {
			k->open[kept++] = *o;
			continue;
		}
		k->frames[o->frame] = frame_of(t, &v);
		image_get(k->frames[o->frame].image);
	}
	k->nr_open = kept;
	return !kept;
}

/* The frames from @first on, which are new, are placed, or open. -ENOMEM: they are left out. */
static int place_more(struct callpaths *t, struct callpath_pending *k, const uint64_t *addrs,
		      size_t first)
{
	struct callpath_frame *frames = realloc(k->frames, k->c.nr * sizeof(*frames));
	struct callpath_open *open = realloc(k->open, k->c.nr * sizeof(*open));

	k->frames = frames ? frames : k->frames;
	k->open = open ? open : k->open;
	if (!frames || !open)
		return -ENOMEM;
	k->nr_open = place(t, k, addrs, first, k->c.nr);
	memcpy(k->open, t->open, k->nr_open * sizeof(*open));
	for (size_t i = first; i < k->c.nr; i++) {
		k->frames[i] = t->frames[i];
		image_get(k->frames[i].image);
	}
	return 0;
}

/* All of its frames are placed. True: it does not continue any more. */
static bool continue_one(struct callpaths *t, struct callpath_pending *k, bool last)
{
	const struct driver_callpath was = k->c;
	const uint64_t *addrs;

	last |= t->config.attribute->flushing || k->p->exited || base_now_ns() >= k->until_ns;
	addrs = callpath_continue(t, k->p, &k->c, k->addrs, last);
	if (!last && k->c.nr == was.nr)
		return false;
	if (k->c.nr > was.nr && place_more(t, k, addrs, was.nr) < 0)
		k->c = was;
	drop_stack(t, k);
	return resolve_open(t, k, last);
}

static bool resolve_one(struct callpaths *t, struct callpath_pending *k, bool last)
{
	if (k->unsettled)
		return false;
	if (k->nr_open && k->news && !last && !t->config.attribute->flushing &&
	    !attribute_is_due(k->p, k->news)) {
		dyn_wait(k->p, k->c.time_ns);
		return false;
	}
	k->news = dyn_news(k->p);
	if (!resolve_open(t, k, last) || (k->c.state && !continue_one(t, k, last)))
		return false;
	store(t, k, k->frames, NULL, NULL);
	return true;
}

static void resolve_all(void *ctx, bool last)
{
	struct callpaths *t = ctx;
	size_t kept = 0;

	for (size_t i = 0; i < t->nr_waiting; i++) {
		struct callpath_pending *k = t->waiting[i];

		if (resolve_one(t, k, last))
			remove_done(t, k);
		else
			t->waiting[kept++] = k;
	}
	t->nr_waiting = kept;
}

const struct attribute_later callpath_later = { pass_time, next_ns, resolve_all };

/* ---- life ------------------------------------------------------------------------------------ */

int callpath_open(const struct callpath_config *config, struct callpaths **out,
		  struct base_err *err)
{
	struct callpaths *t = calloc(1, sizeof(*t));

	*out = t;
	if (!t)
		return base_fail_errno(err, -ENOMEM, "cannot keep call paths");
	t->callers = calloc(CALLPATH_NR_CALLERS, sizeof(*t->callers));
	if (!t->callers) {
		free(t);
		*out = NULL;
		return base_fail_errno(err, -ENOMEM, "cannot keep call paths");
	}
	t->config = *config;
	t->calls = config->calls ? config->calls : &real_calls;
	t->tree.nr_events = config->nr_events;
	t->tree.max = config->nr_nodes ? config->nr_nodes : NODES_MAX;
	t->tree.seed = base_hash_seed();
	t->unsettled_ns = UINT64_MAX;
	return 0;
}

static void release_rows(struct callpath_rows *r, struct callpath_codes *c)
{
	for (size_t i = 0; i < r->nr; i++)
		free(r->files[i].path);
	free(r->files);
	*r = (struct callpath_rows){ 0 };
	free(c->parts);
	free(c->gone);
	free(c->routines);
	free(c->frames);
	*c = (struct callpath_codes){ 0 };
}

void callpath_close(struct callpaths *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->nr_waiting; i++) {
		if (t->waiting[i]->unsettled)
			t->waiting[i]->p->unsettled = false;
		free_pending(t, t->waiting[i]);
	}
	free(t->waiting);
	callpath_tree_clear(&t->tree);
	free(t->waits);
	free(t->callers);
	release_rows(&t->rows, &t->codes);
	free(t->known);
	free(t);
}
