/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpilist: one procedure, its instructions and source lines with their samples. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "estimate.h"
#include "list.h"
#include "report.h"
#include "tools.h"

static struct select sel;
static bool want_asm, want_source, want_both, in_order, want_bytes, want_freq, no_freq, no_header;

static const struct base_opt options[] = {
	SELECT_OPTIONS(sel),
	{ "asm", BASE_OPT_FLAG, &want_asm, NULL,
	  "Instructions in order of address, source lines named where they change.", 0, 0 },
	{ "source", BASE_OPT_FLAG, &want_source, NULL, "Source lines alone.", 0, 0 },
	{ "both", BASE_OPT_FLAG, &want_both, NULL,
	  "Source lines in their order, with the instructions of each beneath it.", 0, 0 },
	{ "order", BASE_OPT_FLAG, &in_order, NULL,
	  "As -both, but in order of address: a source line above each run of its instructions.", 0,
	  0 },
	{ "bytes", BASE_OPT_FLAG, &want_bytes, NULL, "Show the instructions' bytes too.", 0, 0 },
	{ "freq", BASE_OPT_FLAG, &want_freq, NULL,
	  "Show how sure it is how often instructions ran, beside that and what one run of them "
	  "cost; fail where no event tells it.",
	  0, 0 },
	{ "no_freq", BASE_OPT_FLAG, &no_freq, NULL,
	  "Leave out how often instructions ran and what one run of them cost.", 0, 0 },
	{ "no_header", BASE_OPT_FLAG, &no_header, NULL, "Leave out the lines above the table.", 0,
	  0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpilist",
	.summary = "list one procedure's instructions and source lines with their samples",
	.operands = "PROCEDURE|ADDRESS [IMAGE]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpilist -both fib hello",
			  "Source and instructions of the routine 'fib' that the facility 'hello' "
			  "made." },
			{ "dcpilist -asm memcpy libc.so.6",
			  "Instructions of a library's procedure." },
			{ "dcpilist 0x401136 a.out", "The procedure around an address." },
			{ NULL, NULL } },
	.min_operands = 1,
	.max_operands = 2,
};

/* Source lines that are shown without code between two that have some. */
enum { CONTEXT_LINES = 6 };

/* ---- lines --------------------------------------------------------------------------------- */

