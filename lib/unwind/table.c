/* SPDX-License-Identifier: BSD-2-Clause */
/* The rule at an offset is found here, by its page and then among the rows of that page. */
#include <stdlib.h>

#include "bound.h"
#include "unwind.h"

void unwind_free(struct unwind_table *t)
{
	if (!t)
		return;
	free(t->pages);
	free(t->rows);
	free(t->rules);
	free(t);
}

size_t unwind_size(const struct unwind_table *t)
{
	return ((size_t)t->nr_pages + 1) * sizeof(*t->pages) + t->nr_rows * sizeof(*t->rows) +
	       t->nr_rules * sizeof(*t->rules);
}

const struct unwind_rule *unwind_find(const struct unwind_table *t, uint64_t off)
{
	uint64_t page = (off >> UNWIND_PAGE_BITS) - t->first_page;
	uint16_t low = (uint16_t)off;
	size_t first, at;

	if (page >= t->nr_pages)
		return &t->rules[0];
	first = t->pages[page];
	at = first + BASE_UPPER_BOUND(t->rows + first, t->pages[page + 1] - first, low, low);
	return &t->rules[at ? t->rows[at - 1].rule : 0];
}
