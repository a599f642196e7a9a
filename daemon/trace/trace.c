/* SPDX-License-Identifier: BSD-2-Clause */
/* Where windows belong, and what became of each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace_parts.h"

/* So many may wait for registries. */
enum { WAITING_MAX = 16384 };

static const struct windows_driver real_calls = {
	.missing = driver_windows_missing,
	.put = driver_block_put,
	.get = driver_block_get,
	.stats = driver_window_stats_get,
};

/* ---- accounting ------------------------------------------------------------------------------ */

const char *windows_loss_name(enum windows_loss loss)
{
	static const char *const names[] = {
#define X(id, name, text) name,
		WINDOWS_LOSSES(X)
#undef X
	};

	return (unsigned int)loss < WINDOWS_NR_LOSSES ? names[loss] : "?";
}

void windows_driver_stats_get(const struct windows *t, struct driver_window_stats *out)
{
	t->calls->stats(t->config.driver, out);
}

void windows_stats_get(const struct windows *t, struct windows_stats *out)
{
	struct driver_window_stats d = { 0 };

	windows_driver_stats_get(t, &d);
	*out = t->stats;
	out->received = d.received;
	out->pending += d.held;
	out->lost[WINDOWS_LOST_RING] += d.lost_ring;
	out->lost[WINDOWS_LOST_BUSY] += d.lost_busy;
	out->lost[WINDOWS_LOST_READ] += d.lost_read;
}

uint64_t windows_lost(const struct windows_stats *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < WINDOWS_NR_LOSSES; i++)
		sum += s->lost[i];
	return sum;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

const struct vtrace_code *windows_block(void *ctx, uint32_t id)
{
	const struct windows *t = ctx;

	return step_has_id(id) ? step_block(t->config.step, id)
			       : t->calls->get(t->config.driver, id);
}

/* ---- where a block is ------------------------------------------------------------------------ */

static void lose(struct windows_step *s, enum windows_loss loss)
{
	s->where = WINDOWS_LOST;
	s->loss = loss;
}

static void put_image(struct windows_step *s, struct image *image)
{
	image_put(s->image);
	s->image = image_get(image);
}

static void place(struct windows_step *s, struct image *image, uint64_t off, uint64_t last_off)
{
	put_image(s, image);
	s->where = WINDOWS_PLACED;
	s->off = off;
	s->last_off = last_off;
}

/* A block that reaches into the next mapping is in neither. */
static void place_mapped(const struct windows_config *c, const struct process *p,
			 struct windows_step *s, const struct map *m)
{
	const struct images_owner owner = process_owner(p);
	struct image *image = images_of(c->attribute->images, m->image, &owner);
	bool claimed = c->attribute->dyn && (dyn_claims(p, s->pc) || dyn_claims(p, s->last));

	if (!image) {
		lose(s, WINDOWS_LOST_MEMORY);
		return;
	}
	if (s->last >= m->end) {
		lose(s, WINDOWS_LOST_AMBIGUOUS);
		return;
	}
	place(s, image, m->file_off + (s->pc - m->start), m->file_off + (s->last - m->start));
	s->mapped_ns = m->since_ns;
	if (claimed)
		s->where = WINDOWS_OPEN;
}

/* It is older than the reading of /proc that its process's mappings come from, or waits for one. */
static bool is_unsettled(const struct windows_config *c, const struct process *p,
			 const struct vtrace_window *w)
{
	return p && !p->exited && (c->follow->doubt || w->time_ns < p->known_ns);
}

/* @m: of the address, or NULL. */
static void place_user(const struct windows_config *c, struct process *p,
		       const struct vtrace_window *w, struct windows_step *s, const struct map *m)
{
	if (m && m->kind == MAP_DYNAMIC) {
		s->memory = m->start;
		if (c->attribute->dyn && c->attribute->live)
			dyn_watch(c->attribute->dyn, p);
	}
	/* Events still to come may tell that what /proc listed is younger than the window. Those
	 * that were lost tell nothing, but what /proc lists next may. */
	if (is_unsettled(c, p, w) && (c->follow->doubt || (m && m->listed && !m->since_ns)))
		return;
	if (m && m->since_ns > w->time_ns)
		lose(s, WINDOWS_LOST_AMBIGUOUS);
	else if (m && m->kind == MAP_IMAGE)
		place_mapped(c, p, s, m);
	else if (!m && !p->dyn)
		lose(s, p->hollow ? WINDOWS_LOST_PROCESS : WINDOWS_LOST_UNKNOWN);
}

