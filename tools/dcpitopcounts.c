/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpitopcounts: the instructions, or source lines, with most samples, whatever they are in. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "choose.h"
#include "code.h"
#include "list.h"
#include "listing.h"
#include "profileme.h"
#include "progress.h"
#include "report.h"
#include "samples.h"
#include "tools.h"

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

/* An address, or a source line, with samples. */
struct top_row {
	struct analysis_image *image;
	uint64_t off;	 /* offset as in the profile */
	bool placed;	 /* the image was opened and has the address */
	uint64_t vaddr;	 /* the address, if @placed */
	char *procedure; /* or the text in its place; of a line the one with its hottest address */
	size_t nr_procedures; /* of a line: number of procedures that have samples of it */
	uint64_t hottest;     /* of a line: samples of that address */
	uint64_t into;	      /* offset from its start in bytes */
	char *text;	      /* the instruction, or "(reason for its absence)"; NULL: not placed */
	char *file;	      /* NULL: no line */
	unsigned int line;
	char *program;	 /* of a line: the one that ran all its code (image_program), or NULL */
	bool trusted;	 /* of a line: all images that it is of are (image_source_trusted) */
	uint64_t *count; /* indexed by event */
};

struct top {
	struct top_row *v; /* most samples first; ties by the other events, image, offset */
	size_t nr;
	size_t nr_events;
	uint64_t *total,
		*others;  /* indexed by event: sums of the images; sums outside of the rows */
	size_t nr_others; /* number of addresses or lines outside of the rows */
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

enum { INSN_MAX = 16, CODE_MAX = 16 << 20 };

struct sort {
	size_t event, nr_events;
};

/* ---- the addresses --------------------------------------------------------------------------- */

static int compare(const void *pa, const void *pb, void *ctx)
{
	const struct top_row *a = pa, *b = pb;
	const struct sort *s = ctx;
	int r;

	if (a->count[s->event] != b->count[s->event])
		return a->count[s->event] > b->count[s->event] ? -1 : 1;
	for (size_t i = 0; i < s->nr_events; i++)
		if (a->count[i] != b->count[i])
			return a->count[i] > b->count[i] ? -1 : 1;
	r = strcmp(a->image->name, b->image->name);
	return r ? r : (a->off > b->off) - (a->off < b->off);
}

static void row_release(struct top_row *row)
{
	free(row->procedure);
	free(row->text);
	free(row->file);
	free(row->program);
	free(row->count);
}

/* Keeps up to twice the wanted number, and drops the lesser half when that is full: a browser
 * has millions of addresses. */
static void drop(struct top *t, size_t max, struct sort *s)
{
	qsort_r(t->v, t->nr, sizeof(*t->v), compare, s);
	for (; t->nr > max; t->nr--) {
		row_release(&t->v[t->nr - 1]);
		t->nr_others++;
	}
}

static int add_entry(struct top *t, struct analysis_image *ai, const struct profdb_entry *e,
		     size_t event)
{
	uint64_t *count = calloc(t->nr_events + 1, sizeof(*count));

	if (!count)
		return -ENOMEM;
	analysis_entry_add(ai, e, count, t->total);
	if (!count[event]) {
		for (size_t i = 0; i < t->nr_events; i++)
			if (count[i]) {
				t->nr_others++;
				break;
			}
		free(count);
		return 0;
	}
	t->v[t->nr++] = (struct top_row){ .image = ai, .off = e->off, .count = count };
	return 0;
}

static int collect(struct top *t, struct analysis_image *const *images, size_t nr_images,
		   size_t max, struct sort *s)
{
	int r = 0;

	for (size_t i = 0; i < nr_images; i++) {
		const struct profdb_profile *p = images[i]->profile;

		for (size_t k = 0; k < profdb_profile_nr_entries(p) && r >= 0; k++) {
			r = add_entry(t, images[i], profdb_profile_entry(p, k), s->event);
			if (t->nr == 2 * max)
				drop(t, max, s);
		}
	}
	drop(t, max, s);
	return r;
}

/* ---- their instructions ---------------------------------------------------------------------- */

static const char *label(struct analysis_image *ai)
{
	const struct analysis_row row = { .image = ai };

	return analysis_row_label(&row);
}

/* Decodes from the procedure's start, the only known start of an instruction. */
static void find_instruction(struct image *img, struct insn_disasm *d, const uint8_t *code,
			     size_t len, uint64_t start, uint64_t vaddr, char *text,
			     size_t text_len)
{
	struct insn_line insn;
	uint64_t at = start;

	for (; at - start < len && at <= vaddr; at += insn.len) {
		insn_disasm_one(d, code + (at - start), len - (at - start), at, &insn);
		if (at == vaddr) {
			analysis_insn_text(img, &insn, text, text_len);
			return;
		}
	}
	snprintf(text, text_len, "%s",
		 at > vaddr ? "(inside an instruction)" : "(no bytes of this code)");
}

static char *instruction(struct image *img, struct insn_disasm *d, const struct image_symbol *s,
			 uint64_t vaddr)
{
	uint64_t start = s ? s->vaddr : vaddr, len = vaddr - start + INSN_MAX;
	char text[512] = "(this code cannot be disassembled here)";
	uint8_t *code;

	if (s && len > s->len)
		len = s->len;
	if (!d || len > CODE_MAX)
		return strdup(text);
	code = malloc(len);
	if (!code)
		return NULL;
	find_instruction(img, d, code, analysis_code_bytes(img, start, code, len), start, vaddr,
			 text, sizeof(text));
	free(code);
	return strdup(text);
}

static int resolve(struct top_row *row, struct image *img, struct insn_disasm *d)
{
	const struct image_symbol *s;
	struct image_line line;

	row->placed = img && image_vaddr(img, row->off, &row->vaddr) >= 0;
	s = row->placed ? image_symbol_at(img, row->vaddr) : NULL;
	row->procedure = strdup(s ? s->name : label(row->image));
	if (!row->procedure)
		return -ENOMEM;
	if (!row->placed)
		return 0;
	row->into = s ? row->vaddr - s->vaddr : 0;
	row->text = instruction(img, d, s, row->vaddr);
	if (!row->text)
		return -ENOMEM;
	if (image_line_at(img, row->vaddr, &line) >= 0) {
		row->file = strdup(line.file);
		row->line = line.line;
	}
	return 0;
}

static int by_image(const void *pa, const void *pb)
{
	const struct top_row *a = *(struct top_row *const *)pa, *b = *(struct top_row *const *)pb;

	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	return (a->off > b->off) - (a->off < b->off);
}

/* Resolves the rows of one image, which is opened once. */
static int resolve_image(struct analysis *a, struct top_row **rows, size_t nr)
{
	struct insn_disasm *d = NULL;
	struct image *img = NULL;
	int r = 0;

	if (analysis_image_open(a, rows[0]->image, &img, NULL) >= 0)
		insn_disasm_open(image_machine(img), &d, NULL);
	for (size_t i = 0; i < nr && r >= 0; i++)
		r = resolve(rows[i], img, d);
	insn_disasm_close(d);
	image_close(img);
	return r;
}

static int resolve_all(struct analysis *a, struct top *t)
{
	struct top_row **rows = calloc(t->nr + 1, sizeof(*rows));
	int r = rows ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < t->nr; i++)
		rows[i] = &t->v[i];
	if (rows)
		qsort(rows, t->nr, sizeof(*rows), by_image);
	for (size_t i = 0, next; r >= 0 && i < t->nr; i = next) {
		progress_show("reading instructions", i, t->nr);
		for (next = i + 1; next < t->nr && rows[next]->image == rows[i]->image;)
			next++;
		r = resolve_image(a, rows + i, next - i);
	}
	progress_show("reading instructions", 1, 1);
	free(rows);
	return r;
}

