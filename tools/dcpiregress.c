/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpiregress: which routines got slower between two builds, or two weeks, for people and for CI.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fleet.h"
#include "regress_sets.h"
#include "report.h"
#include "tools.h"

/* A run that found a slow-down and a run that failed are to be told apart. */
enum { EXIT_SLOWER = 1, EXIT_ERROR = 2 };

static struct set now;
static struct base_opt_list files, maps;
static double rate = 1, least;
static bool set_option, every, insns, no_header;

static const struct base_opt options[] = {
	{ "set", BASE_OPT_FLAG, &set_option, NULL,
	  "Begin a set: the options and images behind it, up to the next -set, choose its samples. "
	  "What stands before the first -set holds for both. The first set is the base.",
	  0, 0 },
	{ "rate", BASE_OPT_DOUBLE, &rate, "PERCENT",
	  "The rate of false alarms: of runs in which nothing got slower, so many have one "
	  "(default: 1).",
	  1e-6, 50 },
	{ "least", BASE_OPT_DOUBLE, &least, "PERCENT",
	  "Slow-downs of a routine up to PERCENT are no alarm (default: 0).", 0, 10000 },
	{ "every", BASE_OPT_FLAG, &every, NULL, "Show all routines, also unchanged ones.", 0, 0 },
	{ "insns", BASE_OPT_FLAG, &insns, NULL,
	  "Compare each instruction too, of routines whose code is equal but for operands that "
	  "change when code moves. Routines and instructions have half of the rate each.",
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
	{ "json", BASE_OPT_FLAG, &now.sel.json, NULL,
	  "Print JSON with the same rows (dcpijson(5)).", 0, 0 },
	{ "no_header", BASE_OPT_FLAG, &no_header, NULL, "Leave out the lines above the table.", 0,
	  0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpiregress",
	.summary = "tell which routines got slower between two sets of samples",
	.operands = "-set [option …] [IMAGE …] -set [option …] [IMAGE …]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpiregress -set -db before worker -set -db after worker",
			  "Two builds of 'worker'; the exit status is 1 if a routine got slower." },
			{ "dcpiregress -least 2 -json -set -epoch 202611090000..202611152300 -set "
			  "-epoch 202611160000..202611222300",
			  "Two weeks of all hosts, for a program that reads the answer." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = -1,
};

struct report {
	struct sets sets;
	size_t event[2];
	struct regress_routines r;
	size_t *order; /* of routines, as they are printed */
};

static int parse(struct report *x, int argc, char **argv, struct base_err *err)
{
	int r = sets_parse(&cmd, &now, argc, argv, &x->sets, err);

	if (r != BASE_OPT_RUN)
		return r;
	if (x->sets.nr_words)
		return base_opt_usage(&cmd, "images belong behind a -set", err);
	if (x->sets.nr != 2)
		return base_opt_usage(&cmd,
				      x->sets.nr < 2 ? "two sets are needed"
						     : "only two sets can be compared",
				      err);
	for (size_t i = 0; i < 2; i++) {
		x->sets.v[i].sel.files = files;
		x->sets.v[i].sel.maps = maps;
		now.sel.json |= x->sets.v[i].sel.json;
	}
	return r;
}

/* The first set chooses where nobody does; the second must have it. */
static int choose_event(struct report *x, struct base_err *err)
{
	const struct set *s = x->sets.v;
	int at;

	for (int i = 0; i < 2; i++)
		if (!s[i].a->nr_events)
			return base_fail(err, -ENOENT, "no samples in set %c", 'A' + i);
	x->event[0] = analysis_event_default(s[0].a);
	if (s[1].sel.event && s[0].sel.event)
		return 0; /* there are no others */
	if (s[1].sel.event) {
		at = sets_event_find(s[0].a, s[1].sel.event, "set A", err);
		x->event[0] = at < 0 ? 0 : (size_t)at;
		return at < 0 ? at : 0;
	}
	at = sets_event_find(s[1].a, s[0].a->events[x->event[0]].name, "set B", err);
	x->event[1] = at < 0 ? 0 : (size_t)at;
	return at < 0 ? at : 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* In the order of the table; routines from UNCHANGED on are shown with -every alone. */
enum verdict { SLOWER, FASTER, NEW, VANISHED, UNCHANGED, TOO_FEW, NOT_COMPARED };

static const char *const words[] = {
	[SLOWER] = "slower",
	[FASTER] = "faster",
	[NEW] = "new",
	[VANISHED] = "vanished",
	[UNCHANGED] = "same",
	[TOO_FEW] = "too few",
	[NOT_COMPARED] = "not compared",
};

static enum verdict verdict_of_row(const struct regress_row *row)
{
	static const enum verdict verdicts[] = {
		[REGRESS_SAME] = UNCHANGED,	   [REGRESS_SLOWER] = SLOWER,
		[REGRESS_FASTER] = FASTER,	   [REGRESS_FEW] = TOO_FEW,
		[REGRESS_UNTESTED] = NOT_COMPARED,
	};

	return verdicts[row->verdict];
}

static enum verdict verdict_of(const struct report *x, size_t i)
{
	enum regress_state state = x->r.v[i].state;

	if (state == REGRESS_BOTH)
		return verdict_of_row(&x->r.test.v[i]);
	return state == REGRESS_NEW ? NEW : state == REGRESS_VANISHED ? VANISHED : NOT_COMPARED;
}

/* Unchanged ones and those that could not be compared are sorted by samples alone. */
static int group_of(const struct report *x, size_t i)
{
	enum verdict v = verdict_of(x, i);

	return v < UNCHANGED ? (int)v : UNCHANGED;
}

static int by_verdict(const void *pa, const void *pb, void *ctx)
{
	const struct report *x = ctx;
	size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
	const uint64_t *ca = x->r.diff.v[a].count, *cb = x->r.diff.v[b].count;
	int ga = group_of(x, a), gb = group_of(x, b);

	if (ga != gb)
		return ga - gb;
	if (ca[0] + ca[1] != cb[0] + cb[1])
		return ca[0] + ca[1] > cb[0] + cb[1] ? -1 : 1;
	return (a > b) - (a < b);
}

static bool has_row(const struct report *x, size_t i)
{
	return x->r.diff.v[i].row[0] || x->r.diff.v[i].row[1];
}

static bool shown(const struct report *x, size_t i)
{
	return has_row(x, i) && (every || verdict_of(x, i) < UNCHANGED);
}

static int sort(struct report *x, struct base_err *err)
{
	size_t nr = x->r.test.nr;

	x->order = calloc(nr + 1, sizeof(*x->order));
	if (!x->order)
		return base_fail_errno(err, -ENOMEM, "cannot compare");
	for (size_t i = 0; i < nr; i++)
		x->order[i] = i;
	qsort_r(x->order, nr, sizeof(*x->order), by_verdict, x);
	return 0;
}

static size_t nr_of(const struct regress *t, enum regress_verdict verdict)
{
	size_t nr = 0;

	for (size_t i = 0; i < t->nr; i++)
		nr += t->v[i].verdict == verdict;
	return nr;
}

static void hidden(const struct report *x, uint64_t count[2])
{
	count[0] = count[1] = 0;
	for (size_t i = 0; i < x->r.test.nr; i++)
		for (int set = 0; set < 2 && !shown(x, i); set++)
			count[set] += has_row(x, i) ? x->r.diff.v[i].count[set] : 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

static const double limits_at[] = { 1e3, 1e4, 1e5, 1e6 };
static const char *const limits_text[] = { "1,000", "10,000", "100,000", "1,000,000" };
enum { NR_LIMITS = sizeof(limits_at) / sizeof(limits_at[0]) };

static void print_head(const struct report *x)
{
	const struct regress *t = &x->r.test;

	for (int i = 0; i < 2; i++) {
		printf("set %c\n", 'A' + i);
		report_head(x->sets.v[i].a, stdout);
		report_event(&x->sets.v[i].a->events[x->event[i]], x->r.diff.total[i], stdout);
		putchar('\n');
	}
	printf("replicates %zu in A, %zu in B", t->nr_replicates[0], t->nr_replicates[1]);
	if (t->pooled_degrees > 0)
		printf("; between them a routine varies by %.2f %%, beside chance\n",
		       100 * sqrt(t->overdispersion));
	else
		puts(": how runs vary is not known, chance in sampling alone is weighed");
	printf("normalised by %.4g: B's samples for one of A's, the median of %zu routines\n",
	       t->total[1] / t->total[0], t->nr_sized);
	printf("tested     %zu routines; of runs in which nothing got slower %g %% have an alarm\n",
	       t->nr_tested, rate);
	for (int i = 0; i < NR_LIMITS; i++) {
		double limit = 100 * regress_limit(t, limits_at[i]);

		printf("limit at %s samples: %.*g %%\n", limits_text[i], limit < 100 ? 2 : 15,
		       limit < 100 ? limit : round(limit));
	}
	printf("slower %zu, faster %zu\n\n", nr_of(t, REGRESS_SLOWER), nr_of(t, REGRESS_FASTER));
}

static void put_percent(struct table *t, double part, bool sign)
{
	char text[32];

	snprintf(text, sizeof(text), "%s%.2f%%", sign && part >= 0 ? "+" : "", 100 * part);
	table_cell(t, "%s", isfinite(part) ? text : "");
}

static void put_row(const struct report *x, struct table *t, size_t i)
{
	const struct regress_routine *v = &x->r.v[i];
	const struct analysis_diff_row *d = &x->r.diff.v[i];
	const struct regress_row *row = &x->r.test.v[i];
	const char *image = analysis_diff_image(d), *label = analysis_diff_label(d);
	bool tested = !row->excluded;

	table_cell(t, "%" PRIu64, d->count[0]);
	table_cell(t, "%" PRIu64, d->count[1]);
	put_percent(t, tested ? row->ratio - 1 : INFINITY, true);
	put_percent(t, tested ? row->limit : INFINITY, false);
	if (tested)
		table_cell(t, "%.1e", row->p[row->ratio < 1]);
	else
		table_cell(t, "%s", "");
	table_cell(t, "%s", words[verdict_of(x, i)]);
	if (v->renamed)
		table_cell(t, "%s (now %s)", demangle_shown(label), v->renamed);
	else
		table_cell(t, "%s", demangle_shown(label));
	table_cell(t, "%s", strcmp(image, label) == 0 ? "" : image);
}

static void put_sum(struct table *t, const uint64_t count[2], const char *name)
{
	table_cell(t, "%" PRIu64, count[0]);
	table_cell(t, "%" PRIu64, count[1]);
	for (int i = 0; i < 4; i++)
		table_cell(t, "%s", "");
	table_cell(t, "%s", name);
	table_cell(t, "%s", "");
}

static bool is_changed(const struct regress_row *row)
{
	return verdict_of_row(row) < UNCHANGED;
}

static void put_insn(const struct report *x, struct table *t, size_t i)
{
	const struct regress_row *row = &x->r.insns.test.v[i];
	const struct regress_insn *insn = &x->r.insns.v[i];
	const struct analysis_diff_row *d = &x->r.diff.v[insn->routine];

	table_cell(t, "%.0f", row->sum[0]);
	table_cell(t, "%.0f", row->sum[1]);
	put_percent(t, row->ratio - 1, true);
	put_percent(t, row->limit, false);
	table_cell(t, "%.1e", row->p[row->ratio < 1]);
	table_cell(t, "%s", words[verdict_of_row(row)]);
	table_cell(t, "%s+0x%" PRIx64, demangle_shown(analysis_diff_label(d)), insn->off);
	table_cell(t, "%s", analysis_diff_image(d));
}

static const char *const heads[] = { "A", "B", "change", "limit", "chance" };

static int print_insns(const struct report *x)
{
	const struct regress *in = &x->r.insns.test;
	struct table t = { .cut = true };
	int r;

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		table_column(&t, false, heads[i]);
	table_column(&t, true, "verdict");
	table_column(&t, true, "instruction");
	table_column(&t, true, "image");
	for (size_t i = 0; i < in->nr; i++)
		if (is_changed(&in->v[i]))
			put_insn(x, &t, i);
	printf("\n%zu instructions tested, slower %zu, faster %zu\n", in->nr_tested,
	       nr_of(in, REGRESS_SLOWER), nr_of(in, REGRESS_FASTER));
	r = table_print(&t, !no_header, stdout);
	table_release(&t);
	return r;
}

static int print_text(const struct report *x, struct base_err *err)
{
	struct table t = { .cut = true, .foot = 2 };
	uint64_t rest[2];
	int r;

	if (!no_header)
		print_head(x);
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		table_column(&t, false, heads[i]);
	table_column(&t, true, "verdict");
	table_column(&t, true, "procedure");
	table_column(&t, true, "image");
	for (size_t i = 0; i < x->r.test.nr; i++)
		if (shown(x, x->order[i]))
			put_row(x, &t, x->order[i]);
	hidden(x, rest);
	put_sum(&t, rest, "others");
	put_sum(&t, x->r.diff.total, "total");
	r = table_print(&t, !no_header, stdout);
	table_release(&t);
	if (r >= 0 && insns)
		r = print_insns(x);
	return r < 0 ? base_fail_errno(err, r, "cannot print the table") : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_object *json_finite(double value, bool known)
{
	return known && isfinite(value) ? report_json_number(value) : NULL;
}

static struct json_object *json_row(const struct report *x, size_t i)
{
	const struct regress_routine *v = &x->r.v[i];
	const struct analysis_diff_row *d = &x->r.diff.v[i];
	const struct regress_row *row = &x->r.test.v[i];
	const struct analysis_row *any = d->row[0] ? d->row[0] : d->row[1];
	struct json_object *o = json_object_new_object();
	bool tested = !row->excluded;

	report_json_procedure(o, any->procedure);
	json_object_object_add(o, "label",
			       report_json_text(demangle_shown(analysis_diff_label(d))));
	json_object_object_add(o, "renamed", report_json_text(v->renamed));
	json_object_object_add(o, "image", report_json_text(analysis_diff_image(d)));
	report_json_build_ids(o, d->row);
	json_object_object_add(o, "samples", sets_json_counts(d->count));
	json_object_object_add(o, "verdict", json_object_new_string(words[verdict_of(x, i)]));
	json_object_object_add(o, "change", json_finite(row->ratio - 1, tested));
	json_object_object_add(o, "limit", json_finite(row->limit, tested));
	json_object_object_add(o, "chance_slower", json_finite(row->p[0], tested));
	json_object_object_add(o, "chance_faster", json_finite(row->p[1], tested));
	return o;
}

static void json_set(struct json_object *root, const char *name, const struct report *x, int i)
{
	const struct set *s = &x->sets.v[i];
	struct json_object *o = report_json(NULL, s->a, s->rows.total);

	json_object_object_add(root, name, o);
	json_object_object_add(o, "event", report_json_text(s->a->events[x->event[i]].name));
	json_object_object_add(o, "replicates", json_object_new_uint64(x->r.test.nr_replicates[i]));
	report_json_problems(o, s->a);
}

static struct json_object *json_limits(const struct regress *t)
{
	struct json_object *list = json_object_new_array();

	for (int i = 0; i < NR_LIMITS; i++) {
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "samples", report_json_number(limits_at[i]));
		json_object_object_add(o, "limit",
				       json_finite(regress_limit(t, limits_at[i]), true));
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *json_insn(const struct report *x, size_t i)
{
	const struct regress_row *row = &x->r.insns.test.v[i];
	const struct regress_insn *insn = &x->r.insns.v[i];
	const struct analysis_diff_row *d = &x->r.diff.v[insn->routine];
	struct json_object *o = json_object_new_object();

	report_json_procedure(o, d->row[0]->procedure);
	json_object_object_add(o, "image", report_json_text(analysis_diff_image(d)));
	json_object_object_add(o, "offset", json_object_new_uint64(insn->off));
	json_object_object_add(
		o, "samples",
		sets_json_counts((uint64_t[2]){ (uint64_t)row->sum[0], (uint64_t)row->sum[1] }));
	json_object_object_add(o, "verdict", json_object_new_string(words[verdict_of_row(row)]));
	json_object_object_add(o, "change", json_finite(row->ratio - 1, true));
	json_object_object_add(o, "limit", json_finite(row->limit, true));
	json_object_object_add(o, "chance_slower", json_finite(row->p[0], true));
	json_object_object_add(o, "chance_faster", json_finite(row->p[1], true));
	return o;
}

static struct json_object *json_insns(const struct report *x)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < x->r.insns.test.nr; i++)
		if (is_changed(&x->r.insns.test.v[i]))
			json_object_array_add(list, json_insn(x, i));
	return list;
}

static int print_json(const struct report *x, struct base_err *err)
{
	struct json_object *root = json_object_new_object(), *rows = json_object_new_array();
	const struct regress *t = &x->r.test;
	uint64_t rest[2];
	int r;

	hidden(x, rest);
	for (size_t i = 0; i < t->nr; i++)
		if (shown(x, x->order[i]))
			json_object_array_add(rows, json_row(x, x->order[i]));
	json_object_object_add(root, "schema", json_object_new_string("dcpiregress/1"));
	json_set(root, "a", x, 0);
	json_set(root, "b", x, 1);
	json_object_object_add(root, "rate", report_json_number(rate / 100));
	json_object_object_add(root, "least", report_json_number(t->least));
	json_object_object_add(root, "tested", json_object_new_uint64(t->nr_tested));
	json_object_object_add(root, "scale", report_json_number(t->total[1] / t->total[0]));
	json_object_object_add(root, "overdispersion",
			       json_finite(t->overdispersion, t->pooled_degrees > 0));
	json_object_object_add(root, "limits", json_limits(t));
	json_object_object_add(root, "slower", json_object_new_uint64(nr_of(t, REGRESS_SLOWER)));
	json_object_object_add(root, "faster", json_object_new_uint64(nr_of(t, REGRESS_FASTER)));
	json_object_object_add(root, "rows", rows);
	json_object_object_add(root, "instructions", insns ? json_insns(x) : NULL);
	json_object_object_add(root, "others", sets_json_counts(rest));
	json_object_object_add(root, "total", sets_json_counts(x->r.diff.total));
	r = report_json_put(root, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int compare(struct report *x, struct base_err *err)
{
	enum fleet_detail detail = insns ? FLEET_INSN_REPLICATES : FLEET_REPLICATES;
	int r = 0;

	for (size_t i = 0; i < 2 && r >= 0; i++) {
		struct set *s = &x->sets.v[i];

		r = fleet_use(&s->sel, detail, s->nr_what, s->what, err);
		if (r >= 0)
			r = sets_gather(s, false, true, err);
	}
	if (r >= 0)
		r = choose_event(x, err);
	x->r.with_insns = insns;
	x->r.test.rate = rate / 100 / (insns ? 2 : 1);
	x->r.test.least = least / 100;
	if (r >= 0)
		r = regress_routines_make(x->sets.v, x->event, &x->r, err);
	return r < 0 ? r : sort(x, err);
}

static int run(struct report *x, struct base_err *err)
{
	int r = compare(x, err), code;
	size_t slower;

	if (r >= 0)
		r = now.sel.json ? print_json(x, err) : print_text(x, err);
	code = sets_problems(cmd.name, &x->sets);
	slower = nr_of(&x->r.test, REGRESS_SLOWER) + nr_of(&x->r.insns.test, REGRESS_SLOWER);
	if (r >= 0)
		r = code != BASE_EXIT_OK ? EXIT_ERROR : slower ? EXIT_SLOWER : BASE_EXIT_OK;
	regress_routines_release(&x->r);
	free(x->order);
	return r;
}

static int dcpiregress_main(int argc, char **argv)
{
	struct base_err err = { 0 };
	struct report x = { 0 };
	int r = parse(&x, argc, argv, &err);

	if (r == BASE_OPT_RUN)
		r = run(&x, &err);
	else if (r == BASE_OPT_DONE)
		r = BASE_EXIT_OK;
	sets_release(&x.sets);
	return report_end(&cmd, r, &err) == r ? r : EXIT_ERROR;
}

const struct tool dcpiregress_tool = { .cmd = &cmd, .main = dcpiregress_main, .failed = 2 };
