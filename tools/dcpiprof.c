/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpiprof: where the time went, by procedure or by image. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "by.h"
#include "choose.h"
#include "fleet.h"
#include "profileme.h"
#include "progress.h"
#include "report.h"
#include "rows.h"
#include "tools.h"
#include "callpaths.h"

/* Adds up, for each row of a report, the samples on call paths with it. */

struct inclusive {
	const struct callpath_tree *t;
	struct analysis_rows *rows;
	uint32_t *class; /* by procedure: its row, or UINT32_MAX */
	uint64_t *total; /* by row, of one event */
};

static const char *facility_of(const struct analysis_row *row)
{
	return row->facility ? row->facility->name : NULL;
}

/* ---- the rows of procedures ------------------------------------------------------------------ */

static void class_procedures(struct inclusive *x)
{
	for (size_t i = 0; i < x->rows->nr; i++) {
		const struct analysis_row *row = &x->rows->v[i];
		int64_t p = callpath_procedure_find(x->t, row->image, facility_of(row),
						    row->procedure, row->vaddr);

		if (p >= 0)
			x->class[p] = (uint32_t)i;
	}
}

static bool is_sampled(const struct callpath_procedure *p, size_t nr_events)
{
	while (nr_events && !p->flat[nr_events - 1])
		nr_events--;
	return nr_events;
}

/* Procedures without samples of their own; those have rows. */
static int add_callers(struct inclusive *x, struct analysis *a,
		       bool (*chosen)(void *ctx, struct analysis_image *ai), void *ctx)
{
	int r = 0;

	for (size_t i = CALLPATH_NR_ENDS; i < x->t->nr_procedures && r >= 0; i++) {
		const struct callpath_procedure *p = &x->t->procedures[i];
		const struct image_symbol s = { p->name, p->vaddr, p->len };

		if (is_sampled(p, a->nr_events) || p->kind == CALLPATH_INLINED ||
		    !chosen(ctx, p->image))
			continue;
		r = analysis_rows_add_unsampled(x->rows, a, p->image,
						p->kind == CALLPATH_PROCEDURE ? &s : NULL);
	}
	return r;
}

/* ---- the rows of images ---------------------------------------------------------------------- */

static bool is_of(const struct callpath_procedure *p, const struct analysis_row *row)
{
	const char *facility = facility_of(row);

	if (facility)
		return p->group->facility && strcmp(p->group->facility, facility) == 0;
	return p->image == row->image;
}

static void class_images(struct inclusive *x)
{
	for (size_t i = CALLPATH_NR_ENDS; i < x->t->nr_procedures; i++)
		for (size_t k = 0; k < x->rows->nr; k++)
			if (is_of(&x->t->procedures[i], &x->rows->v[k]))
				x->class[i] = (uint32_t)k;
}

/* ---- the sums -------------------------------------------------------------------------------- */

static int make_totals(struct inclusive *x, size_t nr_events)
{
	int r = 0;

	for (size_t i = 0; i < x->rows->nr && r >= 0; i++) {
		x->rows->v[i].total = calloc(nr_events + 1, sizeof(*x->rows->v[i].total));
		r = x->rows->v[i].total ? 0 : -ENOMEM;
	}
	for (size_t e = 0; e < nr_events && r >= 0; e++) {
		r = callpath_totals(x->t, e, x->class, x->rows->nr, x->total);
		for (size_t i = 0; i < x->rows->nr && r >= 0; i++)
			x->rows->v[i].total[e] = x->total[i];
	}
	return r;
}

/*
 * Sets "total" of all rows, which are procedures, or with @by_image images. Procedures that only
 * called others get rows too where @chosen has their image. 0 or negative with @err.
 */
static int inclusive_add(const struct callpaths *paths, struct analysis_rows *rows, bool by_image,
			 bool (*chosen)(void *ctx, struct analysis_image *ai), void *ctx,
			 struct base_err *err)
{
	struct inclusive x = { .t = paths->tree, .rows = rows };
	int r = by_image ? 0 : add_callers(&x, paths->a, chosen, ctx);

