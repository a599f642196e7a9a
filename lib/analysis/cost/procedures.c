/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes an image's samples, or exact counts, to the instructions of its procedures' flow
 * graphs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "procedures.h"

/* ---- the event ------------------------------------------------------------------------------- */

bool estimate_by_retired(const struct analysis *a, size_t event)
{
	return estimate_model(a->events[event].name) < 0;
}

static uint64_t retired_of(const struct analysis_image *ai, size_t event)
{
	size_t nr = ai->profile ? profdb_profile_nr_insns(ai->profile) : 0;
	uint64_t sum = 0;

	for (size_t i = 0; i < nr; i++) {
		const struct profdb_insn *m = profdb_profile_insn(ai->profile, i);

		if (ai->event_of[m->event] == event && estimate_is_retired(m))
			sum += m->count;
	}
	return sum;
}

static uint64_t retired(const struct analysis *a, const struct analysis_image *ai, size_t event)
{
	uint64_t sum = 0;

	if (ai)
		return retired_of(ai, event);
	for (size_t i = 0; i < a->nr_images; i++)
		sum += retired_of(a->images[i], event);
	return sum;
}

static uint64_t samples(const struct analysis *a, const struct analysis_image *ai, size_t event)
{
	if (estimate_by_retired(a, event)) {
		uint64_t nr = retired(a, ai, event);

		return nr < ESTIMATE_MIN_SAMPLES ? 0 : nr;
	}
	return ai ? ai->count[event] : a->events[event].sum;
}

/* How well an event tells frequencies. */
static int rank_of(const struct analysis *a, size_t event)
{
	int model = estimate_model(a->events[event].name);

	return model < 0 ? FREQ_INSTRUCTIONS + 1 : model;
}

int estimate_event(const struct analysis *a, const struct analysis_image *ai)
{
	int best = -ENOENT, best_rank = 0;
	uint64_t most = 0;

	for (size_t i = 0; i < a->nr_events; i++) {
		uint64_t nr = samples(a, ai, i);
		int rank = rank_of(a, i);

		if (!nr || rank < best_rank || (rank == best_rank && nr <= most))
			continue;
		best = (int)i;
		best_rank = rank;
		most = nr;
	}
	return best < 0 && ai ? estimate_event(a, NULL) : best;
}

/* ---- samples --------------------------------------------------------------------------------- */

void estimate_samples_release(struct estimate_samples *s)
{
	free(s->v);
	memset(s, 0, sizeof(*s));
}

static int by_vaddr(const void *pa, const void *pb)
{
	const struct estimate_sample *a = pa, *b = pb;

	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

static int add_at(struct estimate_samples *s, const struct image *img, uint64_t off, uint64_t count)
{
	struct estimate_sample sample = { .count = count };
	int r;

	if (!count || image_vaddr(img, off, &sample.vaddr) < 0)
		return 0;
	r = base_grow(&s->v, &s->cap, s->nr + 1, sizeof(*s->v));
	if (r >= 0)
		s->v[s->nr++] = sample;
	return r;
}

static int add_entry(struct estimate_samples *s, const struct analysis_image *ai,
		     const struct image *img, const struct profdb_entry *e, size_t event)
{
	uint64_t count = 0;

	for (size_t i = 0; i < profdb_profile_nr_events(ai->profile); i++) {
		if (ai->event_of[i] == event)
			count += e->count[i];
	}
	return add_at(s, img, e->off, count);
}

static void begin(struct estimate_samples *s, const struct analysis *a,
		  const struct analysis_image *ai, size_t event)
{
	s->period = analysis_sample_units(a, ai, event);
	snprintf(s->event, sizeof(s->event), "%s", a->events[event].name);
}

int estimate_samples_gather(struct estimate_samples *s, const struct analysis *a,
			    const struct analysis_image *ai, const struct image *img, size_t event)
{
	int r = 0;

	begin(s, a, ai, event);
	for (size_t i = 0; r >= 0 && i < profdb_profile_nr_entries(ai->profile); i++)
		r = add_entry(s, ai, img, profdb_profile_entry(ai->profile, i), event);
	if (r >= 0 && s->nr)
		qsort(s->v, s->nr, sizeof(*s->v), by_vaddr);
	return r;
}

int estimate_runs_gather(struct estimate_samples *s, const struct analysis *a,
			 const struct analysis_image *ai, const struct image *img, size_t event)
{
	size_t nr = profdb_profile_nr_insns(ai->profile);
	int r = 0;

	if (!estimate_by_retired(a, event))
		return estimate_samples_gather(s, a, ai, img, event);
	begin(s, a, ai, event);
	for (size_t i = 0; r >= 0 && i < nr; i++) {
		const struct profdb_insn *m = profdb_profile_insn(ai->profile, i);

		if (ai->event_of[m->event] == event && estimate_is_retired(m))
			r = add_at(s, img, m->off, m->count);
	}
	if (r >= 0 && s->nr)
		qsort(s->v, s->nr, sizeof(*s->v), by_vaddr);
	return r;
}

static size_t first_from(const struct estimate_samples *s, uint64_t vaddr)
{
	size_t from = 0, to = s->nr;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (s->v[mid].vaddr < vaddr)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

uint64_t estimate_samples_place(const struct estimate_samples *s, const struct flow *f,
				double *by_insn)
{
	uint64_t placed = 0;

	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		size_t i = first_from(s, f->blocks[b].vaddr);

		for (; i < s->nr && s->v[i].vaddr < f->blocks[b].end; i++) {
			const struct insn *insn = flow_insn_at(f, s->v[i].vaddr);

			if (!insn)
				continue;
			by_insn[insn - f->insns] += (double)s->v[i].count;
			placed += s->v[i].count;
		}
	}
	return placed;
}

/* ---- procedures ------------------------------------------------------------------------------ */

enum place {
	NOWHERE,
	IN_BLOCK,
	IN_NO_CODE,
};

struct walk {
	struct image *img;
	const struct estimate_samples *samples;
	estimate_visit *visit;
	void *context;
	enum place *place; /* indexed by sample: where it was found */
};

/* Does the address belong to a procedure nested in @symbol? All reports attribute it to that
 * one. */
static bool is_inner(struct walk *w, const struct image_symbol *symbol, uint64_t vaddr)
{
	const struct image_symbol *s = image_symbol_at(w->img, vaddr);

	return s && s->vaddr > symbol->vaddr && s->vaddr - symbol->vaddr < symbol->len;
}

static void place_new(struct walk *w, const struct image_symbol *symbol, const struct flow *f,
		      double *by_insn)
{
	const struct estimate_samples *s = w->samples;

	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		size_t i = first_from(s, f->blocks[b].vaddr);

		for (; i < s->nr && s->v[i].vaddr < f->blocks[b].end; i++) {
			const struct insn *insn = flow_insn_at(f, s->v[i].vaddr);

			if (!insn || w->place[i] == IN_BLOCK || is_inner(w, symbol, s->v[i].vaddr))
				continue;
			by_insn[insn - f->insns] += (double)s->v[i].count;
			w->place[i] = IN_BLOCK;
		}
	}
}

