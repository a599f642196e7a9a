/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpidiff: what changed between two sets of samples, procedure by procedure. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "diff.h"
#include "diff_procedure.h"
#include "estimation.h"
#include "report.h"
#include "sets.h"
#include "tools.h"

static struct set now;
static struct base_opt_list files, maps;
static bool set_option, changed, source_line, verbose, no_header;
static const char *compare_list;
static unsigned int measures;
static struct estimation estimation;

static const struct base_opt options[] = {
	{ "set", BASE_OPT_FLAG, &set_option, NULL,
	  "Begin a set: the options and images behind it, up to the next -set, choose its samples. "
	  "What stands before the first -set holds for both.",
	  0, 0 },
	SELECT_OPTIONS_DB(now.sel),
	SELECT_OPTION_LABEL(now.sel),
	SELECT_OPTIONS_WORKLOAD(now.sel),
	SELECT_OPTIONS_FILES(files, maps),
	SELECT_OPTION_MANGLED,
	TERMINAL_OPTION_WIDE,
	TERMINAL_OPTION_ALL,
	{ "event", BASE_OPT_STRING, &now.sel.event, "EVENT",
	  "Compare samples of this event (default: cycles, else a clock, else the first).", 0, 0 },
	{ "changed", BASE_OPT_FLAG, &changed, NULL,
	  "Leave out procedures whose share did not change (more than chance explains) and whose "
	  "code, as far as both sets have it, is equal; they are one line 'others'.",
	  0, 0 },
	{ "source_line", BASE_OPT_FLAG, &source_line, NULL,
	  "Compare a procedure by source line, though its code is the same in both sets.", 0, 0 },
	SELECT_OPTION_SOURCE(now.source_path),
	{ "compare", BASE_OPT_STRING, &compare_list, "WHAT",
	  "Compare a procedure by cpi, frequency, stalls, static_stalls, dynamic_stalls, all of "
	  "these, or samples; several are joined by commas (default: cpi where it is known, else "
	  "samples).",
	  0, 0 },
	{ "verbose", BASE_OPT_FLAG, &verbose, NULL,
	  "With -compare, show each row's samples and how sure its frequencies are.", 0, 0 },
	ESTIMATION_OPTIONS(estimation),
	{ "json", BASE_OPT_FLAG, &now.sel.json, NULL,
	  "Print JSON with the same rows (dcpijson(5)).", 0, 0 },
	{ "no_header", BASE_OPT_FLAG, &no_header, NULL, "Leave out the lines above the table.", 0,
	  0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpidiff",
	.summary = "compare two sets of samples by procedure",
	.operands = "[PROCEDURE] -set [option …] [IMAGE …] -set [option …] [IMAGE …]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpidiff -set -epoch 202611200700 -set -epoch 202611200800",
			  "Two epochs of $DCPIDB." },
			{ "dcpidiff -changed -set -db before worker -set -db after worker",
			  "What a change did to the routines of the facility 'worker', whatever "
			  "else "
			  "the machine did." },
			{ "dcpidiff hot -set -epoch 202611200700 a.out -set -epoch 202611200800 "
			  "a.out",
			  "One procedure, by basic block." },
			{ "dcpidiff hot -set -source-path v1 -db before -set -source-path v2 -db "
			  "after",
			  "One procedure whose source was changed: line by line." },
			{ "dcpidiff -compare frequency,stalls hot -set -epoch 202611200700 a.out "
			  "-set -epoch 202611200800 a.out",
			  "Did it run more often, or wait longer?" },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = -1,
};

struct diff {
	struct sets sets;
	size_t event[2];
	struct analysis_diff d;
};

