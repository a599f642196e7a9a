/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpistats: how much procedures or images vary between several sets of samples. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "rows.h"
#include "sets.h"
#include "tools.h"

static struct set now = { .factor = 1 };
static struct base_opt_list files, maps;
static double cutoff, keep = 100;
static bool set_option, by_image, normalized, show_images, no_header;

static const struct base_opt options[] = {
	{ "set", BASE_OPT_FLAG, &set_option, NULL,
	  "Begin a set: the options and images behind it, up to the next -set, choose its samples. "
	  "What stands before the first -set holds for all.",
	  0, 0 },
	{ "factor", BASE_OPT_DOUBLE, &now.factor, "N",
	  "Multiply the set's counts by N (a run of other length, or another period).", 1e-9, 1e9 },
	SELECT_OPTIONS_DB(now.sel),
	SELECT_OPTION_LABEL(now.sel),
	SELECT_OPTIONS_WORKLOAD(now.sel),
	SELECT_OPTIONS_FILES(files, maps),
	SELECT_OPTION_MANGLED,
	TERMINAL_OPTION_WIDE,
	TERMINAL_OPTION_ALL,
	{ "event", BASE_OPT_STRING, &now.sel.event, "EVENT",
	  "Take samples of this event (default: cycles, else a clock, else the first).", 0, 0 },
	{ "i", BASE_OPT_FLAG, &by_image, NULL, "One line per image instead of procedure.", 0, 0 },
	{ "norm", BASE_OPT_FLAG, &normalized, NULL,
	  "Print the range in percent of the line's own sum, and sort by it.", 0, 0 },
	{ "cutoff", BASE_OPT_DOUBLE, &cutoff, "PERCENT",
	  "Leave out lines whose range is below PERCENT of all ranges together; they are one line "
	  "'others'.",
	  0, 100 },
	{ "keep", BASE_OPT_DOUBLE, &keep, "PERCENT",
	  "Only the lines with most samples that make up PERCENT of them; the rest is 'others' "
	  "too.",
	  0, 100 },
	{ "show_images", BASE_OPT_FLAG, &show_images, NULL,
	  "Show the images that the procedures stand in.", 0, 0 },
	{ "json", BASE_OPT_FLAG, &now.sel.json, NULL,
	  "Print JSON with the same rows (dcpijson(5)).", 0, 0 },
	{ "no_header", BASE_OPT_FLAG, &no_header, NULL, "Leave out the lines above the table.", 0,
	  0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpistats",
	.summary = "show how much procedures vary between several sets of samples",
	.operands = "-set [option …] [IMAGE …] -set …  |  IMAGE IMAGE …",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpistats -set -epoch 202611200700 -set -epoch 202611200800 -set -epoch "
			  "202611200900",
			  "What differed between three runs, most first." },
			{ "dcpistats prog.old prog.new",
			  "Two images by procedure, each being a set." },
			{ "dcpistats -norm -keep 95 -set -db a worker -set -db b -factor 2 worker",
			  "Where a run of half the length differs most, for its size." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = -1,
};

/* One set of rows, which the caller keeps as long as the stats. */
struct stats_set {
	struct analysis_rows *rows;
	size_t event;  /* the event whose counts, times @factor, are used */
	double factor; /* above 0 */
};

/* Statistics of the counts in all sets; a set without samples counts as 0. */
struct stats_spread {
	double sum, mean, min, max;
	double deviation; /* standard deviation of a sample: over nr_sets - 1 */
	double range;	  /* max - min */
	size_t nr;	  /* number of sets with samples */
};

/* The counts under one name. */
struct stats_row {
	const char *name; /* procedure, the text in its place, or image */
	char **images;	  /* its images, each once; the sets own the names */
	size_t nr_images, cap_images;
	const struct base_id **ids; /* their build-ids, likewise */
	size_t nr_ids, cap_ids;
	double *count; /* indexed by set */
	struct stats_spread spread;
};

struct stats {
	struct stats_row *v; /* largest range first, or relative range; ties by sum, then name */
	size_t nr, cap;
	size_t nr_sets;
	double *total;	     /* indexed by set */
	double total_ranges; /* sum over all rows */
};

struct report {
	struct sets sets;
	struct stats_set *from; /* totals of each set */
	struct stats stats;
	bool *hidden; /* indexed by row: not shown */
	size_t nr_hidden;
	double *others;	 /* sums of the hidden rows, by set */
	double *seconds; /* of a sample of each set; NULL: not all are of clocks */
};

/* ---- the statistics -------------------------------------------------------------------------- */

/* Runs of a facility have different processes, and so different names of images. */
static char *image_of(const struct analysis_row *row)
{
	return row->facility ? row->facility->name : row->image->name;
}

static int find(struct stats *s, struct base_map *by_name, const char *name, struct stats_row **out)
{
	size_t at = (size_t)(uintptr_t)base_map_get(by_name, name, strlen(name));
	struct stats_row row = { .name = name };
	int r;

	if (at) {
		*out = &s->v[at - 1];
		return 0;
	}
	r = base_grow(&s->v, &s->cap, s->nr + 1, sizeof(*s->v));
	if (r >= 0)
		r = base_map_set(by_name, name, strlen(name), (void *)(uintptr_t)(s->nr + 1));
	if (r < 0)
		return r;
	row.count = calloc(s->nr_sets, sizeof(*row.count));
	if (!row.count)
		return -ENOMEM;
	s->v[s->nr] = row;
	*out = &s->v[s->nr++];
	return 0;
}

static int note_image(struct stats_row *row, char *image)
{
	int r;

	for (size_t i = 0; i < row->nr_images; i++)
		if (strcmp(row->images[i], image) == 0)
			return 0;
	r = base_grow(&row->images, &row->cap_images, row->nr_images + 1, sizeof(*row->images));
	if (r >= 0)
		row->images[row->nr_images++] = image;
	return r;
}

/* A row of several images, such as those of a facility, says nothing of their build-ids. */
static int note_id(struct stats_row *row, const struct analysis_row *from)
{
	const struct base_id *id = profdb_profile_image(from->image->profile);
	int r;

	if (from->nr_images != 1 || !id->len)
		return 0;
	for (size_t i = 0; i < row->nr_ids; i++)
		if (base_id_equal(row->ids[i], id))
			return 0;
	r = base_grow(&row->ids, &row->cap_ids, row->nr_ids + 1, sizeof(*row->ids));
	if (r >= 0)
		row->ids[row->nr_ids++] = id;
	return r;
}

static int add_set(struct stats *s, const struct stats_set *set, size_t index,
		   struct base_map *by_name)
{
	int r = 0;

	for (size_t i = 0; i < set->rows->nr && r >= 0; i++) {
		const struct analysis_row *from = &set->rows->v[i];
		double count = (double)from->count[set->event] * set->factor;
		struct stats_row *row;

		if (!from->count[set->event])
			continue;
		r = find(s, by_name, by_image ? image_of(from) : analysis_row_label(from), &row);
		if (r >= 0)
			r = note_image(row, image_of(from));
		if (r >= 0)
			r = note_id(row, from);
		if (r < 0)
			break;
		row->count[index] += count;
		s->total[index] += count;
	}
	return r;
}

/* Computes the statistics of @nr counts; @nr is above 1. */
static void stats_spread(const double *count, size_t nr, struct stats_spread *out)
{
	double squares = 0;

	memset(out, 0, sizeof(*out));
	out->min = out->max = count[0];
	for (size_t i = 0; i < nr; i++) {
		out->sum += count[i];
		out->min = fmin(out->min, count[i]);
		out->max = fmax(out->max, count[i]);
		out->nr += count[i] > 0;
	}
	out->mean = out->sum / (double)nr;
	out->range = out->max - out->min;
	for (size_t i = 0; i < nr; i++)
		squares += (count[i] - out->mean) * (count[i] - out->mean);
	out->deviation = sqrt(squares / (double)(nr - 1));
}

static int descending(double a, double b)
{
	return (a < b) - (a > b);
}

static int by_range(const void *pa, const void *pb)
{
	const struct stats_row *a = pa, *b = pb;
	int r = descending(a->spread.range, b->spread.range);

	if (!r)
		r = descending(a->spread.sum, b->spread.sum);
	return r ? r : strcmp(a->name, b->name);
}

static int by_normalized(const void *pa, const void *pb)
{
	const struct stats_row *a = pa, *b = pb;
	int r = descending(a->spread.range / a->spread.sum, b->spread.range / b->spread.sum);

	return r ? r : by_range(pa, pb);
}

/*
 * Merges the rows of all sets by procedure (-i: by image), whatever its image, so that programs
 * that were rebuilt or moved can be compared. The caller zero-initializes @out and releases it,
 * also on failure. -norm: sort by the range relative to the row's sum. 0 or -ENOMEM.
 */
static int stats_make(const struct stats_set *sets, size_t nr_sets, struct stats *out)
{
	struct base_map by_name = { 0 };
	int r = 0;

	out->nr_sets = nr_sets;
	out->total = calloc(nr_sets, sizeof(*out->total));
	if (!out->total)
		return -ENOMEM;
	for (size_t i = 0; i < nr_sets && r >= 0; i++)
		r = add_set(out, &sets[i], i, &by_name);
	base_map_release(&by_name);
	if (r < 0)
		return r;
	for (size_t i = 0; i < out->nr; i++) {
		stats_spread(out->v[i].count, nr_sets, &out->v[i].spread);
		out->total_ranges += out->v[i].spread.range;
	}
	if (out->nr)
		qsort(out->v, out->nr, sizeof(*out->v), normalized ? by_normalized : by_range);
	return 0;
}

static void stats_release(struct stats *s)
{
	for (size_t i = 0; i < s->nr; i++) {
		free(s->v[i].images);
		free(s->v[i].ids);
		free(s->v[i].count);
	}
	free(s->v);
	free(s->total);
	memset(s, 0, sizeof(*s));
}

/* ---- gathering ------------------------------------------------------------------------------- */

/* Without a -set, each image is one. */
static int sets_of_images(struct sets *s, struct base_err *err)
{
	int r = select_check(&now.sel, err);

	for (int i = 0; i < s->nr_words && r >= 0; i++) {
		struct set *set = &s->v[s->nr];

		*set = now;
		set->nr_what = 1;
		set->what = &s->words[i];
		r = sets_own_lists(set, err);
		s->nr += r >= 0;
	}
	return r;
}

static int parse(struct report *x, int argc, char **argv, struct base_err *err)
{
	struct sets *s = &x->sets;
	int r = sets_parse(&cmd, &now, argc, argv, s, err);

	if (r != BASE_OPT_RUN)
		return r;
	if (!s->nr)
		r = sets_of_images(s, err);
	else if (s->nr_words)
		r = base_fail(err, -DCPI_EUSAGE, "images belong behind a -set");
	if (r >= 0 && s->nr < 2)
		r = base_fail(err, -DCPI_EUSAGE, "at least two sets are needed");
	if (r < 0) {
		base_hint(err, "usage: dcpistats [options] %s", cmd.operands);
		return r;
	}
	for (size_t i = 0; i < s->nr; i++) {
		s->v[i].sel.files = files;
		s->v[i].sel.maps = maps;
		now.sel.json |= s->v[i].sel.json;
	}
	return 0;
}

/* The first set chooses where nobody does; the others must have it. */
static int choose_event(struct report *x, size_t i, struct base_err *err)
{
	const struct analysis *first = x->sets.v[0].a, *a = x->sets.v[i].a;
	char set[32];
	int at = 0;

	snprintf(set, sizeof(set), "set %zu", i + 1);
	if (!a->nr_events)
		return base_fail(err, -ENOENT, "no samples in %s", set);
	if (!i)
		x->from[i].event = analysis_event_default(a);
	else if (!x->sets.v[i].sel.event) /* else there is no other */
		at = sets_event_find(a, first->events[x->from[0].event].name, set, err);
	if (at < 0)
		return at;
	if (i)
		x->from[i].event = (size_t)at;
	return 0;
}

/* Sets may have other periods; seconds beside numbers of cycles would be no sum. */
static int find_seconds(struct report *x)
{
	bool clocks = true;

	x->seconds = calloc(x->sets.nr, sizeof(*x->seconds));
	if (!x->seconds)
		return -ENOMEM;
	for (size_t i = 0; i < x->sets.nr; i++) {
		const struct analysis *a = x->sets.v[i].a;

		x->seconds[i] = report_seconds(a, NULL, x->from[i].event);
		clocks = clocks &&
			 (!a->nr_events || report_is_clock(a->events[x->from[i].event].name));
	}
	if (clocks)
		return 0;
	free(x->seconds);
	x->seconds = NULL;
	return 0;
}

static int gather(struct report *x, struct base_err *err)
{
	int r = 0;

	x->from = calloc(x->sets.nr, sizeof(*x->from));
	if (!x->from)
		return base_fail_errno(err, -ENOMEM, "cannot gather samples");
	for (size_t i = 0; i < x->sets.nr && r >= 0; i++) {
		struct set *s = &x->sets.v[i];

		r = sets_gather(s, by_image, false, err);
		x->from[i].rows = &s->rows;
		x->from[i].factor = s->factor;
		if (r >= 0)
			r = choose_event(x, i, err);
	}
	if (r >= 0 && (r = find_seconds(x)) < 0)
		base_fail_errno(err, r, "cannot compare");
	if (r >= 0 && (r = stats_make(x->from, x->sets.nr, &x->stats)) < 0)
		base_fail_errno(err, r, "cannot compare");
	return r;
}

/* ---- which rows are shown -------------------------------------------------------------------- */

static int by_sum(const void *pa, const void *pb, void *ctx)
{
	const struct stats *s = ctx;
	size_t a = *(const size_t *)pa, b = *(const size_t *)pb;
	double sum_a = s->v[a].spread.sum, sum_b = s->v[b].spread.sum;

	if (sum_a != sum_b)
		return sum_a > sum_b ? -1 : 1;
	return (a > b) - (a < b);
}

/* Beyond -keep. */
static int hide_small(struct report *x)
{
	struct stats *s = &x->stats;
	size_t *order = calloc(s->nr + 1, sizeof(*order));
	double sum = 0, total = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr; i++) {
		order[i] = i;
		total += s->v[i].spread.sum;
	}
	qsort_r(order, s->nr, sizeof(*order), by_sum, s);
	for (size_t i = 0; i < s->nr; i++) {
		x->hidden[order[i]] = keep < 100 && sum >= keep / 100 * total;
		sum += s->v[order[i]].spread.sum;
	}
	free(order);
	return 0;
}

