/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of dcpilist are printed as a table. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "estimation.h"
#include "list.h"
#include "procedures.h"

/* Source lines that are shown without code between two that have some. */
enum { CONTEXT_LINES = 6 };
/* Rows without samples that -hot shows on each side of one that has some. */
enum { NEIGHBOURS = 2 };

static bool any_source(const struct list *x)
{
	for (size_t i = 0; i < x->l->nr_files; i++)
		if (x->sources[i].text)
			return true;
	return false;
}

/* Columns that would be empty are left out, but where they were asked for. */
static void find_columns(struct list *x)
{
	double most = 0;

	x->has_freq = x->has_cost = x->freq.v && x->opt->freq;
	for (size_t i = 0; x->freq.v && i < x->l->nr_units; i++) {
		x->has_freq |= list_is_known(&x->freq.v[i]);
		x->has_cost |= list_is_costed(x, &x->freq.v[i]);
		if (list_is_known(&x->freq.v[i]) && x->freq.v[i].freq > most)
			most = x->freq.v[i].freq;
	}
	x->freq_unit = x->freq.absolute || most <= 0 ? 1 : 100 / most;
}

/* @f: NULL where there is nothing to say. */
static void put_freq(struct list *x, const struct listing_freq_unit *f)
{
	static const char *const letters[] = { "", "L", "M", "H" };
	char text[32];

	if (x->has_cost && list_is_costed(x, f))
		table_cell(&x->t, "%.1f%s", f->units / f->freq, list_unit_name(x));
	else if (x->has_cost)
		table_cell(&x->t, "%s", "");
	if (list_is_known(f)) {
		estimation_text(f->freq * x->freq_unit, f->confidence, text, sizeof(text));
		table_cell(&x->t, "%s", text);
	} else if (x->has_freq) {
		table_cell(&x->t, "%s", "");
	}
	if (x->opt->freq)
		table_cell(&x->t, "%s", f ? letters[f->confidence] : "");
}

static bool is_hot(const struct list *x, const uint64_t *count)
{
	for (size_t e = 0; count && e < x->a->nr_events; e++)
		if (count[e])
			return true;
	return false;
}

/* The next row of the table. */
static void note_row(struct list *x, enum list_level level, const uint64_t *count)
{
	if (base_grow(&x->rows, &x->cap_rows, x->nr_rows + 1, sizeof(*x->rows)) < 0)
		x->t.failed = true;
	else
		x->rows[x->nr_rows++] = (struct list_row){ level, is_hot(x, count), 1 };
}

static void put_counts(struct list *x, const uint64_t *count, const struct listing_freq_unit *f)
{
	for (size_t e = 0; e < x->a->nr_events; e++)
		report_cells(&x->t, count ? count[e] : 0, x->l->total[e]);
	put_freq(x, f);
}

/* @told: NULL where the row stands for no samples. */
static void put_told(struct list *x, const struct told_values *told)
{
	profileme_cells(&x->columns, told, &x->t);
}

static void put_bytes(struct list *x, const struct analysis_unit *u)
{
	char text[64] = "";

	if (!x->opt->bytes)
		return;
	for (uint32_t i = 0; u && i < u->len && i < 16; i++)
		snprintf(text + 2 * i, sizeof(text) - 2 * i, "%02x",
			 x->l->code[u->vaddr - x->l->symbol.vaddr + i]);
	table_cell(&x->t, "%s", text);
}

/* The last columns; @u: NULL where the row is no instruction. */
static void put_values(struct list *x, const struct analysis_unit *u)
{
	struct valued_insn insn;

	if (x->values.v) {
		insn = list_insn(x, u);
		valued_cells(&x->valued, image_machine(x->l->img), &insn,
			     u ? &x->values.v[u - x->l->units] : NULL, &x->t);
	}
}

/* A line that has no samples of its own: where, and what. */
static void put_note(struct list *x, enum list_level level, const char *where, const char *text)
{
	note_row(x, level, NULL);
	put_counts(x, NULL, NULL);
	put_told(x, NULL);
	table_cell(&x->t, "%s", where);
	put_bytes(x, NULL);
	table_cell(&x->t, "%s", text);
	put_values(x, NULL);
}

static void put_unit(struct list *x, const struct analysis_unit *u, const char *indent)
{
	struct told_values told = { 0 };
	char text[512];

	list_tell(x, u, &told);
	note_row(x, LIST_BODY, u->count);
	put_counts(x, u->count, x->freq.v ? &x->freq.v[u - x->l->units] : NULL);
	put_told(x, &told);
	table_cell(&x->t, "%s0x%" PRIx64 " +0x%" PRIx64, indent, u->vaddr,
		   u->vaddr - x->l->symbol.vaddr);
	put_bytes(x, u);
	analysis_unit_text(x->l, u, text, sizeof(text));
	table_cell(&x->t, "%s%s", *indent ? "        " : "", text);
	put_values(x, u);
}

