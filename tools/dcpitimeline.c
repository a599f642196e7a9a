/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpitimeline: how the shares of images, procedures or workloads changed over time. */
#include <errno.h>
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "choose.h"
#include "report.h"
#include "rows.h"
#include "slices.h"
#include "terminal.h"
#include "tools.h"
#include "workloads.h"

struct timeline_row {
	char *name, *image;		 /* as shown; @image NULL: the row is no procedure */
	size_t number;			 /* in slices.rows */
	const struct analysis_image *ai; /* its first image; NULL: the row is a workload */
	bool several;			 /* it has other images too */
};

struct timeline {
	struct analysis *a;
	const struct profdb_workloads *w;
	size_t event;
	const char *by; /* "image", "procedure", or the name of a key */
	struct slices slices;
	struct timeline_row *rows; /* most samples first */
	size_t nr, cap;
	size_t nr_shown; /* the others are summed up in a row */
};

/* ---- slices without samples; what else happened to clock, machine and daemon ----------------- */

enum { LINES_MAX = 20 };

/* The separator of times and a text behind them: on a terminal, where both seldom fit, a line. */
static const char *before_text(const char *elsewhere)
{
	return terminal_columns() && !terminal_wide ? "\n                 " : elsewhere;
}

/* Nothing tells which of several machines a note is of. */
static size_t nr_notes(const struct timeline *t)
{
	return t->a->nr_platforms > 1 ? 0 : profdb_workloads_nr_notes(t->w);
}

/* It was the cause that the slices from @first up to @end have no samples. */
static bool explains(const struct timeline *t, const struct profdb_note *n, size_t first,
		     size_t end)
{
	int64_t from = t->slices.begin + (int64_t)first * t->slices.span,
		until = t->slices.begin + (int64_t)end * t->slices.span;

	/* The slice in which the daemon begins has samples. */
	if (n->kind == PROFDB_NOTE_START)
		return n->utc >= from && n->utc < until + t->slices.span;
	return (n->kind == PROFDB_NOTE_SUSPEND || n->kind == PROFDB_NOTE_CLOCK) && n->n > 0 &&
	       n->utc > from && n->utc - n->n < until;
}

/* The slices from @*first on that have no samples, up to @*end; false: there are none. */
static bool next_gap(const struct timeline *t, size_t *first, size_t *end)
{
	const struct slices *s = &t->slices;

	while (*first < s->nr && s->recorded[*first])
		++*first;
	for (*end = *first; *end < s->nr && !s->recorded[*end];)
		++*end;
	return *first < s->nr;
}

static void print_what(const struct profdb_note *n, FILE *to)
{
	if (n->kind == PROFDB_NOTE_SUSPEND)
		fprintf(to, "the machine was suspended for %" PRId64 " s", n->n);
	else if (n->kind == PROFDB_NOTE_CLOCK && n->n >= 0)
		fprintf(to, "the clock was set ahead by %" PRId64 " s", n->n);
	else if (n->kind == PROFDB_NOTE_CLOCK)
		fprintf(to,
			"the clock was set back by %" PRId64 " s: times shown twice are added up",
			-n->n);
	else
		fputs("the daemon was started again", to);
}

static void print_causes(const struct timeline *t, size_t first, size_t end, FILE *to)
{
	bool started = false;
	int nr = 0;

	for (size_t i = 0; i < nr_notes(t); i++) {
		const struct profdb_note *n = profdb_workloads_note_at(t->w, i);

		if (!explains(t, n, first, end) || (n->kind == PROFDB_NOTE_START && started) ||
		    nr == LINES_MAX)
			continue;
		fputs(before_text(nr++ ? "; " : ": "), to);
		if (n->kind == PROFDB_NOTE_START)
			fputs("no daemon ran", to);
		else
			print_what(n, to);
		started |= n->kind == PROFDB_NOTE_START;
	}
}