static int by_line(const void *pa, const void *pb)
{
	const struct analysis_unit *a = *(struct analysis_unit *const *)pa;
	const struct analysis_unit *b = *(struct analysis_unit *const *)pb;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

static void note_indent(struct list *x, const struct analysis_unit *u)
{
	struct list_source *s = &x->sources[u->file];
	char text[256];
	size_t indent;

	if (!s->text || !list_source_text(s->text, u->line, 0, text, sizeof(text)))
		return;
	indent = strspn(text, " ");
	if (indent < s->indent)
		s->indent = indent;
}

static int open_sources(struct list *x, struct base_err *err)
{
	struct analysis_listing *l = x->l;

	x->sources = calloc(l->nr_files + 1, sizeof(*x->sources));
	x->by_line = calloc(l->nr_units + 1, sizeof(*x->by_line));
	if (!x->sources || !x->by_line)
		return base_fail_errno(err, -ENOMEM, "cannot list '%s'", l->symbol.name);
	for (size_t i = 0; i < l->nr_units; i++)
		if (l->units[i].line)
			x->by_line[x->nr_by_line++] = &l->units[i];
	qsort(x->by_line, x->nr_by_line, sizeof(*x->by_line), by_line);
	/* One that is not there is no error: its lines are shown by number. */
	for (size_t i = 0; i < l->nr_files && !want_asm; i++) {
		x->sources[i].indent = SIZE_MAX;
		image_source_open(l->files[i], &x->sources[i].text, NULL);
	}
	for (size_t i = 0; i < x->nr_by_line; i++)
		note_indent(x, x->by_line[i]);
	return 0;
}

static bool any_source(const struct list *x)
{
	for (size_t i = 0; i < x->l->nr_files; i++)
		if (x->sources[i].text)
			return true;
	return false;
}

/* ---- text ---------------------------------------------------------------------------------- */

/* @f: NULL where there is nothing to say. */
static void put_freq(struct list *x, const struct listing_freq_unit *f)
{
	static const char *const letters[] = { "", "L", "M", "H" };

	if (!x->freq.v)
		return;
	if (list_is_costed(x, f))
		table_cell(&x->t, "%.1f%s", f->units / f->freq, list_unit_name(x));
	else
		table_cell(&x->t, "%s", "");
	if (list_is_known(f))
		table_cell(&x->t, "%.0f", f->freq);
	else
		table_cell(&x->t, "%s", "");
	if (want_freq)
		table_cell(&x->t, "%s", f ? letters[f->confidence] : "");
}

static void put_counts(struct list *x, const uint64_t *count, const struct listing_freq_unit *f)
{
	for (size_t e = 0; e < x->a->nr_events; e++)
		report_cells(&x->t, count ? count[e] : 0, x->l->total[e]);
	put_freq(x, f);
}

static void put_bytes(struct list *x, const struct analysis_unit *u)
{
	char text[64] = "";

	if (!want_bytes)
		return;
	for (uint32_t i = 0; u && i < u->len && i < 16; i++)
		snprintf(text + 2 * i, sizeof(text) - 2 * i, "%02x",
			 x->l->code[u->vaddr - x->l->symbol.vaddr + i]);
	table_cell(&x->t, "%s", text);
}

/* A line that has no samples of its own: where, and what. */
static void put_note(struct list *x, const char *where, const char *text)
{
	put_counts(x, NULL, NULL);
	table_cell(&x->t, "%s", where);
	put_bytes(x, NULL);
	table_cell(&x->t, "%s", text);
}

static void put_unit(struct list *x, const struct analysis_unit *u, const char *indent)
{
	char text[512];

	put_counts(x, u->count, x->freq.v ? &x->freq.v[u - x->l->units] : NULL);
	table_cell(&x->t, "%s0x%" PRIx64 " +0x%" PRIx64, indent, u->vaddr,
		   u->vaddr - x->l->symbol.vaddr);
	put_bytes(x, u);
	analysis_unit_text(x->l, u, text, sizeof(text));
	table_cell(&x->t, "%s%s", *indent ? "        " : "", text);
}

static void put_line(struct list *x, uint32_t file, unsigned int line, const uint64_t *count,
		     const struct listing_freq_unit *f)
{
	const struct list_source *s = &x->sources[file];
	char text[1024];

	if (!s->text)
		snprintf(text, sizeof(text), "(source not found)");
	else if (!list_source_text(s->text, line, s->indent, text, sizeof(text)))
		snprintf(text, sizeof(text), "(no such line in the source)");
	put_counts(x, count, f);
	table_cell(&x->t, "%s:%u", base_path_name(x->l->files[file]), line);
	put_bytes(x, NULL);
	table_cell(&x->t, "%s", text);
}

/* "; b.c:12 (square inlined at a.c:5, cube inlined at a.c:30)" */
static int print_place(const struct list *x, const struct analysis_unit *u, struct base_buf *to)
{
	const struct analysis_stack *s = u->stack ? &x->l->stacks[u->stack - 1] : NULL;
	int r = u->line ? base_buf_printf(to, "; %s:%u", x->l->files[u->file], u->line)
			: base_buf_printf(to, "; (no source line)");

	for (size_t i = 0; s && i + 1 < s->nr && r >= 0; i++) {
		const struct image_line *call = &s->v[i + 1].at;

		r = base_buf_printf(to, "%s%s inlined", i ? ", " : " (", s->v[i].name);
		if (r >= 0 && call->line)
			r = base_buf_printf(to, " at %s:%u", call->file, call->line);
	}
	if (r >= 0 && s)
		r = base_buf_printf(to, ")");
	return r < 0 ? r : base_buf_append(to, "", 1);
}

static bool same_place(const struct analysis_unit *u, const struct analysis_unit *last)
{
	if (!last)
		return !u->line && !u->stack;
	return u->line == last->line && (!u->line || u->file == last->file) &&
	       u->stack == last->stack;
}

static void put_asm(struct list *x)
{
	const struct analysis_unit *last = NULL;

	for (size_t i = 0; i < x->l->nr_units; i++) {
		const struct analysis_unit *u = &x->l->units[i];
		struct base_buf place = { 0 };

		if (!same_place(u, last) && print_place(x, u, &place) >= 0)
			put_note(x, "", (const char *)place.data);
		base_buf_release(&place);
		put_unit(x, u, "");
		last = u;
	}
}

/* The instructions of one line, a gap marked where others lie between them. */
static void put_units(struct list *x, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		const struct analysis_unit *u = x->by_line[i];

		if (i > from && x->by_line[i - 1] + 1 != u)
			put_note(x, "  ...", "");
		put_unit(x, u, "  ");
	}
}