/* The level of a line that has its instructions beneath it where there are any. */
static enum list_level line_level(const struct list *x)
{
	return x->opt->as_both ? LIST_LINE : LIST_BODY;
}

/* The sum of the instructions of a source line. */
struct line_sum {
	uint64_t count[ANALYSIS_NR_EVENTS];
	struct listing_freq_unit freq;
	struct told_values told;
};

/* @sum: NULL of a line without code. */
static void put_line(struct list *x, uint32_t file, unsigned int line, const struct line_sum *sum)
{
	const struct list_source *s = &x->sources[file];
	char text[1024];

	if (!s->text)
		snprintf(text, sizeof(text), "(source not found)");
	else if (!list_source_text(s->text, line, s->indent, text, sizeof(text)))
		snprintf(text, sizeof(text), "(no such line in the source)");
	note_row(x, line_level(x), sum ? sum->count : NULL);
	put_counts(x, sum ? sum->count : NULL, sum ? &sum->freq : NULL);
	put_told(x, sum ? &sum->told : NULL);
	table_cell(&x->t, "%s:%u", base_path_name(x->l->files[file]), line);
	put_bytes(x, NULL);
	table_cell(&x->t, "%s", text);
	put_values(x, NULL);
}

static void put_unlined(struct list *x, const struct line_sum *sum, bool freq)
{
	note_row(x, line_level(x), sum->count);
	put_counts(x, sum->count, freq ? &sum->freq : NULL);
	put_told(x, &sum->told);
	table_cell(&x->t, "%s", "");
	put_bytes(x, NULL);
	table_cell(&x->t, "%s", "(no source line)");
	put_values(x, NULL);
}

/* "square inlined at a.c:5, cube inlined at a.c:30" */
static int print_stack(const struct list *x, const struct analysis_unit *u, struct base_buf *to)
{
	const struct analysis_stack *s = &x->l->stacks[u->stack - 1];
	int r = 0;

	for (size_t i = 0; i + 1 < s->nr && r >= 0; i++) {
		const struct image_line *call = &s->v[i + 1].at;

		r = base_buf_printf(to, "%s%s inlined", i ? ", " : "",
				    demangle_shown(s->v[i].name));
		if (r >= 0 && call->line)
			r = base_buf_printf(to, " at %s:%u", call->file, call->line);
	}
	return r;
}

/* "; b.c:12 (square inlined at a.c:5)" */
static int print_place(const struct list *x, const struct analysis_unit *u, struct base_buf *to)
{
	int r = u->line ? base_buf_printf(to, "; %s:%u", x->l->files[u->file], u->line)
			: base_buf_printf(to, "; (no source line)");

	if (r >= 0 && u->stack)
		r = base_buf_printf(to, " (");
	if (r >= 0 && u->stack)
		r = print_stack(x, u, to);
	if (r >= 0 && u->stack)
		r = base_buf_printf(to, ")");
	return r < 0 ? r : base_buf_append(to, "", 1);
}

/* Under the line of what is inlined: where. */
static void put_stack(struct list *x, const struct analysis_unit *u)
{
	struct base_buf text = { 0 };

	if (base_buf_printf(&text, "; ") >= 0 && print_stack(x, u, &text) >= 0 &&
	    base_buf_append(&text, "", 1) >= 0)
		put_note(x, LIST_NOTE, "", (const char *)text.data);
	base_buf_release(&text);
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
			put_note(x, LIST_NOTE, "", (const char *)place.data);
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
			put_note(x, LIST_GAP, "  ...", "");
		if (u->stack && (i == from || x->by_line[i - 1]->stack != u->stack))
			put_stack(x, u);
		put_unit(x, u, "  ");
	}
}

/* Lines without code between two with code belong to the picture, when they are few. */
static void put_between(struct list *x, const struct analysis_unit *last,
			const struct analysis_unit *next)
{
	char text[64];

	if (!last || last->file != next->file || !x->sources[next->file].text)
		return;
	if (next->line - last->line > CONTEXT_LINES) {
		snprintf(text, sizeof(text), "(%u lines left out)", next->line - last->line - 1);
		put_note(x, LIST_GAP, "...", x->opt->hot ? text : "");
		if (x->nr_rows)
			x->rows[x->nr_rows - 1].nr = next->line - last->line - 1;
		return;
	}
	for (unsigned int line = last->line + 1; line < next->line; line++)
		put_line(x, next->file, line, NULL);
}

/* All but the counts. */
static void join_unit(const struct list *x, const struct analysis_unit *u, struct line_sum *sum)
{
	list_join_freq(x, u, &sum->freq);
	list_tell(x, u, &sum->told);
}