static void print_gaps(const struct timeline *t, const char *sign, FILE *to)
{
	const struct slices *s = &t->slices;
	char from[WHEN_TEXT], until[WHEN_TEXT];
	const char *head = "not recorded";

	for (size_t i = 0, end; next_gap(t, &i, &end); i = end) {
		fprintf(to, "%-12s  %s  %s to %s", head, sign,
			when_text(s->begin + (int64_t)i * s->span, from),
			when_text(s->begin + (int64_t)end * s->span, until));
		print_causes(t, i, end, to);
		fputc('\n', to);
		head = "";
	}
}

static bool explains_any(const struct timeline *t, const struct profdb_note *n)
{
	for (size_t i = 0, end; next_gap(t, &i, &end); i = end)
		if (explains(t, n, i, end))
			return true;
	return false;
}

/* Within the slices; that a daemon began is news where another one had recorded something. */
static bool is_news(const struct timeline *t, const struct profdb_note *n)
{
	int64_t at = n->utc - t->slices.begin;

	if (n->kind == PROFDB_NOTE_IDLE || at < 0 || at / t->slices.span >= (int64_t)t->slices.nr)
		return false;
	return n->kind != PROFDB_NOTE_START ||
	       (profdb_workloads_nr_minutes(t->w) &&
		profdb_workloads_minute(t->w, 0).minute < n->utc / 60);
}

/* Notes that explain no gap. */
static void print_notes(const struct timeline *t, FILE *to)
{
	char text[WHEN_TEXT];
	size_t nr = 0;

	for (size_t i = 0; i < nr_notes(t); i++) {
		const struct profdb_note *n = profdb_workloads_note_at(t->w, i);

		if (!is_news(t, n) || explains_any(t, n) || nr++ >= LINES_MAX)
			continue;
		fprintf(to, "%-12s     %s%s", nr == 1 ? "noted" : "", when_text(n->utc, text),
			before_text(": "));
		print_what(n, to);
		fputc('\n', to);
	}
	if (nr > LINES_MAX)
		fprintf(to, "%-12s     %zu more: -json has all of them\n", "", nr - LINES_MAX);
}

/* Lines on the slices without samples, which the table marks by @sign, and on what the daemon
 * noted.
 */
static void print_all_notes(const struct timeline *t, const char *sign, FILE *to)
{
	print_gaps(t, sign, to);
	print_notes(t, to);
}

static struct json_object *json_notes(const struct timeline *t)
{
	static const char *const kinds[] = { "started", "suspended", "clock set", "idle" };
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < nr_notes(t); i++) {
		const struct profdb_note *n = profdb_workloads_note_at(t->w, i);
		struct json_object *o;

		if (!is_news(t, n))
			continue;
		o = json_object_new_object();
		json_object_object_add(o, "at", json_object_new_int64(n->utc));
		json_object_object_add(o, "what", json_object_new_string(kinds[n->kind]));
		json_object_object_add(o, "seconds", json_object_new_int64(n->n));
		json_object_array_add(list, o);
	}
	return list;
}

/* ---- rows of samples over time, drawn as bars of characters ---------------------------------- */

enum {
	NAME_ROOM = 22, /* columns that names of images and procedures want */
	LEAST_ROOM = 10,
	LEVELS = 8,
	DAY = 86400,
	TICK = 8, /* columns between two times */
};

/* One character for each slice: nothing, up to the row's highest, not recorded. */
struct signs {
	const char *level[LEVELS + 1];
	const char *unrecorded;
};

static const struct signs blocks = {
	{ " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" },
	"·",
};
static const struct signs ascii = {
	{ " ", ".", ":", "-", "=", "+", "*", "#", "@" },
	"?",
};

/* Slices that find room in @columns columns of a terminal. */
static size_t timeline_room(size_t columns)
{
	size_t fixed = strlen("100.00  100.00  ") + 2 + NAME_ROOM;

	return columns > fixed + LEAST_ROOM ? columns - fixed : LEAST_ROOM;
}

static bool is_by_procedure(const struct timeline *t)
{
	return strcmp(t->by, "procedure") == 0;
}

