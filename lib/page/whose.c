/* SPDX-License-Identifier: BSD-2-Clause */
/* The samples of a page by process, program, user, service and container, and over time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "page_internal.h"
#include "slices.h"

enum {
	GROUPS_MAX = 200, /* rows of a key; the others are one */
	SLICES_SHOWN = 60,
	ROWS_SHOWN = 12, /* rows over time; the page draws the others as one */
};

/* ---- groups ---------------------------------------------------------------------------------- */

static const char *group_name(const struct workload_group *g, enum workload_key key)
{
	if (*g->name)
		return g->name;
	return key == WORKLOAD_PID && g->class == WORKLOAD_DROPPED
		       ? "others"
		       : workload_key_missing(key, g->class);
}

/* [name, processes' name or "", processes, samples by event …] */
static void put_group(struct jwrite *j, const struct workload_groups *g, size_t i,
		      enum workload_key key)
{
	const struct workload_group *one = &g->v[i];

	jwrite_line(j);
	jwrite_open(j, NULL, '[');
	jwrite_text(j, NULL, group_name(one, key));
	jwrite_text(j, NULL, key == WORKLOAD_PID && *one->name ? one->comm : "");
	jwrite_count(j, NULL, one->processes);
	for (size_t e = 0; e < g->nr_events; e++)
		jwrite_count(j, NULL, one->count[e]);
	jwrite_close(j, ']');
}

/* [number of groups, samples by event …] of those that have no row. */
static void put_others(struct jwrite *j, const struct workload_groups *g)
{
	size_t nr = g->nr > GROUPS_MAX ? g->nr - GROUPS_MAX : 0;

	jwrite_open(j, "others", '[');
	jwrite_count(j, NULL, nr);
	for (size_t e = 0; e < g->nr_events; e++) {
		uint64_t sum = 0;

		for (size_t i = GROUPS_MAX; i < g->nr; i++)
			sum += g->v[i].count[e];
		jwrite_count(j, NULL, sum);
	}
	jwrite_close(j, ']');
}

/* A key that no workload has, such as labels where there are none, is left out. */
static bool is_told(const struct workload_groups *g)
{
	for (size_t i = 0; i < g->nr; i++)
		if (*g->v[i].name && g->v[i].class == WORKLOAD_KEPT)
			return true;
	return false;
}

static int put_key(const struct page *p, struct jwrite *j, enum workload_key key)
{
	struct workload_groups g = { 0 };
	int r = workload_by(p->a, p->o->workloads, p->o->filter, key, NULL, NULL, &g);

	if (r >= 0)
		r = workload_groups_sort(&g, p->o->event);
	if (r >= 0 && is_told(&g)) {
		jwrite_open(j, NULL, '{');
		jwrite_text(j, "by", workload_key_name(key));
		put_others(j, &g);
		jwrite_open(j, "rows", '[');
		for (size_t i = 0; i < g.nr && i < GROUPS_MAX; i++)
			put_group(j, &g, i, key);
		jwrite_close(j, ']');
		jwrite_close(j, '}');
	}
	workload_groups_release(&g);
	return r;
}

static int put_workloads(const struct page *p, struct jwrite *j)
{
	static const enum workload_key keys[] = {
		WORKLOAD_COMM,	 WORKLOAD_UNIT,	  WORKLOAD_CONTAINER, WORKLOAD_EXE, WORKLOAD_UID,
		WORKLOAD_CGROUP, WORKLOAD_THREAD, WORKLOAD_LABEL,     WORKLOAD_PID
	};
	int r = 0;

	jwrite_open(j, "workloads", '[');
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && r >= 0; i++)
		r = put_key(p, j, keys[i]);
	jwrite_close(j, ']');
	return r;
}

/* ---- over time ------------------------------------------------------------------------------- */

/* Rows over time: process names, or images. */
struct over {
	const struct page *p;
	bool by_image;
	size_t *known; /* indexed by workload, or image, of the workloads: its row + 1 */
	char **names;
	size_t nr, cap;
	struct base_map by_name; /* row + 1 */
	struct slices s;
};

static int find_row(struct over *o, const char *name, size_t *row)
{
	size_t len = strlen(name) + 1;
	uintptr_t at = (uintptr_t)base_map_get(&o->by_name, name, len);
	int r = 0;

	*row = at - 1;
	if (at)
		return 0;
	*row = o->nr;
	r = base_grow(&o->names, &o->cap, o->nr + 1, sizeof(*o->names));
	if (r < 0)
		return r;
	o->names[o->nr] = strdup(name);
	if (!o->names[o->nr])
		return -ENOMEM;
	o->nr++;
	return base_map_set(&o->by_name, name, len, (void *)(uintptr_t)o->nr);
}

static int row_of_image(struct over *o, uint32_t image, size_t *row)
{
	struct analysis_image *ai;
	int r = workload_image(o->p->a, o->p->o->workloads, image, &ai);

	return r < 0 ? r : find_row(o, ai->facility ? ai->facility : ai->name, row);
}