/* Lines without code between two with code belong to the picture, when they are few. */
static void put_between(struct list *x, const struct analysis_unit *last,
			const struct analysis_unit *next)
{
	if (!last || last->file != next->file || !x->sources[next->file].text)
		return;
	if (next->line - last->line > CONTEXT_LINES) {
		put_note(x, "...", "");
		return;
	}
	for (unsigned int line = last->line + 1; line < next->line; line++)
		put_line(x, next->file, line, NULL, NULL);
}

static void put_source(struct list *x, bool instructions)
{
	uint64_t sum[ANALYSIS_NR_EVENTS], none[ANALYSIS_NR_EVENTS] = { 0 };
	const struct analysis_unit *last = NULL;
	bool unlined = false;

	for (size_t i = 0, next; i < x->nr_by_line; i = next) {
		const struct analysis_unit *u = x->by_line[i];
		struct listing_freq_unit freq = { 0 };

		next = list_sum_line(x, i, sum);
		put_between(x, last, u);
		for (size_t k = i; k < next; k++)
			list_join_freq(x, x->by_line[k], &freq);
		put_line(x, u->file, u->line, sum, &freq);
		if (instructions)
			put_units(x, i, next);
		last = u;
	}
	for (size_t i = 0; i < x->l->nr_units; i++) {
		const struct analysis_unit *u = &x->l->units[i];

		unlined |= !u->line;
		for (size_t e = 0; !u->line && u->count && e < x->a->nr_events; e++)
			none[e] += u->count[e];
	}
	if (!unlined)
		return;
	put_counts(x, none, NULL);
	table_cell(&x->t, "%s", "");
	put_bytes(x, NULL);
	table_cell(&x->t, "%s", "(no source line)");
	for (size_t i = 0; instructions && i < x->l->nr_units; i++)
		if (!x->l->units[i].line)
			put_unit(x, &x->l->units[i], "  ");
}

/* Instructions that follow each other and come of one line; returns the index behind them. */
static size_t sum_run(const struct list *x, size_t from, uint64_t *sum)
{
	const struct analysis_unit *first = &x->l->units[from], *u;
	size_t i = from;

	memset(sum, 0, ANALYSIS_NR_EVENTS * sizeof(*sum));
	for (; i < x->l->nr_units; i++) {
		u = &x->l->units[i];
		if (u->line != first->line || (u->line && u->file != first->file))
			break;
		for (size_t e = 0; u->count && e < x->a->nr_events; e++)
			sum[e] += u->count[e];
	}
	return i;
}

static void put_order(struct list *x)
{
	uint64_t sum[ANALYSIS_NR_EVENTS];

	for (size_t i = 0, next; i < x->l->nr_units; i = next) {
		const struct analysis_unit *u = &x->l->units[i];
		struct listing_freq_unit freq = { 0 };

		next = sum_run(x, i, sum);
		for (size_t k = i; k < next; k++)
			list_join_freq(x, &x->l->units[k], &freq);
		if (u->line) {
			put_line(x, u->file, u->line, sum, &freq);
		} else {
			put_counts(x, sum, &freq);
			table_cell(&x->t, "%s", "");
			put_bytes(x, NULL);
			table_cell(&x->t, "%s", "(no source line)");
		}
		for (size_t k = i; k < next; k++)
			put_unit(x, &x->l->units[k], "  ");
	}
}

static void print_freq_head(const struct list *x)
{
	const struct listing_freq *f = &x->freq;

	printf("freq       estimated from %s, ", x->a->events[f->event].name);
	puts(f->absolute ? "executions"
			 : "in proportion only: as if each instruction took one unit");
	if (f->nr_unresolved)
		printf("           %u indirect jumps lead where is not known\n", f->nr_unresolved);
}