/* Samples of the rows that are not shown, by slice; their sum. Allocated; NULL: no memory. */
static uint64_t *timeline_others(const struct timeline *t, uint64_t *sum)
{
	uint64_t *count = calloc(t->slices.nr, sizeof(*count));

	*sum = 0;
	for (size_t i = t->nr_shown; count && i < t->nr; i++) {
		const struct slices_row *row = &t->slices.rows[t->rows[i].number];

		*sum += row->sum;
		for (size_t k = 0; k < t->slices.nr; k++)
			count[k] += row->count[k];
	}
	return count;
}

static double share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

/* The column of bars; @of: what is 1 in each slice, NULL: @most is 1. */
static void put_bar(struct table *to, const struct timeline *t, const struct signs *s,
		    const uint64_t *count, const uint64_t *of, double peak, uint64_t most)
{
	struct base_buf bar = { 0 };
	int r = 0;

	for (size_t i = 0; i < t->slices.nr && r >= 0; i++) {
		double part = of ? share(count[i], of[i]) : share(count[i], most);
		int level = peak > 0 ? (int)(part / peak * LEVELS + 0.5) : 0;
		const char *sign;

		/* A single sample is seen. */
		level = count[i] && !level ? 1 : level > LEVELS ? LEVELS : level;
		sign = t->slices.recorded[i] ? s->level[level] : s->unrecorded;
		r = base_buf_append(&bar, sign, strlen(sign));
	}
	to->failed |= r < 0;
	table_cell(to, "%.*s", (int)bar.len, bar.len ? (const char *)bar.data : "");
	base_buf_release(&bar);
}

static void put_row(struct table *to, const struct timeline *t, const struct signs *s,
		    const uint64_t *count, uint64_t sum, const char *name, const char *image)
{
	double peak = 0;

	for (size_t i = 0; i < t->slices.nr; i++) {
		double part = share(count[i], t->slices.total[i]);

		peak = part > peak ? part : peak;
	}
	table_cell(to, "%.2f", 100 * share(sum, t->slices.sum));
	table_cell(to, "%.2f", 100 * peak);
	put_bar(to, t, s, count, t->slices.total, peak, 0);
	table_cell(to, "%s", name);
	if (is_by_procedure(t))
		table_cell(to, "%s", image ? image : "");
}

/* The greatest number of samples in a slice. */
static uint64_t most_samples(const struct timeline *t)
{
	uint64_t most = 0;

	for (size_t i = 0; i < t->slices.nr; i++)
		most = t->slices.total[i] > most ? t->slices.total[i] : most;
	return most;
}

static void put_total(struct table *to, const struct timeline *t, const struct signs *s)
{
	uint64_t most = most_samples(t);

	table_cell(to, "%.2f", 100.0);
	table_cell(to, "%s", "");
	put_bar(to, t, s, t->slices.total, NULL, most ? 1 : 0, most);
	table_cell(to, "%s", "total");
	if (is_by_procedure(t))
		table_cell(to, "%s", "");
}

/* Below the table, where long names do not take its room. */
static void print_sum(const struct timeline *t, FILE *to)
{
	double seconds = report_seconds(t->a, NULL, t->event);

	fprintf(to, "%-12s     %" PRIu64 " samples, ", "total", t->slices.sum);
	if (seconds > 0)
		fprintf(to, "%.2f seconds, ", (double)t->slices.sum * seconds);
	fprintf(to, "at most %" PRIu64 " in a slice\n", most_samples(t));
}

/* Times of the slices, one above its column each TICK. */
static int make_axis(const struct timeline *t, struct base_buf *axis)
{
	int r = 0;

	for (size_t i = 0; i < t->slices.nr && r >= 0; i += TICK) {
		time_t at = (time_t)(t->slices.begin + (int64_t)i * t->slices.span);
		bool last = i + TICK >= t->slices.nr;
		char text[16] = "";
		struct tm tm;

		if (localtime_r(&at, &tm))
			strftime(text, sizeof(text), t->slices.span >= DAY ? "%m-%d" : "%H:%M",
				 &tm);
		r = base_buf_printf(axis, "%-*s", last ? (int)(t->slices.nr - i) : TICK, text);
	}
	return r < 0 ? r : base_buf_append(axis, "", 1);
}

