/* SPDX-License-Identifier: BSD-2-Clause */
/* The model of a report: what its tables show, and what is not known. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "estimate.h"
#include "page_internal.h"
#include "progress.h"

/* Parts of the size: of rows and of code; calls have the rest. */
static const double rows_part = 0.52, code_part = 0.36;
/* Bytes of a row beside its name and its counts. */
enum { ROW_LEN = 36 };

/* ---- where it comes from -------------------------------------------------------------------- */

static void put_events(struct jwrite *j, const struct analysis *a)
{
	jwrite_open(j, "events", '[');
	for (size_t i = 0; i < a->nr_events; i++) {
		const struct analysis_event *ev = &a->events[i];

		jwrite_open(j, NULL, '{');
		jwrite_text(j, "name", ev->name);
		if (ev->mixed)
			jwrite_null(j, "period");
		else
			jwrite_count(j, "period", ev->period);
		jwrite_text(j, "unit", estimate_is_ns(ev->name) ? "ns" : "events");
		jwrite_count(j, "samples", ev->sum);
		jwrite_real(j, "enabled",
			    ev->whole > (double)ev->sum ? (double)ev->sum / ev->whole : 1);
		jwrite_close(j, '}');
	}
	jwrite_close(j, ']');
}

static void put_epochs(struct jwrite *j, const struct analysis *a)
{
	jwrite_open(j, "epochs", '[');
	for (size_t i = 0; i < a->nr_epochs; i++) {
		jwrite_open(j, NULL, '{');
		jwrite_text(j, "name", a->epochs[i].name);
		jwrite_count(j, "open", a->epochs[i].open);
		jwrite_count(j, "lost", a->epochs[i].lost);
		jwrite_close(j, '}');
	}
	jwrite_close(j, ']');
}

/* [option, value …] of those that restrict the samples to workloads. */
static void put_only(struct jwrite *j, const struct analysis *a)
{
	jwrite_open(j, "only", '[');
	for (size_t i = 0; i < a->nr_kept; i++) {
		jwrite_open(j, NULL, '[');
		jwrite_text(j, NULL, a->kept[i].name);
		for (size_t k = 0; k < a->kept[i].nr; k++)
			jwrite_text(j, NULL, a->kept[i].v[k]);
		jwrite_close(j, ']');
	}
	jwrite_close(j, ']');
}

static void put_time(struct jwrite *j, const char *key, int64_t utc)
{
	if (utc == INT64_MIN || utc == INT64_MAX)
		jwrite_null(j, key);
	else
		jwrite_int(j, key, utc);
}

static void put_window(struct jwrite *j, const struct analysis_window *w)
{
	if (!w->chosen) {
		jwrite_null(j, "window");
		return;
	}
	jwrite_open(j, "window", '{');
	put_time(j, "since", w->since);
	put_time(j, "until", w->until);
	jwrite_close(j, '}');
}

static void put_remarks(struct jwrite *j, const struct analysis *a)
{
	jwrite_open(j, "remarks", '[');
	for (const char *r = NULL; (r = analysis_remark_next(a, r));)
		jwrite_text(j, NULL, r);
	jwrite_close(j, ']');
}

static void put_problems(struct jwrite *j, const struct analysis *a)
{
	jwrite_open(j, "problems", '[');
	for (size_t i = 0; i < a->nr_bad; i++)
		jwrite_text(j, NULL, a->bad[i].err.text);
	jwrite_close(j, ']');
}