static const char *code_text(enum analysis_code code)
{
	switch (code) {
	case ANALYSIS_CODE_NONE:
		break;
	case ANALYSIS_CODE_EQUAL:
		return "equal";
	case ANALYSIS_CODE_OPERANDS:
		return "bytes differ only in operands";
	case ANALYSIS_CODE_DIFFERS:
		return "differ";
	case ANALYSIS_CODE_ONLY_A:
		return "only in A";
	case ANALYSIS_CODE_ONLY_B:
		return "only in B";
	case ANALYSIS_CODE_UNKNOWN:
		return "bytes missing";
	}
	return "";
}

static bool is_announced(const struct estimation *e)
{
	return e->low || e->medium || e->high || e->outside;
}

static int parse(struct diff *x, int argc, char **argv, struct base_err *err)
{
	int r = sets_parse(&cmd, &now, argc, argv, &x->sets, err);

	if (r != BASE_OPT_RUN)
		return r;
	if (x->sets.nr_words > 1)
		return base_opt_usage(&cmd, "images belong behind a -set", err);
	if (x->sets.nr < 2)
		return base_opt_usage(&cmd, "two sets are needed", err);
	if (x->sets.nr > 2)
		return base_opt_usage(&cmd, "only two sets can be compared", err);
	if (x->sets.nr_words && (changed || x->sets.v[0].nr_what > 1 || x->sets.v[1].nr_what > 1))
		return base_opt_usage(&cmd,
				      changed ? "-changed is for whole sets"
					      : "a procedure is of one image in each set",
				      err);
	if (!x->sets.nr_words && source_line)
		return base_opt_usage(&cmd, "-source_line needs a procedure", err);
	if (!x->sets.nr_words && (compare_list || verbose))
		return base_opt_usage(&cmd,
				      compare_list ? "-compare needs a procedure"
						   : "-verbose needs a procedure",
				      err);
	if (!x->sets.nr_words && is_announced(&estimation))
		return base_opt_usage(&cmd, "whole sets are compared by samples, without estimates",
				      err);
	for (size_t i = 0; i < 2; i++) {
		x->sets.v[i].sel.files = files;
		x->sets.v[i].sel.maps = maps;
		now.sel.json |= x->sets.v[i].sel.json;
	}
	return compare_list ? diff_measures_parse(compare_list, &measures, err) : 0;
}

/* The first set chooses where nobody does; the second must have it. */
static int choose_event(struct diff *x, struct base_err *err)
{
	const struct set *s = x->sets.v;
	const char *name;
	int at;

	if (!s[0].a->nr_events)
		return base_fail(err, -ENOENT, "no samples in set A");
	x->event[0] = analysis_event_default(s[0].a);
	if (s[1].sel.event)
		return 0; /* there is no other */
	name = s[0].a->events[x->event[0]].name;
	at = sets_event_find(s[1].a, name, "set B", err);
	if (at < 0)
		return at;
	x->event[1] = (size_t)at;
	return 0;
}

static int gather(struct diff *x, struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; i < 2 && r >= 0; i++)
		r = sets_gather(&x->sets.v[i], false, true, err);
	return r < 0 ? r : choose_event(x, err);
}