static int put_heads(struct table *to, const struct timeline *t)
{
	struct base_buf axis = { 0 };
	int r = make_axis(t, &axis);

	table_column(to, false, "%");
	table_column(to, false, "peak");
	table_column(to, true, r < 0 ? "" : (const char *)axis.data);
	/* It is of no use in part. */
	table_address(to);
	table_column(to, true, t->by);
	if (is_by_procedure(t))
		report_column(to, "image");
	base_buf_release(&axis);
	return r;
}

/* The table: a bar for each row, of blocks or (not @utf8) of ASCII characters. 0 or -ENOMEM. */
static int timeline_print(const struct timeline *t, bool utf8, FILE *to)
{
	const struct signs *s = utf8 ? &blocks : &ascii;
	uint64_t sum, *others = timeline_others(t, &sum);
	struct table table = { 0 };
	int r = others ? put_heads(&table, t) : -ENOMEM;

	for (size_t i = 0; others && i < t->nr_shown; i++) {
		const struct slices_row *row = &t->slices.rows[t->rows[i].number];

		put_row(&table, t, s, row->count, row->sum, t->rows[i].name, t->rows[i].image);
	}
	if (others && t->nr_shown < t->nr)
		put_row(&table, t, s, others, sum, "others", NULL);
	put_total(&table, t, s);
	if (r >= 0)
		r = table_print(&table, true, to);
	print_sum(t, to);
	print_all_notes(t, s->unrecorded, to);
	table_release(&table);
	free(others);
	return r;
}

enum { COLUMNS = 80, COLUMNS_MAX = 1000, MINUTE = 60 };

static struct select sel;
static const char *by = "image", *slice;
static int64_t number = 20;
static bool no_header;

