/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpitopcounts: the instructions, or source lines, with most samples, whatever they are in. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "list.h"
#include "profileme.h"
#include "report.h"
#include "tools.h"
#include "top.h"

static struct select sel;
static const char *sort_event, *metrics;
static int64_t number = 100;
static bool by_line, no_header;

static const struct base_opt options[] = {
	SELECT_OPTIONS(sel),
	SELECT_OPTION_CALLER(sel),
	SELECT_OPTION_UNCHECKED(sel),
	{ "n", BASE_OPT_INT, &number, "N", "How many instructions (default: 100).", 1, 1000000 },
	{ "lines", BASE_OPT_FLAG, &by_line, NULL, "Source lines instead of instructions.", 0, 0 },
	SELECT_OPTION_SOURCE(image_source_path),
	{ "s", BASE_OPT_STRING, &sort_event, "EVENT",
	  "Sort by this event's samples (default: cycles, else a clock, else the first).", 0, 0 },
	PROFILEME_OPTION(metrics, "Columns of instruction samples too"),
	{ "no_header", BASE_OPT_FLAG, &no_header, NULL, "Leave out the lines above the table.", 0,
	  0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpitopcounts",
	.summary = "list the instructions with most samples",
	.operands = "[IMAGE …]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpitopcounts -n 20", "The hottest instructions of the whole system." },
			{ "dcpitopcounts -lines a.out", "The hottest source lines of a program." },
			{ "dcpitopcounts -s cache-misses hello",
			  "Where the routines that the facility 'hello' made miss the cache "
			  "most." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = -1,
};

struct counts {
	struct analysis *a;
	struct analysis_image **images; /* the images that the user selected */
	size_t nr_images;
	size_t event;	/* sorted by */
	double seconds; /* of a sample of that, on average; 0: it is no clock */
	struct top top;
	struct isample_columns columns; /* further ones, of instruction samples */
	struct base_map sources[2];	/* opened ones by name and program, indexed by: public ones
					   alone */
};

/* ---- sources ------------------------------------------------------------------------------- */

/* NULL: it is not there; then it is looked for again, which is soon known. */
static const struct image_source *source_of(struct counts *x, const struct top_row *row)
{
	const char *program = row->program ? row->program : "";
	struct base_map *known = &x->sources[!row->trusted];
	struct image_source *src = NULL;
	struct base_buf key = { 0 };

	if (base_buf_printf(&key, "%s\n%s", program, row->file) >= 0)
		src = base_map_get(known, key.data, key.len);
	if (!src && image_source_open(row->file, row->program, !row->trusted, &src, NULL) >= 0 &&
	    base_map_set(known, key.data, key.len, src) < 0) {
		image_source_close(src);
		src = NULL;
	}
	base_buf_release(&key);
	return src;
}

/* The text of a row's line without what it is indented by, or false. */
static bool line_text(struct counts *x, const struct top_row *row, char *text, size_t len)
{
	const struct image_source *src = row->file ? source_of(x, row) : NULL;

	if (!src || !list_source_text(src, row->line, 0, text, len))
		return false;
	memmove(text, text + strspn(text, " "), strlen(text + strspn(text, " ")) + 1);
	return true;
}

static void release_sources(struct base_map *sources)
{
	void *src;

	for (size_t pos = 0; base_map_next(sources, &pos, &src);)
		image_source_close(src);
	base_map_release(sources);
}

static int parse_metrics(struct counts *x, struct base_err *err)
{
	if (metrics && by_line)
		return base_fail(err, -DCPI_EUSAGE, "-pm and -lines exclude each other");
	return profileme_begin(&sel, metrics, &x->columns, err);
}

static int gather(struct counts *x, int nr, char **what, struct base_err *err)
{
	int r = parse_metrics(x, err), event = 0;

	if (r >= 0)
		r = report_open(&sel, &x->a, err);
	if (r >= 0)
		r = choose_images(x->a, nr, what, &x->images, &x->nr_images, err);
	if (r >= 0 && sort_event)
		r = event = analysis_event_find(x->a, sort_event, err);
	if (r < 0)
		return r;
	x->event = sort_event ? (size_t)event : analysis_event_default(x->a);
	x->seconds = report_seconds(x->a, NULL, x->event);
	r = (by_line ? top_make_lines : top_make)(x->a, x->images, x->nr_images, x->event,
						  (size_t)number, &x->top);
	return r < 0 ? base_fail_errno(err, r, "cannot find what has most samples") : 0;
}

/* ---- text ---------------------------------------------------------------------------------- */

static void put_heads(const struct counts *x, struct table *t)
{
	static const char *const insns[] = { "procedure", "pc", "instruction", "image", "source" };
	static const char *const lines[] = { "source", "text", "procedure", "image" };
	const char *const *heads = by_line ? lines : insns;
	size_t nr = by_line ? sizeof(lines) / sizeof(*lines) : sizeof(insns) / sizeof(*insns);

	table_column(t, false, x->a->events[x->event].name);
	table_column(t, false, "%");
	table_column(t, false, "cum%");
	table_spare(t);
	if (x->seconds > 0) {
		table_column(t, false, "seconds");
		table_spare(t);
	}
	for (size_t i = 0; i < nr; i++)
		report_column(t, heads[i]);
	for (size_t e = 0; e < x->a->nr_events; e++)
		if (e != x->event)
			table_column(t, false, x->a->events[e].name);
	profileme_heads(&x->columns, t);
}

/* Images of several epochs may have other periods. @ai: NULL: of several images. */
static double seconds_of(const struct counts *x, const struct analysis_image *ai, uint64_t count)
{
	return (double)count * (ai ? report_seconds(x->a, ai, x->event) : x->seconds);
}

/* @sum: of this line and all above, NULL: of no use. */
static void put_sort_event(const struct counts *x, struct table *t, const struct analysis_image *ai,
			   uint64_t count, const uint64_t *sum)
{
	uint64_t total = x->top.total[x->event];

	report_cells(t, count, total);
	if (sum && total)
		table_cell(t, "%.2f%%", 100.0 * (double)*sum / (double)total);
	else
		table_cell(t, "%s", "");
	if (x->seconds > 0)
		table_cell(t, "%.2f", seconds_of(x, ai, count));
}

static void put_other_events(const struct counts *x, struct table *t, const uint64_t *count)
{
	for (size_t e = 0; e < x->a->nr_events; e++) {
		if (e == x->event)
			continue;
		if (count[e])
			table_cell(t, "%" PRIu64, count[e]);
		else
			table_cell(t, "%s", "");
	}
}

static void put_source(struct table *t, const struct top_row *row, const char *none)
{
	if (row->file)
		table_cell(t, "%s:%u", base_path_name(row->file), row->line);
	else
		table_cell(t, "%s", none);
}

static void put_image(struct table *t, const struct top_row *row)
{
	table_cell(t, "%s", row->image->kind == PROFDB_NAMED ? "" : row->image->name);
}

static void put_insn(struct table *t, const struct top_row *row)
{
	table_cell(t, "%s", demangle_shown(row->procedure));
	if (row->placed)
		table_cell(t, "0x%" PRIx64, row->vaddr);
	else if (row->image->kind != PROFDB_NAMED)
		table_cell(t, "+0x%" PRIx64, row->off);
	else
		table_cell(t, "%s", "");
	table_cell(t, "%s", row->text ? row->text : "");
	put_image(t, row);
	put_source(t, row, "");
}

static void put_line(struct counts *x, struct table *t, const struct top_row *row)
{
	char text[1024];

	put_source(t, row, "(no source line)");
	if (!row->file)
		table_cell(t, "%s", "");
	else
		table_cell(t, "%s",
			   line_text(x, row, text, sizeof(text)) ? text : "(source not found)");
	if (row->nr_procedures > 1)
		table_cell(t, "%s, %zu more", demangle_shown(row->procedure),
			   row->nr_procedures - 1);
	else
		table_cell(t, "%s", demangle_shown(row->procedure));
	/* Runs of a facility are one, whatever their processes. */
	if (row->image->facility)
		table_cell(t, "%s", row->image->facility);
	else
		put_image(t, row);
}

/* @row: NULL for others, which have none. */
static void put_metrics(const struct counts *x, struct table *t, const struct top_row *row)
{
	struct told_values v = { 0 };

	if (row)
		told_add(&x->columns, row->image, row->off, row->off, &v);
	profileme_cells(&x->columns, row ? &v : NULL, t);
}

static void put_row(struct counts *x, struct table *t, const struct top_row *row,
		    const uint64_t *sum)
{
	put_sort_event(x, t, row->image, row->count[x->event], sum);
	if (by_line)
		put_line(x, t, row);
	else
		put_insn(t, row);
	put_other_events(x, t, row->count);
	put_metrics(x, t, row);
}

static void put_sum(const struct counts *x, struct table *t, const uint64_t *count,
		    const uint64_t *sum, const char *name)
{
	put_sort_event(x, t, NULL, count[x->event], sum);
	table_cell(t, "%s", name);
	for (int i = 0; i < (by_line ? 3 : 4); i++)
		table_cell(t, "%s", "");
	put_other_events(x, t, count);
	put_metrics(x, t, NULL);
}

static int print_text(struct counts *x, struct base_err *err)
{
	struct table t = { 0 };
	uint64_t sum = 0;
	int r = 0;

	if (!no_header) {
		report_head(x->a, stdout);
		report_events(x->a, x->top.total, stdout);
		report_seconds_line(x->a, x->event, x->top.total[x->event], stdout);
	}
	if (x->a->nr_events && x->top.total[x->event]) {
		if (!no_header)
			putchar('\n');
		put_heads(x, &t);
		for (size_t i = 0; i < x->top.nr; i++) {
			sum += x->top.v[i].count[x->event];
			put_row(x, &t, &x->top.v[i], &sum);
		}
		sum += x->top.others[x->event];
		if (x->top.nr_others)
			put_sum(x, &t, x->top.others, &sum, "others");
		put_sum(x, &t, x->top.total, NULL, "total");
		r = table_print(&t, !no_header, stdout);
	}
	table_release(&t);
	return r < 0 ? base_fail_errno(err, r, "cannot print the table") : 0;
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void json_source(const struct top_row *row, struct json_object *o)
{
	json_object_object_add(o, "file", report_json_text(row->file));
	json_object_object_add(o, "line", row->file ? json_object_new_int64(row->line) : NULL);
}

static void json_insn(const struct top_row *row, struct json_object *o)
{
	report_json_procedure(o, row->procedure);
	json_object_object_add(o, "pc", row->placed ? report_json_hex(row->vaddr) : NULL);
	json_object_object_add(o, "into", row->placed ? json_object_new_uint64(row->into) : NULL);
	json_object_object_add(o, "offset", json_object_new_uint64(row->off));
	json_object_object_add(o, "instruction", report_json_text(row->text));
	report_json_image(o, row->image);
	json_source(row, o);
}

static void json_line(struct counts *x, const struct top_row *row, struct json_object *o)
{
	const struct analysis_image *ai = row->image;
	char text[1024];

	json_source(row, o);
	json_object_object_add(
		o, "text", line_text(x, row, text, sizeof(text)) ? report_json_text(text) : NULL);
	report_json_procedure(o, row->procedure);
	json_object_object_add(o, "procedures", json_object_new_uint64(row->nr_procedures));
	json_object_object_add(o, "image",
			       report_json_text(ai->facility ? ai->facility : ai->name));
	/* A facility may have several. */
	report_json_build_id(o, ai->facility ? NULL : ai);
}

static struct json_object *json_seconds(const struct counts *x, const struct analysis_image *ai,
					const uint64_t *count)
{
	return x->seconds > 0 ? report_json_number(seconds_of(x, ai, count[x->event])) : NULL;
}

static struct json_object *json_row(struct counts *x, const struct top_row *row)
{
	struct json_object *o = json_object_new_object();

	if (by_line)
		json_line(x, row, o);
	else
		json_insn(row, o);
	json_object_object_add(o, "samples", report_json_counts(x->a, row->count));
	json_object_object_add(o, "seconds", json_seconds(x, row->image, row->count));
	if (x->columns.nr) {
		struct told_values v = { 0 };

		told_add(&x->columns, row->image, row->off, row->off, &v);
		json_object_object_add(o, "instruction_samples", profileme_json(&x->columns, &v));
	}
	return o;
}

static int print_json(struct counts *x, struct base_err *err)
{
	const char *schema = by_line ? "dcpitopcounts-lines/1" : "dcpitopcounts/1";
	struct json_object *root = report_json(schema, x->a, x->top.total);
	struct json_object *rows = json_object_new_array();
	int r;

	for (size_t i = 0; i < x->top.nr; i++)
		json_object_array_add(rows, json_row(x, &x->top.v[i]));
	json_object_object_add(root, "sorted_by",
			       x->a->nr_events ? report_json_text(x->a->events[x->event].name)
					       : NULL);
	json_object_object_add(root, "rows", rows);
	json_object_object_add(root, "others", report_json_counts(x->a, x->top.others));
	json_object_object_add(root, "total", report_json_counts(x->a, x->top.total));
	json_object_object_add(root, "seconds", json_seconds(x, NULL, x->top.total));
	r = report_json_print(root, x->a, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

/* ---- the command --------------------------------------------------------------------------- */

static int run(int nr, char **what, struct base_err *err)
{
	struct counts x = { 0 };
	int code = BASE_EXIT_OK, r = gather(&x, nr, what, err);

	if (r >= 0)
		r = sel.json ? print_json(&x, err) : print_text(&x, err);
	if (x.a)
		code = report_problems(cmd.name, x.a, stderr);
	release_sources(&x.sources[false]);
	release_sources(&x.sources[true]);
	top_release(&x.top);
	free(x.images);
	analysis_close(x.a);
	return r < 0 ? r : code;
}

int dcpitopcounts_main(int argc, char **argv)
{
	return report_main(&cmd, &sel, run, argc, argv);
}
