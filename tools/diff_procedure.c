/* SPDX-License-Identifier: BSD-2-Clause */
/* Two versions of one procedure are compared, line by line. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "diff_procedure.h"
#include "estimate.h"
#include "compare.h"
#include "report.h"

struct pair {
	const struct diff_procedure *p;
	const struct set *sets;
	const size_t *event;
	struct graph_flow f[2];
	const struct analysis_listing *l[2];
	/*
	 * For a machine without a decoder only the listing is shown: samples can still be compared.
	 */
	struct analysis_listing *bare[2];
	bool same_code, by_line;
	struct align *align;   /* of lines; NULL: they are the same, or blocks are compared */
	const char *no_cpi;    /* why cpi is not known */
	unsigned int measures; /* that are shown */
	struct parts parts;
	struct compare compare;
};

/* ---- what to compare ------------------------------------------------------------------------- */

static const char *measure_name(enum compare_measure m)
{
	static const char *const names[COMPARE_NR] = {
		[COMPARE_CPI] = "cpi",
		[COMPARE_FREQUENCY] = "frequency",
		[COMPARE_STALLS] = "stalls",
		[COMPARE_STATIC] = "static_stalls",
		[COMPARE_DYNAMIC] = "dynamic_stalls",
	};

	return names[m];
}

static bool is_word(const char *name, size_t len, const char *word)
{
	return len == strlen(word) && strncmp(name, word, len) == 0;
}

/* 0: there is no such thing. */
static unsigned int measure_of(const char *name, size_t len)
{
	if (is_word(name, len, "samples"))
		return DIFF_SAMPLES;
	if (is_word(name, len, "all"))
		return DIFF_ALL;
	for (int m = 0; m < COMPARE_NR; m++)
		if (is_word(name, len, measure_name((enum compare_measure)m)))
			return 1u << m;
	return 0;
}

int diff_measures_parse(const char *list, unsigned int *measures, struct base_err *err)
{
	*measures = 0;
	for (const char *at = list;; at++) {
		size_t len = strcspn(at, ",");
		unsigned int one = measure_of(at, len);

		if (!one) {
			base_fail(err, -DCPI_EUSAGE, "cannot compare '%.*s'", (int)len, at);
			base_hint(err, "cpi, frequency, stalls, static_stalls, dynamic_stalls, "
				       "samples, all; several are joined by commas");
			return -DCPI_EUSAGE;
		}
		*measures |= one;
		at += len;
		if (!*at)
			return 0;
	}
}

/* ---- text ------------------------------------------------------------------------------------ */

static bool is_bare(const struct pair *x)
{
	return x->bare[0] || x->bare[1];
}

static void print_head(const struct pair *x)
{
	for (int i = 0; i < 2; i++) {
		const struct analysis_listing *l = x->l[i];
		char *name = NULL;

		printf("set %c\n", 'A' + i);
		report_head(l->a, stdout);
		if (asprintf(&name, "%s, %" PRIu64 " bytes at 0x%" PRIx64 " in %s",
			     demangle_shown(l->symbol.name), l->symbol.len, l->symbol.vaddr,
			     l->ai->name) >= 0)
			printf("procedure  %s\n", table_clean(name));
		free(name);
		report_event(&l->a->events[x->event[i]], l->total[x->event[i]], stdout);
		if (x->compare.text[i] && x->measures & DIFF_ALL)
			printf("freq       %s\n", x->compare.text[i]);
		putchar('\n');
	}
	printf("Compared by %s; range%% is |A - B| in percent of A + B, ratio is B / A.\n",
	       !x->by_line		      ? "basic block"
	       : !x->same_code		      ? "source line, as the code is not the same"
	       : is_bare(x) && !x->p->by_line ? "source line, as the flow of this code is not known"
					      : "source line");
	if (x->align)
		printf("Lines match by %s.\n", align_text(x->align));
}

