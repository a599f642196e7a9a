/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model of a report: what its tables, its tree of calls and its comparison show, whose the
 * samples are, and what is not known.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "callpath.h"
#include "demangle.h"
#include "diff.h"
#include "estimate.h"
#include "page_internal.h"
#include "progress.h"
#include "slices.h"

/* Parts of the size: of rows and of code; calls have the rest. */
static const double rows_part = 0.52, code_part = 0.36;
/* Bytes of a row beside its name and its counts. */
enum { ROW_LEN = 36 };

/* ---- whose the samples are ------------------------------------------------------------------- */

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
static int put_shown(const struct over *o, struct jwrite *j)
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
	r = put_shown(o, j);
	jwrite_close(j, '}');
	return r;
}

static int put_over_time(const struct page *p, struct jwrite *j, bool by_image)
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

/* Why there is nothing to tell; NULL: there is. */
static const char *no_workloads(const struct page *p)
{
	if (!p->a->nr_events)
		return "there are no samples";
	if (!p->o->workloads || !profdb_workloads_nr(p->o->workloads))
		return "no processes and minutes were kept in these epochs";
	return NULL;
}

/* The samples by process, user, service and so on, and over time. */
static int put_whose(struct page *p, struct jwrite *j, struct base_err *err)
{
	const char *why = no_workloads(p);
	int r = 0;

	jwrite_line(j);
	if (why) {
		jwrite_text(j, "no_workloads", why);
		return j->r;
	}
	r = put_workloads(p, j);
	jwrite_open(j, "times", '[');
	for (int i = 0; i < 2 && r >= 0 && profdb_workloads_nr_minutes(p->o->workloads); i++)
		r = put_over_time(p, j, i);
	jwrite_close(j, ']');
	return r < 0 ? base_fail_errno(err, r, "cannot divide samples by process and time") : j->r;
}

/* ---- where it comes from --------------------------------------------------------------------- */

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

/* The places from which a model comes. */
static void page_source(struct jwrite *j, const struct analysis *a)
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

/* ---- rows ------------------------------------------------------------------------------------ */

static bool has_samples(const struct analysis *a, const struct analysis_image *ai)
{
	for (size_t i = 0; i < a->nr_events; i++)
		if (ai->count[i])
			return true;
	return false;
}

/* A row for each procedure, or image, with samples. 0 or -ENOMEM. */
static int page_rows(struct analysis *a, bool by_image, struct analysis_rows *rows)
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

/* ---- the tree of calls ----------------------------------------------------------------------- */

/* A node has about so many bytes, a procedure's name among them. */
enum { NODE_LEN = 40 };

struct calls {
	struct page *p;
	struct callpath_tree *t;
	uint64_t least;	     /* nodes with fewer samples are left out */
	uint32_t *number;    /* indexed by node: its number in the page + 1; 0: left out */
	uint32_t *procedure; /* indexed by procedure: the same */
	uint32_t nr;
};

static uint64_t self_of(const struct calls *c, uint32_t node)
{
	return c->t->nodes.self[node * c->t->nodes.nr_events + c->p->o->event];
}

static uint64_t total_of(const struct calls *c, uint32_t node)
{
	return c->t->nodes.total[node * c->t->nodes.nr_events + c->p->o->event];
}

static size_t nr_above(const struct calls *c, uint64_t least)
{
	size_t nr = 0;

	for (uint32_t i = 0; i < c->t->nodes.nr; i++)
		nr += total_of(c, i) >= least;
	return nr;
}

/* Parents come before their children. */
static void number_nodes(struct calls *c, size_t size)
{
	c->least = 1;
	while (nr_above(c, c->least) > size / NODE_LEN)
		c->least += c->least / 2 + 1;
	for (uint32_t i = 0; i < c->t->nodes.nr; i++)
		if (total_of(c, i) >= c->least)
			c->number[i] = ++c->nr;
}

