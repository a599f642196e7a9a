/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis_internal.h"

static int add_row(struct analysis_rows *rows, struct analysis *a, const struct analysis_image *ai,
		   const struct image_symbol *symbol, struct analysis_row **out)
{
	struct analysis_row row = { .image = ai };
	int r = base_grow(&rows->v, &rows->cap, rows->nr + 1, sizeof(*rows->v));

	if (!rows->total) {
		rows->nr_events = a->nr_events;
		rows->total = calloc(a->nr_events + 1, sizeof(*rows->total));
	}
	row.count = calloc(a->nr_events + 1, sizeof(*row.count));
	if (symbol) {
		row.procedure = strdup(symbol->name);
		row.vaddr = symbol->vaddr;
		row.len = symbol->len;
	}
	if (r < 0 || !rows->total || !row.count || (symbol && !row.procedure)) {
		free(row.count);
		free(row.procedure);
		return -ENOMEM;
	}
	*out = &rows->v[rows->nr];
	rows->v[rows->nr++] = row;
	return 0;
}

int analysis_rows_add_image(struct analysis_rows *rows, struct analysis *a,
			    struct analysis_image *ai)
{
	struct analysis_row *row;
	int r = add_row(rows, a, ai, NULL, &row);

	for (size_t i = 0; r >= 0 && i < a->nr_events; i++) {
		row->count[i] += ai->count[i];
		rows->total[i] += ai->count[i];
	}
	return r;
}

/* One image's way into rows. */
struct placing {
	struct analysis_rows *rows;
	struct analysis *a;
	struct analysis_image *ai;
	struct base_map by_vaddr; /* row index + 1, for symbols that were left and come again */
	size_t none;		  /* index + 1 of the row without procedure */
};

/* The row of @symbol (NULL: none), the one it had or a new one. */
static int place(struct placing *p, const struct image_symbol *symbol, struct analysis_row **out)
{
	size_t at = symbol ? (size_t)(uintptr_t)base_map_get(&p->by_vaddr, &symbol->vaddr,
							     sizeof(symbol->vaddr))
			   : p->none;
	int r;

	if (at) {
		*out = &p->rows->v[at - 1];
		return 0;
	}
	r = add_row(p->rows, p->a, p->ai, symbol, out);
	if (r < 0)
		return r;
	if (!symbol)
		p->none = p->rows->nr;
	else
		r = base_map_set(&p->by_vaddr, &symbol->vaddr, sizeof(symbol->vaddr),
				 (void *)(uintptr_t)p->rows->nr);
	return r;
}

int analysis_rows_add_procedures(struct analysis_rows *rows, struct analysis *a,
				 struct analysis_image *ai)
{
	struct placing p = { .rows = rows, .a = a, .ai = ai };
	size_t nr = profdb_profile_nr_entries(ai->profile);
	struct image *img = NULL;
	int r = 0;

	analysis_image_open(a, ai, &img, NULL);
	for (size_t i = 0; i < nr && r >= 0; i++) {
		const struct profdb_entry *e = profdb_profile_entry(ai->profile, i);
		const struct image_symbol *symbol = NULL;
		struct analysis_row *row;
		uint64_t vaddr;

		if (!analysis_entry_wanted(ai, e))
			continue;
		if (img && image_vaddr(img, e->off, &vaddr) >= 0)
			symbol = image_symbol_at(img, vaddr);
		r = place(&p, symbol, &row);
		if (r >= 0)
			analysis_entry_add(ai, e, row->count, rows->total);
	}
	base_map_release(&p.by_vaddr);
	image_close(img);
	return r;
}

struct sort {
	size_t event, nr_events;
};

static int compare_counts(const struct analysis_row *a, const struct analysis_row *b,
			  const struct sort *s)
{
	if (a->count[s->event] != b->count[s->event])
		return a->count[s->event] > b->count[s->event] ? -1 : 1;
	for (size_t i = 0; i < s->nr_events; i++)
		if (a->count[i] != b->count[i])
			return a->count[i] > b->count[i] ? -1 : 1;
	return 0;
}

static int compare_rows(const void *pa, const void *pb, void *ctx)
{
	const struct analysis_row *a = pa, *b = pb;
	int r = compare_counts(a, b, ctx);

	if (!r)
		r = strcmp(a->image->name, b->image->name);
	if (!r)
		r = strcmp(a->procedure ? a->procedure : "", b->procedure ? b->procedure : "");
	if (!r)
		r = (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
	return r;
}

void analysis_rows_sort(struct analysis_rows *rows, size_t event)
{
	struct sort s = { event, rows->nr_events };

	if (rows->nr && event < rows->nr_events)
		qsort_r(rows->v, rows->nr, sizeof(*rows->v), compare_rows, &s);
}

void analysis_rows_release(struct analysis_rows *rows)
{
	for (size_t i = 0; i < rows->nr; i++) {
		free(rows->v[i].procedure);
		free(rows->v[i].count);
	}
	free(rows->v);
	free(rows->total);
	memset(rows, 0, sizeof(*rows));
}

const char *analysis_row_label(const struct analysis_row *row)
{
	if (row->procedure)
		return row->procedure;
	if (row->image->kind == PROFDB_NAMED)
		return row->image->name;
	switch (row->image->state) {
	case ANALYSIS_MISSING:
		return "(image missing)";
	case ANALYSIS_CHANGED:
		return "(image changed)";
	case ANALYSIS_UNREADABLE:
		return "(image not readable)";
	case ANALYSIS_DAMAGED:
		return "(image damaged)";
	case ANALYSIS_UNOPENED:
	case ANALYSIS_OPEN:
		break;
	}
	return "(no symbol)";
}
