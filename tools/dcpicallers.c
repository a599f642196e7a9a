/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpicallers: who called a procedure, and what it called, with the samples of each. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "callpaths.h"
#include "tools.h"

static struct select sel;
static struct callpaths_options opt;
static int64_t number = 10;
static double cut = 1;
static bool by_total;

static const struct base_opt options[] = {
	SELECT_OPTIONS(sel),
	SELECT_OPTION_UNCHECKED(sel),
	CALLPATHS_OPTIONS(opt),
	{ "n", BASE_OPT_INT, &number, "N",
	  "Without a procedure: how many of those with most samples (default: 10).", 1, 1000000 },
	{ "total", BASE_OPT_FLAG, &by_total, NULL,
	  "Most samples in what they called too, and not in themselves alone, come first.", 0, 0 },
	{ "cut", BASE_OPT_DOUBLE, &cut, "PERCENT",
	  "Callers and callees that have less of the procedure's samples are one line (default: "
	  "1).",
	  0, 100 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpicallers",
	.summary = "list what called procedures, and what they called, by samples",
	.operands = "[PROCEDURE …]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpicallers memcpy", "Who asked for all that copying." },
			{ "dcpicallers -n 3 -image /usr/bin/node",
			  "The three hottest procedures of a program, of the kernel and the "
			  "libraries that it called, with their callers and callees." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = -1,
};

/* A table's column has room for so many bytes behind the indentation. */
enum { NAME_LEN = 36 };

struct block {
	uint32_t procedure;
	uint64_t self, total;
};

struct callers {
	struct callpaths x;
	struct block *blocks;
	size_t nr;
};

/* ---- the procedures -------------------------------------------------------------------------- */

static int compare(const void *pa, const void *pb, void *ctx)
{
	const struct block *a = pa, *b = pb;
	const struct callpath_tree *t = ctx;
	uint64_t first_a = by_total ? a->total : a->self, first_b = by_total ? b->total : b->self;
	uint64_t other_a = by_total ? a->self : a->total, other_b = by_total ? b->self : b->total;

	if (first_a != first_b)
		return first_a > first_b ? -1 : 1;
	if (other_a != other_b)
		return other_a > other_b ? -1 : 1;
	return strcmp(t->procedures[a->procedure].name, t->procedures[b->procedure].name);
}

static bool wanted(const struct callers *c, uint32_t procedure, const struct block *b)
{
	if (c->x.wanted)
		return c->x.wanted[procedure];
	return procedure >= CALLPATH_NR_ENDS && (by_total ? b->total : b->self);
}

/* The procedures that stand in blocks, most samples first. */
static int choose(struct callers *c, const uint64_t *total)
{
	const struct callpath_tree *t = c->x.tree;
	struct block *all = calloc(t->nr_procedures, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (size_t i = 1; i < t->nodes.nr; i++)
		all[t->nodes.v[i].procedure].self +=
			t->nodes.self[i * t->nodes.nr_events + c->x.event];
	for (uint32_t i = 1; i < t->nr_procedures; i++) {
		struct block b = { i, all[i].self, total[i] };

		if (wanted(c, i, &b))
			all[c->nr++] = b;
	}
	qsort_r(all, c->nr, sizeof(*all), compare, c->x.tree);
	if (!c->x.wanted && c->nr > (size_t)number)
		c->nr = (size_t)number;
	c->blocks = all;
	return 0;
}

static int gather(struct callers *c, int nr, char **what, struct base_err *err)
{
	const struct callpath_how how = { .inlined = !opt.no_inline, .check = !sel.unchecked };
	int r = callpaths_open(&sel, &opt, &how, nr, what, &c->x, err);
	uint64_t *total;

	if (r < 0 || !c->x.a->nr_events)
		return r;
	total = calloc(c->x.tree->nr_procedures, sizeof(*total));
	r = total ? callpath_totals(c->x.tree, c->x.event, NULL, c->x.tree->nr_procedures, total)
		  : -ENOMEM;
	if (r >= 0)
		r = choose(c, total);
	free(total);
	return r < 0 ? base_fail_errno(err, r, "cannot find the procedures") : 0;
}

/* The number of edges that are shown: most samples stand first. */
static size_t shown(const struct callpath_edge *v, size_t nr, uint64_t total, uint64_t *rest)
{
	size_t n = 0;

	for (*rest = 0; n < nr && (double)v[n].count * 100 >= cut * (double)total; n++)
		;
	for (size_t i = n; i < nr; i++)
		*rest += v[i].count;
	return n;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void put_counts(const struct callers *c, struct table *t, uint64_t count, uint64_t of)
{
	report_cells(t, count, callpaths_total(&c->x));
	if (of)
		table_cell(t, "%.2f%%", 100.0 * (double)count / (double)of);
	else
		table_cell(t, "%s", "");
}

static void put_procedure(struct callers *c, struct table *t, uint32_t procedure,
			  const char *indent)
{
	const struct callpath_procedure *p = &c->x.tree->procedures[procedure];

	table_cell(t, "%s%s%s", indent, callpaths_name(&c->x, procedure, NAME_LEN),
		   p->kind == CALLPATH_INLINED ? " (inlined)" : "");
	table_cell(t, "%s", callpath_image_name(p));
}

static void put_text(struct table *t, const char *text)
{
	table_cell(t, "%s", text);
	table_cell(t, "%s", "");
}

static void put_edges(struct callers *c, struct table *t, const struct callpath_edge *v, size_t nr,
		      uint64_t total)
{
	uint64_t rest;
	size_t n = shown(v, nr, total, &rest);
	char text[40];

	for (size_t i = 0; i < n; i++) {
		put_counts(c, t, v[i].count, total);
		put_procedure(c, t, v[i].procedure, "    ");
	}
	if (n == nr)
		return;
	snprintf(text, sizeof(text), "    (%zu other%s)", nr - n, nr - n == 1 ? "" : "s");
	put_counts(c, t, rest, total);
	put_text(t, text);
}

static void put_block(struct callers *c, struct table *t, const struct callpath_around *x)
{
	put_edges(c, t, x->callers, x->nr_callers, x->total);
	put_counts(c, t, x->total, 0);
	put_procedure(c, t, x->procedure, "");
	if (x->recursive) {
		put_counts(c, t, x->recursive, x->total);
		put_text(t, "  of these recursive");
	}
	if (x->self) {
		put_counts(c, t, x->self, x->total);
		put_text(t, "    (itself)");
	}
	put_edges(c, t, x->callees, x->nr_callees, x->total);
}

static void put_heads(const struct callers *c, struct table *t)
{
	table_column(t, false, c->x.a->events[c->x.event].name);
	table_column(t, false, "%");
	table_column(t, false, "share");
	table_column(t, true, "callers, PROCEDURE, callees");
	table_column(t, true, "image");
}

static int print_text(struct callers *c, struct base_err *err)
{
	struct callpath_around x;
	struct table t = { 0 };
	int r = 0;

	if (!opt.no_header)
		callpaths_head(&c->x, stdout);
	if (c->nr && !opt.no_header)
		putchar('\n');
	if (c->nr)
		put_heads(c, &t);
	for (size_t i = 0; i < c->nr && r >= 0; i++) {
		for (int k = 0; (i || !opt.no_header) && k < 5; k++)
			table_cell(&t, "%s", "");
		r = callpath_around_make(c->x.tree, c->blocks[i].procedure, c->x.event, &x);
		if (r >= 0)
			put_block(c, &t, &x);
		callpath_around_release(&x);
	}
	if (r >= 0 && c->nr)
		r = table_print(&t, !opt.no_header, stdout);
	table_release(&t);
	return r < 0 ? base_fail_errno(err, r, "cannot print the table") : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_object *json_edges(const struct callers *c, const struct callpath_edge *v,
				      size_t nr, uint64_t total, uint64_t *rest)
{
	struct json_object *list = json_object_new_array();
	size_t n = shown(v, nr, total, rest);

	for (size_t i = 0; i < n; i++) {
		struct json_object *o = json_object_new_object();

		callpaths_json_procedure(&c->x.tree->procedures[v[i].procedure], o);
		json_object_object_add(o, "samples", json_object_new_uint64(v[i].count));
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *json_block(const struct callers *c, const struct callpath_around *x)
{
	const struct callpath_procedure *p = &c->x.tree->procedures[x->procedure];
	struct json_object *o = json_object_new_object();
	uint64_t rest;

	callpaths_json_procedure(p, o);
	json_object_object_add(o, "self", json_object_new_uint64(x->self));
	json_object_object_add(o, "total", json_object_new_uint64(x->total));
	json_object_object_add(o, "recursive", json_object_new_uint64(x->recursive));
	json_object_object_add(o, "callers",
			       json_edges(c, x->callers, x->nr_callers, x->total, &rest));
	json_object_object_add(o, "other_callers", json_object_new_uint64(rest));
	json_object_object_add(o, "callees",
			       json_edges(c, x->callees, x->nr_callees, x->total, &rest));
	json_object_object_add(o, "other_callees", json_object_new_uint64(rest));
	return o;
}

static int print_json(const struct callers *c, struct base_err *err)
{
	struct json_object *root = callpaths_json_head(&c->x, "dcpicallers/1");
	struct json_object *rows = json_object_new_array();
	struct callpath_around x;
	int r = 0;

	for (size_t i = 0; i < c->nr && r >= 0; i++) {
		r = callpath_around_make(c->x.tree, c->blocks[i].procedure, c->x.event, &x);
		if (r >= 0)
			json_object_array_add(rows, json_block(c, &x));
		callpath_around_release(&x);
	}
	json_object_object_add(root, "procedures", rows);
	json_object_object_add(root, "total", json_object_new_uint64(callpaths_total(&c->x)));
	if (r < 0)
		json_object_put(root);
	else
		r = report_json_print(root, c->x.a, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

static int run(int nr, char **what, struct base_err *err)
{
	struct callers c = { 0 };
	int code = BASE_EXIT_OK, r = gather(&c, nr, what, err);

	if (r >= 0)
		r = sel.json ? print_json(&c, err) : print_text(&c, err);
	if (c.x.a)
		code = callpaths_problems(cmd.name, &c.x, r, stderr);
	free(c.blocks);
	callpaths_close(&c.x);
	return r < 0 ? r : code;
}

static int dcpicallers_main(int argc, char **argv)
{
	return report_main(&cmd, &sel, run, argc, argv);
}

const struct tool dcpicallers_tool = { .cmd = &cmd, .main = dcpicallers_main };