static int hide(struct report *x, struct base_err *err)
{
	struct stats *s = &x->stats;

	x->hidden = calloc(s->nr + 1, sizeof(*x->hidden));
	x->others = calloc(s->nr_sets, sizeof(*x->others));
	if (!x->hidden || !x->others || hide_small(x) < 0)
		return base_fail_errno(err, -ENOMEM, "cannot compare");
	for (size_t i = 0; i < s->nr; i++) {
		x->hidden[i] |= s->v[i].spread.range < cutoff / 100 * s->total_ranges;
		if (!x->hidden[i])
			continue;
		x->nr_hidden++;
		for (size_t set = 0; set < s->nr_sets; set++)
			x->others[set] += s->v[i].count[set];
	}
	return 0;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void put_epochs(struct table *t, const struct analysis *a)
{
	if (a->nr_epochs > 1)
		table_cell(t, "%s..%s", a->epochs[0].name, a->epochs[a->nr_epochs - 1].name);
	else
		table_cell(t, "%s", a->nr_epochs ? a->epochs[0].name : "");
}

static void put_images(struct table *t, const struct set *s)
{
	struct base_buf text = { 0 };
	int r = 0;

	for (int i = 0; i < s->nr_what && r >= 0; i++)
		r = base_buf_printf(&text, "%s%s", i ? ", " : "", s->what[i]);
	table_cell(t, "%.*s", (int)text.len, text.len ? (const char *)text.data : "");
	base_buf_release(&text);
}

static int print_sets(const struct report *x)
{
	static const char *const heads[] = { "event", "database", "epoch", "images" };
	struct table t = { 0 };
	int r;

	table_column(&t, false, "set");
	table_column(&t, false, "samples");
	if (x->seconds)
		table_column(&t, false, "seconds");
	table_column(&t, false, "factor");
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		table_column(&t, true, heads[i]);
	for (size_t i = 0; i < x->sets.nr; i++) {
		const struct set *s = &x->sets.v[i];
		uint64_t samples = s->rows.total ? s->rows.total[x->from[i].event] : 0;

		table_cell(&t, "%zu", i + 1);
		table_cell(&t, "%" PRIu64, samples);
		if (x->seconds)
			table_cell(&t, "%.2f", (double)samples * x->seconds[i]);
		table_cell(&t, "%g", s->factor);
		table_cell(&t, "%s", s->a->events[x->from[i].event].name);
		table_cell(&t, "%s", analysis_database(s->a));
		put_epochs(&t, s->a);
		put_images(&t, s);
	}
	r = table_print(&t, true, stdout);
	table_release(&t);
	printf("\nstatistics of the samples of each %s in %zu sets; range%% is its range in "
	       "percent "
	       "of %s\n\n",
	       by_image ? "image" : "procedure", x->sets.nr,
	       normalized ? "its own sum" : "all ranges together");
	return r;
}

/* Counts are whole unless a factor made something else of them. */
static void put_count(struct table *t, double count)
{
	table_cell(t, "%.*f", count == floor(count) ? 0 : 2, count);
}

static void put_part(struct table *t, double part, double whole)
{
	if (whole > 0)
		table_cell(t, "%.2f%%", 100 * part / whole);
	else
		table_cell(t, "%s", "");
}

/* Seconds of the counts of all sets. Nanoseconds are whole numbers as a rule, whose sums are equal
 * on all machines. */
static double seconds_of(const struct report *x, const double *count)
{
	double sum = 0;

	for (size_t i = 0; i < x->stats.nr_sets; i++)
		sum += count[i] * (x->seconds[i] * 1e9);
	return sum / 1e9;
}

static void put_spread(struct table *t, const struct report *x, const double *count,
		       const struct stats_spread *p, double total)
{
	put_part(t, p->range, normalized ? p->sum : x->stats.total_ranges);
	put_count(t, p->sum);
	put_part(t, p->sum, total);
	if (x->seconds)
		table_cell(t, "%.2f", seconds_of(x, count));
	table_cell(t, "%zu", p->nr);
	table_cell(t, "%.2f", p->mean);
	table_cell(t, "%.2f", p->deviation);
	put_count(t, p->min);
	put_count(t, p->max);
}

static void put_row(struct table *t, const struct report *x, const struct stats_row *row,
		    double total)
{
	struct base_buf images = { 0 };

	put_spread(t, x, row->count, &row->spread, total);
	table_cell(t, "%s", demangle_shown(row->name));
	for (size_t i = 0; i < row->nr_images && show_images; i++)
		base_buf_printf(&images, "%s%s", i ? ", " : "", row->images[i]);
	if (show_images)
		table_cell(t, "%.*s", (int)images.len, images.len ? (char *)images.data : "");
	base_buf_release(&images);
}

static void put_sum(struct table *t, const struct report *x, const double *count, double total,
		    const char *name)
{
	struct stats_spread spread;

	stats_spread(count, x->stats.nr_sets, &spread);
	put_spread(t, x, count, &spread, total);
	table_cell(t, "%s", name);
	if (show_images)
		table_cell(t, "%s", "");
}

static double sum_of(const struct stats *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->nr_sets; i++)
		sum += s->total[i];
	return sum;
}