static void print_head(struct list *x)
{
	const struct image_symbol *s = &x->l->symbol;
	const struct base_id *id = image_id(x->l->img);
	char text[BASE_ID_TEXT_LEN], *name = NULL;

	report_head(x->a, stdout);
	if (asprintf(&name, "procedure  %s, %" PRIu64 " bytes at 0x%" PRIx64 "\nimage      %s",
		     s->name, s->len, s->vaddr, x->l->ai->name) >= 0) {
		/* Not the newline that stands there on purpose. */
		char *image = strchr(name + 11 + strlen(s->name), '\n');

		*image = '\0';
		printf("%s\n%s", table_clean(name), table_clean(image + 1));
	}
	free(name);
	if (id->len)
		printf(" (build-id %s)", base_id_text(id, text));
	putchar('\n');
	if (x->l->nr_places > 1)
		printf("places     %zu, in the images of its facility\n", x->l->nr_places);
	report_events(x->a, x->l->total, stdout);
	if (x->freq.v)
		print_freq_head(x);
	putchar('\n');
}

static int print_text(struct list *x, struct base_err *err)
{
	/* What is there decides unless told otherwise. */
	bool as_asm = want_asm || !x->nr_by_line || (!want_source && !want_both && !any_source(x));
	int r;

	if (!no_header)
		print_head(x);
	report_columns(&x->t, x->a);
	if (x->freq.v) {
		table_column(&x->t, false, "cpi");
		table_column(&x->t, false, "freq");
	}
	if (want_freq)
		table_column(&x->t, true, "C");
	table_column(&x->t, true, as_asm ? "address" : "where");
	if (want_bytes)
		table_column(&x->t, true, "bytes");
	table_column(&x->t, true,
		     as_asm	 ? "instruction"
		     : want_both ? "source and instructions"
				 : "source");
	if (as_asm)
		put_asm(x);
	else if (in_order)
		put_order(x);
	else
		put_source(x, want_both);
	put_counts(x, x->l->total, NULL);
	table_cell(&x->t, "%s", "total");
	put_bytes(x, NULL);
	table_cell(&x->t, "%s", "");
	r = table_print(&x->t, !no_header, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print the table") : 0;
}

/* ---- the command --------------------------------------------------------------------------- */

static void list_release(struct list *x)
{
	for (size_t i = 0; x->l && x->sources && i < x->l->nr_files; i++)
		image_source_close(x->sources[i].text);
	free(x->sources);
	free(x->by_line);
	table_release(&x->t);
	listing_freq_release(&x->freq);
	analysis_listing_close(x->l);
	analysis_close(x->a);
}

/* Where no event tells frequencies, or nobody the code's flow, it is an error only if they were
 * asked for: the listing does without. */
static int estimate(struct list *x, struct base_err *err)
{
	struct base_err why = { 0 };
	int r;

	if (no_freq || (!want_freq && estimate_event(x->a) < 0))
		return 0;
	r = listing_freq_make(x->l, &x->freq, &why);
	if (r == -DCPI_EUNSUPPORTED && !want_freq) {
		listing_freq_release(&x->freq);
		return 0;
	}
	if (r < 0 && !want_freq)
		base_hint(&why, "-no_freq lists without frequencies");
	if (r < 0)
		*err = why;
	return r;
}

static int run(int nr, char **what, struct base_err *err)
{
	struct list x = { 0 };
	int code = BASE_EXIT_OK, r = report_open(&sel, &x.a, err);

	if (r >= 0)
		r = choose_procedure(x.a, what[0], nr > 1 ? what[1] : NULL, &x.l, err);
	if (r >= 0)
		r = open_sources(&x, err);
	if (r >= 0)
		r = estimate(&x, err);
	if (r >= 0)
		r = sel.json ? list_print_json(&x, err) : print_text(&x, err);
	if (x.a)
		code = r < 0 && r != -EEXIST ? report_problems(cmd.name, x.a, stderr)
					     : report_bad(cmd.name, x.a, stderr);
	list_release(&x);
	return r < 0 ? r : code;
}

int dcpilist_main(int argc, char **argv)
{
	struct base_err err = { 0 };
	int r = base_opt_parse(&cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0 && in_order && (want_asm || want_source))
		r = base_fail(&err, -DCPI_EUSAGE, "-order goes with -both alone");
	want_both |= in_order;
	if (r >= 0 && want_asm + want_source + want_both > 1)
		r = base_fail(&err, -DCPI_EUSAGE, "-asm, -source and -both exclude each other");
	if (r >= 0 && want_freq && no_freq)
		r = base_fail(&err, -DCPI_EUSAGE, "-freq and -no_freq exclude each other");
	if (r >= 0)
		r = select_check(&sel, &err);
	if (r >= 0)
		r = run(argc, argv, &err);
	return report_end(&cmd, r, &err);
}
