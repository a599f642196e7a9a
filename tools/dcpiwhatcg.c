/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpiwhatcg: where have all the cycles gone, over all procedures of images. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "stall_report.h"
#include "tools.h"

static struct select sel;
static struct estimation estimation;
static const char *kind;
static bool progress, no_header;

static const struct base_opt options[] = {
	SELECT_OPTIONS(sel),
	ESTIMATION_OPTIONS(estimation),
	{ "stall", BASE_OPT_STRING, &kind, "KIND",
	  "Also list the procedures by what they lost to this kind, as the summary spells it. For "
	  "one image.",
	  0, 0 },
	{ "pr", BASE_OPT_FLAG, &progress, NULL, "Say on standard error which procedure is done.", 0,
	  0 },
	{ "no_header", BASE_OPT_FLAG, &no_header, NULL, "Leave out the lines above the table.", 0,
	  0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpiwhatcg",
	.summary = "tell where the time of whole images has gone",
	.operands = "[IMAGE …]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpiwhatcg gzip", "What gzip's code waited for." },
			{ "dcpiwhatcg -conf_low",
			  "The whole system, by estimates of any quality." },
			{ "dcpiwhatcg -stall 'branch misprediction' cc1",
			  "Which of cc1's procedures lose most by mispredicted branches." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = -1,
};

/* ---- procedures by one kind ------------------------------------------------------------------ */

/* An unexplained stall has no range. */
static struct stall_range range_of(const struct stall_tally *t, enum stall_cause cause)
{
	double all = t->unexplained;

	return cause < STALL_NR_CAUSES ? t->cause[cause] : (struct stall_range){ all, all, all };
}

/* "memory"; "unexplained stall" */
static const char *name_of(enum stall_cause cause)
{
	return cause < STALL_NR_CAUSES ? stall_cause_name(cause) : "unexplained stall";
}

static int find_kind(enum stall_cause *out, struct base_err *err)
{
	char text[200] = "";
	size_t len = 0;

	for (int c = 0; c <= STALL_NR_CAUSES; c++) {
		const char *name = name_of((enum stall_cause)c);

		if (strcmp(kind, name) == 0) {
			*out = (enum stall_cause)c;
			return 0;
		}
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", c ? ", " : "",
					name);
	}
	base_fail(err, -DCPI_EUSAGE, "no kind of stall '%s'", kind);
	base_hint(err, "%s", text);
	return -DCPI_EUSAGE;
}