void page_source(struct jwrite *j, const struct analysis *a)
{
	jwrite_text(j, "database", analysis_database(a));
	put_epochs(j, a);
	jwrite_open(j, "platforms", '[');
	for (size_t i = 0; i < a->nr_platforms; i++)
		jwrite_text(j, NULL, a->platforms[i]);
	jwrite_close(j, ']');
	jwrite_open(j, "labels", '[');
	for (size_t i = 0; i < a->labels.nr; i++)
		jwrite_text(j, NULL, a->labels.v[i]);
	jwrite_close(j, ']');
	put_only(j, a);
	put_window(j, &a->window);
	put_remarks(j, a);
	put_problems(j, a);
	put_events(j, a);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static bool has_samples(const struct analysis *a, const struct analysis_image *ai)
{
	for (size_t i = 0; i < a->nr_events; i++)
		if (ai->count[i])
			return true;
	return false;
}

int page_rows(struct analysis *a, bool by_image, struct analysis_rows *rows)
{
	int r = 0;

	for (size_t i = 0; i < a->nr_images && r >= 0; i++) {
		progress_show("naming procedures", i, a->nr_images);
		if (!has_samples(a, a->images[i]))
			continue;
		r = by_image ? analysis_rows_add_image(rows, a, a->images[i])
			     : analysis_rows_add_procedures(rows, a, a->images[i]);
	}
	progress_show("naming procedures", 1, 1);
	return r;
}

static const void *image_key(const struct analysis_row *row, size_t *len)
{
	if (row->facility) {
		*len = strlen(row->facility->name);
		return row->facility->name;
	}
	*len = sizeof(row->image);
	return &row->image;
}

static size_t image_index(const struct page *p, const struct analysis_row *row)
{
	size_t len;
	const void *key = image_key(row, &len);

	return (size_t)(uintptr_t)base_map_get(&p->image_of, key, len) - 1;
}

static int gather(struct page *p)
{
	int r = page_rows(p->a, false, &p->procedures);

	if (r >= 0)
		r = page_rows(p->a, true, &p->images);
	if (r < 0)
		return r;
	analysis_rows_sort(&p->procedures, p->o->event, false);
	analysis_rows_sort(&p->images, p->o->event, false);
	for (size_t i = 0; i < p->images.nr && r >= 0; i++) {
		size_t len;
		const void *key = image_key(&p->images.v[i], &len);

		r = base_map_set(&p->image_of, key, len, (void *)(uintptr_t)(i + 1));
	}
	return r;
}

/* Procedures with fewest samples are left out when there are more than fit. */
static void choose_rows(struct page *p)
{
	double left = rows_part * (double)p->o->size;

	for (size_t i = 0; i < p->procedures.nr && left > 0; i++) {
		const char *name = demangle_shown(analysis_row_label(&p->procedures.v[i]));

		left -= ROW_LEN + (double)strlen(name) + 2.0 * (double)p->a->nr_events;
		p->nr_shown = i + 1;
	}
}

static void put_counts(struct jwrite *j, const struct page *p, const uint64_t *count)
{
	for (size_t e = 0; e < p->a->nr_events; e++)
		jwrite_count(j, NULL, count[e]);
}

/* [name, image, address, samples by event …]; the address of several places is "", and null of what
 * is no procedure. */
static void put_procedure(struct jwrite *j, const struct page *p, const struct analysis_row *row)
{
	jwrite_line(j);
	jwrite_open(j, NULL, '[');
	jwrite_text(j, NULL, demangle_shown(analysis_row_label(row)));
	jwrite_count(j, NULL, image_index(p, row));
	if (!row->procedure)
		jwrite_null(j, NULL);
	else if (row->nr_images == 1 && !row->several)
		jwrite_hex(j, NULL, row->vaddr);
	else
		jwrite_text(j, NULL, "");
	put_counts(j, p, row->count);
	jwrite_close(j, ']');
}

static void put_state(struct jwrite *j, const struct page *p, const struct analysis_image *ai)
{
	struct base_err why;

	if (!analysis_image_remark(p->a, ai, &why))
		return;
	jwrite_text(j, "problem", why.text);
	if (*why.hint)
		jwrite_text(j, "hint", why.hint);
}

static void put_image(struct jwrite *j, const struct page *p, const struct analysis_row *row,
		      uint64_t nr_rest, const uint64_t *rest)
{
	const struct base_id *id = profdb_profile_image(row->image->profile);
	char text[BASE_ID_TEXT_LEN];

	jwrite_line(j);
	jwrite_open(j, NULL, '{');
	jwrite_text(j, "name", analysis_row_image(row));
	jwrite_text(j, "kind", profdb_kind_name(row->image->kind));
	if (row->nr_images == 1 && id->len)
		jwrite_text(j, "build_id", base_id_text(id, text));
	if (row->nr_images > 1)
		jwrite_count(j, "images", row->nr_images);
	if (row->nr_processes)
		jwrite_count(j, "processes", row->nr_processes);
	put_state(j, p, row->image);
	jwrite_open(j, "samples", '[');
	put_counts(j, p, row->count);
	jwrite_close(j, ']');
	if (nr_rest) {
		jwrite_count(j, "left_out", nr_rest);
		jwrite_open(j, "rest", '[');
		put_counts(j, p, rest);
		jwrite_close(j, ']');
	}
	jwrite_close(j, '}');
}

static int put_images(struct jwrite *j, const struct page *p)
{
	size_t nr = p->a->nr_events;
	uint64_t *rest = calloc(p->images.nr * nr + 1, sizeof(*rest));
	uint64_t *nr_rest = calloc(p->images.nr + 1, sizeof(*nr_rest));

	for (size_t i = p->nr_shown; rest && nr_rest && i < p->procedures.nr; i++) {
		size_t at = image_index(p, &p->procedures.v[i]);

		nr_rest[at]++;
		for (size_t e = 0; e < nr; e++)
			rest[at * nr + e] += p->procedures.v[i].count[e];
	}
	jwrite_line(j);
	jwrite_open(j, "images", '[');
	for (size_t i = 0; rest && nr_rest && i < p->images.nr; i++)
		put_image(j, p, &p->images.v[i], nr_rest[i], rest + i * nr);
	jwrite_close(j, ']');
	free(rest);
	free(nr_rest);
	return rest && nr_rest ? j->r : -ENOMEM;
}

static void put_procedures(struct jwrite *j, const struct page *p)
{
	jwrite_line(j);
	jwrite_open(j, "procedures", '[');
	for (size_t i = 0; i < p->nr_shown; i++)
		put_procedure(j, p, &p->procedures.v[i]);
	jwrite_close(j, ']');
	jwrite_count(j, "procedures_left_out", p->procedures.nr - p->nr_shown);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int put_parts(struct page *p, struct jwrite *j, struct base_err *err)
{
	size_t size = p->o->size, before = j->to->len, used;
	int r = put_images(j, p);

	if (r < 0)
		return r;
	put_procedures(j, p);
	used = j->to->len - before;
	r = page_code(p, j, (size_t)(code_part * (double)size), err);
	if (r >= 0)
		r = page_calls(p, j, size / 8 + (used < size / 4 ? size / 8 : 0), err);
	if (r >= 0)
		r = page_whose(p, j, err);
	if (r >= 0 && p->o->before)
		r = page_changes(p, j, err);
	return r;
}

static int put_model(struct page *p, struct jwrite *j, struct base_err *err)
{
	int r;

	jwrite_open(j, NULL, '{');
	jwrite_text(j, "schema", "dcpireport/1");
	page_source(j, p->a);
	jwrite_count(j, "event", p->o->event);
	jwrite_real(j, "keep", p->o->keep);
	r = put_parts(p, j, err);
	jwrite_close(j, '}');
	jwrite_line(j);
	return r < 0 ? r : j->r;
}

int page_model(struct analysis *a, const struct page_options *o, struct base_buf *to,
	       struct base_err *err)
{
	struct page p = { .a = a, .o = o };
	struct jwrite j = { .to = to };
	int r;

	p.procedures.code = o->before != NULL;
	r = gather(&p);
	if (r >= 0) {
		choose_rows(&p);
		r = put_model(&p, &j, err);
	}
	base_map_release(&p.image_of);
	analysis_rows_release(&p.procedures);
	analysis_rows_release(&p.images);
	return r < 0 ? base_fail_errno(err, r, "cannot make the report") : 0;
}