static int print_text(const struct report *x, struct base_err *err)
{
	static const char *const heads[] = { "range%", "sum",	  "sum%", "seconds", "N",
					     "mean",   "std-dev", "min",  "max" };
	const struct stats *s = &x->stats;
	struct table t = { .cut = true, .foot = 1 };
	int r = no_header ? 0 : print_sets(x);

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		if (x->seconds || strcmp(heads[i], "seconds") != 0)
			table_column(&t, false, heads[i]);
	table_column(&t, true, by_image ? "image" : "procedure");
	if (show_images)
		table_column(&t, true, "images");
	for (size_t i = 0; i < s->nr; i++)
		if (!x->hidden[i])
			put_row(&t, x, &s->v[i], sum_of(s));
	if (x->nr_hidden)
		put_sum(&t, x, x->others, sum_of(s), "others");
	put_sum(&t, x, s->total, sum_of(s), "total");
	if (r >= 0)
		r = table_print(&t, !no_header, stdout);
	table_release(&t);
	return r < 0 ? base_fail_errno(err, r, "cannot print the table") : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_object *json_number(double value)
{
	char text[64];

	snprintf(text, sizeof(text), "%.10g", value);
	return json_object_new_double_s(value, text);
}

static void json_spread(struct json_object *o, const struct report *x, const double *count)
{
	struct json_object *list = json_object_new_array();
	size_t nr = x->stats.nr_sets;
	struct stats_spread p;

	stats_spread(count, nr, &p);
	for (size_t i = 0; i < nr; i++)
		json_object_array_add(list, json_number(count[i]));
	json_object_object_add(o, "samples", list);
	json_object_object_add(o, "sum", json_number(p.sum));
	json_object_object_add(o, "seconds", x->seconds ? json_number(seconds_of(x, count)) : NULL);
	json_object_object_add(o, "sets", json_object_new_uint64(p.nr));
	json_object_object_add(o, "mean", json_number(p.mean));
	json_object_object_add(o, "standard_deviation", json_number(p.deviation));
	json_object_object_add(o, "min", json_number(p.min));
	json_object_object_add(o, "max", json_number(p.max));
	json_object_object_add(o, "range", json_number(p.range));
}

static struct json_object *json_sum(const struct report *x, const double *count)
{
	struct json_object *o = json_object_new_object();

	json_spread(o, x, count);
	return o;
}

static struct json_object *json_row(const struct report *x, const struct stats_row *row)
{
	struct json_object *o = json_object_new_object(), *images = json_object_new_array();
	struct json_object *ids = json_object_new_array();
	char id[BASE_ID_TEXT_LEN];

	for (size_t i = 0; i < row->nr_images; i++)
		json_object_array_add(images, report_json_text(row->images[i]));
	if (by_image)
		json_object_object_add(o, "image", report_json_text(row->name));
	else
		report_json_procedure(o, row->name);
	json_object_object_add(o, "images", images);
	for (size_t i = 0; i < row->nr_ids; i++)
		json_object_array_add(ids, json_object_new_string(base_id_text(row->ids[i], id)));
	json_object_object_add(o, "build_ids", ids);
	json_spread(o, x, row->count);
	return o;
}

static int print_json(const struct report *x, struct base_err *err)
{
	struct json_object *root = json_object_new_object(), *rows = json_object_new_array();
	struct json_object *sets = json_object_new_array();
	const struct stats *s = &x->stats;
	int r;

	for (size_t i = 0; i < x->sets.nr; i++) {
		const struct set *set = &x->sets.v[i];
		struct json_object *o = report_json(NULL, set->a, set->rows.total);

		json_object_object_add(o, "event",
				       report_json_text(set->a->events[x->from[i].event].name));
		json_object_object_add(o, "factor", json_number(set->factor));
		report_json_problems(o, set->a);
		json_object_array_add(sets, o);
	}
	for (size_t i = 0; i < s->nr; i++)
		if (!x->hidden[i])
			json_object_array_add(rows, json_row(x, &s->v[i]));
	json_object_object_add(root, "schema", json_object_new_string("dcpistats/1"));
	json_object_object_add(root, "sets", sets);
	json_object_object_add(root, "by",
			       json_object_new_string(by_image ? "image" : "procedure"));
	json_object_object_add(root, "ranges", json_number(s->total_ranges));
	json_object_object_add(root, "rows", rows);
	json_object_object_add(root, "others", json_sum(x, x->others));
	json_object_object_add(root, "total", json_sum(x, s->total));
	r = report_json_put(root, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run(struct report *x, struct base_err *err)
{
	int code, r = gather(x, err);

	if (r >= 0)
		r = hide(x, err);
	if (r >= 0)
		r = now.sel.json ? print_json(x, err) : print_text(x, err);
	code = sets_problems(cmd.name, &x->sets);
	stats_release(&x->stats);
	free(x->from);
	free(x->hidden);
	free(x->others);
	free(x->seconds);
	return r < 0 ? r : code;
}

static int dcpistats_main(int argc, char **argv)
{
	struct base_err err = { 0 };
	struct report x = { 0 };
	int r = parse(&x, argc, argv, &err);

	if (r == BASE_OPT_RUN)
		r = run(&x, &err);
	else if (r == BASE_OPT_DONE)
		r = BASE_EXIT_OK;
	sets_release(&x.sets);
	return report_end(&cmd, r, &err);
}

const struct tool dcpistats_tool = { .cmd = &cmd, .main = dcpistats_main };