static int by_range(const void *pa, const void *pb, void *cause)
{
	const struct stalls_proc *a = pa, *b = pb;
	struct stall_range ra = range_of(&a->tally, *(enum stall_cause *)cause);
	struct stall_range rb = range_of(&b->tally, *(enum stall_cause *)cause);
	int r;

	if (ra.likely != rb.likely)
		return ra.likely > rb.likely ? -1 : 1;
	r = strcmp(a->image->name, b->image->name);
	return r ? r : (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void put_row(const struct stall_report *x, struct table *t, char letter, const char *name,
		    double likely)
{
	table_cell(t, "%c %s", letter, name);
	table_cell(t, "%s", "");
	table_cell(t, "%.2f%%", stall_report_percent(x, likely));
	table_cell(t, "%s", "");
}

/* Samples are whole where nothing was divided among causes. */
static void put_part(const struct stall_report *x, struct table *t, const char *name,
		     double samples)
{
	put_row(x, t, ' ', name, samples);
	table_cell(t, "%.0f", samples);
}

static void put_cause(const struct stall_report *x, struct table *t, enum stall_cause cause)
{
	struct stall_range s = range_of(&x->stalls.total, cause);

	if (cause == STALL_NR_CAUSES) {
		put_row(x, t, stall_cause_letter(cause), name_of(cause), s.likely);
	} else {
		table_cell(t, "%c %s", stall_cause_letter(cause), name_of(cause));
		table_cell(t, "%.2f%%", stall_report_percent(x, s.low));
		table_cell(t, "%.2f%%", stall_report_percent(x, s.likely));
		table_cell(t, "%.2f%%", stall_report_percent(x, s.high));
	}
	table_cell(t, "%s", "");
}

static void put_summary(const struct stall_report *x, struct table *t)
{
	const struct stall_tally *all = &x->stalls.total;
	enum stall_cause order[STALL_NR_CAUSES + 1];
	size_t nr = stall_order(all, order);

	table_column(t, true, "where the time has gone");
	table_column(t, false, "low");
	table_column(t, false, "likely");
	table_column(t, false, "high");
	table_column(t, false, "samples");
	for (size_t i = 0; i < nr; i++)
		put_cause(x, t, order[i]);
	if (all->samples > all->execution) {
		put_row(x, t, ' ', "total stall", all->samples - all->execution);
		table_cell(t, "%s", "");
	}
	/* Nothing tells of it where it is nought: code that ran took some time. */
	if (all->execution > 0) {
		put_row(x, t, ' ', "execution", all->execution);
		table_cell(t, "%s", "");
	}
	put_part(x, t, "total tallied", all->samples);
	for (size_t i = 0; i < x->stalls.nr_parts; i++)
		put_part(x, t, x->stalls.parts[i].what, x->stalls.parts[i].samples);
	put_part(x, t, "total", x->stalls.samples);
}

static void put_range(const struct stall_report *x, struct table *t, const struct stall_range *s)
{
	table_cell(t, "%.1f", s->likely);
	table_cell(t, "%.2f%%", stall_report_percent(x, s->likely));
	table_cell(t, "%.1f", s->low);
	table_cell(t, "%.1f", s->high);
}

static void put_procedures(const struct stall_report *x, struct table *t, enum stall_cause cause)
{
	struct stall_range all = range_of(&x->stalls.total, cause);

	table_column(t, false, "likely");
	table_column(t, false, "%");
	table_column(t, false, "low");
	table_column(t, false, "high");
	table_column(t, true, "procedure");
	table_column(t, true, "image");
	for (size_t i = 0; i < x->stalls.nr_procs; i++) {
		const struct stalls_proc *p = &x->stalls.procs[i];
		struct stall_range s = range_of(&p->tally, cause);

		if (s.high <= 0)
			continue;
		put_range(x, t, &s);
		table_cell(t, "%s", demangle_shown(p->name));
		table_cell(t, "%s", p->image->name);
	}
	put_range(x, t, &all);
	table_cell(t, "total");
	table_cell(t, "%s", "");
}

static int print_text(const struct stall_report *x, enum stall_cause cause, struct base_err *err)
{
	struct table summary = { 0 }, procedures = { 0 };
	int r;

	if (!no_header) {
		stall_report_head(x, stdout);
		putchar('\n');
	}
	put_summary(x, &summary);
	r = table_print(&summary, !no_header, stdout);
	if (r >= 0 && kind) {
		printf("\nprocedures by samples lost to %s\n", kind);
		put_procedures(x, &procedures, cause);
		r = table_print(&procedures, !no_header, stdout);
	}
	table_release(&summary);
	table_release(&procedures);
	return r < 0 ? base_fail_errno(err, r, "cannot print the table") : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_range(struct json_object *o, const struct stall_range *s)
{
	json_object_object_add(o, "low", report_json_number(s->low));
	json_object_object_add(o, "likely", report_json_number(s->likely));
	json_object_object_add(o, "high", report_json_number(s->high));
}

/* The parts of all samples: what was tallied, and what not. */
static struct json_object *json_summary(const struct stall_report *x)
{
	struct json_object *list = json_object_new_array(), *o;
	enum stall_cause order[STALL_NR_CAUSES + 1];
	size_t nr = stall_order(&x->stalls.total, order);
	double execution = x->stalls.total.execution;
	char letter[2] = "";

	for (size_t i = 0; i < nr; i++) {
		struct stall_range s = range_of(&x->stalls.total, order[i]);

		o = json_object_new_object();
		letter[0] = stall_cause_letter(order[i]);
		json_object_object_add(o, "what", json_object_new_string(name_of(order[i])));
		json_object_object_add(o, "letter", json_object_new_string(letter));
		json_range(o, &s);
		json_object_array_add(list, o);
	}
	o = json_object_new_object();
	json_object_object_add(o, "what", json_object_new_string("execution"));
	json_range(o, &(struct stall_range){ execution, execution, execution });
	json_object_array_add(list, o);
	return list;
}

static struct json_object *json_parts(const struct stall_report *x)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < x->stalls.nr_parts; i++) {
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "what", report_json_text(x->stalls.parts[i].what));
		json_object_object_add(o, "samples",
				       report_json_number(x->stalls.parts[i].samples));
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *json_procedures(const struct stall_report *x, enum stall_cause cause)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < x->stalls.nr_procs; i++) {
		const struct stalls_proc *p = &x->stalls.procs[i];
		struct stall_range s = range_of(&p->tally, cause);
		struct json_object *o;

		if (s.high <= 0)
			continue;
		o = json_object_new_object();
		report_json_procedure(o, p->name);
		json_object_object_add(o, "address", report_json_hex(p->vaddr));
		report_json_image(o, p->image);
		json_range(o, &s);
		json_object_array_add(list, o);
	}
	return list;
}

static int print_json(const struct stall_report *x, enum stall_cause cause, struct base_err *err)
{
	struct json_object *root = stall_report_json(x, "dcpiwhatcg/1");
	int r;

	json_object_object_add(root, "summary", json_summary(x));
	json_object_object_add(root, "not_tallied", json_parts(x));
	if (kind) {
		json_object_object_add(root, "stall", json_object_new_string(kind));
		json_object_object_add(root, "procedures", json_procedures(x, cause));
	}
	r = report_json_print(root, x->a, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static void say_progress(const struct analysis_image *ai, const char *procedure, double samples)
{
	fprintf(stderr, "%s: %.0f sample%s of ", cmd.name, samples, samples == 1 ? "" : "s");
	report_print_name(stderr, procedure);
	fputs(" in ", stderr);
	report_print_clean(stderr, ai->name);
	fputc('\n', stderr);
}

static int check(int nr, enum stall_cause *cause, struct base_err *err)
{
	if (!kind)
		return 0;
	if (nr != 1)
		return base_fail(err, -DCPI_EUSAGE, "-stall is for one image");
	return find_kind(cause, err);
}

static int run(int nr, char **what, struct base_err *err)
{
	struct stall_report x = { .options.progress = progress ? say_progress : NULL };
	enum stall_cause cause = STALL_NR_CAUSES;
	int code = BASE_EXIT_OK, r = check(nr, &cause, err);

	if (r >= 0)
		r = stall_report_make(&x, &sel, &estimation, nr, what, err);
	if (r >= 0 && kind && x.stalls.nr_procs)
		qsort_r(x.stalls.procs, x.stalls.nr_procs, sizeof(*x.stalls.procs), by_range,
			&cause);
	if (r >= 0)
		r = sel.json ? print_json(&x, cause, err) : print_text(&x, cause, err);
	if (x.a)
		code = report_problems(cmd.name, x.a, stderr);
	stall_report_release(&x);
	return r < 0 ? r : code;
}

static int dcpiwhatcg_main(int argc, char **argv)
{
	return report_main(&cmd, &sel, run, argc, argv);
}

const struct tool dcpiwhatcg_tool = { .cmd = &cmd, .main = dcpiwhatcg_main };