static void put_source(struct list *x, bool instructions)
{
	const struct analysis_unit *last = NULL;
	struct line_sum none = { 0 };
	bool unlined = false;

	for (size_t i = 0, next; i < x->nr_by_line; i = next) {
		const struct analysis_unit *u = x->by_line[i];
		struct line_sum sum = { 0 };

		next = list_sum_line(x, i, sum.count);
		put_between(x, last, u);
		for (size_t k = i; k < next; k++)
			join_unit(x, x->by_line[k], &sum);
		put_line(x, u->file, u->line, &sum);
		if (instructions)
			put_units(x, i, next);
		last = u;
	}
	for (size_t i = 0; i < x->l->nr_units; i++) {
		const struct analysis_unit *u = &x->l->units[i];

		unlined |= !u->line;
		for (size_t e = 0; !u->line && u->count && e < x->a->nr_events; e++)
			none.count[e] += u->count[e];
		if (!u->line)
			list_tell(x, u, &none.told);
	}
	if (!unlined)
		return;
	put_unlined(x, &none, false);
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
	for (size_t i = 0, next; i < x->l->nr_units; i = next) {
		const struct analysis_unit *u = &x->l->units[i];
		struct line_sum sum = { 0 };

		next = sum_run(x, i, sum.count);
		for (size_t k = i; k < next; k++)
			join_unit(x, &x->l->units[k], &sum);
		if (u->line)
			put_line(x, u->file, u->line, &sum);
		else
			put_unlined(x, &sum, true);
		for (size_t k = i; k < next; k++)
			put_unit(x, &x->l->units[k], "  ");
	}
}

/* ---- what -hot leaves out -------------------------------------------------------------------- */

struct gaps {
	struct list *x;
	const struct list_row *rows; /* as they were */
};

static void put_gap(void *ctx, size_t from, size_t to)
{
	const struct gaps *g = ctx;
	bool lines = !g->x->opt->as_both && g->x->is_source;
	char text[64];
	size_t nr = 0;

	for (size_t i = from; i < to; i++)
		nr += lines || g->rows[i].level == LIST_BODY ? g->rows[i].nr : 0;
	if (!nr)
		return;
	snprintf(text, sizeof(text), "(%zu %s%s left out)", nr, lines ? "line" : "instruction",
		 nr == 1 ? "" : "s");
	put_note(g->x, LIST_GAP, "...", text);
}

/* Rows with samples, and their neighbours. */
static void spread(const bool *hot, size_t nr, bool *keep)
{
	for (size_t i = 0; i < nr; i++) {
		size_t from = i > NEIGHBOURS ? i - NEIGHBOURS : 0;

		keep[i] = false;
		for (size_t k = from; k < nr && k <= i + NEIGHBOURS; k++)
			keep[i] |= hot[k];
	}
}

/* Keeps what stands above the kept row @at; nothing above @from is looked at, which was done for
 * the kept row there. */
static void keep_above(const struct list *x, size_t from, size_t at, bool *keep)
{
	bool noted = false;

	while (at-- > from) {
		enum list_level level = x->rows[at].level;

		if (level == LIST_LINE || (level == LIST_NOTE && !noted))
			keep[at] = true;
		if (level == LIST_LINE)
			break;
		noted |= level == LIST_NOTE;
	}
}

static void keep_rows(const struct list *x, bool *keep, bool *hot, bool *kept)
{
	size_t nr = 0, at = 0, last = 0;

	for (size_t i = 0; i < x->nr_rows; i++)
		if (x->rows[i].level == LIST_BODY)
			hot[nr++] = x->rows[i].hot;
	spread(hot, nr, kept);
	for (size_t i = 0; i < x->nr_rows; i++) {
		if (x->rows[i].level != LIST_BODY)
			continue;
		keep[i] = kept[at++];
		if (keep[i] && (!i || !keep[i - 1] || x->rows[i - 1].level != LIST_BODY))
			keep_above(x, last, i, keep);
		if (keep[i])
			last = i;
	}
	for (size_t i = 1; i + 1 < x->nr_rows; i++)
		if (x->rows[i].level == LIST_GAP)
			keep[i] = keep[i - 1] && keep[i + 1];
}

