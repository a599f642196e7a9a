/* SPDX-License-Identifier: BSD-2-Clause */
/* A table is built here from rows in the order of their offsets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unwind.h"

struct unwind_builder {
	struct unwind_table table; /* nr_pages: how many have begun */
	size_t cap_pages, cap_rows, cap_rules;
	uint64_t last; /* offset that was added last */
	bool has_row;  /* the last row is of that offset */
	/* Index + 1 of rules by their bytes. */
	struct base_map by_rule;
};

/* Rule 0 is UNWIND_NONE. */
struct unwind_builder *unwind_builder_new(void)
{
	struct unwind_builder *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	if (base_grow(&b->table.rules, &b->cap_rules, 1, sizeof(*b->table.rules)) < 0) {
		free(b);
		return NULL;
	}
	b->table.rules[0] = (struct unwind_rule){ .how = UNWIND_NONE };
	b->table.nr_rules = 1;
	return b;
}

void unwind_builder_free(struct unwind_builder *b)
{
	if (!b)
		return;
	base_map_release(&b->by_rule);
	free(b->table.pages);
	free(b->table.rows);
	free(b->table.rules);
	free(b);
}

static int add_rule(struct unwind_builder *b, const struct unwind_rule *rule)
{
	struct unwind_table *t = &b->table;
	int r;

	if (t->nr_rules == UNWIND_MAX_RULES)
		return -DCPI_ELIMIT;
	r = base_grow(&t->rules, &b->cap_rules, t->nr_rules + 1, sizeof(*t->rules));
	if (r >= 0)
		r = base_map_set(&b->by_rule, rule, sizeof(*rule),
				 (void *)(uintptr_t)(t->nr_rules + 1));
	if (r < 0)
		return r;
	t->rules[t->nr_rules] = *rule;
	return (int)t->nr_rules++;
}

/* The number of the rule. */
static int number_of(struct unwind_builder *b, const struct unwind_rule *rule)
{
	uintptr_t known;

	if (rule->how == UNWIND_NONE)
		return 0;
	if (!unwind_rule_valid(rule))
		return -EINVAL;
	known = (uintptr_t)base_map_get(&b->by_rule, rule, sizeof(*rule));
	return known ? (int)(known - 1) : add_rule(b, rule);
}

/* Begin the page of @off, and those before it that have no rows. */
static int begin_pages(struct unwind_builder *b, uint64_t off)
{
	struct unwind_table *t = &b->table;
	uint64_t page = off >> UNWIND_PAGE_BITS, nr;
	int r;

	if (!t->nr_pages) {
		if (page > UINT32_MAX)
			return -DCPI_ELIMIT;
		t->first_page = (uint32_t)page;
	}
	nr = page - t->first_page + 1;
	if (nr > UNWIND_MAX_PAGES)
		return -DCPI_ELIMIT;
	r = base_grow(&t->pages, &b->cap_pages, nr + 1, sizeof(*t->pages));
	if (r < 0)
		return r;
	while (t->nr_pages < nr)
		t->pages[t->nr_pages++] = t->nr_rows;
	return 0;
}

static int append(struct unwind_builder *b, uint64_t off, uint16_t rule)
{
	struct unwind_table *t = &b->table;
	int r;

	if (t->nr_rows == UNWIND_MAX_ROWS)
		return -DCPI_ELIMIT;
	r = begin_pages(b, off);
	if (r >= 0)
		r = base_grow(&t->rows, &b->cap_rows, t->nr_rows + 1, sizeof(*t->rows));
	if (r < 0)
		return r;
	t->rows[t->nr_rows++] = (struct unwind_row){ .low = (uint16_t)off, .rule = rule };
	return 0;
}

int unwind_builder_add(struct unwind_builder *b, uint64_t off, const struct unwind_rule *rule)
{
	struct unwind_table *t = &b->table;
	int number, r = 0;

	if (off < b->last)
		return -EINVAL;
	number = number_of(b, rule);
	if (number < 0)
		return number;
	if (off == b->last && b->has_row)
		t->nr_rows--;
	b->last = off;
	b->has_row = number != (t->nr_rows ? t->rows[t->nr_rows - 1].rule : 0);
	if (b->has_row)
		r = append(b, off, (uint16_t)number);
	return r;
}

int unwind_builder_done(struct unwind_builder *b, struct unwind_table **out)
{
	struct unwind_table *t;
	int r;

	*out = NULL;
	if (b->table.nr_rows && b->table.rows[b->table.nr_rows - 1].rule)
		return -EINVAL;
	r = base_grow(&b->table.pages, &b->cap_pages, (size_t)b->table.nr_pages + 1,
		      sizeof(*b->table.pages));
	t = r < 0 ? NULL : malloc(sizeof(*t));
	if (!t)
		return -ENOMEM;
	b->table.pages[b->table.nr_pages] = b->table.nr_rows;
	*t = b->table;
	memset(&b->table, 0, sizeof(b->table));
	*out = t;
	return 0;
}