/* ---- source lines ---------------------------------------------------------------------------- */

struct lines {
	struct analysis *a;
	struct top *t;
	size_t event, cap;
	struct base_map rows;	    /* by what a row stands for: its index + 1 */
	struct base_map procedures; /* by index and procedure: that it is counted in that row */
};

/* An entry of a profile, and where it is. */
struct placed {
	struct analysis_image *image;
	const struct profdb_entry *entry;
	const char *procedure; /* or the text in its place */
	struct image_line line;
	const char *program;
	bool trusted;
};

/* A line, or a procedure without lines, of an image or facility. */
static int key_of(const struct placed *p, struct base_buf *key)
{
	const char *facility = p->image->facility;
	int r = facility ? base_buf_append(key, facility, strlen(facility) + 1)
			 : base_buf_append(key, &p->image, sizeof(struct analysis_image *));

	if (r < 0)
		return r;
	return p->line.file ? base_buf_printf(key, "l%u %s", p->line.line, p->line.file)
			    : base_buf_printf(key, "p%s", p->procedure);
}

static int add_line(struct lines *x, const struct placed *p, size_t *at)
{
	struct top *t = x->t;
	struct top_row row = {
		.image = p->image, .off = p->entry->off, .line = p->line.line, .trusted = p->trusted
	};
	int r = base_grow(&t->v, &x->cap, t->nr + 1, sizeof(*t->v));

	row.count = calloc(t->nr_events + 1, sizeof(*row.count));
	row.procedure = strdup(p->procedure);
	row.file = p->line.file ? strdup(p->line.file) : NULL;
	row.program = p->program ? strdup(p->program) : NULL;
	if (r < 0 || !row.count || !row.procedure || (p->line.file && !row.file)) {
		row_release(&row);
		return -ENOMEM;
	}
	t->v[t->nr] = row;
	*at = ++t->nr;
	return 0;
}