static void put_ends(const struct calls *c, struct jwrite *j)
{
	jwrite_open(j, "ends", '{');
	for (size_t i = 0; i < PROFDB_NR_CALLPATH_ENDS; i++)
		jwrite_count(j, profdb_callpath_end_text((enum profdb_callpath_end)i),
			     c->t->ends[c->p->o->event * PROFDB_NR_CALLPATH_ENDS + i]);
	jwrite_close(j, '}');
}

/* [name, image, kind] of those that are on a node, in the order of the nodes. */
static void put_call_procedures(struct calls *c, struct jwrite *j)
{
	uint32_t nr = 0;

	jwrite_open(j, "procedures", '[');
	for (uint32_t i = 0; i < c->t->nodes.nr; i++) {
		uint32_t at = c->t->nodes.v[i].procedure;
		const struct callpath_procedure *p = &c->t->procedures[at];

		if (!c->number[i] || c->procedure[at])
			continue;
		c->procedure[at] = ++nr;
		jwrite_line(j);
		jwrite_open(j, NULL, '[');
		jwrite_text(j, NULL, demangle_shown(p->name));
		jwrite_text(j, NULL, callpath_image_name(p));
		jwrite_count(j, NULL, (uint64_t)p->kind);
		jwrite_close(j, ']');
	}
	jwrite_close(j, ']');
}

/* parent, procedure, own samples, samples of calls that are left out; for each node. */
static int put_nodes(struct calls *c, struct jwrite *j)
{
	uint64_t *lost = calloc(c->t->nodes.nr + 1, sizeof(*lost));

	for (uint32_t i = 1; lost && i < c->t->nodes.nr; i++)
		if (!c->number[i] && c->number[c->t->nodes.v[i].parent])
			lost[c->t->nodes.v[i].parent] += total_of(c, i);
	jwrite_line(j);
	jwrite_open(j, "nodes", '[');
	for (uint32_t i = 0; lost && i < c->t->nodes.nr; i++) {
		const struct callpath_node *n = &c->t->nodes.v[i];

		if (!c->number[i])
			continue;
		jwrite_int(j, NULL, i ? (int64_t)c->number[n->parent] - 1 : -1);
		jwrite_count(j, NULL, c->procedure[n->procedure] - 1);
		jwrite_count(j, NULL, self_of(c, i));
		jwrite_count(j, NULL, lost[i]);
	}
	jwrite_close(j, ']');
	free(lost);
	return lost ? j->r : -ENOMEM;
}

static int put_tree(struct calls *c, struct jwrite *j, size_t size)
{
	int r;

	c->number = calloc(c->t->nodes.nr + 1, sizeof(*c->number));
	c->procedure = calloc(c->t->nr_procedures + 1, sizeof(*c->procedure));
	if (!c->number || !c->procedure)
		return -ENOMEM;
	number_nodes(c, size);
	jwrite_open(j, "paths", '{');
	jwrite_count(j, "number", callpath_paths(c->t, c->p->o->event));
	jwrite_count(j, "without", c->t->alone[c->p->o->event]);
	jwrite_count(j, "least", c->least);
	put_ends(c, j);
	put_call_procedures(c, j);
	r = put_nodes(c, j);
	jwrite_close(j, '}');
	return r;
}

static int make_tree(struct calls *c, struct base_err *why)
{
	const struct callpath_how how = { .inlined = true,
					  .fold = true,
					  .check = c->p->o->checked };
	struct profdb_callpaths *paths = NULL;
	int r;

	r = callpath_load(c->p->a, false, &paths, why);
	if (r >= 0)
		r = callpath_tree_make(c->p->a, paths, &how, &c->t, why);
	profdb_callpaths_free(paths);
	if (r >= 0 && (!c->p->a->nr_events || !callpath_paths(c->t, c->p->o->event)))
		r = base_fail(why, -ENOENT, "no call paths of this event were kept");
	return r;
}

/* The tree of calls, in about @size bytes. */
static int page_calls(struct page *p, struct jwrite *j, size_t size, struct base_err *err)
{
	struct calls c = { .p = p };
	struct base_err why = { 0 };
	int r = make_tree(&c, &why);

	jwrite_line(j);
	if (r >= 0)
		r = put_tree(&c, j, size);
	else if (r != -ENOMEM)
		jwrite_text(j, "no_paths", why.text);
	free(c.number);
	free(c.procedure);
	callpath_tree_free(c.t);
	return r == -ENOMEM ? base_fail_errno(err, r, "cannot make the tree of calls") : j->r;
}

