/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts and tests the instructions of routines whose code is equal in both sets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "regress_sets.h"

/* Do instructions of the routine have the same places in both sets? */
static bool has_equal_code(const struct regress_routines *x, size_t i)
{
	const struct analysis_diff_row *d = &x->diff.v[i];

	return x->v[i].state == REGRESS_BOTH && d->row[0] && d->row[1] &&
	       d->row[0]->nr_places == 1 && d->row[1]->nr_places == 1 &&
	       (d->code == ANALYSIS_CODE_EQUAL || d->code == ANALYSIS_CODE_OPERANDS);
}

static int find_routine(struct regress_reader *d, const struct image_symbol *symbol)
{
	size_t at;
	int r;

	if (symbol == d->last)
		return 0;
	r = regress_find(d->names, d->image_name, symbol->name, &d->key, &at);
	d->last = symbol;
	d->routine = at && has_equal_code(d->x, at - 1) ? at : 0;
	return r;
}

/* Finds or adds a row without samples. */
static int find(struct regress_insns *in, const struct regress_insn *insn, size_t width, size_t *at)
{
	uint64_t key[2] = { insn->routine, insn->off };
	size_t nr = in->test.nr;
	int r;

	*at = (size_t)(uintptr_t)base_map_get(&in->by_place, key, sizeof(key));
	if (*at)
		return 0;
	r = base_grow(&in->v, &in->cap, nr + 1, sizeof(*in->v));
	if (r >= 0)
		r = base_grow(&in->counts, &in->cap_counts, (nr + 1) * width, sizeof(*in->counts));
	if (r >= 0)
		r = base_map_set(&in->by_place, key, sizeof(key), (void *)(uintptr_t)(nr + 1));
	if (r < 0)
		return r;
	memset(&in->counts[nr * width], 0, width * sizeof(*in->counts));
	in->v[nr] = *insn;
	*at = ++in->test.nr;
	return 0;
}

int regress_insns_count(struct regress_reader *d, struct image *img, uint64_t off, size_t column,
			uint64_t count)
{
	struct regress_insns *in = &d->x->insns;
	const struct image_symbol *symbol;
	struct regress_insn insn;
	uint64_t vaddr;
	size_t at;
	int r;

	symbol = image_vaddr(img, off, &vaddr) < 0 ? NULL : image_symbol_at(img, vaddr);
	if (!symbol || !count)
		return 0;
	r = find_routine(d, symbol);
	if (r < 0 || !d->routine)
		return r;
	insn = (struct regress_insn){ d->routine - 1, vaddr - symbol->vaddr };
	r = find(in, &insn, d->width, &at);
	if (r >= 0)
		in->counts[(at - 1) * d->width + column] += count;
	return r;
}

static int add_image(struct regress_reader *d, struct analysis *a, struct analysis_image *ai)
{
	uint64_t *count = calloc(a->nr_events + 1, sizeof(*count));
	struct image *img = NULL;
	int r = count ? 0 : -ENOMEM;

	if (r == 0)
		analysis_image_open(a, ai, &img, NULL);
	d->image_name = ai->facility ? ai->facility : ai->name;
	d->last = NULL;
	for (size_t i = 0; img && i < profdb_profile_nr_entries(ai->profile) && r >= 0; i++) {
		const struct profdb_entry *e = profdb_profile_entry(ai->profile, i);

		memset(count, 0, a->nr_events * sizeof(*count));
		analysis_entry_add(ai, e, count, NULL);
		r = regress_insns_count(d, img, e->off, d->column, count[d->event]);
	}
	image_close(img);
	free(count);
	return r;
}

int regress_insns_add(struct regress_routines *x, const struct base_map *names, struct analysis *a,
		      size_t event, size_t column, size_t width)
{
	struct regress_reader d = {
		.x = x, .names = names, .event = event, .column = column, .width = width
	};
	int r = 0;

	for (size_t i = 0; i < a->nr_images && r >= 0; i++)
		if (a->images[i]->count[event] && a->images[i]->kind != PROFDB_NAMED)
			r = add_image(&d, a, a->images[i]);
	base_buf_release(&d.key);
	return r;
}

int regress_insns_test(struct regress_routines *x, const bool *keep, size_t width)
{
	struct regress_insns *in = &x->insns;
	size_t nr = in->test.nr;
	int r;

	in->test = (struct regress){ .nr = nr, .rate = x->test.rate, .least = x->test.least };
	memcpy(in->test.nr_replicates, x->test.nr_replicates, sizeof(in->test.nr_replicates));
	in->test.v = calloc(nr + 1, sizeof(*in->test.v));
	if (!in->test.v)
		return -ENOMEM;
	if (nr)
		regress_counts_drop(in->counts, nr, keep, width);
	for (size_t i = 0; i < nr; i++)
		in->test.v[i].count = &in->counts[i * width];
	r = regress_make(&in->test);
	if (r != -EINVAL)
		return r;
	/* No routine with equal code has samples in both sets: there is nothing to compare. */
	in->test.nr = 0;
	return 0;
}

void regress_insns_release(struct regress_insns *in)
{
	regress_release(&in->test);
	base_map_release(&in->by_place);
	free(in->test.v);
	free(in->v);
	free(in->counts);
}
