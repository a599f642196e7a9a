/* SPDX-License-Identifier: BSD-2-Clause */
/* A table crosses from one process to another here: a head, its rules, its pages, its rows. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unwind.h"

struct head {
	uint32_t first_page, nr_pages, nr_rows, nr_rules;
	struct unwind_python python;
};

static size_t pages_len(const struct head *h)
{
	return ((size_t)h->nr_pages + 1) * sizeof(uint32_t);
}

static size_t rows_len(const struct head *h)
{
	return h->nr_rows * sizeof(struct unwind_row);
}

static size_t rules_len(const struct head *h)
{
	return h->nr_rules * sizeof(struct unwind_rule);
}

static size_t whole_len(const struct head *h)
{
	return sizeof(*h) + rules_len(h) + pages_len(h) + rows_len(h);
}

static struct head head_of(const struct unwind_table *t)
{
	return (struct head){ .first_page = t->first_page,
			      .nr_pages = t->nr_pages,
			      .nr_rows = t->nr_rows,
			      .nr_rules = t->nr_rules,
			      .python = t->python };
}

static uint8_t *put(uint8_t *to, const void *from, size_t len)
{
	if (len)
		memcpy(to, from, len);
	return to + len;
}

size_t unwind_encoded_len(const struct unwind_table *t)
{
	struct head h = head_of(t);

	return whole_len(&h);
}

void unwind_encode(const struct unwind_table *t, uint8_t *to)
{
	struct head h = head_of(t);

	to = put(to, &h, sizeof(h));
	to = put(to, t->rules, rules_len(&h));
	to = put(to, t->pages, pages_len(&h));
	put(to, t->rows, rows_len(&h));
}

/* ---- checked --------------------------------------------------------------------------------- */

static bool head_valid(const struct head *h, size_t len)
{
	return h->nr_pages <= UNWIND_MAX_PAGES && h->nr_rows <= UNWIND_MAX_ROWS && h->nr_rules &&
	       h->nr_rules <= UNWIND_MAX_RULES && unwind_python_valid(&h->python) &&
	       whole_len(h) == len;
}

static bool rules_valid(const struct unwind_table *t)
{
	if (t->rules[0].how != UNWIND_NONE)
		return false;
	for (uint32_t i = 0; i < t->nr_rules; i++)
		if (!unwind_rule_valid(&t->rules[i]))
			return false;
	return true;
}

static bool pages_valid(const struct unwind_table *t)
{
	if (t->pages[0] || t->pages[t->nr_pages] != t->nr_rows)
		return false;
	for (uint32_t i = 0; i < t->nr_pages; i++)
		if (t->pages[i] > t->pages[i + 1])
			return false;
	return true;
}

static bool rows_valid(const struct unwind_table *t)
{
	for (uint32_t p = 0; p < t->nr_pages; p++)
		for (uint32_t i = t->pages[p] + 1; i < t->pages[p + 1]; i++)
			if (t->rows[i - 1].low >= t->rows[i].low)
				return false;
	for (uint32_t i = 0; i < t->nr_rows; i++)
		if (t->rows[i].rule >= t->nr_rules)
			return false;
	return !t->nr_rows || !t->rows[t->nr_rows - 1].rule;
}

/* Copies, so that they are aligned. */
static void *copied(const uint8_t **from, size_t len)
{
	void *to = malloc(len ? len : 1);

	if (to)
		put(to, *from, len);
	*from += len;
	return to;
}

int unwind_decode(const uint8_t *data, size_t len, struct unwind_table **out)
{
	struct unwind_table *t;
	struct head h;
	int r = 0;

	*out = NULL;
	if (len < sizeof(h))
		return -DCPI_EFORMAT;
	memcpy(&h, data, sizeof(h));
	if (!head_valid(&h, len))
		return -DCPI_EFORMAT;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	*t = (struct unwind_table){ .first_page = h.first_page,
				    .nr_pages = h.nr_pages,
				    .nr_rows = h.nr_rows,
				    .nr_rules = h.nr_rules,
				    .python = h.python };
	data += sizeof(h);
	t->rules = copied(&data, rules_len(&h));
	t->pages = copied(&data, pages_len(&h));
	t->rows = copied(&data, rows_len(&h));
	if (!t->rules || !t->pages || !t->rows)
		r = -ENOMEM;
	else if (!rules_valid(t) || !pages_valid(t) || !rows_valid(t))
		r = -DCPI_EFORMAT;
	if (r < 0)
		unwind_free(t);
	else
		*out = t;
	return r;
}
