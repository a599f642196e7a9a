/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums samples by image or by procedure, and sorts and names the rows of reports. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "code.h"
#include "rows.h"
#include "told.h"

static int add_row(struct analysis_rows *rows, struct analysis *a, struct analysis_image *ai,
		   const struct image_symbol *symbol, const char *inlined,
		   struct analysis_row **out)
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
	row.inlined = inlined ? strdup(inlined) : NULL;
	if (r < 0 || !rows->total || !row.count || (symbol && !row.procedure) ||
	    (inlined && !row.inlined)) {
		free(row.count);
		free(row.inlined);
		free(row.procedure);
		return -ENOMEM;
	}
	*out = &rows->v[rows->nr];
	rows->v[rows->nr++] = row;
	return 0;
}

/* Counts an opened image for its facility; NULL: its rows stand alone. */
static int facility_of(struct analysis_rows *rows, const struct analysis_image *ai,
		       struct analysis_facility **out)
{
	struct analysis_facility *f;
	size_t len;
	int r = 0;

	*out = NULL;
	if (rows->apart || !ai->facility)
		return 0;
	len = strlen(ai->facility);
	f = base_map_get(&rows->facilities, ai->facility, len);
	if (!f) {
		f = calloc(1, sizeof(*f));
		if (f && (f->name = strdup(ai->facility)))
			r = base_map_set(&rows->facilities, f->name, len, f);
		if (!f || !f->name || r < 0) {
			if (f)
				free(f->name);
			free(f);
			return -ENOMEM;
		}
	}
	f->nr_images++;
	*out = f;
	return 0;
}

/* The state while one image's samples are added. */
struct placing {
	struct analysis_rows *rows;
	struct analysis *a;
	struct analysis_image *ai;
	struct analysis_facility *facility; /* NULL: the image stands alone */
	struct base_map by_vaddr; /* row index + 1 of symbols, and what is inlined, already met */
	size_t none;		  /* index + 1 of the row without procedure, or 0 */
	struct image *img;	  /* NULL: it could not be opened */
};

/* Several merged images lead to the same file: its processes count once. */
static bool is_counted(struct placing *p, const struct analysis_row *row)
{
	const char *path = p->img ? image_path(p->img) : NULL;
	size_t at = (size_t)(row - p->rows->v);
	struct base_buf key = { 0 };
	bool yes = false;

	if (p->ai->nr_processes < 2 || !path)
		return false;
	if (base_buf_append(&key, &at, sizeof(at)) >= 0 &&
	    base_buf_append(&key, path, strlen(path)) >= 0) {
		yes = base_map_get(&p->rows->counted, key.data, key.len) != NULL;
		if (!yes)
			base_map_set(&p->rows->counted, key.data, key.len, p->rows);
	}
	base_buf_release(&key);
	return yes;
}

/* Adds one image, or place, to the row. */
static void join(struct placing *p, struct analysis_row *row, const struct image_symbol *symbol)
{
	row->several |= symbol && row->nr_images;
	if (row->last == p->ai)
		return;
	row->nr_images++;
	if (!is_counted(p, row))
		row->nr_processes += p->ai->nr_processes;
	row->last = p->ai;
}

/* Records the procedure's code, if it is new. */
static int note_code(struct placing *p, struct analysis_row *row, const struct image_symbol *symbol)
{
	struct analysis_place place = { .image = p->ai, .vaddr = symbol->vaddr };
	int r = analysis_code_hash(p->img, symbol, false, &place.hash);

	if (r == -ENOENT) {
		row->unread = true;
		return 0;
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < row->nr_places; i++)
		if (row->places[i].hash == place.hash)
			return 0;
	r = base_grow(&row->places, &row->cap_places, row->nr_places + 1, sizeof(*row->places));
	if (r >= 0)
		row->places[row->nr_places++] = place;
	return r;
}

/* Finds the row of that name, which another image of the facility has, or this image at another
 * place; or adds one. */
static int place_named(struct placing *p, const struct image_symbol *symbol, const char *inlined,
		       size_t *at)
{
	struct base_buf key = { 0 };
	struct analysis_row *row;
	int r = base_buf_append(&key, &p->facility, sizeof(struct analysis_facility *));

	if (r >= 0 && symbol)
		r = base_buf_append(&key, symbol->name, strlen(symbol->name) + 1);
	if (r >= 0 && inlined)
		r = base_buf_append(&key, inlined, strlen(inlined));
	if (r < 0)
		goto out;
	*at = (size_t)(uintptr_t)base_map_get(&p->rows->by_name, key.data, key.len);
	if (*at)
		goto out;
	r = add_row(p->rows, p->a, p->ai, symbol, inlined, &row);
	if (r < 0)
		goto out;
	row->facility = p->facility;
	*at = p->rows->nr;
	r = base_map_set(&p->rows->by_name, key.data, key.len, (void *)(uintptr_t)*at);
out:
	base_buf_release(&key);
	return r;
}

