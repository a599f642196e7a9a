/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "choose.h"
#include "diff_procedure.h"
#include "parts.h"
#include "report.h"

struct pair {
	const struct set *sets;
	const size_t *event;
	struct analysis_listing *l[2];
	bool same_code;
	struct parts parts;
};

/* ---- text ---------------------------------------------------------------------------------- */

static void print_head(const struct pair *x)
{
	for (int i = 0; i < 2; i++) {
		const struct analysis_listing *l = x->l[i];
		char *name = NULL;

		printf("set %c\n", 'A' + i);
		report_head(l->a, stdout);
		if (asprintf(&name, "%s, %" PRIu64 " bytes at 0x%" PRIx64 " in %s", l->symbol.name,
			     l->symbol.len, l->symbol.vaddr, l->ai->name) >= 0)
			printf("procedure  %s\n", table_clean(name));
		free(name);
		report_event(&l->a->events[x->event[i]], l->total[x->event[i]], stdout);
		putchar('\n');
	}
	printf("Compared by %s; range%% is |A - B| in percent of A + B, ratio is B / A.\n\n",
	       !x->parts.by_line ? "basic block"
	       : x->same_code	 ? "source line"
				 : "source line, as the code is not the same");
}

static void put_ratios(struct table *t, const uint64_t count[2])
{
	double a = (double)count[0], b = (double)count[1];

	if (a + b > 0)
		table_cell(t, "%.2f%%", 100 * (a > b ? a - b : b - a) / (a + b));
	else
		table_cell(t, "%s", "");
	table_cell(t, "%" PRIu64, count[0]);
	table_cell(t, "%" PRIu64, count[1]);
	if (count[0])
		table_cell(t, "%.3f", b / a);
	else
		table_cell(t, "%s", "");
}

static void put_source(struct table *t, const struct parts_row *row)
{
	if (row->file)
		table_cell(t, "%s:%u", base_path_name(row->file), row->line);
	else
		table_cell(t, "%s", "(no source line)");
}

static void put_row(const struct pair *x, struct table *t, const struct parts_row *row)
{
	put_ratios(t, row->count);
	if (!x->parts.by_line && row->end)
		table_cell(t, "+0x%" PRIx64 "..+0x%" PRIx64, row->from, row->end);
	else if (!x->parts.by_line)
		table_cell(t, "%s", "(no block)");
	put_source(t, row);
}

static int print_text(const struct pair *x, bool no_header, struct base_err *err)
{
	static const char *const heads[] = { "range%", "A", "B", "ratio" };
	struct table t = { 0 };
	int r;

	if (!no_header)
		print_head(x);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		table_column(&t, false, heads[i]);
	if (!x->parts.by_line)
		table_column(&t, true, "block");
	table_column(&t, true, "source");
	for (size_t i = 0; i < x->parts.nr; i++)
		put_row(x, &t, &x->parts.v[i]);
	put_ratios(&t, x->parts.total);
	table_cell(&t, "%s", "total");
	if (!x->parts.by_line)
		table_cell(&t, "%s", "");
	r = table_print(&t, !no_header, stdout);
	table_release(&t);
	return r < 0 ? base_fail_errno(err, r, "cannot print the table") : 0;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static struct json_object *json_counts(const uint64_t count[2])
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "a", json_object_new_uint64(count[0]));
	json_object_object_add(o, "b", json_object_new_uint64(count[1]));
	return o;
}

static struct json_object *json_row(const struct pair *x, const struct parts_row *row)
{
	struct json_object *o = json_object_new_object();
	char text[32];

	snprintf(text, sizeof(text), "%.8f", row->range);
	json_object_object_add(o, "range", json_object_new_double_s(row->range, text));
	json_object_object_add(o, "samples", json_counts(row->count));
	if (!x->parts.by_line) {
		json_object_object_add(o, "from",
				       row->end ? json_object_new_uint64(row->from) : NULL);
		json_object_object_add(o, "end",
				       row->end ? json_object_new_uint64(row->end) : NULL);
	}
	json_object_object_add(o, "file", report_json_text(row->file));
	json_object_object_add(o, "line", row->file ? json_object_new_int64(row->line) : NULL);
	return o;
}

static struct json_object *json_set(const struct pair *x, int i)
{
	const struct analysis_listing *l = x->l[i];
	struct json_object *o = report_json(NULL, l->a, l->total);

	json_object_object_add(o, "procedure", report_json_text(l->symbol.name));
	json_object_object_add(o, "address", report_json_hex(l->symbol.vaddr));
	json_object_object_add(o, "image", report_json_text(l->ai->name));
	report_json_problems(o, l->a);
	return o;
}

static int print_json(const struct pair *x, struct base_err *err)
{
	struct json_object *root = json_object_new_object(), *rows = json_object_new_array();
	const struct analysis *a = x->l[0]->a;
	int r;

	for (size_t i = 0; i < x->parts.nr; i++)
		json_object_array_add(rows, json_row(x, &x->parts.v[i]));
	json_object_object_add(root, "schema", json_object_new_string("dcpidiff-procedure/1"));
	json_object_object_add(root, "a", json_set(x, 0));
	json_object_object_add(root, "b", json_set(x, 1));
	json_object_object_add(root, "event", report_json_text(a->events[x->event[0]].name));
	json_object_object_add(root, "by",
			       json_object_new_string(x->parts.by_line ? "source line" : "block"));
	json_object_object_add(root, "same_code", json_object_new_boolean(x->same_code));
	json_object_object_add(root, "rows", rows);
	json_object_object_add(root, "total", json_counts(x->parts.total));
	r = report_json_put(root, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

/* ---- the comparison ------------------------------------------------------------------------ */

int diff_procedure(const struct diff_procedure *p, const struct set sets[2], const size_t event[2],
		   struct base_err *err)
{
	struct pair x = { .sets = sets, .event = event };
	int r = 0;

	for (int i = 0; i < 2 && r >= 0; i++)
		r = choose_procedure(sets[i].a, p->what, sets[i].nr_what ? sets[i].what[0] : NULL,
				     &x.l[i], err);
	if (r >= 0) {
		x.same_code = parts_same_code(x.l[0], x.l[1]);
		r = parts_compare((const struct analysis_listing *const[2]){ x.l[0], x.l[1] },
				  event, p->by_line || !x.same_code, &x.parts, err);
	}
	if (r >= 0)
		r = p->json ? print_json(&x, err) : print_text(&x, p->no_header, err);
	parts_release(&x.parts);
	for (int i = 0; i < 2; i++)
		analysis_listing_close(x.l[i]);
	return r;
}
