/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranges of addresses: compared, sorted, searched. */
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "pseudoimg_internal.h"

int pseudoimg_span_compare(const void *a, const void *b)
{
	const struct pseudoimg_span *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->len != y->len)
		return x->len > y->len ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

int pseudoimg_span_by_off(const void *a, const void *b)
{
	const struct pseudoimg_span *x = a, *y = b;

	if (x->img_off != y->img_off)
		return x->img_off < y->img_off ? -1 : 1;
	if (x->len != y->len)
		return x->len > y->len ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

size_t pseudoimg_span_disjoint(void *array, size_t nr, size_t elem_len)
{
	uint8_t *base = array;
	size_t kept = 0;

	if (!nr)
		return 0;
	qsort(array, nr, elem_len, pseudoimg_span_compare);
	for (size_t i = 0; i < nr; i++) {
		struct pseudoimg_span *s = (void *)(base + i * elem_len);
		struct pseudoimg_span *last = kept ? (void *)(base + (kept - 1) * elem_len) : NULL;

		if (last && s->start < pseudoimg_span_end(last)) {
			if (s->order < last->order)
				memcpy(last, s, elem_len);
			continue;
		}
		memmove(base + kept++ * elem_len, s, elem_len);
	}
	return kept;
}

const struct pseudoimg_span *pseudoimg_span_find(const struct pseudoimg_span *v, size_t nr,
						 uint64_t addr)
{
	size_t lo = BASE_UPPER_BOUND(v, nr, start, addr);

	return lo ? &v[lo - 1] : NULL;
}