static int place_alone(struct placing *p, const struct image_symbol *symbol, const char *inlined,
		       size_t *at)
{
	struct analysis_row *row;
	int r = add_row(p->rows, p->a, p->ai, symbol, inlined, &row);

	*at = p->rows->nr;
	return r;
}

static int place_new(struct placing *p, const struct image_symbol *symbol, const char *inlined,
		     size_t *at)
{
	int r = p->facility ? place_named(p, symbol, inlined, at)
			    : place_alone(p, symbol, inlined, at);

	if (r < 0)
		return r;
	join(p, &p->rows->v[*at - 1], symbol);
	return symbol && p->rows->code ? note_code(p, &p->rows->v[*at - 1], symbol) : 0;
}

/* Finds or adds the row of @symbol (NULL: no procedure), or of what is inlined there. */
static int place(struct placing *p, const struct image_symbol *symbol, const char *inlined,
		 struct analysis_row **out)
{
	struct base_buf key = { 0 };
	size_t at = p->none;
	int r = 0;

	if (symbol)
		r = base_buf_append(&key, &symbol->vaddr, sizeof(symbol->vaddr));
	if (r >= 0 && inlined)
		r = base_buf_append(&key, inlined, strlen(inlined));
	if (r >= 0 && symbol)
		at = (size_t)(uintptr_t)base_map_get(&p->by_vaddr, key.data, key.len);
	if (r >= 0 && !at) {
		r = place_new(p, symbol, inlined, &at);
		if (r >= 0 && symbol)
			r = base_map_set(&p->by_vaddr, key.data, key.len, (void *)(uintptr_t)at);
		else if (r >= 0)
			p->none = at;
	}
	base_buf_release(&key);
	if (r >= 0)
		*out = &p->rows->v[at - 1];
	return r;
}

/* The innermost routine that a compiler put there; NULL: none. */
static const char *inlined_at(struct image *img, uint64_t vaddr)
{
	struct image_frame v[IMAGE_FRAMES_MAX];

	if (image_frames_at(img, vaddr, v, IMAGE_FRAMES_MAX) < 2)
		return NULL;
	return v[0].linkage ? v[0].linkage : v[0].name;
}

/* Finds or adds the row of what lies at @off. */
static int row_at(struct placing *p, uint64_t off, struct analysis_row **out)
{
	const struct image_symbol *symbol = NULL;
	uint64_t vaddr = 0;

	if (p->img && image_vaddr(p->img, off, &vaddr) >= 0)
		symbol = image_symbol_at(p->img, vaddr);
	return place(p, symbol, symbol && p->rows->inlined ? inlined_at(p->img, vaddr) : NULL, out);
}

/* ---- instruction samples --------------------------------------------------------------------- */

static int add_told(struct placing *p, struct analysis_row *row, const struct profdb_insn *m)
{
	if (!row->told && !(row->told = calloc(1, sizeof(*row->told))))
		return -ENOMEM;
	told_add_entry(p->rows->columns, p->ai, m, row->told);
	return 0;
}

/* @row: of all; NULL: each sample is in the row of its procedure. */
static int add_all_told(struct placing *p, struct analysis_row *row)
{
	const struct profdb_profile *profile = p->ai->profile;
	size_t nr = p->rows->columns ? profdb_profile_nr_insns(profile) : 0;
	int r = 0;

	for (size_t i = 0; i < nr && r >= 0; i++) {
		const struct profdb_insn *m = profdb_profile_insn(profile, i);
		struct analysis_row *to = row;

		if (m->off == PROFDB_OUTSIDE || p->ai->event_of[m->event] == SIZE_MAX)
			continue;
		if (!to)
			r = row_at(p, m->off, &to);
		if (r >= 0)
			r = add_told(p, to, m);
	}
	return r;
}

/* ---- images ---------------------------------------------------------------------------------- */