static const struct base_opt options[] = {
	SELECT_OPTIONS(sel),
	{ "by", BASE_OPT_STRING, &by, "image|procedure|comm|…",
	  "A row for each image (the default), each procedure, or each comm, exe, pid, uid, "
	  "cgroup, "
	  "unit, container, thread or label.",
	  0, 0 },
	{ "slice", BASE_OPT_STRING, &slice, "1m|10m|1h|…",
	  "Time of each column, in whole minutes (default: what lets all of the time fit into the "
	  "terminal's width).",
	  0, 0 },
	{ "n", BASE_OPT_INT, &number, "N", "How many rows; the others are one more (default: 20).",
	  1, 1000000 },
	{ "no_header", BASE_OPT_FLAG, &no_header, NULL, "Leave out the lines above the table.", 0,
	  0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpitimeline",
	.summary = "show how shares of the samples changed over time",
	.operands = "[IMAGE …]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpitimeline -since -2h", "The images of the last two hours." },
			{ "dcpitimeline -since yesterday -until today -slice 1h -by unit",
			  "Yesterday's services, hour by hour." },
			{ "dcpitimeline -by procedure libc.so.6",
			  "The procedures of one library in the newest epoch." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = -1,
};

/* The state while rows are found for samples. */
struct rows_of {
	struct timeline *t;
	const struct profdb_workloads *w;
	bool is_key;
	enum workload_key key;
	size_t *of_workload;		/* indexed by workload: number of its row + 1, or 0 */
	struct analysis_image **images; /* images of @w */
	bool *wanted;			/* likewise */
	uint32_t open;			/* number of the open image + 1 */
	struct image *img;		/* NULL: it could not be opened */
	struct base_map by_key;		/* number of the row + 1 */
};

/* ---- rows ------------------------------------------------------------------------------------ */

static int add_row(struct timeline *t, const char *name, const char *image)
{
	struct timeline_row *row;
	int r = base_grow(&t->rows, &t->cap, t->nr + 1, sizeof(*t->rows));

	if (r < 0)
		return r;
	row = &t->rows[t->nr];
	*row = (struct timeline_row){ .name = strdup(name),
				      .image = image ? strdup(image) : NULL,
				      .number = t->nr };
	t->nr++;
	return row->name && (row->image || !image) ? 0 : -ENOMEM;
}

/* Rows with equal names may have different keys. */
static int find_row(struct rows_of *x, const struct base_buf *key, const char *name,
		    const char *image, size_t *out)
{
	uintptr_t at = (uintptr_t)base_map_get(&x->by_key, key->data, key->len);
	int r = 0;

	if (!at) {
		r = add_row(x->t, name, image);
		at = x->t->nr;
		if (r >= 0)
			r = base_map_set(&x->by_key, key->data, key->len, (void *)at);
	}
	*out = at - 1;
	return r;
}

static void note_image(struct timeline_row *row, const struct analysis_image *ai)
{
	row->several |= row->ai && row->ai != ai;
	row->ai = ai;
}

static int find_named(struct rows_of *x, const struct analysis_image *ai, const char *name,
		      const char *image, size_t *out)
{
	struct base_buf key = { 0 };
	int r = base_buf_append(&key, name, strlen(name) + 1);

	if (r >= 0 && image)
		r = base_buf_append(&key, image, strlen(image));
	if (r >= 0)
		r = find_row(x, &key, name, image, out);
	if (r >= 0)
		note_image(&x->t->rows[*out], ai);
	base_buf_release(&key);
	return r;
}

static void open_image(struct rows_of *x, uint32_t image)
{
	struct analysis_image *ai = x->images[image];

	if (x->open == image + 1)
		return;
	image_close(x->img);
	x->img = NULL;
	x->open = image + 1;
	/* Names of pseudo-images are in them. */
	if (is_by_procedure(x->t) || ai->kind == PROFDB_DYNAMIC)
		analysis_image_open(x->t->a, ai, &x->img, NULL);
}

static const char *image_name(const struct analysis_image *ai)
{
	return ai->facility ? ai->facility : ai->name;
}

static int row_of_procedure(struct rows_of *x, struct analysis_image *ai, uint64_t off, size_t *row)
{
	const struct analysis_row none = { .image = ai };
	const struct image_symbol *symbol = NULL;
	uint64_t vaddr;

	if (x->img && image_vaddr(x->img, off, &vaddr) >= 0)
		symbol = image_symbol_at(x->img, vaddr);
	return find_named(x, ai, demangle_shown(symbol ? symbol->name : analysis_row_label(&none)),
			  ai->kind == PROFDB_NAMED ? "" : image_name(ai), row);
}

static int row_of_workload(struct rows_of *x, uint32_t workload, size_t *row)
{
	struct base_buf key = { 0 };
	int r = workload_group_key(profdb_workloads_workload(x->w, workload), x->key, &key);

	if (r >= 0) {
		enum workload_class class = (enum workload_class)key.data[0];
		const char *name = (const char *)key.data + 1;

		r = find_row(x, &key, *name ? name : workload_key_missing(x->key, class), NULL,
			     row);
	}
	base_buf_release(&key);
	return r;
}

/* A workload has one row, and mostly many counts. */
static int row_of_key(struct rows_of *x, uint32_t workload, size_t *row)
{
	size_t *known = &x->of_workload[workload];
	int r = *known ? 0 : row_of_workload(x, workload, row);

	if (r < 0)
		return r;
	if (*known)
		*row = *known - 1;
	*known = *row + 1;
	return 0;
}

static int row_of(void *ctx, uint32_t workload, uint32_t image, uint64_t off, size_t *row)
{
	struct rows_of *x = ctx;
	struct analysis_image *ai = x->images[image];

	*row = SLICES_NO_ROW;
	if (!x->wanted[image])
		return 0;
	if (x->is_key)
		return row_of_key(x, workload, row);
	open_image(x, image);
	if (is_by_procedure(x->t))
		return row_of_procedure(x, ai, off, row);
	return find_named(x, ai, image_name(ai), NULL, row);
}

static int most_first(const void *a, const void *b, void *ctx)
{
	const struct timeline_row *x = a, *y = b;
	const struct slices *s = ctx;
	uint64_t nx = s->rows[x->number].sum, ny = s->rows[y->number].sum;
	int r;

	if (nx != ny)
		return nx > ny ? -1 : 1;
	r = strcmp(x->name, y->name);
	return r || !x->image || !y->image ? r : strcmp(x->image, y->image);
}

/* Rows that got nothing of this time are left out. */
static void sort(struct timeline *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->nr; i++) {
		bool any = t->rows[i].number < t->slices.nr_rows &&
			   t->slices.rows[t->rows[i].number].sum;

		if (any) {
			t->rows[kept++] = t->rows[i];
			continue;
		}
		free(t->rows[i].name);
		free(t->rows[i].image);
	}
	t->nr = kept;
	qsort_r(t->rows, t->nr, sizeof(*t->rows), most_first, &t->slices);
	t->nr_shown = t->nr < (size_t)number ? t->nr : (size_t)number;
}

