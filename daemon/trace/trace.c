/* SPDX-License-Identifier: BSD-2-Clause */
/* Where traces belong, and what became of each. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace_parts.h"

/* So many may wait for registries. */
enum { WAITING_MAX = 16384 };

static const struct trace_driver real_calls = {
	.missing = driver_traces_missing,
	.put = driver_block_put,
	.get = driver_block_get,
	.stats = driver_trace_stats_get,
};

/* ---- what becomes of a trace ---------------------------------------------------------------- */

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

/* A trace of single steps has no moves: where it was is no matter of chance. */
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

	if (trace_is_stepped(&k->w))
		note_images(&s, k);
	else
		r = trace_edges(k->steps, k->nr, count, store_edge_counts, &s);
	if (s.stored) {
		trace_account(t, &k->w)->stored++;
		if (!s.certain)
			*(trace_is_stepped(&k->w) ? &s.first->stepped : &s.first->traces) += 1;
		trace_values_add(t, k, words);
		return;
	}
	loss = why(k->steps, k->nr, r);
	trace_account(t, &k->w)->lost[loss]++;
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
		trace_step_put(&k->steps[i], NULL);
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

static void wait_for(struct traces *t, struct trace_pending *k, const uint64_t *words)
{
	struct trace_pending *copy = NULL;

	if (keep_words(t, k, words) == 0 && t->nr_waiting < WAITING_MAX &&
	    base_grow(&t->waiting, &t->cap_waiting, t->nr_waiting + 1, sizeof(*t->waiting)) == 0)
		copy = malloc(sizeof(*copy));
	if (!copy) {
		trace_account(t, &k->w)->lost[TRACE_LOST_MEMORY]++;
		release(k);
		return;
	}
	*copy = *k;
	trace_values_met(t, &k->w);
	if (trace_is_unsettled(&t->config, k->p, &k->w)) {
		copy->unsettled = true;
		if (k->p->known_ns < t->unsettled_ns)
			t->unsettled_ns = k->p->known_ns;
	}
	t->waiting[t->nr_waiting++] = copy;
	trace_account(t, &k->w)->pending++;
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

void trace_take(struct traces *t, const struct insn_trace *w, const uint64_t *words)
{
	struct trace_pending k; /* the pending trace; most of it stays unused and is not cleared */
	struct trace_stats *account = trace_account(t, w);
	int nr = trace_walk(trace_block, t, w, words, k.steps);

	memcpy(&k.w, w, INSN_TRACE_LEN(w->has));
	k.number = t->number;
	k.words = NULL;
	k.until_ns = k.news = 0;
	k.unsettled = false;
	k.past = NULL;
	t->number += !trace_is_stepped(w);
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

/* ---- those that wait ------------------------------------------------------------------------- */

/* Traces of single steps whose time has come. */
static void take_stepped(struct traces *t, uint64_t time_ns)
{
	struct trace_early *e;

	while ((e = trace_stepped_next(t, time_ns))) {
		trace_take(t, &e->w, e->words);
		free(e);
	}
}

void trace_pass(struct traces *t, uint64_t time_ns)
{
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

		if (s->where == TRACE_OPEN && !trace_place_dynamic(&t->config, k, s, !wait))
			return false;
	}
	store(t, k, k->words);
	return true;
}

void trace_resolve(struct traces *t, bool last)
{
	size_t kept = 0;

	if (last)
		take_stepped(t, UINT64_MAX);
	for (size_t i = 0; i < t->nr_waiting; i++) {
		struct trace_pending *k = t->waiting[i];

		if (!settle(t, k, last)) {
			t->waiting[kept++] = k;
			continue;
		}
		trace_account(t, &k->w)->pending--;
		release(k);
		free(k);
	}
	t->nr_waiting = kept;
}

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
	trace_stepped_release(&t->stepped);
	trace_code_release(&t->code);
	translator_close(t->translator);
	free(t);
}