/* @known: of A and B. A range is told where both are known and one is not nought. */
static void put_ratios(struct table *t, const double v[2], const bool known[2], int decimals)
{
	bool both = known[0] && known[1];

	if (both && v[0] + v[1] > 0)
		table_cell(t, "%.2f%%", 100 * fabs(v[0] - v[1]) / (v[0] + v[1]));
	else
		table_cell(t, "%s", "");
	for (int i = 0; i < 2; i++) {
		if (known[i])
			table_cell(t, "%.*f", decimals, v[i]);
		else
			table_cell(t, "%s", "");
	}
	if (both && v[0] > 0)
		table_cell(t, "%.3f", v[1] / v[0]);
	else
		table_cell(t, "%s", "");
}

static void put_counts(struct table *t, const uint64_t count[2])
{
	const double v[2] = { (double)count[0], (double)count[1] };

	put_ratios(t, v, (const bool[2]){ true, true }, 0);
}

static void put_source(struct table *t, const struct parts_row *row)
{
	const char *file = row->file ? base_path_name(row->file) : NULL;

	if (!file)
		table_cell(t, "%s", "(no source line)");
	else if (row->line[0] == row->line[1])
		table_cell(t, "%s:%u", file, row->line[0]);
	else if (row->line[0] && row->line[1])
		table_cell(t, "%s:%u (B: %u)", file, row->line[0], row->line[1]);
	else
		table_cell(t, "%s:%u (%c alone)", file, row->line[!row->line[0]],
			   row->line[0] ? 'A' : 'B');
}

static void put_place(const struct pair *x, struct table *t, const struct parts_row *row)
{
	if (!x->by_line && row->end)
		table_cell(t, "+0x%" PRIx64 "..+0x%" PRIx64, row->from, row->end);
	else if (!x->by_line)
		table_cell(t, "%s", "(no block)");
	put_source(t, row);
}

static void put_columns(const struct pair *x, struct table *t, bool verbose)
{
	static const char *const heads[] = { "range%", "A", "B", "ratio" };

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		table_column(t, false, heads[i]);
	if (verbose) {
		table_column(t, false, "samples A");
		table_column(t, false, "samples B");
		table_column(t, true, "C A");
		table_column(t, true, "C B");
	}
	if (!x->by_line)
		table_column(t, true, "block");
	table_column(t, true, "source");
}

static int print_table(const struct pair *x, struct table *t, struct base_err *err)
{
	int r = table_print(t, !x->p->no_header, stdout);

	table_release(t);
	return r < 0 ? base_fail_errno(err, r, "cannot print the table") : 0;
}

static int print_samples(const struct pair *x, struct base_err *err)
{
	struct table t = { 0 };

	put_columns(x, &t, false);
	for (size_t i = 0; i < x->parts.nr; i++) {
		put_counts(&t, x->parts.v[i].count);
		put_place(x, &t, &x->parts.v[i]);
	}
	put_counts(&t, x->parts.total);
	table_cell(&t, "%s", "total");
	if (!x->by_line)
		table_cell(&t, "%s", "");
	return print_table(x, &t, err);
}

static void put_verbose(struct table *t, const struct compare_place *place)
{
	static const char *const letters[] = { "", "L", "M", "H" };

	for (int i = 0; i < 2; i++)
		table_cell(t, "%" PRIu64, place->at.count[i]);
	for (int i = 0; i < 2; i++)
		table_cell(t, "%s", letters[place->sum[i].confidence]);
}

static int print_measure(const struct pair *x, enum compare_measure m, struct base_err *err)
{
	struct compare_row *rows;
	int nr = compare_rows(&x->compare, m, &rows);
	struct table t = { 0 };

	if (nr < 0)
		return base_fail_errno(err, nr, "cannot compare");
	put_columns(x, &t, x->p->verbose);
	for (int i = 0; i < nr; i++) {
		put_ratios(&t, rows[i].value, rows[i].known, m == COMPARE_FREQUENCY ? 0 : 2);
		if (x->p->verbose)
			put_verbose(&t, rows[i].place);
		put_place(x, &t, &rows[i].place->at);
	}
	free(rows);
	return print_table(x, &t, err);
}