/* ---- which slices ---------------------------------------------------------------------------- */

static size_t columns(void)
{
	const char *env = getenv("COLUMNS");
	long n = env ? strtol(env, NULL, 10) : 0;

	if (n <= 0)
		n = (long)terminal_columns();
	return n <= 0 ? COLUMNS : n > COLUMNS_MAX ? COLUMNS_MAX : (size_t)n;
}

static int choose_slices(struct timeline *t, const struct profdb_workloads *w,
			 const struct workload_filter *f, struct base_err *err)
{
	int64_t since = 0, until = MINUTE, span = 0, nr;

	if (slice && (when_span(slice, &span) < 0 || span % MINUTE)) {
		base_fail(err, -DCPI_EUSAGE, "-slice '%.40s' is no time of whole minutes", slice);
		base_hint(err, "give one as 1m, 10m, 1h or 1d");
		return -DCPI_EUSAGE;
	}
	slices_extent(w, f, &since, &until);
	/* The window is drawn as it was chosen, what is not recorded of it too. */
	since = f->since == INT64_MIN ? since : f->since;
	until = f->until == INT64_MAX ? until : f->until;
	until = until > since ? until : since + MINUTE;
	if (!span)
		span = slices_span(since, until, timeline_room(columns()));
	t->slices.span = span;
	t->slices.begin = slices_begin(since, span);
	nr = (until - t->slices.begin + span - 1) / span;
	if (nr > SLICES_MAX) {
		base_fail(err, -DCPI_EUSAGE, "-slice %s makes %lld slices of this time", slice,
			  (long long)nr);
		base_hint(err, "there may be %d: choose longer ones, or less time", SLICES_MAX);
		return -DCPI_EUSAGE;
	}
	t->slices.nr = (size_t)nr;
	return 0;
}

/* ---- gathering ------------------------------------------------------------------------------- */

static int find_by(struct rows_of *x, struct base_err *err)
{
	if (strcmp(by, "image") == 0 || strcmp(by, "procedure") == 0)
		return 0;
	x->is_key = workload_key_find(by, &x->key) >= 0;
	if (x->is_key)
		return 0;
	base_fail(err, -DCPI_EUSAGE, "-by '%.40s' is unknown", by);
	base_hint(err, "one of image, procedure, comm, exe, pid, uid, cgroup, unit, container, "
		       "thread, label");
	return -DCPI_EUSAGE;
}

static int find_images(struct rows_of *x, int nr, char **what, struct base_err *err)
{
	size_t nr_images = profdb_workloads_nr_images(x->w), nr_chosen = 0;
	struct analysis_image **chosen = NULL;
	int r;

	x->images = calloc(nr_images + 1, sizeof(struct analysis_image *));
	x->wanted = calloc(nr_images + 1, sizeof(*x->wanted));
	x->of_workload = calloc(profdb_workloads_nr(x->w) + 1, sizeof(*x->of_workload));
	if (!x->images || !x->wanted || !x->of_workload)
		return base_fail_errno(err, -ENOMEM, "cannot find images");
	r = choose_images(x->t->a, nr, what, &chosen, &nr_chosen, err);
	for (size_t i = 0; i < nr_images && r >= 0; i++) {
		r = workload_image(x->t->a, x->w, i, &x->images[i]);
		x->wanted[i] = !nr;
		for (size_t k = 0; k < nr_chosen && r >= 0 && !x->wanted[i]; k++)
			x->wanted[i] = chosen[k] == x->images[i];
	}
	free(chosen);
	return r < 0 ? base_fail_errno(err, r, "cannot find images") : 0;
}

