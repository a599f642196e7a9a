/* SPDX-License-Identifier: BSD-2-Clause */
/* Ranges of addresses are compared, by what qsort calls. */
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