/* In what the measure is; of stalls and cycles by the event of A, which B's is compared with. */
static void unit_text(const struct pair *x, enum compare_measure m, char *text, size_t len)
{
	const char *event = x->l[0]->a->events[x->event[0]].name;
	const char *unit = estimate_is_cycles(event) ? "cycles" : "nanoseconds";

	if (m == COMPARE_FREQUENCY)
		snprintf(text, len, "%s",
			 compare_absolute(&x->compare) ? "executions"
			 : x->compare.traces[0] || x->compare.traces[1]
				 ? "in proportion within each set"
				 : "in proportion within each set, as if each instruction took one "
				   "unit");
	else if (m == COMPARE_CPI)
		snprintf(text, len, "%s of an instruction", unit);
	else
		snprintf(text, len, "%s%s%s", compare_absolute(&x->compare) ? unit : "samples",
			 compare_absolute(&x->compare) ? " of an execution"
						       : " in all, as executions are not known",
			 m == COMPARE_STATIC	? "; those that no cause explains"
			 : m == COMPARE_DYNAMIC ? "; those that have causes"
						: "");
}

/* Several need names even without a header. */
static bool is_titled(const struct pair *x)
{
	return !x->p->no_header || (x->measures & (x->measures - 1));
}

static void print_title(const struct pair *x, enum compare_measure m, const char *why, bool first)
{
	char text[128];

	if (!is_titled(x) && !why)
		return;
	if (!first || !x->p->no_header)
		putchar('\n');
	unit_text(x, m, text, sizeof(text));
	printf("%s: %s%s\n", measure_name(m), why ? "not known: " : "", why ? why : text);
	if (!why && !x->p->no_header)
		putchar('\n');
}

static void print_samples_title(const struct pair *x)
{
	const char *why = x->p->measures ? NULL : x->no_cpi;

	if (is_titled(x))
		printf("\nsamples%s%s\n%s", why ? ", as cpi is not known: " : "", why ? why : "",
		       x->p->no_header ? "" : "\n");
}

/* Returns why the measure is not known of both sets, or NULL if it is. */
static const char *why_unknown(const struct compare *c, enum compare_measure m)
{
	if (m != COMPARE_FREQUENCY && !(c->timed[0] && c->timed[1]))
		return "the event is not of time";
	if (m != COMPARE_FREQUENCY && c->apart)
		return "one set has cycles, the other nanoseconds";
	if (m == COMPARE_FREQUENCY && !(c->known[0] && c->known[1]))
		return "no event tells how often code ran";
	if (m == COMPARE_CPI && !compare_absolute(c))
		return "executions are not known";
	return NULL;
}

static int print_text(const struct pair *x, struct base_err *err)
{
	bool first = true;
	int r = 0;

	if (!x->p->no_header)
		print_head(x);
	for (int m = 0; m < COMPARE_NR && r >= 0; m++) {
		const char *why = why_unknown(&x->compare, (enum compare_measure)m);

		if (!(x->measures >> m & 1))
			continue;
		print_title(x, (enum compare_measure)m, why, first);
		first = false;
		if (!why)
			r = print_measure(x, (enum compare_measure)m, err);
	}
	if (r >= 0 && x->measures & DIFF_SAMPLES) {
		print_samples_title(x);
		r = print_samples(x, err);
	}
	return r;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_object *json_line(unsigned int line)
{
	return line ? json_object_new_int64(line) : NULL;
}

static void json_place(const struct pair *x, const struct parts_row *row, struct json_object *o)
{
	if (!x->by_line) {
		json_object_object_add(o, "from",
				       row->end ? json_object_new_uint64(row->from) : NULL);
		json_object_object_add(o, "end",
				       row->end ? json_object_new_uint64(row->end) : NULL);
	}
	json_object_object_add(o, "file", report_json_text(row->file));
	json_object_object_add(o, "line", json_line(row->line[0]));
	if (row->line[1] != row->line[0])
		json_object_object_add(o, "line_b", json_line(row->line[1]));
}

static struct json_object *json_range(double range)
{
	char text[32];

	snprintf(text, sizeof(text), "%.8f", range);
	return json_object_new_double_s(range, text);
}

static struct json_object *json_value(double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6g", value);
	return json_object_new_double_s(value, text);
}

static struct json_object *json_row(const struct pair *x, const struct parts_row *row)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "range", json_range(row->range));
	json_object_object_add(o, "samples", sets_json_counts(row->count));
	json_place(x, row, o);
	return o;
}