static void place_kernel(const struct windows_config *c, const struct vtrace_window *w,
			 struct windows_step *s)
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
		lose(s, WINDOWS_LOST_UNKNOWN);
}

static void place_all(const struct windows_config *c, struct process *p,
		      const struct vtrace_window *w, struct windows_step *steps, size_t nr)
{
	const struct map *m = NULL; /* most blocks lie where the one before does */

	for (size_t i = 0; i < nr; i++) {
		if (steps[i].where != WINDOWS_OPEN)
			continue;
		if (w->has & VTRACE_WINDOW_KERNEL) {
			place_kernel(c, w, &steps[i]);
			continue;
		}
		if (!m || m->kind == MAP_DYNAMIC || steps[i].pc < m->start || steps[i].pc >= m->end)
			m = map_find(p, steps[i].pc);
		place_user(c, p, w, &steps[i], m);
	}
}

/* ---- code that programs made ----------------------------------------------------------------- */

static enum dyn_where look_up(const struct windows_config *c, const struct windows_pending *k,
			      const struct windows_step *s, uint64_t addr, bool last,
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

/* What it is in stays, where its process did not tell of code there. */
static void place_unnamed(const struct windows_pending *k, struct windows_step *s)
{
	if (s->image)
		s->where = WINDOWS_PLACED;
	else
		lose(s, k->p->hollow ? WINDOWS_LOST_PROCESS : WINDOWS_LOST_UNKNOWN);
}

/* False: a later reading of the registry may tell. A block of two routines is in neither. */
static bool place_dynamic(const struct windows_config *c, const struct windows_pending *k,
			  struct windows_step *s, bool last)
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
		lose(s, where == DYN_REUSED    ? WINDOWS_LOST_REUSED
			: where == DYN_NO_ROOM ? WINDOWS_LOST_QUOTA
					       : WINDOWS_LOST_GENERATION);
	return true;
}

/* ---- what becomes of a window ---------------------------------------------------------------- */

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

static int store_moves(void *ctx, struct image *image, const struct profdb_move *m, size_t nr)
{
	struct storing *s = ctx;
	size_t nr_stored = 0;
	int r = store_edges(s->store, image, s->p ? s->p->label : NULL, m, nr, &nr_stored);

	if (nr_stored)
		note(s, image);
	return r;
}

/* A window of single steps has no moves: where it was is no matter of chance. */
static void note_images(struct storing *s, const struct windows_pending *k)
{
	for (size_t i = 0; i < k->nr; i++)
		if (k->steps[i].where == WINDOWS_PLACED && !k->steps[i].image->excluded)
			note(s, k->steps[i].image);
}

static enum windows_loss why(const struct windows_step *steps, size_t nr, int r)
{
	if (r < 0)
		return r == -DCPI_EOVERFLOW ? WINDOWS_LOST_OVERFLOW : WINDOWS_LOST_MEMORY;
	for (size_t i = 0; i < nr; i++)
		if (steps[i].where == WINDOWS_LOST)
			return steps[i].loss;
	return WINDOWS_LOST_EXCLUDED;
}

/* All of its blocks are placed or lost: it is stored, or lost by one name. */
static void store(struct windows *t, const struct windows_pending *k, const uint64_t *words)
{
	const uint64_t count[2] = { !(k->number & 1), k->number & 1 };
	struct storing s = { .store = t->config.store, .p = k->p };
	enum windows_loss loss;
	int r = 0;

	if (windows_is_stepped(&k->w))
		note_images(&s, k);
	else
		r = windows_moves(k->steps, k->nr, count, store_moves, &s);
	if (s.stored) {
		windows_account(t, &k->w)->stored++;
		if (!s.certain)
			*(windows_is_stepped(&k->w) ? &s.first->stepped : &s.first->windows) += 1;
		windows_values_add(t, k, words);
		return;
	}
	loss = why(k->steps, k->nr, r);
	windows_account(t, &k->w)->lost[loss]++;
	if (t->config.log_unknown)
		base_log(BASE_LOG_INFO, "window %s: pid %u (%s) at 0x%llx", windows_loss_name(loss),
			 k->w.tgid, k->p ? k->p->comm : "", (unsigned long long)k->w.pc);
}