/* Without minutes there is no time to show. */
static int check_minutes(const struct analysis *a, const struct profdb_workloads *w,
			 struct base_err *err)
{
	struct base_buf names = { 0 };

	if (profdb_workloads_nr_minutes(w) || !a->nr_events)
		return 0;
	if (workload_unrecorded(a, &names) < 0)
		base_buf_clear(&names);
	base_fail(err, -ENOENT, "these epochs keep no minutes:%.*s", (int)names.len,
		  names.len ? (const char *)names.data : "");
	base_buf_release(&names);
	base_hint(err, "dcpid of this release writes them; dcpiprof shows an epoch as a whole");
	return -ENOENT;
}

static int gather(struct timeline *t, struct rows_of *x, const struct workload_filter *f, int nr,
		  char **what, struct base_err *err)
{
	int r = check_minutes(t->a, x->w, err);

	t->event = analysis_event_default(t->a);
	if (r >= 0)
		r = choose_slices(t, x->w, f, err);
	if (r >= 0)
		r = find_images(x, nr, what, err);
	if (r < 0)
		return r;
	r = slices_make(t->a, x->w, f, t->event, row_of, x, &t->slices);
	sort(t);
	return r < 0 ? base_fail_errno(err, r, "cannot divide samples among slices") : 0;
}

/* ---- printing -------------------------------------------------------------------------------- */

static void print_span(const struct timeline *t)
{
	char from[WHEN_TEXT], until[WHEN_TEXT];
	int64_t minutes = t->slices.span / MINUTE;

	printf("slices     %zu of %lld minute%s, %s to %s\n", t->slices.nr, (long long)minutes,
	       minutes == 1 ? "" : "s", when_text(t->slices.begin, from),
	       when_text(t->slices.begin + (int64_t)t->slices.nr * t->slices.span, until));
}

static void print_left_out(const struct timeline *t)
{
	struct base_buf names = { 0 };

	if (workload_unrecorded(t->a, &names) >= 0 && names.len)
		printf("left out  %.*s, without minutes\n", (int)names.len,
		       (const char *)names.data);
	base_buf_release(&names);
}

static int print_text(const struct timeline *t, struct base_err *err)
{
	uint64_t sums[ANALYSIS_NR_EVENTS] = { 0 };
	bool utf8 = setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	int r = 0;

	sums[t->event] = t->slices.sum;
	if (!no_header) {
		report_head(t->a, stdout);
		if (t->a->nr_events)
			report_event(&t->a->events[t->event], t->slices.sum, stdout);
		else
			report_events(t->a, sums, stdout);
	}
	if (t->a->nr_events) {
		if (!no_header) {
			print_span(t);
			print_left_out(t);
			if (report_seconds(t->a, NULL, t->event) > 0)
				report_idle_head(t->a, stdout);
			putchar('\n');
		}
		r = timeline_print(t, utf8, stdout);
	}
	return r < 0 ? base_fail_errno(err, r, "cannot print the table") : 0;
}

static struct json_object *json_counts(const struct timeline *t, const uint64_t *count)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < t->slices.nr; i++)
		json_object_array_add(list, json_object_new_uint64(count[i]));
	return list;
}

/* @at NULL: the row of all others. */
static struct json_object *json_row(const struct timeline *t, const struct timeline_row *at,
				    uint64_t sum, const uint64_t *count)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "name", report_json_text(at ? at->name : "others"));
	if (at && at->image)
		json_object_object_add(o, "image", report_json_text(at->image));
	if (at && at->ai)
		report_json_build_id(o, at->several ? NULL : at->ai);
	json_object_object_add(o, "samples", json_object_new_uint64(sum));
	json_object_object_add(o, "slices", json_counts(t, count));
	return o;
}