/* A procedure without bytes has a graph without blocks. */
static void note_no_code(struct walk *w, const struct image_symbol *symbol)
{
	size_t i = first_from(w->samples, symbol->vaddr);

	for (; i < w->samples->nr && w->samples->v[i].vaddr - symbol->vaddr < symbol->len; i++)
		if (w->place[i] == NOWHERE)
			w->place[i] = IN_NO_CODE;
}

static int visit_flow(struct walk *w, const struct image_symbol *symbol, const struct flow *f,
		      struct base_err *err)
{
	double *by_insn = calloc((size_t)f->nr_insns + 1, sizeof(*by_insn));
	int r = by_insn ? 0 : base_fail_errno(err, -ENOMEM, "cannot estimate frequencies");

	if (r >= 0) {
		place_new(w, symbol, f, by_insn);
		if (!f->nr_blocks)
			note_no_code(w, symbol);
		r = w->visit(w->context, symbol, f, by_insn, err);
	}
	free(by_insn);
	return r;
}

/* Is the symbol a cold part? Its samples belong to the graph of the procedure that leads to it. */
static bool is_cold(const struct image_symbol *symbol)
{
	return strstr(symbol->name, ".cold") != NULL;
}

static int visit_procedures(struct walk *w, bool cold, struct base_err *err)
{
	const struct image_symbol *last = NULL;
	int r = 0;

	for (size_t i = 0; i < w->samples->nr && r >= 0; i++) {
		const struct image_symbol *symbol;
		struct flow *f = NULL;

		if (w->place[i] != NOWHERE)
			continue;
		symbol = image_symbol_at(w->img, w->samples->v[i].vaddr);
		/* A procedure is visited once, also with samples between its blocks. */
		if (!symbol || symbol == last || is_cold(symbol) != cold)
			continue;
		last = symbol;
		r = flow_build(w->img, symbol, &f, err);
		if (r >= 0)
			r = visit_flow(w, symbol, f, err);
		flow_free(f);
	}
	return r;
}

static void tell_rest(const struct walk *w, struct estimate_rest *rest)
{
	for (size_t i = 0; i < w->samples->nr; i++) {
		const struct estimate_sample *s = &w->samples->v[i];

		if (w->place[i] == IN_NO_CODE)
			rest->no_code += s->count;
		else if (w->place[i] == NOWHERE && image_symbol_at(w->img, s->vaddr))
			rest->no_block += s->count;
		else if (w->place[i] == NOWHERE)
			rest->no_procedure += s->count;
	}
}

int estimate_procedures(struct image *img, const struct estimate_samples *s, estimate_visit *visit,
			void *context, struct estimate_rest *rest, struct base_err *err)
{
	struct walk w = { .img = img, .samples = s, .visit = visit, .context = context };
	int r;

	if (rest)
		memset(rest, 0, sizeof(*rest));
	w.place = calloc(s->nr + 1, sizeof(*w.place));
	if (!w.place)
		return base_fail_errno(err, -ENOMEM, "cannot estimate frequencies");
	r = visit_procedures(&w, false, err);
	if (r >= 0)
		r = visit_procedures(&w, true, err);
	if (r >= 0 && rest)
		tell_rest(&w, rest);
	free(w.place);
	return r;
}