static struct json_object *json_measured(const struct pair *x, const struct compare_row *row)
{
	struct json_object *o = json_object_new_object(), *sure = json_object_new_object();

	json_object_object_add(o, "range", row->range >= 0 ? json_range(row->range) : NULL);
	for (int i = 0; i < 2; i++) {
		json_object_object_add(o, i ? "b" : "a",
				       row->known[i] ? json_value(row->value[i]) : NULL);
		json_object_object_add(sure, i ? "b" : "a",
				       json_object_new_string(freq_confidence_text(
					       row->place->sum[i].confidence)));
	}
	json_object_object_add(o, "confidence", sure);
	json_object_object_add(o, "samples", sets_json_counts(row->place->at.count));
	json_place(x, &row->place->at, o);
	return o;
}

static int json_measure(const struct pair *x, enum compare_measure m, struct json_object *list)
{
	struct json_object *o = json_object_new_object(), *v = json_object_new_array();
	const char *why = why_unknown(&x->compare, m);
	struct compare_row *rows = NULL;
	int nr = why ? 0 : compare_rows(&x->compare, m, &rows);
	char text[128];

	unit_text(x, m, text, sizeof(text));
	for (int i = 0; i < nr; i++)
		json_object_array_add(v, json_measured(x, &rows[i]));
	free(rows);
	json_object_object_add(o, "measure", json_object_new_string(measure_name(m)));
	json_object_object_add(o, "unit", why ? NULL : json_object_new_string(text));
	json_object_object_add(o, "unknown", why ? json_object_new_string(why) : NULL);
	json_object_object_add(o, "rows", v);
	json_object_array_add(list, o);
	return nr < 0 ? nr : 0;
}

/* NULL: frequencies are not known. */
static struct json_object *json_freq(const struct compare *c, int set)
{
	struct json_object *o = c->text[set] ? json_object_new_object() : NULL;

	if (!o)
		return NULL;
	json_object_object_add(o, "text", json_object_new_string(c->text[set]));
	json_object_object_add(o, "executions", json_object_new_boolean(c->absolute[set]));
	if (c->traces[set])
		json_object_object_add(o, "windows", json_object_new_uint64(c->traces[set]));
	return o;
}

static struct json_object *json_set(const struct pair *x, int i)
{
	const struct analysis_listing *l = x->l[i];
	struct json_object *o = report_json(NULL, l->a, l->total);

	report_json_procedure(o, l->symbol.name);
	json_object_object_add(o, "address", report_json_hex(l->symbol.vaddr));
	report_json_image(o, l->ai);
	json_object_object_add(o, "event", report_json_text(l->a->events[x->event[i]].name));
	json_object_object_add(o, "freq", json_freq(&x->compare, i));
	report_json_problems(o, l->a);
	return o;
}