static int find_line(struct lines *x, const struct placed *p, size_t *at)
{
	struct base_buf key = { 0 };
	int r = key_of(p, &key);

	if (r >= 0)
		*at = (size_t)(uintptr_t)base_map_get(&x->rows, key.data, key.len);
	if (r >= 0 && !*at)
		r = add_line(x, p, at);
	if (r >= 0)
		r = base_map_set(&x->rows, key.data, key.len, (void *)(uintptr_t)*at);
	base_buf_release(&key);
	return r;
}

/* Notes whose code it is; the procedure with the hottest address stands for all. */
static int note_procedure(struct lines *x, size_t at, const char *name, uint64_t count)
{
	struct top_row *row = &x->t->v[at - 1];
	struct base_buf key = { 0 };
	int r = base_buf_printf(&key, "%zu %s", at, name);

	if (r >= 0 && !base_map_get(&x->procedures, key.data, key.len)) {
		row->nr_procedures++;
		r = base_map_set(&x->procedures, key.data, key.len, x);
	}
	base_buf_release(&key);
	if (r < 0 || count <= row->hottest)
		return r;
	row->hottest = count;
	if (strcmp(row->procedure, name) != 0) {
		free(row->procedure);
		row->procedure = strdup(name);
	}
	return row->procedure ? 0 : -ENOMEM;
}

static void note_image(struct top_row *row, const struct placed *p)
{
	row->trusted &= p->trusted;
	if (row->program && (!p->program || strcmp(row->program, p->program) != 0)) {
		free(row->program);
		row->program = NULL;
	}
}

static int count_line(struct lines *x, const struct placed *p)
{
	uint64_t before, *count;
	size_t at = 0;
	int r = find_line(x, p, &at);

	if (r < 0)
		return r;
	note_image(&x->t->v[at - 1], p);
	count = x->t->v[at - 1].count;
	before = count[x->event];
	analysis_entry_add(p->image, p->entry, count, x->t->total);
	return note_procedure(x, at, p->procedure, count[x->event] - before);
}

static int count_lines(struct lines *x, struct analysis_image *ai)
{
	struct image *img = NULL;
	bool trusted = analysis_image_open(x->a, ai, &img, NULL) >= 0 && image_source_trusted(img);
	const char *program = img ? image_program(img) : NULL;
	int r = 0;

	for (size_t i = 0; i < profdb_profile_nr_entries(ai->profile) && r >= 0; i++) {
		struct placed p = { ai,	       profdb_profile_entry(ai->profile, i),
				    label(ai), { 0 },
				    program,   trusted };
		const struct image_symbol *s = NULL;
		uint64_t vaddr;

		if (!analysis_entry_wanted(ai, p.entry))
			continue;
		if (img && image_vaddr(img, p.entry->off, &vaddr) >= 0) {
			s = image_symbol_at(img, vaddr);
			p.procedure = s ? s->name : p.procedure;
			if (image_line_at(img, vaddr, &p.line) < 0)
				p.line = (struct image_line){ 0 };
		}
		r = count_line(x, &p);
	}
	image_close(img);
	return r;
}