static int compare(struct diff *x, struct base_err *err)
{
	struct analysis *const a[2] = { x->sets.v[0].a, x->sets.v[1].a };
	struct analysis_rows *const rows[2] = { &x->sets.v[0].rows, &x->sets.v[1].rows };
	int r = analysis_diff_rows(a, rows, x->event, &x->d);

	return r < 0 ? base_fail_errno(err, r, "cannot compare") : 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

static bool shown(const struct analysis_diff_row *row)
{
	return !changed || row->change != 0 ||
	       (row->code != ANALYSIS_CODE_EQUAL && row->code != ANALYSIS_CODE_NONE &&
		row->code != ANALYSIS_CODE_UNKNOWN && row->row[0] && row->row[1]);
}

/* In percent of a set's samples; what rounds to nothing is 0, not -0. */
static void put_points(struct table *t, double share)
{
	double points = 100 * share;

	table_cell(t, "%+.2f", fabs(points) < 0.005 ? 0 : points);
}

static void put_shares(const struct diff *x, struct table *t, const uint64_t *count)
{
	for (int i = 0; i < 2; i++)
		report_cells(t, count[i], x->d.total[i]);
}

static void put_row(const struct diff *x, struct table *t, const struct analysis_diff_row *row)
{
	const char *image = analysis_diff_image(row), *label = analysis_diff_label(row);

	put_shares(x, t, row->count);
	put_points(t, row->difference);
	table_cell(t, "%.2f", 100 * row->error);
	if (row->change != 0)
		put_points(t, row->change);
	else
		table_cell(t, "0");
	table_cell(t, "%s", demangle_shown(label));
	table_cell(t, "%s", strcmp(image, label) == 0 ? "" : image);
	table_cell(t, "%s", code_text(row->code));
}

static void put_sum(const struct diff *x, struct table *t, const uint64_t *count, const char *name)
{
	put_shares(x, t, count);
	for (int i = 0; i < 3; i++)
		table_cell(t, "%s", "");
	table_cell(t, "%s", name);
	table_cell(t, "%s", "");
	table_cell(t, "%s", "");
}

/* Samples of the rows that are not shown; returns how many rows that are. */
static size_t hidden(const struct diff *x, uint64_t count[2])
{
	size_t nr = 0;

	count[0] = count[1] = 0;
	for (size_t i = 0; i < x->d.nr; i++) {
		if (shown(&x->d.v[i]))
			continue;
		nr++;
		for (int set = 0; set < 2; set++)
			count[set] += x->d.v[i].count[set];
	}
	return nr;
}

static void print_head(const struct diff *x)
{
	for (int i = 0; i < 2; i++) {
		const struct set *s = &x->sets.v[i];
		printf("set %c\n", 'A' + i);
		report_head(s->a, stdout);
		report_event(&s->a->events[x->event[i]], x->d.total[i], stdout);
		report_seconds_line(s->a, x->event[i], x->d.total[i], stdout);
		putchar('\n');
	}
	printf("Shares are percent of a set's samples, diff and change are B - A in points. A "
	       "change "
	       "is shown\nwhere diff is beyond %.2f standard errors, else 0: chance alone shows "
	       "one "
	       "in 1 %% of comparisons.\n\n",
	       x->d.bound);
}

static int print_text(const struct diff *x, struct base_err *err)
{
	struct table t = { .cut = true, .foot = 1 };
	uint64_t rest[2];
	int r;

	if (!no_header)
		print_head(x);
	table_column(&t, false, "A");
	table_column(&t, false, "%");
	table_column(&t, false, "B");
	table_column(&t, false, "%");
	table_column(&t, false, "diff");
	table_column(&t, false, "stderr");
	table_spare(&t);
	table_column(&t, false, "change");
	table_column(&t, true, "procedure");
	table_column(&t, true, "image");
	table_column(&t, true, "code");
	table_address(&t);
	for (size_t i = 0; i < x->d.nr; i++)
		if (shown(&x->d.v[i]))
			put_row(x, &t, &x->d.v[i]);
	if (hidden(x, rest))
		put_sum(x, &t, rest, "others");
	put_sum(x, &t, x->d.total, "total");
	r = table_print(&t, !no_header, stdout);
	table_release(&t);
	return r < 0 ? base_fail_errno(err, r, "cannot print the table") : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_object *json_share(double share)
{
	char text[32];

	snprintf(text, sizeof(text), "%.8f", share);
	return json_object_new_double_s(share, text);
}

static struct json_object *json_row(const struct analysis_diff_row *row)
{
	const struct analysis_row *any = row->row[0] ? row->row[0] : row->row[1];
	struct json_object *o = json_object_new_object(), *share = json_object_new_object();
	const char *code = code_text(row->code);

	report_json_procedure(o, any->procedure);
	json_object_object_add(o, "label",
			       report_json_text(demangle_shown(analysis_diff_label(row))));
	json_object_object_add(o, "image", report_json_text(analysis_diff_image(row)));
	report_json_build_ids(o, row->row);
	json_object_object_add(o, "kind",
			       json_object_new_string(profdb_kind_name(any->image->kind)));
	json_object_object_add(o, "samples", sets_json_counts(row->count));
	json_object_object_add(share, "a", json_share(row->share[0]));
	json_object_object_add(share, "b", json_share(row->share[1]));
	json_object_object_add(o, "share", share);
	json_object_object_add(o, "difference", json_share(row->difference));
	json_object_object_add(o, "standard_error", json_share(row->error));
	json_object_object_add(o, "change", json_share(row->change));
	json_object_object_add(o, "code", *code ? json_object_new_string(code) : NULL);
	return o;
}

static void json_set(struct json_object *root, const char *name, const struct diff *x, int i)
{
	struct json_object *o = report_json(NULL, x->sets.v[i].a, x->sets.v[i].rows.total);

	json_object_object_add(root, name, o);
	json_object_object_add(o, "event",
			       report_json_text(x->sets.v[i].a->events[x->event[i]].name));
	report_json_problems(o, x->sets.v[i].a);
}

static int print_json(const struct diff *x, struct base_err *err)
{
	struct json_object *root = json_object_new_object(), *rows = json_object_new_array();
	const struct analysis *a = x->sets.v[0].a;
	uint64_t rest[2];
	int r;

	hidden(x, rest);
	for (size_t i = 0; i < x->d.nr; i++)
		if (shown(&x->d.v[i]))
			json_object_array_add(rows, json_row(&x->d.v[i]));
	json_object_object_add(root, "schema", json_object_new_string("dcpidiff/1"));
	json_set(root, "a", x, 0);
	json_set(root, "b", x, 1);
	json_object_object_add(root, "event", report_json_text(a->events[x->event[0]].name));
	json_object_object_add(root, "bound", json_share(x->d.bound));
	json_object_object_add(root, "rows", rows);
	json_object_object_add(root, "others", sets_json_counts(rest));
	json_object_object_add(root, "total", sets_json_counts(x->d.total));
	r = report_json_put(root, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run_sets(struct diff *x, struct base_err *err)
{
	int r = gather(x, err);

	if (r >= 0)
		r = compare(x, err);
	if (r >= 0)
		r = now.sel.json ? print_json(x, err) : print_text(x, err);
	return r;
}

static int run_procedure(struct diff *x, struct base_err *err)
{
	struct diff_procedure p = { .what = x->sets.words[0],
				    .by_line = source_line,
				    .measures = measures,
				    .verbose = verbose,
				    .json = now.sel.json,
				    .no_header = no_header };
	int r = estimation_check(&estimation, &p.least, &p.outside, err);

	for (size_t i = 0; i < 2 && r >= 0; i++)
		r = sets_open(&x->sets.v[i], err);
	if (r >= 0)
		r = choose_event(x, err);
	return r < 0 ? r : diff_procedure(&p, x->sets.v, x->event, err);
}

static int run(struct diff *x, struct base_err *err)
{
	int r = x->sets.nr_words ? run_procedure(x, err) : run_sets(x, err), code;

	code = sets_problems(cmd.name, &x->sets);
	analysis_diff_release(&x->d);
	return r < 0 ? r : code;
}

static int dcpidiff_main(int argc, char **argv)
{
	struct base_err err = { 0 };
	struct diff x = { 0 };
	int r = parse(&x, argc, argv, &err);

	if (r == BASE_OPT_RUN)
		r = run(&x, &err);
	else if (r == BASE_OPT_DONE)
		r = BASE_EXIT_OK;
	sets_release(&x.sets);
	return report_end(&cmd, r, &err);
}

const struct tool dcpidiff_tool = { .cmd = &cmd, .main = dcpidiff_main };
