/* SPDX-License-Identifier: BSD-2-Clause */
/* The order of routines, of which there may be millions. */
#include <stdlib.h>

#include "pseudoimg_internal.h"

/* As pseudoimg_span_compare. */
static int compare(const void *a, const void *b)
{
	const struct pseudoimg_node *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->len != y->len)
		return x->len > y->len ? -1 : 1;
	return (x->ref > y->ref) - (x->ref < y->ref);
}

/* Mostly they come in order; qsort would take as much memory again. */
void pseudoimg_nodes_sort(struct pseudoimg_model *m)
{
	struct pseudoimg_node *v = m->nodes.v;

	for (size_t i = 1; i < m->nodes.nr; i++)
		if (compare(&v[i - 1], &v[i]) > 0) {
			qsort(v, m->nodes.nr, sizeof(*v), compare);
			return;
		}
}

void pseudoimg_nodes_settle(struct pseudoimg_model *m)
{
	struct pseudoimg_node *v = m->nodes.v;
	size_t kept = 0;

	pseudoimg_nodes_sort(m);
	for (size_t i = 0; i < m->nodes.nr; i++) {
		if (kept && v[i].start < v[kept - 1].start + v[kept - 1].len) {
			if (v[i].ref < v[kept - 1].ref)
				v[kept - 1] = v[i];
			continue;
		}
		v[kept++] = v[i];
	}
	m->nr_bad += (uint32_t)(m->nodes.nr - kept);
	m->nr_overlaps += (uint32_t)(m->nodes.nr - kept);
	m->nodes.nr = kept;
}
