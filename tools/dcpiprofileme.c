/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpiprofileme: what the hardware told of sampled instructions, by procedure or instruction. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "insn.h"
#include "listing.h"
#include "profileme.h"
#include "search.h"
#include "told.h"
#include "tools.h"

static struct select sel;
static int64_t number = 100;
static const char *metrics, *procedure;
static bool by_image, by_insn, no_header, names;

static const struct base_opt options[] = {
	SELECT_OPTIONS_DB_ALONE(sel),
	SELECT_OPTIONS_FILES(sel.files, sel.maps),
	{ "event", BASE_OPT_STRING, &sel.event, "EVENT", "Only samples of this event.", 0, 0 },
	PROFILEME_OPTION(metrics, "The columns"),
	{ "i", BASE_OPT_FLAG, &by_image, NULL, "A row for each image.", 0, 0 },
	{ "insns", BASE_OPT_FLAG, &by_insn, NULL, "A row for each instruction.", 0, 0 },
	{ "procedure", BASE_OPT_STRING, &procedure, "PROCEDURE|ADDRESS",
	  "The instructions of this procedure alone, by address.", 0, 0 },
	{ "n", BASE_OPT_INT, &number, "N", "How many rows (default: 100).", 1, 1000000 },
	{ "names", BASE_OPT_FLAG, &names, NULL, "List bits and counters, and what they mean.", 0,
	  0 },
	SELECT_OPTION_MANGLED,
	{ "no_header", BASE_OPT_FLAG, &no_header, NULL, "Leave out the lines above the table.", 0,
	  0 },
	{ "json", BASE_OPT_FLAG, &sel.json, NULL, "Print JSON with the same rows (dcpijson(5)).", 0,
	  0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpiprofileme",
	.summary = "show what the hardware told of sampled instructions",
	.operands = "[IMAGE …]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpiprofileme", "Mispredicted branches, cache misses and latencies by "
					   "procedure." },
			{ "dcpiprofileme -pm load^dcmiss,load^dcmiss:latency/load^dcmiss -insns "
			  "a.out",
			  "The loads that missed the cache most, and how long they took." },
			{ "dcpiprofileme -procedure main a.out", "Instruction by instruction." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = -1,
};

enum told_by { TOLD_BY_IMAGE, TOLD_BY_PROCEDURE, TOLD_BY_INSN };

struct told_row {
	struct analysis_image *image;
	char *procedure;    /* or what stands for it; of an image NULL */
	uint64_t vaddr;	    /* the address of the instruction, or the procedure */
	uint64_t off, into; /* where the instruction lies in its image, and in its procedure */
	bool placed;	    /* the image has that address */
	char *text;	    /* the instruction, or "" */
	char *file;	    /* its source line, or NULL */
	unsigned int line;
	struct told_values values;
};

/* Zero-initialize. */
struct told_rows {
	struct told_row *v;
	size_t nr, cap;
	struct told_values total; /* the sum of all rows */
};

struct profileme {
	struct analysis *a;
	struct isample_columns columns;
	struct analysis_founds in; /* with -procedure */
	enum told_by by;
	struct told_rows rows;
};

/* ---- rows ------------------------------------------------------------------------------------ */

/* An image whose samples are being added. */
struct adding {
	struct told_rows *rows;
	struct analysis_image *ai;
	enum told_by by;
	struct image *img;	    /* NULL: it cannot be opened */
	struct insn_disasm *disasm; /* or NULL */
	struct base_map by_start;   /* start of a procedure: index of its row + 1 */
	size_t last;		    /* index of the row before + 1; 0: none */
	uint64_t last_off;
};

static struct told_row *make_row(struct adding *x)
{
	struct told_rows *rows = x->rows;

	if (base_grow(&rows->v, &rows->cap, rows->nr + 1, sizeof(*rows->v)) < 0)
		return NULL;
	rows->v[rows->nr] = (struct told_row){ .image = x->ai };
	return &rows->v[rows->nr++];
}

static int describe_insn(struct adding *x, struct told_row *row)
{
	struct insn_line insn;
	struct image_line line;
	uint8_t code[16];
	char text[256] = "";
	size_t len;

	len = x->disasm && row->placed ? image_bytes(x->img, row->vaddr, code, sizeof(code)) : 0;
	if (len) {
		insn_disasm_one(x->disasm, code, len, row->vaddr, &insn);
		analysis_insn_text(x->img, &insn, text, sizeof(text));
	}
	row->text = strdup(text);
	if (row->placed && image_line_at(x->img, row->vaddr, &line) >= 0) {
		row->file = strdup(line.file);
		row->line = line.line;
	}
	return row->text ? 0 : -ENOMEM;
}

/* The row of samples at @off in procedure @s (may be NULL). */
static struct told_row *row_of(struct adding *x, uint64_t off, uint64_t vaddr, bool placed,
			       const struct image_symbol *s)
{
	uint64_t start = s ? s->vaddr : UINT64_MAX;
	struct told_row *row;
	void *known = NULL;

	if (x->last && (x->by == TOLD_BY_IMAGE || (x->by == TOLD_BY_INSN && x->last_off == off)))
		return &x->rows->v[x->last - 1];
	if (x->by == TOLD_BY_PROCEDURE)
		known = base_map_get(&x->by_start, &start, sizeof(start));
	if (known)
		return &x->rows->v[(uintptr_t)known - 1];
	row = make_row(x);
	if (!row)
		return NULL;
	x->last = x->rows->nr;
	x->last_off = off;
	if (x->by == TOLD_BY_IMAGE)
		return row;
	row->procedure = strdup(s ? s->name : analysis_image_label(x->ai));
	row->off = off;
	row->placed = placed;
	row->vaddr = x->by == TOLD_BY_INSN ? vaddr : start;
	row->into = s ? vaddr - s->vaddr : 0;
	if (!row->procedure || (x->by == TOLD_BY_INSN && describe_insn(x, row) < 0))
		return NULL;
	if (x->by == TOLD_BY_PROCEDURE &&
	    base_map_set(&x->by_start, &start, sizeof(start), (void *)(uintptr_t)x->rows->nr) < 0)
		return NULL;
	return row;
}

static bool is_in(const struct analysis_founds *in, const struct analysis_image *ai, uint64_t vaddr)
{
	for (size_t i = 0; i < in->nr; i++)
		if (in->v[i].image == ai && vaddr - in->v[i].vaddr < in->v[i].len)
			return true;
	return false;
}

static int add_one(struct adding *x, const struct isample_columns *c, const struct profdb_insn *m,
		   const struct analysis_founds *in)
{
	struct told_values one = { 0 };
	uint64_t vaddr = 0;
	bool placed = x->img && image_vaddr(x->img, m->off, &vaddr) >= 0;
	struct told_row *row;

	if (in && (!placed || !is_in(in, x->ai, vaddr)))
		return 0;
	row = row_of(x, m->off, vaddr, placed, placed ? image_symbol_at(x->img, vaddr) : NULL);
	if (!row)
		return -ENOMEM;
	told_add_entry(c, x->ai, m, &one);
	told_join(c, &one, &row->values);
	told_join(c, &one, &x->rows->total);
	return 0;
}

/* Adds the rows of an image; @in (may be NULL): only instructions of these procedures. 0, -ENOMEM.
 */
static int rows_add(struct told_rows *rows, const struct isample_columns *c, struct analysis *a,
		    struct analysis_image *ai, enum told_by by, const struct analysis_founds *in)
{
	struct adding x = { .rows = rows, .ai = ai, .by = by };
	size_t nr = profdb_profile_nr_insns(ai->profile);
	int r = 0;

	if (nr && (by != TOLD_BY_IMAGE || in) && analysis_image_open(a, ai, &x.img, NULL) < 0)
		x.img = NULL;
	if (x.img && by == TOLD_BY_INSN)
		insn_disasm_open(image_machine(x.img), &x.disasm, NULL);
	for (size_t i = 0; r >= 0 && i < nr; i++) {
		const struct profdb_insn *m = profdb_profile_insn(ai->profile, i);

		if (m->off != PROFDB_OUTSIDE && ai->event_of[m->event] != SIZE_MAX)
			r = add_one(&x, c, m, in);
	}
	base_map_release(&x.by_start);
	insn_disasm_close(x.disasm);
	image_close(x.img);
	return r;
}

/* ---- order ----------------------------------------------------------------------------------- */

struct key {
	double value;
	struct told_row *row;
};

static int by_address(const struct told_row *a, const struct told_row *b)
{
	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return (a->off > b->off) - (a->off < b->off);
}

static int by_value(const void *pa, const void *pb)
{
	const struct key *a = pa, *b = pb;
	int r;

	if (isnan(a->value) || isnan(b->value))
		r = isnan(a->value) - isnan(b->value);
	else
		r = (a->value < b->value) - (a->value > b->value);
	if (!r)
		r = (a->row->values.count < b->row->values.count) -
		    (a->row->values.count > b->row->values.count);
	if (!r)
		r = strcmp(a->row->image->name, b->row->image->name);
	return r ? r : by_address(a->row, b->row);
}

/* Sorts by the first column, highest first; values that are not told come last. */
static void rows_sort(struct told_rows *rows, const struct isample_columns *c)
{
	struct key *keys = calloc(rows->nr + 1, sizeof(*keys));
	struct told_row *v = calloc(rows->nr + 1, sizeof(*v));

	for (size_t i = 0; keys && i < rows->nr; i++)
		keys[i] = (struct key){ told_value(c, &rows->v[i].values, 0), &rows->v[i] };
	if (keys && v) {
		qsort(keys, rows->nr, sizeof(*keys), by_value);
		for (size_t i = 0; i < rows->nr; i++)
			v[i] = *keys[i].row;
		free(rows->v);
		rows->v = v;
		rows->cap = rows->nr + 1;
		v = NULL;
	}
	free(keys);
	free(v);
}

/* The sum of all from @first on into *@out. */
static void rows_others(const struct told_rows *rows, const struct isample_columns *c, size_t first,
			struct told_values *out)
{
	*out = (struct told_values){ 0 };
	for (size_t i = first; i < rows->nr; i++)
		told_join(c, &rows->v[i].values, out);
}

static void rows_release(struct told_rows *rows)
{
	for (size_t i = 0; i < rows->nr; i++) {
		free(rows->v[i].procedure);
		free(rows->v[i].text);
		free(rows->v[i].file);
	}
	free(rows->v);
	*rows = (struct told_rows){ 0 };
}

/* ---- gathering ------------------------------------------------------------------------------- */

static int find_procedure(struct profileme *x, int nr, char **what, struct base_err *err)
{
	if (nr > 1)
		return base_fail(err, -DCPI_EUSAGE, "-procedure takes one image at most");
	return analysis_find(x->a, procedure, nr ? what[0] : NULL, analysis_event_default(x->a),
			     &x->in, err);
}

static int gather(struct profileme *x, int nr, char **what, struct base_err *err)
{
	struct analysis_image **images = NULL;
	size_t nr_images = 0;
	int r;

	sel.whole = true;
	x->by = by_image ? TOLD_BY_IMAGE : by_insn || procedure ? TOLD_BY_INSN : TOLD_BY_PROCEDURE;
	r = isample_columns_parse(&x->columns, metrics ? metrics : PROFILEME_DEFAULT, err);
	if (r >= 0)
		r = report_open(&sel, &x->a, err);
	if (r >= 0)
		r = choose_images(x->a, nr, what, &images, &nr_images, err);
	if (r >= 0 && procedure)
		r = find_procedure(x, nr, what, err);
	for (size_t i = 0; r >= 0 && i < nr_images; i++) {
		r = rows_add(&x->rows, &x->columns, x->a, images[i], x->by,
			     procedure ? &x->in : NULL);
		if (r < 0)
			base_fail_errno(err, r, "cannot gather instruction samples");
	}
	if (r >= 0 && !procedure)
		rows_sort(&x->rows, &x->columns);
	free(images);
	return r;
}

static size_t nr_shown(const struct profileme *x)
{
	return x->rows.nr < (size_t)number ? x->rows.nr : (size_t)number;
}

/* How much of the samples of an event of the analysis is told of. */
struct told_of {
	uint64_t told;
	uint64_t roomless; /* samples of which it was told, but profiles had no room for that */
};

static struct told_of told_of(const struct analysis *a, size_t event)
{
	struct told_of t = { 0 };

	for (size_t i = 0; i < a->nr_images; i++) {
		const struct analysis_image *ai = a->images[i];

		for (size_t k = 0; k < profdb_profile_nr_insns(ai->profile); k++) {
			const struct profdb_insn *m = profdb_profile_insn(ai->profile, k);

			if (ai->event_of[m->event] != event)
				continue;
			if (m->off == PROFDB_OUTSIDE)
				t.roomless += m->count;
			else
				t.told += m->count;
		}
	}
	return t;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_head(const struct profileme *x)
{
	bool any = false;

	report_head(x->a, stdout);
	for (size_t i = 0; i < x->a->nr_events; i++) {
		struct told_of t = told_of(x->a, i);

		if (!t.told && !t.roomless)
			continue;
		printf("%-10s %s: %" PRIu64 " of %" PRIu64 " samples", any ? "" : "told of",
		       x->a->events[i].name, t.told, x->a->events[i].sum);
		if (t.roomless)
			printf(", and %" PRIu64 " for which profiles had no room", t.roomless);
		putchar('\n');
		any = true;
	}
	if (!any)
		puts("told of    no sample: its events are of no hardware that tells");
	putchar('\n');
}

static void put_heads(const struct profileme *x, struct table *t)
{
	static const char *const insns[] = { "procedure", "pc", "instruction", "image", "source" };

	profileme_heads(&x->columns, t);
	if (x->by == TOLD_BY_PROCEDURE)
		table_column(t, true, "procedure");
	for (size_t i = 0; x->by == TOLD_BY_INSN && i < sizeof(insns) / sizeof(*insns); i++)
		report_column(t, insns[i]);
	if (x->by != TOLD_BY_INSN)
		table_column(t, true, "image");
}

static void put_insn(const struct told_row *row, struct table *t)
{
	table_cell(t, "%s", demangle_shown(row->procedure));
	if (row->placed)
		table_cell(t, "0x%" PRIx64, row->vaddr);
	else
		table_cell(t, "+0x%" PRIx64, row->off);
	table_cell(t, "%s", row->text);
	table_cell(t, "%s", row->image->name);
	if (row->file)
		table_cell(t, "%s:%u", base_path_name(row->file), row->line);
	else
		table_cell(t, "%s", "");
}

static void put_row(const struct profileme *x, const struct told_row *row, struct table *t)
{
	profileme_cells(&x->columns, &row->values, t);
	if (x->by == TOLD_BY_INSN) {
		put_insn(row, t);
		return;
	}
	if (x->by == TOLD_BY_PROCEDURE)
		table_cell(t, "%s", demangle_shown(row->procedure));
	table_cell(t, "%s", row->image->name);
}

static void put_sum(const struct profileme *x, const struct told_values *v, const char *name,
		    struct table *t)
{
	static const int nr_texts[] = { 1, 2, 5 };

	profileme_cells(&x->columns, v, t);
	table_cell(t, "%s", name);
	for (int i = 1; i < nr_texts[x->by]; i++)
		table_cell(t, "%s", "");
}

static int print_text(const struct profileme *x, struct base_err *err)
{
	struct told_values others;
	struct table t = { 0 };
	size_t shown = nr_shown(x);
	int r;

	if (!no_header)
		print_head(x);
	put_heads(x, &t);
	for (size_t i = 0; i < shown; i++)
		put_row(x, &x->rows.v[i], &t);
	rows_others(&x->rows, &x->columns, shown, &others);
	if (shown < x->rows.nr)
		put_sum(x, &others, "others", &t);
	put_sum(x, &x->rows.total, "total", &t);
	r = table_print(&t, !no_header, stdout);
	table_release(&t);
	return r < 0 ? base_fail_errno(err, r, "cannot print the table") : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_object *json_row(const struct profileme *x, const struct told_row *row)
{
	struct json_object *o = profileme_json(&x->columns, &row->values);

	if (x->by != TOLD_BY_IMAGE)
		report_json_procedure(o, row->procedure);
	report_json_image(o, row->image);
	if (x->by != TOLD_BY_INSN)
		return o;
	json_object_object_add(o, "pc", row->placed ? report_json_hex(row->vaddr) : NULL);
	json_object_object_add(o, "offset", json_object_new_uint64(row->off));
	json_object_object_add(o, "into", json_object_new_uint64(row->into));
	json_object_object_add(o, "instruction", report_json_text(row->text));
	json_object_object_add(o, "file", report_json_text(row->file));
	json_object_object_add(o, "line", row->file ? json_object_new_int64(row->line) : NULL);
	return o;
}

static struct json_object *json_told(const struct profileme *x)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < x->a->nr_events; i++) {
		struct json_object *o = json_object_new_object();
		struct told_of t = told_of(x->a, i);

		json_object_object_add(o, "event", report_json_text(x->a->events[i].name));
		json_object_object_add(o, "samples", json_object_new_uint64(x->a->events[i].sum));
		json_object_object_add(o, "told", json_object_new_uint64(t.told));
		json_object_object_add(o, "without_room", json_object_new_uint64(t.roomless));
		json_object_array_add(list, o);
	}
	return list;
}

static int print_json(const struct profileme *x, struct base_err *err)
{
	uint64_t sums[ANALYSIS_NR_EVENTS];
	struct json_object *root = report_json("dcpiprofileme/1", x->a, report_sums(x->a, sums));
	struct json_object *rows = json_object_new_array();
	struct told_values others;
	int r;

	for (size_t i = 0; i < nr_shown(x); i++)
		json_object_array_add(rows, json_row(x, &x->rows.v[i]));
	rows_others(&x->rows, &x->columns, nr_shown(x), &others);
	json_object_object_add(root, "told_of", json_told(x));
	json_object_object_add(root, "rows", rows);
	json_object_object_add(root, "others", profileme_json(&x->columns, &others));
	json_object_object_add(root, "total", profileme_json(&x->columns, &x->rows.total));
	r = report_json_print(root, x->a, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

#define TEXT(id, name, text) text,

static int print_names(void)
{
	static const char *const bits[] = { ISAMPLE_BITS(TEXT) };
	static const char *const counters[] = { ISAMPLE_COUNTERS(TEXT) };

	puts("bits: ask for some by BIT^BIT, for those that are not set by !BIT");
	for (int i = 0; i < ISAMPLE_NR_BITS; i++)
		printf("  %-14s %s\n", isample_bit_name((enum isample_bit)i), bits[i]);
	puts("counters, in cycles: their sum by BITS:COUNTER, their mean by BITS:COUNTER/BITS");
	for (int i = 0; i < ISAMPLE_NR_COUNTERS; i++)
		printf("  %-14s %s\n", isample_counter_name((enum isample_counter)i), counters[i]);
	return BASE_EXIT_OK;
}

static int run(int nr, char **what, struct base_err *err)
{
	struct profileme x = { 0 };
	int code = BASE_EXIT_OK, r;

	r = gather(&x, nr, what, err);
	if (r >= 0)
		r = sel.json ? print_json(&x, err) : print_text(&x, err);
	if (x.a)
		code = report_bad(cmd.name, x.a, stderr);
	rows_release(&x.rows);
	analysis_founds_release(&x.in);
	analysis_close(x.a);
	return r < 0 ? r : code;
}

/* The names need no database. */
static int dcpiprofileme_main(int argc, char **argv)
{
	struct base_err err = { 0 };
	int r = base_opt_parse(&cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0 && names)
		return print_names();
	if (r >= 0)
		r = select_check(&sel, &err);
	if (r >= 0)
		r = run(argc, argv, &err);
	return report_end(&cmd, r, &err);
}

const struct tool dcpiprofileme_tool = { .cmd = &cmd, .main = dcpiprofileme_main };