/* ---- the comparison -------------------------------------------------------------------------- */

/* Rows beyond these have next to no samples; their sums are told. */
enum { ROWS_MAX = 4000 };

static const char *code_text(enum analysis_code code)
{
	static const char *const texts[] = {
		[ANALYSIS_CODE_NONE] = "",
		[ANALYSIS_CODE_EQUAL] = "equal",
		[ANALYSIS_CODE_OPERANDS] = "bytes differ only in operands",
		[ANALYSIS_CODE_DIFFERS] = "differ",
		[ANALYSIS_CODE_ONLY_A] = "only before",
		[ANALYSIS_CODE_ONLY_B] = "only now",
		[ANALYSIS_CODE_UNKNOWN] = "bytes missing",
	};

	return texts[code];
}

/* [name, image, row now or -1, before, now, standard error of the share, changed, code] */
static void put_row(struct jwrite *j, const struct page *p, const struct analysis_diff_row *d)
{
	size_t at = d->row[1] ? (size_t)(d->row[1] - p->procedures.v) : SIZE_MAX;

	jwrite_line(j);
	jwrite_open(j, NULL, '[');
	jwrite_text(j, NULL, demangle_shown(analysis_diff_label(d)));
	jwrite_text(j, NULL, analysis_diff_image(d));
	jwrite_int(j, NULL, at < p->nr_shown ? (int64_t)at : -1);
	jwrite_count(j, NULL, d->count[0]);
	jwrite_count(j, NULL, d->count[1]);
	jwrite_real(j, NULL, d->error);
	jwrite_count(j, NULL, d->change != 0);
	jwrite_text(j, NULL, code_text(d->code));
	jwrite_close(j, ']');
}

static void put_rows(struct jwrite *j, const struct page *p, const struct analysis_diff *d)
{
	uint64_t rest[2] = { 0 };
	size_t nr = d->nr < ROWS_MAX ? d->nr : ROWS_MAX;

	jwrite_open(j, "rows", '[');
	for (size_t i = 0; i < nr; i++)
		put_row(j, p, &d->v[i]);
	jwrite_close(j, ']');
	for (size_t i = nr; i < d->nr; i++)
		for (int set = 0; set < 2; set++)
			rest[set] += d->v[i].count[set];
	jwrite_count(j, "left_out", d->nr - nr);
	jwrite_open(j, "rest", '[');
	jwrite_count(j, NULL, rest[0]);
	jwrite_count(j, NULL, rest[1]);
	jwrite_close(j, ']');
}

static int page_changes(struct page *p, struct jwrite *j, struct base_err *err)
{
	struct analysis_rows before = { .code = true };
	struct analysis *const a[2] = { p->o->before, p->a };
	struct analysis_rows *const rows[2] = { &before, &p->procedures };
	const size_t event[2] = { p->o->before_event, p->o->event };
	struct analysis_diff d = { 0 };
	int r = page_rows(p->o->before, false, &before);

	if (r >= 0)
		r = analysis_diff_rows(a, rows, event, &d);
	if (r >= 0) {
		jwrite_line(j);
		jwrite_open(j, "before", '{');
		page_source(j, p->o->before);
		jwrite_count(j, "event", p->o->before_event);
		jwrite_real(j, "bound", d.bound);
		jwrite_open(j, "total", '[');
		jwrite_count(j, NULL, d.total[0]);
		jwrite_count(j, NULL, d.total[1]);
		jwrite_close(j, ']');
		put_rows(j, p, &d);
		jwrite_close(j, '}');
	}
	analysis_diff_release(&d);
	analysis_rows_release(&before);
	return r < 0 ? base_fail_errno(err, r, "cannot compare") : j->r;
}

/* ---- all of it ------------------------------------------------------------------------------- */

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
		r = put_whose(p, j, err);
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
