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
		trace_step_put(&k->steps[i], NULL);
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
	if (trace_is_unsettled(&t->config, k->p, &k->w)) {
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
	trace_place(&t->config, k.p, w, k.steps, k.nr);
	if (is_open(&k)) {
		t->config.attribute->dynamic_ns = base_now_ns();
		wait_for(t, &k, words);
		return;
	}
	store(t, &k, words);
	release(&k);
}

/* ---- those that wait ------------------------------------------------------------------------- */

/* Traces of single steps whose time has come. */
static void take_stepped(struct windows *t, uint64_t time_ns)
{
	struct windows_early *e;

	while ((e = windows_stepped_next(t, time_ns))) {
		windows_take(t, &e->w, e->words);
		free(e);
	}
}

void windows_pass(struct windows *t, uint64_t time_ns)
{
	take_stepped(t, time_ns);
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

		if (s->where == WINDOWS_OPEN && !trace_place_dynamic(&t->config, k, s, !wait))
			return false;
	}
	store(t, k, k->words);
	return true;
}

void windows_resolve(struct windows *t, bool last)
{
	size_t kept = 0;

	if (last)
		take_stepped(t, UINT64_MAX);
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