static void leave_out_cold(struct list *x)
{
	bool *v = calloc(3 * x->nr_rows + 1, sizeof(*v));
	struct gaps g = { x, x->rows };

	if (!v) {
		x->t.failed = true;
		return;
	}
	keep_rows(x, v, v + x->nr_rows, v + 2 * x->nr_rows);
	/* The rows that say so are rows, too. */
	x->rows = NULL;
	x->nr_rows = x->cap_rows = 0;
	table_leave_out(&x->t, v, put_gap, &g);
	free((void *)g.rows);
	free(v);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Where that is less than half of the samples. */
static void print_covered(const struct list *x)
{
	const struct listing_freq *f = &x->freq;
	uint64_t sum = 0, all = x->l->total[f->cost_event];

	for (size_t i = 0; i < x->l->nr_units; i++)
		if (list_is_known(&f->v[i]) && x->l->units[i].count)
			sum += x->l->units[i].count[f->cost_event];
	/* Without code no event helps. */
	if (sum >= all - all / 2 || !x->l->disasm)
		return;
	fputs("           ", stdout);
	if (x->has_freq)
		printf("known for %.2f %% of the samples alone: ", 100 * (double)sum / (double)all);
	printf("%s; 'dcpicalc -conf_low' takes any\n", estimate_remedy(f->traces));
}

static void print_freq_head(const struct list *x)
{
	const struct listing_freq *f = &x->freq;

	if (f->traces)
		printf("freq       from %" PRIu64 " traces of the image, ", f->traces);
	else if (estimate_by_retired(x->a, f->event))
		printf("freq       measured: retired instruction samples of %s times their "
		       "period, ",
		       x->a->events[f->event].name);
	else
		printf("freq       estimated from %s, ", x->a->events[f->event].name);
	puts(!x->has_freq  ? "but known of no instruction well enough"
	     : f->traces   ? "in proportion within the procedure only"
	     : f->absolute ? "executions"
			   : "in proportion only: as if each instruction took one unit");
	if (x->has_freq && !f->absolute)
		puts("           100 is what ran most; the last digit is not known");
	print_covered(x);
	if (x->a->moves_dropped)
		puts("           without instruction traces, which are not kept by workload or "
		     "minute");
	if (f->nr_unresolved)
		printf("           %u indirect jumps lead where is not known\n", f->nr_unresolved);
}

static void print_head(struct list *x)
{
	const struct image_symbol *s = &x->l->symbol;
	const struct base_id *id = image_id(x->l->img);
	const char *shown = demangle_shown(s->name);
	char text[BASE_ID_TEXT_LEN], *name = NULL;

	report_head(x->a, stdout);
	if (asprintf(&name, "procedure  %s, %" PRIu64 " bytes at 0x%" PRIx64 "\nimage      %s",
		     shown, s->len, s->vaddr, x->l->ai->name) >= 0) {
		/* Not the newline that stands there on purpose. */
		char *image = strchr(name + 11 + strlen(shown), '\n');

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
	for (size_t e = 0; e < x->a->nr_events; e++)
		report_seconds_line(x->a, e, x->l->total[e], stdout);
	if (x->freq.v)
		print_freq_head(x);
	if (x->values.v)
		valued_head(&x->valued, x->values.total, stdout);
	putchar('\n');
}

static void put_total_values(struct list *x)
{
	if (!x->values.v)
		return;
	table_cell(&x->t, "%" PRIu64, x->values.total);
	for (int i = 0; i < 3; i++)
		table_cell(&x->t, "%s", "");
}

int list_print_text(struct list *x, struct base_err *err)
{
	/* The available information decides the form unless an option does. */
	bool plain = x->opt->as_asm || !x->nr_by_line ||
		     (!x->opt->as_source && !x->opt->as_both && !any_source(x));
	struct told_values told = { 0 };
	int r;

	x->is_source = !plain;
	find_columns(x);
	if (!x->opt->no_header)
		print_head(x);
	report_columns(&x->t, x->a);
	if (x->has_cost)
		table_column(&x->t, false, "cpi");
	if (x->has_freq)
		table_column(&x->t, false, "freq");
	if (x->opt->freq)
		table_column(&x->t, true, "C");
	profileme_heads(&x->columns, &x->t);
	table_column(&x->t, true, plain ? "address" : "where");
	if (x->opt->bytes)
		table_column(&x->t, true, "bytes");
	table_column(&x->t, true,
		     plain	       ? "instruction"
		     : x->opt->as_both ? "source and instructions"
				       : "source");
	table_code(&x->t);
	if (x->values.v)
		valued_columns(&x->t);
	if (plain)
		put_asm(x);
	else if (x->opt->in_order)
		put_order(x);
	else
		put_source(x, x->opt->as_both);
	if (x->opt->hot)
		leave_out_cold(x);
	put_counts(x, x->l->total, NULL);
	list_tell(x, NULL, &told);
	put_told(x, &told);
	table_cell(&x->t, "%s", "total");
	put_bytes(x, NULL);
	table_cell(&x->t, "%s", "");
	put_total_values(x);
	r = table_print(&x->t, !x->opt->no_header, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print the table") : 0;
}