void windows_given_up(struct windows *t, struct image *image)
{
	uint64_t values = image_values_total(image);

	t->stats.stored -= image->windows;
	t->stats.lost[WINDOWS_LOST_REFUSED] += image->windows;
	t->stepped.stats.stored -= image->stepped;
	t->stepped.stats.lost[WINDOWS_LOST_REFUSED] += image->stepped;
	image->windows = image->stepped = 0;
	t->values.stats.stored -= values;
	t->values.stats.unplaced += values;
}

static void release(struct windows_pending *k)
{
	for (size_t i = 0; i < k->nr; i++)
		put_image(&k->steps[i], NULL);
	windows_past_put(k->past);
	free(k->words);
	k->words = NULL;
}

static bool is_open(const struct windows_pending *k)
{
	for (size_t i = 0; i < k->nr; i++)
		if (k->steps[i].where == WINDOWS_OPEN)
			return true;
	return false;
}

static int keep_words(const struct windows *t, struct windows_pending *k, const uint64_t *words)
{
	size_t len = vtrace_window_words(&k->w) * sizeof(*words);

	if (!t->values.client)
		return 0;
	k->words = malloc(len);
	if (!k->words)
		return -ENOMEM;
	memcpy(k->words, words, len);
	return 0;
}

static void wait_for(struct windows *t, struct windows_pending *k, const uint64_t *words)
{
	struct windows_pending *copy = NULL;

	if (keep_words(t, k, words) == 0 && t->nr_waiting < WAITING_MAX &&
	    base_grow(&t->waiting, &t->cap_waiting, t->nr_waiting + 1, sizeof(*t->waiting)) == 0)
		copy = malloc(sizeof(*copy));
	if (!copy) {
		windows_account(t, &k->w)->lost[WINDOWS_LOST_MEMORY]++;
		release(k);
		return;
	}
	*copy = *k;
	windows_values_met(t, &k->w);
	if (is_unsettled(&t->config, k->p, &k->w)) {
		copy->unsettled = true;
		if (k->p->known_ns < t->unsettled_ns)
			t->unsettled_ns = k->p->known_ns;
	}
	t->waiting[t->nr_waiting++] = copy;
	windows_account(t, &k->w)->pending++;
}

static struct process *process_of(struct windows *t, const struct vtrace_window *w)
{
	struct process *p;

	if (w->has & VTRACE_WINDOW_KERNEL)
		return NULL;
	p = follow_find(t->config.follow, (int32_t)w->tgid, w->time_ns, w->instance);
	windows_take_ends(t);
	follow_ends_clear(t->config.follow);
	return p;
}

static bool is_excluded(const struct windows_config *c, const struct vtrace_window *w)
{
	return c->exclude && !(w->has & VTRACE_WINDOW_KERNEL) &&
	       exclude_has_pid(c->exclude, (int32_t)w->tgid);
}

void windows_take(struct windows *t, const struct vtrace_window *w, const uint64_t *words)
{
	struct windows_pending k; /* of which most is not used, nor cleared */
	struct windows_stats *account = windows_account(t, w);
	int nr = windows_walk(windows_block, t, w, words, k.steps);

	memcpy(&k.w, w, VTRACE_WINDOW_LEN(w->has));
	k.number = t->number;
	k.words = NULL;
	k.until_ns = k.news = 0;
	k.unsettled = false;
	k.past = NULL;
	t->number += !windows_is_stepped(w);
	if (nr <= 0 || is_excluded(&t->config, w)) {
		account->lost[nr <= 0 ? WINDOWS_LOST_BAD : WINDOWS_LOST_EXCLUDED]++;
		return;
	}
	k.nr = (size_t)nr;
	k.p = process_of(t, w);
	if (!k.p && !(w->has & VTRACE_WINDOW_KERNEL)) {
		account->lost[WINDOWS_LOST_MEMORY]++;
		return;
	}
	place_all(&t->config, k.p, w, k.steps, k.nr);
	if (is_open(&k)) {
		t->config.attribute->dynamic_ns = base_now_ns();
		wait_for(t, &k, words);
		return;
	}
	store(t, &k, words);
	release(&k);
}