	x.class = malloc(x.t->nr_procedures * sizeof(*x.class));
	x.total = calloc(rows->nr + 1, sizeof(*x.total));
	if (!x.class || !x.total)
		r = -ENOMEM;
	if (r >= 0) {
		memset(x.class, 0xff, x.t->nr_procedures * sizeof(*x.class));
		if (by_image)
			class_images(&x);
		else
			class_procedures(&x);
		r = make_totals(&x, paths->a->nr_events);
	}
	free(x.class);
	free(x.total);
	return r < 0 ? base_fail_errno(err, r, "cannot sum call paths") : 0;
}

static struct select sel;
static const char *sort_event;
static double keep = 100;
static bool by_image, inlined, no_header, csl, with_total, no_idle;
static const char *by, *metrics;

static const struct base_opt options[] = {
	SELECT_OPTIONS(sel),
	SELECT_OPTION_CALLER(sel),
	SELECT_OPTION_UNCHECKED(sel),
	{ "i", BASE_OPT_FLAG, &by_image, NULL, "One line per image instead of procedure.", 0, 0 },
	{ "inlined", BASE_OPT_FLAG, &inlined, NULL,
	  "A line of its own for each routine that a compiler put into a procedure: 'main (inlined "
	  "f)'.",
	  0, 0 },
	{ "by", BASE_OPT_STRING, &by, "KEY",
	  "One line per comm, exe, pid, uid, cgroup, unit, container, thread, label or host: whose "
	  "the samples are; or per version: of which build of an image. Operands choose images.",
	  0, 0 },
	{ "no_idle", BASE_OPT_FLAG, &no_idle, NULL,
	  "Leave out the idle task, also of percentages: shares are of the time that CPUs worked.",
	  0, 0 },
	{ "pids", BASE_OPT_FLAG, &sel.apart, NULL,
	  "Keep processes apart: a line for each pseudo-image's routine, and for each process of a "
	  "program that 'dcpid -bypid' kept apart.",
	  0, 0 },
	{ "s", BASE_OPT_STRING, &sort_event, "EVENT",
	  "Sort by this event's samples (default: cycles, else a clock, else the first); 'total': "
	  "by "
	  "what -total adds.",
	  0, 0 },
	{ "total", BASE_OPT_FLAG, &with_total, NULL,
	  "Also the samples on whose call path the procedure or image is, once each, and so what "
	  "only called others (dcpid -callpaths).",
	  0, 0 },
	{ "keep", BASE_OPT_DOUBLE, &keep, "PERCENT",
	  "Only the first lines that make up PERCENT of the samples; the rest is one line "
	  "'others'.",
	  0, 100 },
	PROFILEME_OPTION(metrics, "Columns of instruction samples too"),
	TERMINAL_OPTION_ALL,
	{ "csl", BASE_OPT_FLAG, &csl, NULL,
	  "Print comma-separated values for spreadsheets: the table alone, its heads first.", 0,
	  0 },
	{ "no_header", BASE_OPT_FLAG, &no_header, NULL, "Leave out the lines above the table.", 0,
	  0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpiprof",
	.summary = "list procedures or images by their samples",
	.operands = "[IMAGE …]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpiprof -db /var/lib/dcpi -keep 90",
			  "The procedures of the whole system, code made at run time included, "
			  "that "
			  "took 90 % of the time." },
			{ "dcpiprof -i", "The images of $DCPIDB." },
			{ "dcpiprof -inlined a.out",
			  "What the large procedures of a program are made of." },
			{ "dcpiprof -by comm libc.so.6",
			  "The programs that spent time in an image." },
			{ "dcpiprof -unit cron.service -keep 90",
			  "The procedures of a service and its children, kernel included." },
			{ "dcpiprof -total -s total -keep 90",
			  "The procedures with most samples in what they called." },
			{ "dcpiprof -pm load^dcmiss/load,mispredict/branch",
			  "How many of their loads missed the cache, and of their branches were "
			  "predicted wrongly, where the hardware told." },
			{ "dcpiprof hello",
			  "The procedures of an image, or of all pseudo-images of the facility "
			  "'hello'." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = -1,
};

struct profile {
	struct analysis *a;
	struct analysis_rows rows;
	struct callpaths paths;		/* with -total */
	struct isample_columns columns; /* with -pm */
	bool *used;			/* indexed by operand: it names an image */
	int nr_operands;
	char **operands;
	size_t event;	/* sorted by */
	bool ticks;	/* that tells time: there is a column of seconds */
	bool by_total;	/* and by the totals of that event */
	size_t nr_kept; /* rows before "others" */
};

static bool has_samples(const struct analysis *a, const struct analysis_image *ai)
{
	for (size_t i = 0; i < a->nr_events; i++)
		if (ai->count[i])
			return true;
	return false;
}

/* Is the image asked for? All are without operands. */
static bool wanted(void *ctx, struct analysis_image *ai)
{
	struct profile *p = ctx;

	return !(no_idle && by_is_idle(ai)) &&
	       choose_names(p->a, ai, p->nr_operands, p->operands, p->used);
}

static int add_totals(struct profile *p, struct base_err *err)
{
	const struct callpath_how how = { .fold = true, .check = !sel.unchecked };
	int r;

	p->paths.a = p->a;
	p->paths.event = p->event;
	r = callpaths_read(&sel, &how, &p->paths, err);
	return r < 0 ? r : inclusive_add(&p->paths, &p->rows, by_image, wanted, p, err);
}

static int collect(struct profile *p, struct base_err *err)
{
	int r = 0;

	p->rows.apart = sel.apart;
	p->rows.inlined = inlined;
	p->rows.columns = p->columns.nr ? &p->columns : NULL;
	for (size_t i = 0; i < p->a->nr_images && r >= 0; i++) {
		struct analysis_image *ai = p->a->images[i];

		progress_show("naming procedures", i, p->a->nr_images);
		if (!has_samples(p->a, ai) || !wanted(p, ai))
			continue;
		if (by_image)
			r = analysis_rows_add_image(&p->rows, p->a, ai);
		else
			r = analysis_rows_add_procedures(&p->rows, p->a, ai);
	}
	progress_show("naming procedures", 1, 1);
	if (r < 0)
		return base_fail_errno(err, r, "cannot sum samples");
	if (with_total)
		r = add_totals(p, err);
	for (int i = 0; i < p->nr_operands && r >= 0; i++)
		if (!p->used[i])
			r = analysis_image_unknown(p->a, p->operands[i], err);
	return r;
}

/* Just enough rows that their sum reaches the share that is to be kept. */
static void cut(struct profile *p)
{
	uint64_t total = p->rows.total ? p->rows.total[p->event] : 0, sum = 0;

	p->nr_kept = p->rows.nr;
	if (keep >= 100)
		return;
	for (p->nr_kept = 0; p->nr_kept < p->rows.nr; p->nr_kept++) {
		if ((double)sum >= keep / 100 * (double)total)
			break;
		sum += p->rows.v[p->nr_kept].count[p->event];
	}
}

/* The row "others" is exactly the difference between the total and the rows above it. */
static void others(const struct profile *p, uint64_t *count)
{
	for (size_t e = 0; e < p->a->nr_events; e++) {
		count[e] = p->rows.total[e];
		for (size_t i = 0; i < p->nr_kept; i++)
			count[e] -= p->rows.v[i].count[e];
	}
}

static void put_total(const struct profile *p, struct table *t, const uint64_t *total)
{
	static const uint64_t none[ANALYSIS_NR_EVENTS];

	if (with_total)
		report_cells(t, (total ? total : none)[p->event],
			     p->paths.tree->nodes.total[p->event]);
}

/* Samples, percent, cumulative percent, those of call paths, then the other events. @sum: of this
 * line and all above. */
static void put_counts(const struct profile *p, struct table *t, const uint64_t *count,
		       const uint64_t *inclusive, const uint64_t *sum, double seconds)
{
	const uint64_t *total = p->rows.total;

	report_cells(t, count[p->event], total[p->event]);
	if (sum && total[p->event])
		table_cell(t, "%.2f%%", 100.0 * (double)*sum / (double)total[p->event]);
	else
		table_cell(t, "%s", "");
	if (p->ticks && count[p->event])
		table_cell(t, "%.2f", seconds);
	else if (p->ticks)
		table_cell(t, "%s", "");
	put_total(p, t, inclusive);
	for (size_t e = 0; e < p->a->nr_events; e++)
		if (e != p->event)
			report_cells(t, count[e], total[e]);
}

/* The columns of instruction samples, of the rows from @from up to @to together. */
static void put_told(const struct profile *p, struct table *t, size_t from, size_t to)
{
	struct told_values v = { 0 };

	for (size_t i = from; i < to && p->columns.nr; i++)
		if (p->rows.v[i].told)
			told_join(&p->columns, p->rows.v[i].told, &v);
	profileme_cells(&p->columns, &v, t);
}

static void put_names(struct table *t, const char *procedure, const char *image)
{
	if (!by_image)
		table_cell(t, "%s", procedure);
	table_cell(t, "%s", by_image && !*image ? procedure : image);
}

static void put_heads(const struct profile *p, struct table *t)
{
	const struct analysis *a = p->a;

	table_column(t, false, a->events[p->event].name);
	table_column(t, false, "%");
	table_column(t, false, "cum%");
	if (p->ticks) {
		table_column(t, false, "seconds");
		table_spare(t);
	}
	if (with_total) {
		table_column(t, false, "total");
		table_column(t, false, "%");
	}
	for (size_t e = 0; e < a->nr_events; e++) {
		if (e == p->event)
			continue;
		table_column(t, false, a->events[e].name);
		table_column(t, false, "%");
	}
	profileme_heads(&p->columns, t);
	if (!by_image)
		table_column(t, true, "procedure");
	table_column(t, true, "image");
}

static const char *image_of(const struct analysis_row *row)
{
	return row->image->kind == PROFDB_NAMED ? "" : analysis_row_image(row);
}

/* The procedure as it is shown, and what is inlined there. The caller frees it. */
static char *label_of(const struct analysis_row *row)
{
	struct base_buf text = { 0 };
	int r = base_buf_printf(&text, "%s", demangle_shown(analysis_row_label(row)));

	if (r >= 0 && row->inlined)
		r = base_buf_printf(&text, ANALYSIS_ROW_INLINED "%s)",
				    demangle_shown(row->inlined));
	if (r < 0)
		base_buf_release(&text);
	return (char *)text.data;
}

static double seconds_of(const struct profile *p, const struct analysis_row *row)
{
	return (double)row->count[p->event] * report_seconds(p->a, row->image, p->event);
}

/* Adds up the rows from @from on. */
static double seconds_from(const struct profile *p, size_t from)
{
	double sum = 0;

	for (size_t i = from; i < p->rows.nr; i++)
		sum += seconds_of(p, &p->rows.v[i]);
	return sum;
}

static void put_procedure(struct table *t, const struct analysis_row *row)
{
	char *name = label_of(row);

	put_names(t, name ? name : "?", image_of(row));
	free(name);
}

static void put_rows(const struct profile *p, struct table *t)
{
	uint64_t rest[ANALYSIS_NR_EVENTS] = { 0 }, sum = 0;

	for (size_t i = 0; i < p->nr_kept; i++) {
		const struct analysis_row *row = &p->rows.v[i];

		sum += row->count[p->event];
		put_counts(p, t, row->count, row->total, &sum, seconds_of(p, row));
		put_told(p, t, i, i + 1);
		put_procedure(t, row);
	}
	if (p->nr_kept < p->rows.nr) {
		others(p, rest);
		sum += rest[p->event];
		put_counts(p, t, rest, NULL, &sum, seconds_from(p, p->nr_kept));
		put_told(p, t, p->nr_kept, p->rows.nr);
		put_names(t, "others", "");
	}
	put_counts(p, t, p->rows.total, NULL, NULL, seconds_from(p, 0));
	put_told(p, t, 0, p->rows.nr);
	put_names(t, "total", "");
}

static int print_text(const struct profile *p, struct base_err *err)
{
	bool heads = !no_header && !csl;
	struct table t = { .cut = keep >= 100, .foot = 1 };
	int r = 0;

	if (heads) {
		report_head(p->a, stdout);
		report_events(p->a, p->rows.total, stdout);
		if (p->ticks)
			report_idle_head(p->a, stdout);
		if (with_total && p->a->nr_events)
			callpaths_print(&p->paths, stdout);
	}
	if (p->rows.nr) {
		if (heads)
			putchar('\n');
		put_heads(p, &t);
		put_rows(p, &t);
		r = csl ? table_print_csl(&t, !no_header, stdout) : table_print(&t, heads, stdout);
	}
	table_release(&t);
	return r < 0 ? base_fail_errno(err, r, "cannot print the table") : 0;
}

static struct json_object *json_inlined(const struct analysis_row *row)
{
	return report_json_text(row->inlined ? demangle_shown(row->inlined) : NULL);
}

static struct json_object *json_told(const struct profile *p, const struct analysis_row *row)
{
	static const struct told_values none;

	return profileme_json(&p->columns, row->told ? row->told : &none);
}

static struct json_object *json_row(const struct profile *p, const struct analysis_row *row)
{
	struct json_object *o = json_object_new_object();
	const struct analysis_image *ai = row->image;
	const struct base_id *id = profdb_profile_image(ai->profile);
	/* Where several images, or places, are in the row, it has no address or build-id. */
	bool one = row->nr_images == 1, placed = one && row->procedure && !row->several;
	char text[BASE_ID_TEXT_LEN];

	if (!by_image) {
		char *label = label_of(row);

		report_json_procedure(o, row->procedure);
		if (inlined)
			json_object_object_add(o, "inlined", json_inlined(row));
		json_object_object_add(o, "label", report_json_text(label));
		free(label);
		json_object_object_add(o, "address", placed ? report_json_hex(row->vaddr) : NULL);
	}
	json_object_object_add(o, "image", report_json_text(analysis_row_image(row)));
	json_object_object_add(o, "kind", json_object_new_string(profdb_kind_name(ai->kind)));
	json_object_object_add(o, "build_id",
			       one && id->len ? json_object_new_string(base_id_text(id, text))
					      : NULL);
	json_object_object_add(o, "path",
			       report_json_text(one ? profdb_profile_path(ai->profile, 0) : NULL));
	json_object_object_add(o, "facility", report_json_text(ai->facility));
	json_object_object_add(o, "images", json_object_new_uint64(row->nr_images));
	json_object_object_add(o, "processes",
			       row->nr_processes ? json_object_new_uint64(row->nr_processes)
						 : NULL);
	json_object_object_add(o, "samples", report_json_counts(p->a, row->count));
	json_object_object_add(o, "seconds",
			       p->ticks ? report_json_number(seconds_of(p, row)) : NULL);
	if (with_total)
		json_object_object_add(o, "total", report_json_counts(p->a, row->total));
	if (p->columns.nr)
		json_object_object_add(o, "instruction_samples", json_told(p, row));
	return o;
}

static int print_json(const struct profile *p, struct base_err *err)
{
	struct json_object *root = report_json("dcpiprof/2", p->a, p->rows.total);
	struct json_object *rows = json_object_new_array();
	uint64_t rest[ANALYSIS_NR_EVENTS] = { 0 };
	int r;

	for (size_t i = 0; i < p->nr_kept; i++)
		json_object_array_add(rows, json_row(p, &p->rows.v[i]));
	if (p->rows.nr)
		others(p, rest);
	if (with_total)
		callpaths_json(&p->paths, root);
	json_object_object_add(root, "by",
			       json_object_new_string(by_image ? "image" : "procedure"));
	if (p->ticks)
		report_idle_json(p->a, root);
	json_object_object_add(root, "sorted_by",
			       p->a->nr_events ? json_object_new_string(p->a->events[p->event].name)
					       : NULL);
	json_object_object_add(root, "rows", rows);
	json_object_object_add(root, "others", report_json_counts(p->a, rest));
	json_object_object_add(root, "total", report_json_counts(p->a, p->rows.total));
	r = report_json_print(root, p->a, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

static int choose_event(struct profile *p, struct base_err *err)
{
	int event = 0;

	p->by_total = with_total && sort_event && strcmp(sort_event, "total") == 0;
	if (!sort_event || p->by_total)
		p->event = analysis_event_default(p->a);
	else if ((event = analysis_event_find(p->a, sort_event, err)) >= 0)
		p->event = (size_t)event;
	return event;
}

static int print(struct profile *p, struct base_err *err)
{
	p->ticks = report_seconds(p->a, NULL, p->event) > 0;
	analysis_rows_sort(&p->rows, p->event, p->by_total);
	cut(p);
	return sel.json ? print_json(p, err) : print_text(p, err);
}

static int check(struct base_err *err)
{
	if (csl && sel.json)
		return base_fail(err, -DCPI_EUSAGE, "-csl and -json exclude each other");
	if (with_total && sel.callers.nr)
		return base_fail(err, -DCPI_EUSAGE, "-total and -caller exclude each other");
	if (inlined && (by_image || by || with_total))
		return base_fail(err, -DCPI_EUSAGE, "-inlined and -%s exclude each other",
				 by_image ? "i"
				 : by	  ? "by"
					  : "total");
	if (by && (by_image || with_total || sel.callers.nr || sel.apart || metrics))
		return base_fail(err, -DCPI_EUSAGE, "-by and -%s exclude each other",
				 by_image	  ? "i"
				 : metrics	  ? "pm"
				 : with_total	  ? "total"
				 : sel.callers.nr ? "caller"
						  : "pids");
	return 0;
}

static int run_by(int nr, char **what, struct base_err *err)
{
	const struct by_options o = { by, sort_event, keep, no_header, csl, no_idle };

	sel.sums = !select_workload(&sel);
	return by_report(cmd.name, &sel, &o, nr, what, err);
}

/* -total needs the call paths of single machines; -inlined and -pids need all offsets. */
static enum fleet_detail detail(void)
{
	return with_total ? FLEET_FILES : inlined || sel.apart ? FLEET_OFFSET : FLEET_ROUTINE;
}

static int run(int nr, char **what, struct base_err *err)
{
	struct profile p = { .nr_operands = nr, .operands = what };
	int code = BASE_EXIT_OK, r = check(err);

	if (r < 0 || by)
		return r < 0 ? r : run_by(nr, what, err);
	r = profileme_begin(&sel, metrics, &p.columns, err);
	if (r >= 0)
		r = fleet_use(&sel, detail(), nr, what, err);
	if (r < 0)
		return r;
	p.used = calloc((size_t)nr + 1, sizeof(*p.used));
	sel.sums = by_image && !with_total && !metrics && !select_workload(&sel);
	sel.whole = with_total || metrics;
	r = p.used ? report_open(&sel, &p.a, err) : -ENOMEM;
	if (r >= 0)
		r = choose_event(&p, err);
	if (r >= 0)
		r = collect(&p, err);
	if (r >= 0)
		r = print(&p, err);
	if (p.a)
		code = report_problems(cmd.name, p.a, stderr);
	analysis_rows_release(&p.rows);
	callpath_tree_free(p.paths.tree);
	analysis_close(p.a);
	free(p.used);
	return r < 0 ? r : code;
}

static int dcpiprof_main(int argc, char **argv)
{
	return report_main(&cmd, &sel, run, argc, argv);
}

const struct tool dcpiprof_tool = { .cmd = &cmd, .main = dcpiprof_main };