static struct json_object *json_slices(const struct timeline *t)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < t->slices.nr; i++) {
		struct json_object *o = json_object_new_object();

		json_object_object_add(
			o, "begin",
			json_object_new_int64(t->slices.begin + (int64_t)i * t->slices.span));
		json_object_object_add(o, "recorded",
				       json_object_new_boolean(t->slices.recorded[i]));
		json_object_object_add(o, "samples", json_object_new_uint64(t->slices.total[i]));
		json_object_array_add(list, o);
	}
	return list;
}

/* Epochs without minutes. */
static struct json_object *json_left_out(const struct timeline *t)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < t->a->nr_epochs; i++)
		if (t->a->epochs[i].unrecorded)
			json_object_array_add(list, json_object_new_string(t->a->epochs[i].name));
	return list;
}

static int print_json(const struct timeline *t, struct base_err *err)
{
	uint64_t sums[ANALYSIS_NR_EVENTS] = { 0 }, sum, *others = timeline_others(t, &sum);
	struct json_object *rows, *root;
	int r;

	if (!others)
		return base_fail_errno(err, -ENOMEM, "cannot print");
	sums[t->event] = t->slices.sum;
	rows = json_object_new_array();
	root = report_json("dcpitimeline/1", t->a, sums);
	for (size_t i = 0; i < t->nr_shown; i++) {
		const struct slices_row *row = &t->slices.rows[t->rows[i].number];

		json_object_array_add(rows, json_row(t, &t->rows[i], row->sum, row->count));
	}
	json_object_object_add(root, "by", json_object_new_string(t->by));
	json_object_object_add(root, "event",
			       t->a->nr_events ? report_json_text(t->a->events[t->event].name)
					       : NULL);
	json_object_object_add(root, "left_out", json_left_out(t));
	if (report_seconds(t->a, NULL, t->event) > 0)
		report_idle_json(t->a, root);
	json_object_object_add(root, "notes", json_notes(t));
	json_object_object_add(root, "slice_seconds", json_object_new_int64(t->slices.span));
	json_object_object_add(root, "slices", json_slices(t));
	json_object_object_add(root, "rows", rows);
	json_object_object_add(root, "others", json_row(t, NULL, sum, others));
	json_object_object_add(root, "total", json_object_new_uint64(t->slices.sum));
	free(others);
	r = report_json_print(root, t->a, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void release(struct timeline *t, struct rows_of *x)
{
	for (size_t i = 0; i < t->nr; i++) {
		free(t->rows[i].name);
		free(t->rows[i].image);
	}
	free(t->rows);
	slices_release(&t->slices);
	image_close(x->img);
	base_map_release(&x->by_key);
	free(x->images);
	free(x->wanted);
	free(x->of_workload);
	analysis_close(t->a);
}

static int run(int nr, char **what, struct base_err *err)
{
	struct timeline t = { .by = by };
	struct rows_of x = { .t = &t };
	struct workloads w = { 0 };
	int code = BASE_EXIT_OK, r = find_by(&x, err);

	sel.minutes = true;
	if (r >= 0)
		r = report_open_workloads(&sel, &t.a, &w, err);
	x.w = t.w = w.w;
	if (r >= 0)
		r = gather(&t, &x, &w.filter, nr, what, err);
	if (r >= 0)
		r = sel.json ? print_json(&t, err) : print_text(&t, err);
	if (t.a)
		code = report_problems(cmd.name, t.a, stderr);
	release(&t, &x);
	workloads_release(&w);
	return r < 0 ? r : code;
}

static int dcpitimeline_main(int argc, char **argv)
{
	return report_main(&cmd, &sel, run, argc, argv);
}

const struct tool dcpitimeline_tool = { .cmd = &cmd, .main = dcpitimeline_main };