int analysis_rows_add_image(struct analysis_rows *rows, struct analysis *a,
			    struct analysis_image *ai)
{
	struct placing p = { .rows = rows, .a = a, .ai = ai };
	struct analysis_row *row;
	int r;

	/* Pseudo-images are named by facility and process, which are known once they are open. */
	if (ai->kind == PROFDB_DYNAMIC)
		analysis_image_open(a, ai, &p.img, NULL);
	r = facility_of(rows, ai, &p.facility);
	if (r >= 0)
		r = place(&p, NULL, NULL, &row);
	for (size_t i = 0; r >= 0 && i < a->nr_events; i++) {
		row->count[i] += ai->count[i];
		rows->total[i] += ai->count[i];
	}
	if (r >= 0)
		r = add_all_told(&p, row);
	image_close(p.img);
	return r;
}

int analysis_rows_add_procedures(struct analysis_rows *rows, struct analysis *a,
				 struct analysis_image *ai)
{
	struct placing p = { .rows = rows, .a = a, .ai = ai };
	size_t nr = profdb_profile_nr_entries(ai->profile);
	int r;

	if (analysis_image_open(a, ai, &p.img, NULL) < 0)
		p.img = NULL;
	r = facility_of(rows, ai, &p.facility);
	for (size_t i = 0; i < nr && r >= 0; i++) {
		const struct profdb_entry *e = profdb_profile_entry(ai->profile, i);
		struct analysis_row *row;

		if (!analysis_entry_wanted(ai, e))
			continue;
		r = row_at(&p, e->off, &row);
		if (r >= 0)
			analysis_entry_add(ai, e, row->count, rows->total);
	}
	if (r >= 0)
		r = add_all_told(&p, NULL);
	base_map_release(&p.by_vaddr);
	image_close(p.img);
	return r;
}

int analysis_rows_add_unsampled(struct analysis_rows *rows, struct analysis *a,
				struct analysis_image *ai, const struct image_symbol *symbol)
{
	struct placing p = { .rows = rows, .a = a, .ai = ai };
	struct analysis_row *row;
	int r = facility_of(rows, ai, &p.facility);

	/* The image may be one that counts already. */
	if (r >= 0 && p.facility && p.facility->nr_images > 1)
		p.facility->nr_images--;
	if (r >= 0)
		r = place(&p, symbol, NULL, &row);
	base_map_release(&p.by_vaddr);
	return r;
}

struct sort {
	size_t event, nr_events;
	bool by_total;
};

static int compare_counts(const struct analysis_row *a, const struct analysis_row *b,
			  const struct sort *s)
{
	if (s->by_total && a->total[s->event] != b->total[s->event])
		return a->total[s->event] > b->total[s->event] ? -1 : 1;
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
		r = strcmp(analysis_row_image(a), analysis_row_image(b));
	if (!r)
		r = strcmp(a->procedure ? a->procedure : "", b->procedure ? b->procedure : "");
	if (!r)
		r = (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
	if (!r)
		r = strcmp(a->inlined ? a->inlined : "", b->inlined ? b->inlined : "");
	return r;
}

void analysis_rows_sort(struct analysis_rows *rows, size_t event, bool by_total)
{
	struct sort s = { event, rows->nr_events, by_total };

	if (rows->nr && event < rows->nr_events)
		qsort_r(rows->v, rows->nr, sizeof(*rows->v), compare_rows, &s);
}

static void release_facilities(struct analysis_rows *rows)
{
	void *value;

	for (size_t pos = 0; base_map_next(&rows->facilities, &pos, &value);) {
		struct analysis_facility *f = value;

		free(f->name);
		free(f);
	}
	base_map_release(&rows->facilities);
}

void analysis_rows_release(struct analysis_rows *rows)
{
	for (size_t i = 0; i < rows->nr; i++) {
		free(rows->v[i].procedure);
		free(rows->v[i].inlined);
		free(rows->v[i].places);
		free(rows->v[i].count);
		free(rows->v[i].total);
		free(rows->v[i].told);
	}
	release_facilities(rows);
	base_map_release(&rows->by_name);
	base_map_release(&rows->counted);
	free(rows->v);
	free(rows->total);
	memset(rows, 0, sizeof(*rows));
}

const char *analysis_row_label(const struct analysis_row *row)
{
	return row->procedure ? row->procedure : analysis_image_label(row->image);
}

const char *analysis_row_image(const struct analysis_row *row)
{
	if (row->facility && row->facility->nr_images > 1)
		return row->facility->name;
	return row->image->name;
}
