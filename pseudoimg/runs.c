/* SPDX-License-Identifier: BSD-2-Clause */
/* Which image offset each address has. */
#include <errno.h>
#include <stdlib.h>

#include "pseudoimg_internal.h"

static void swap_keys(struct pseudoimg_model *m)
{
	for (size_t i = 0; i < m->runs.nr; i++) {
		uint64_t start = m->runs.v[i].start;

		m->runs.v[i].start = m->runs.v[i].img_off;
		m->runs.v[i].img_off = start;
	}
}

static void merge_neighbours(struct pseudoimg_model *m)
{
	struct pseudoimg_span *v = m->runs.v;
	size_t kept = 0;

	for (size_t i = 0; i < m->runs.nr; i++) {
		if (kept && pseudoimg_span_end(&v[kept - 1]) == v[i].start &&
		    v[kept - 1].img_off + v[kept - 1].len == v[i].img_off)
			v[kept - 1].len += v[i].len;
		else
			v[kept++] = v[i];
	}
	m->runs.nr = kept;
}

static int order_by_off(struct pseudoimg_model *m)
{
	struct pseudoimg_span *copy = calloc(m->runs.nr + 1, sizeof(*copy));
	int r = copy ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < m->runs.nr; i++) {
		copy[i] = m->runs.v[i];
		copy[i].order = i;
	}
	if (r >= 0 && m->runs.nr)
		qsort(copy, m->runs.nr, sizeof(*copy), pseudoimg_span_by_off);
	for (size_t i = 0; r >= 0 && i < m->runs.nr; i++) {
		uint32_t *to = PSEUDOIMG_PUSH(&m->runs_by_off);

		if (!to)
			r = -ENOMEM;
		else
			*to = (uint32_t)copy[i].order;
	}
	free(copy);
	return r;
}

int pseudoimg_runs_settle(struct pseudoimg_model *m)
{
	size_t before = m->runs.nr, left;

	/* Neither may an address have two offsets nor an offset two addresses. */
	m->runs.nr = pseudoimg_span_disjoint(m->runs.v, m->runs.nr, sizeof(*m->runs.v));
	swap_keys(m);
	m->runs.nr = pseudoimg_span_disjoint(m->runs.v, m->runs.nr, sizeof(*m->runs.v));
	swap_keys(m);
	left = pseudoimg_span_disjoint(m->runs.v, m->runs.nr, sizeof(*m->runs.v));
	m->runs.nr = left;
	merge_neighbours(m);
	m->nr_bad += (uint32_t)(before - left);
	m->nr_overlaps += (uint32_t)(before - left);
	return order_by_off(m);
}

const struct pseudoimg_span *pseudoimg_runs_find(const struct pseudoimg_model *m, uint64_t vaddr)
{
	const struct pseudoimg_span *run = pseudoimg_span_find(m->runs.v, m->runs.nr, vaddr);

	return run && vaddr - run->start < run->len ? run : NULL;
}

bool pseudoimg_runs_place(const struct pseudoimg_model *m, struct pseudoimg_span *at)
{
	const struct pseudoimg_span *run = pseudoimg_runs_find(m, at->start), *end;

	if (!run)
		return false;
	end = m->runs.v + m->runs.nr;
	at->img_off = run->img_off + (at->start - run->start);
	while (pseudoimg_span_end(run) < pseudoimg_span_end(at)) {
		if (run + 1 == end || run[1].start != pseudoimg_span_end(run))
			return false;
		run++;
	}
	return true;
}