static int row_of_workload(struct over *o, uint32_t workload, size_t *row)
{
	const struct profdb_workload *k = profdb_workloads_workload(o->p->o->workloads, workload);
	struct base_buf key = { 0 };
	int r = workload_group_key(k, WORKLOAD_COMM, &key);

	if (r >= 0) {
		enum workload_class class = (enum workload_class)key.data[0];
		const char *name = (const char *)key.data + 1;

		r = find_row(o, *name ? name : workload_key_missing(WORKLOAD_COMM, class), row);
	}
	base_buf_release(&key);
	return r;
}

static int row_of(void *ctx, uint32_t workload, uint32_t image, uint64_t off, size_t *row)
{
	struct over *o = ctx;
	size_t *known = &o->known[o->by_image ? image : workload];
	int r = 0;

	(void)off;
	if (*known) {
		*row = *known - 1;
		return 0;
	}
	r = o->by_image ? row_of_image(o, image, row) : row_of_workload(o, workload, row);
	if (r >= 0)
		*known = *row + 1;
	return r;
}

static void choose_slices(struct over *o)
{
	const struct workload_filter *f = o->p->o->filter;
	int64_t first = 0, end = 60;

	slices_extent(o->p->o->workloads, f, &first, &end);
	first = f->since == INT64_MIN ? first : f->since;
	end = f->until == INT64_MAX ? end : f->until;
	end = end > first ? end : first + 60;
	o->s.span = slices_span(first, end, SLICES_SHOWN);
	o->s.begin = slices_begin(first, o->s.span);
	o->s.nr = (size_t)((end - o->s.begin + o->s.span - 1) / o->s.span);
}

/* The row with most samples among those that were not put before. */
static size_t next_row(const struct over *o, const bool *done)
{
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < o->s.nr_rows && i < o->nr; i++)
		if (!done[i] && o->s.rows[i].sum &&
		    (best == SIZE_MAX || o->s.rows[i].sum > o->s.rows[best].sum))
			best = i;
	return best;
}

/* [name, samples by slice …] */
static int put_rows(const struct over *o, struct jwrite *j)
{
	bool *done = calloc(o->nr + 1, sizeof(*done));
	size_t at;

	jwrite_open(j, "rows", '[');
	for (size_t i = 0; done && i < ROWS_SHOWN && (at = next_row(o, done)) != SIZE_MAX; i++) {
		done[at] = true;
		jwrite_line(j);
		jwrite_open(j, NULL, '[');
		jwrite_text(j, NULL, o->names[at]);
		for (size_t k = 0; k < o->s.nr; k++)
			jwrite_count(j, NULL, o->s.rows[at].count[k]);
		jwrite_close(j, ']');
	}
	jwrite_close(j, ']');
	free(done);
	return done ? 0 : -ENOMEM;
}

static int put_over(const struct over *o, struct jwrite *j)
{
	int r;

	jwrite_line(j);
	jwrite_open(j, NULL, '{');
	jwrite_text(j, "by", o->by_image ? "image" : "comm");
	jwrite_int(j, "begin", o->s.begin);
	jwrite_int(j, "span", o->s.span);
	jwrite_open(j, "recorded", '[');
	for (size_t i = 0; i < o->s.nr; i++)
		jwrite_count(j, NULL, o->s.recorded[i]);
	jwrite_close(j, ']');
	jwrite_open(j, "total", '[');
	for (size_t i = 0; i < o->s.nr; i++)
		jwrite_count(j, NULL, o->s.total[i]);
	jwrite_close(j, ']');
	r = put_rows(o, j);
	jwrite_close(j, '}');
	return r;
}

static int put_time(const struct page *p, struct jwrite *j, bool by_image)
{
	const struct profdb_workloads *w = p->o->workloads;
	size_t nr = by_image ? profdb_workloads_nr_images(w) : profdb_workloads_nr(w);
	struct over o = { .p = p, .by_image = by_image };
	int r;

	choose_slices(&o);
	o.known = calloc(nr + 1, sizeof(*o.known));
	r = o.known ? slices_make(p->a, w, p->o->filter, p->o->event, row_of, &o, &o.s) : -ENOMEM;
	if (r >= 0)
		r = put_over(&o, j);
	for (size_t i = 0; i < o.nr; i++)
		free(o.names[i]);
	free(o.names);
	free(o.known);
	base_map_release(&o.by_name);
	slices_release(&o.s);
	return r;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* Why there is nothing to tell; NULL: there is. */
static const char *reason(const struct page *p)
{
	if (!p->a->nr_events)
		return "there are no samples";
	if (!p->o->workloads || !profdb_workloads_nr(p->o->workloads))
		return "no processes and minutes were kept in these epochs";
	return NULL;
}

int page_whose(struct page *p, struct jwrite *j, struct base_err *err)
{
	const char *why = reason(p);
	int r = 0;

	jwrite_line(j);
	if (why) {
		jwrite_text(j, "no_workloads", why);
		return j->r;
	}
	r = put_workloads(p, j);
	jwrite_open(j, "times", '[');
	for (int i = 0; i < 2 && r >= 0 && profdb_workloads_nr_minutes(p->o->workloads); i++)
		r = put_time(p, j, i);
	jwrite_close(j, ']');
	return r < 0 ? base_fail_errno(err, r, "cannot divide samples by process and time") : j->r;
}