/* ---- those that wait ------------------------------------------------------------------------- */

/* What /proc listed, and no event up to then has contradicted. */
void windows_place_listed(const struct windows_config *c, struct windows_pending *k)
{
	k->unsettled = false;
	for (size_t i = 0; i < k->nr; i++) {
		struct windows_step *s = &k->steps[i];
		const struct map *m = s->where == WINDOWS_OPEN ? map_find(k->p, s->pc) : NULL;

		if (m && m->since_ns > k->w.time_ns)
			lose(s, WINDOWS_LOST_AMBIGUOUS);
		else if (m && !s->image && m->kind == MAP_IMAGE)
			place_mapped(c, k->p, s, m);
		else if (m && m->kind == MAP_DYNAMIC)
			s->memory = m->start;
	}
}

void windows_pass(struct windows *t, uint64_t time_ns)
{
	windows_stepped_pass(t, time_ns);
	if (t->config.follow->doubt || time_ns < t->unsettled_ns)
		return;
	t->unsettled_ns = UINT64_MAX;
	for (size_t i = 0; i < t->nr_waiting; i++) {
		struct windows_pending *k = t->waiting[i];

		if (k->unsettled && k->p->known_ns <= time_ns)
			windows_place_listed(&t->config, k);
		else if (k->unsettled && k->p->known_ns < t->unsettled_ns)
			t->unsettled_ns = k->p->known_ns;
	}
}

/* Every event up to now was seen. False: it goes on waiting. */
static bool settle(struct windows *t, struct windows_pending *k, bool last)
{
	bool wait;

	if (k->unsettled && (last || k->p->exited))
		windows_place_listed(&t->config, k);
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
		struct windows_step *s = &k->steps[i];

		if (s->where == WINDOWS_OPEN && !place_dynamic(&t->config, k, s, !wait))
			return false;
	}
	store(t, k, k->words);
	return true;
}

void windows_resolve(struct windows *t, bool last)
{
	size_t kept = 0;

	if (last)
		windows_stepped_pass(t, UINT64_MAX);
	for (size_t i = 0; i < t->nr_waiting; i++) {
		struct windows_pending *k = t->waiting[i];

		if (!settle(t, k, last)) {
			t->waiting[kept++] = k;
			continue;
		}
		windows_account(t, &k->w)->pending--;
		release(k);
		free(k);
	}
	t->nr_waiting = kept;
}

/* ---- life ------------------------------------------------------------------------------------ */

int windows_open(const struct windows_config *config, struct windows **out, struct base_err *err)
{
	struct windows *t = calloc(1, sizeof(*t));
	int r = 0;

	*out = NULL;
	if (!t)
		return base_fail_errno(err, -ENOMEM, "cannot follow windows");
	t->config = *config;
	t->unsettled_ns = UINT64_MAX;
	t->calls = config->calls ? config->calls : &real_calls;
	t->values.client = config->values;
	t->values.nr_profilers = config->nr_profilers;
	if (config->helper_dir)
		r = translator_open(config->helper_dir, &t->translator, err);
	if (r < 0) {
		windows_close(t);
		return r;
	}
	*out = t;
	return 0;
}

void windows_close(struct windows *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->nr_waiting; i++) {
		release(t->waiting[i]);
		free(t->waiting[i]);
	}
	free(t->waiting);
	windows_values_release(&t->values);
	windows_stepped_release(&t->stepped);
	windows_code_release(&t->code);
	translator_close(t->translator);
	free(t);
}