static int print_json(const struct pair *x, struct base_err *err)
{
	struct json_object *root = json_object_new_object(), *rows = json_object_new_array();
	struct json_object *measures = json_object_new_array();
	const struct analysis *a = x->l[0]->a;
	int r = 0;

	for (int m = 0; m < COMPARE_NR && r >= 0; m++)
		if (x->measures >> m & 1)
			r = json_measure(x, (enum compare_measure)m, measures);
	for (size_t i = 0; i < x->parts.nr; i++)
		json_object_array_add(rows, json_row(x, &x->parts.v[i]));
	json_object_object_add(root, "schema", json_object_new_string("dcpidiff-procedure/1"));
	json_object_object_add(root, "a", json_set(x, 0));
	json_object_object_add(root, "b", json_set(x, 1));
	json_object_object_add(root, "event", report_json_text(a->events[x->event[0]].name));
	json_object_object_add(root, "by",
			       json_object_new_string(x->by_line ? "source line" : "block"));
	json_object_object_add(root, "same_code", json_object_new_boolean(x->same_code));
	if (x->align)
		json_object_object_add(root, "lines_match",
				       json_object_new_string(align_text(x->align)));
	json_object_object_add(root, "measures", measures);
	json_object_object_add(root, "rows", rows);
	json_object_object_add(root, "total", sets_json_counts(x->parts.total));
	if (r >= 0)
		r = report_json_put(root, stdout);
	else
		json_object_put(root);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

/* ---- the comparison -------------------------------------------------------------------------- */

static bool has_flow(const struct analysis_listing *l)
{
	struct insn_decoder *d = NULL;
	int r = insn_decoder_open(image_machine(l->img), &d, NULL);

	if (r >= 0)
		insn_decoder_close(d);
	return r != -DCPI_EUNSUPPORTED;
}

static int open_procedure(struct pair *x, int i, struct base_err *err)
{
	const struct set *s = &x->sets[i];
	struct analysis_listing *l = NULL;
	int r = choose_procedure(s->a, x->p->what, s->nr_what ? s->what[0] : NULL, &l, err);

	if (r < 0)
		return r;
	x->l[i] = l;
	if (!has_flow(l) && !(x->p->measures & DIFF_ALL)) {
		x->bare[i] = l;
		return 0;
	}
	return graph_flow_open(l, &x->f[i], err);
}

static int compare_estimates(struct pair *x, struct base_err *err)
{
	const struct graph_flow *const f[2] = { &x->f[0], &x->f[1] };
	const struct compare_options o = { .by_line = x->by_line,
					   .align = x->align,
					   .least = x->p->least,
					   .outside = x->p->outside };
	int r;

	x->measures = x->p->measures;
	x->no_cpi = "the machine of this code is not known here";
	if (!is_bare(x)) {
		r = compare_procedures(f, x->event, &o, &x->compare, err);
		if (r < 0)
			return r;
		x->no_cpi = why_unknown(&x->compare, COMPARE_CPI);
	}
	if (!x->measures)
		x->measures = x->no_cpi ? DIFF_SAMPLES : 1u << COMPARE_CPI;
	return 0;
}

static int compare(struct pair *x, struct base_err *err)
{
	int r = 0;

	x->same_code = parts_same_code(x->l[0], x->l[1]);
	x->by_line = x->p->by_line || !x->same_code || is_bare(x);
	if (x->by_line && !(x->same_code && align_same_lines(x->l))) {
		const char *const paths[2] = { x->sets[0].source_path, x->sets[1].source_path };

		r = align_open(x->l, x->same_code, paths, &x->align);
	}
	if (r < 0)
		return base_fail_errno(err, r, "cannot compare lines");
	r = parts_compare(x->l, x->event, x->by_line, x->align, &x->parts, err);
	return r < 0 ? r : compare_estimates(x, err);
}

int diff_procedure(const struct diff_procedure *p, const struct set sets[2], const size_t event[2],
		   struct base_err *err)
{
	struct pair x = { .p = p, .sets = sets, .event = event };
	int r = 0;

	for (int i = 0; i < 2 && r >= 0; i++)
		r = open_procedure(&x, i, err);
	if (r >= 0)
		r = compare(&x, err);
	if (r >= 0)
		r = p->json ? print_json(&x, err) : print_text(&x, err);
	parts_release(&x.parts);
	compare_release(&x.compare);
	align_close(x.align);
	for (int i = 0; i < 2; i++) {
		graph_flow_close(&x.f[i]);
		analysis_listing_close(x.bare[i]);
	}
	return r;
}