/* Rows without samples of the event are last. */
static void drop_unsampled(struct top *t, size_t event)
{
	for (; t->nr && !t->v[t->nr - 1].count[event]; t->nr--) {
		row_release(&t->v[t->nr - 1]);
		t->nr_others++;
	}
}

/* ---- all ------------------------------------------------------------------------------------- */

static int begin(const struct analysis *a, size_t room, struct top *out)
{
	out->nr_events = a->nr_events;
	out->total = calloc(a->nr_events + 1, sizeof(*out->total));
	out->others = calloc(a->nr_events + 1, sizeof(*out->others));
	out->v = calloc(room + 1, sizeof(*out->v));
	return out->total && out->others && out->v ? 0 : -ENOMEM;
}

static void sum_others(struct top *t)
{
	for (size_t e = 0; e < t->nr_events; e++) {
		t->others[e] = t->total[e];
		for (size_t i = 0; i < t->nr; i++)
			t->others[e] -= t->v[i].count[e];
	}
}

/*
 * Finds the @max addresses of @images with the most samples of @event; addresses without any are
 * left out. Images that cannot be opened have rows too, and their state has the reason. The caller
 * zero-initializes @out and releases it, also on failure. 0 or -ENOMEM.
 */
static int top_make(struct analysis *a, struct analysis_image *const *images, size_t nr_images,
		    size_t event, size_t max, struct top *out)
{
	struct sort s = { event, a->nr_events };
	int r = begin(a, 2 * max, out);

	if (r >= 0)
		r = collect(out, images, nr_images, max, &s);
	if (r >= 0)
		r = resolve_all(a, out);
	if (r >= 0)
		sum_others(out);
	return r;
}

/*
 * The same for source lines. Lines of one name in two images are two, but for pseudo-images of one
 * facility; what has no line is a row for each procedure.
 */
static int top_make_lines(struct analysis *a, struct analysis_image *const *images,
			  size_t nr_images, size_t event, size_t max, struct top *out)
{
	struct lines x = { .a = a, .t = out, .event = event, .cap = 1 };
	struct sort s = { event, a->nr_events };
	int r = begin(a, 0, out);

	for (size_t i = 0; i < nr_images && r >= 0; i++) {
		progress_show("finding lines", i, nr_images);
		r = count_lines(&x, images[i]);
	}
	progress_show("finding lines", 1, 1);
	base_map_release(&x.rows);
	base_map_release(&x.procedures);
	if (r < 0)
		return r;
	drop(out, max, &s);
	drop_unsampled(out, event);
	sum_others(out);
	return 0;
}

static void top_release(struct top *t)
{
	for (size_t i = 0; i < t->nr; i++)
		row_release(&t->v[i]);
	free(t->v);
	free(t->total);
	free(t->others);
	memset(t, 0, sizeof(*t));
}

/* ---- sources --------------------------------------------------------------------------------- */

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

/* ---- text ------------------------------------------------------------------------------------ */

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

/* Adds the samples of @ai at offsets from @from up to @to, the last one included. */
static void add_told(const struct isample_columns *c, const struct analysis_image *ai,
		     uint64_t from, uint64_t to, struct told_values *v)
{
	const struct profdb_profile *p = ai->profile;
	size_t nr = profdb_profile_nr_insns(p);

	for (size_t i = BASE_BOUND(k, nr, profdb_profile_insn(p, k)->off < from); i < nr; i++) {
		const struct profdb_insn *m = profdb_profile_insn(p, i);

		if (m->off > to)
			break;
		told_add_entry(c, ai, m, v);
	}
}

/* @row: NULL for others, which have none. */
static void put_metrics(const struct counts *x, struct table *t, const struct top_row *row)
{
	struct told_values v = { 0 };

	if (row)
		add_told(&x->columns, row->image, row->off, row->off, &v);
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

/* ---- JSON ------------------------------------------------------------------------------------ */

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

		add_told(&x->columns, row->image, row->off, row->off, &v);
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

/* ---- the command ----------------------------------------------------------------------------- */

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

static int dcpitopcounts_main(int argc, char **argv)
{
	return report_main(&cmd, &sel, run, argc, argv);
}

const struct tool dcpitopcounts_tool = { .cmd = &cmd, .main = dcpitopcounts_main };
