/* SPDX-License-Identifier: BSD-2-Clause */
/* Items are sorted here digit by digit. */
#include <string.h>

#include "base.h"

/* Digit by digit from the lowest: nothing is compared, and each pass goes through all in order. */
enum { DIGIT_BITS = 11, NR_DIGITS = 1 << DIGIT_BITS };

static size_t digit_of(const struct base_sort_item *v, unsigned int shift)
{
	return v->key >> shift & (NR_DIGITS - 1);
}

/* Items with the same digit keep their order. */
static void sort_digit(const struct base_sort_item *from, struct base_sort_item *to, size_t nr,
		       unsigned int shift)
{
	size_t ends[NR_DIGITS] = { 0 }, end = nr;

	for (size_t i = 0; i < nr; i++)
		ends[digit_of(&from[i], shift)]++;
	for (size_t d = NR_DIGITS; d-- > 0;) {
		size_t here = ends[d];

		ends[d] = end;
		end -= here;
	}
	for (size_t i = nr; i-- > 0;)
		to[--ends[digit_of(&from[i], shift)]] = from[i];
}

/* Few are sorted before the counters of a pass are cleared. */
static void insert_each(struct base_sort_item *v, size_t nr)
{
	for (size_t i = 1; i < nr; i++) {
		const struct base_sort_item item = v[i];
		size_t at = i;

		for (; at && v[at - 1].key > item.key; at--)
			v[at] = v[at - 1];
		v[at] = item;
	}
}

struct base_sort_item *base_sort(struct base_sort_item *v, struct base_sort_item *space, size_t nr)
{
	uint64_t differ = 0;

	if (nr < 64) {
		insert_each(v, nr);
		return v;
	}
	for (size_t i = 1; i < nr; i++)
		differ |= v[i].key ^ v[0].key;
	for (unsigned int shift = 0; shift < 64; shift += DIGIT_BITS) {
		struct base_sort_item *swap = v;

		if (!(differ >> shift & (NR_DIGITS - 1)))
			continue;
		sort_digit(v, space, nr, shift);
		v = space;
		space = swap;
	}
	return v;
}
