/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpitopstalls: the instructions that stalled most, and what they may have waited for. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "stall_report.h"
#include "tools.h"

static struct select sel;
static struct estimation estimation;
static int64_t number = 100;
static bool no_header;

static const struct base_opt options[] = {
	SELECT_OPTIONS(sel),
	ESTIMATION_OPTIONS(estimation),
	{ "n", BASE_OPT_INT, &number, "N", "How many instructions (default: 100).", 1, 1000000 },
	{ "no_header", BASE_OPT_FLAG, &no_header, NULL, "Leave out the lines around the table.", 0,
	  0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpitopstalls",
	.summary = "list the instructions that stalled most",
	.operands = "[IMAGE …]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpitopstalls -n 20 gzip", "What gzip's code waited for most." },
			{ "dcpitopstalls -conf_low -cross_procedure pessimistic gzip",
			  "The same by estimates of any quality, and what happens elsewhere may "
			  "have stalled." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = -1,
};

static double stalled_in_all(const struct stall_report *x)
{
	return x->stalls.total.samples - x->stalls.total.execution;
}

static double stalled_in_others(const struct stall_report *x)
{
	double rest = stalled_in_all(x);

	for (size_t i = 0; i < x->stalls.nr_insns; i++)
		rest -= x->stalls.insns[i].stalled;
	return rest > 0 ? rest : 0;
}

static const char *event_name(const struct stall_report *x)
{
	return x->a->events[x->options.event].name;
}

/* The letters of all causes that could not be ruled out. */
static const char *blame(const struct stalls_insn *insn, char text[STALL_NR_CAUSES + 2])
{
	size_t len = 0;

	for (int c = 0; c < STALL_NR_CAUSES; c++)
		if (insn->causes >> c & 1)
			text[len++] = stall_cause_letter((enum stall_cause)c);
	if (insn->unexplained)
		text[len++] = stall_cause_letter(STALL_NR_CAUSES);
	text[len] = '\0';
	return text;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_preamble(const struct stall_report *x)
{
	double stalled = stalled_in_all(x), tallied = x->stalls.total.samples;

	stall_report_head(x, stdout);
	printf("\n%.0f samples (%.2f%%) have a count of that confidence\n", tallied,
	       stall_report_percent(x, tallied));
	printf("%.1f samples of these are stalls\n", stalled);
	printf("%.2f%% of all samples are such stalls\n", stall_report_percent(x, stalled));
	printf("\ntop %zu stalled instructions, of at least %g (cy, ns or x) for each "
	       "execution\n\n",
	       x->stalls.nr_insns, STALLS_LEAST);
}

static void put_heads(const struct stall_report *x, struct table *t)
{
	table_column(t, false, "%");
	table_column(t, false, "cum%");
	table_spare(t);
	table_column(t, false, event_name(x));
	table_column(t, false, "count");
	table_column(t, true, "C");
	table_address(t);
	table_column(t, false, "avg");
	table_column(t, true, "blame");
	table_address(t);
	report_column(t, "pc");
	table_column(t, true, "procedure");
	table_column(t, true, "file:line");
	report_column(t, "image");
}

static void put_stalled(const struct stall_report *x, struct table *t, double stalled, double sum)
{
	table_cell(t, "%.2f%%", stall_report_percent(x, stalled));
	table_cell(t, "%.2f%%", stall_report_percent(x, sum));
	table_cell(t, "%.1f", stalled);
}

/* How sure a proportion is holds for its procedure, whose counts are not comparable with others. */
static bool is_sure(const struct stall_report *x, const struct stalls_insn *insn)
{
	return insn->absolute || x->stalls.nr_procs == 1;
}

static void put_row(const struct stall_report *x, struct table *t, const struct stalls_insn *insn,
		    double sum)
{
	static const char *const letters_of[] = { "", "L", "M", "H" };
	char letters[STALL_NR_CAUSES + 2], count[32];

	put_stalled(x, t, insn->stalled, sum);
	estimation_text(insn->count, insn->confidence, count, sizeof(count));
	table_cell(t, "%s", count);
	table_cell(t, "%s", is_sure(x, insn) ? letters_of[insn->confidence] : "");
	if (insn->length >= 0)
		table_cell(t, "%.1f%s", insn->length, stall_report_unit(x, insn->absolute));
	else
		table_cell(t, "-");
	table_cell(t, "%s", blame(insn, letters));
	table_cell(t, "0x%" PRIx64, insn->vaddr);
	table_cell(t, "%s", demangle_shown(insn->procedure));
	if (insn->file)
		table_cell(t, "%s:%u", base_path_name(insn->file), insn->line);
	else
		table_cell(t, "%s", "");
	table_cell(t, "%s", insn->image->name);
}

static void put_others(const struct stall_report *x, struct table *t)
{
	put_stalled(x, t, stalled_in_others(x), stalled_in_all(x));
	for (int i = 0; i < 5; i++)
		table_cell(t, "%s", "");
	table_cell(t, "others");
	table_cell(t, "%s", "");
	table_cell(t, "%s", "");
}

/* Explain the letters that occur in the table. */
static void print_legend(const struct stall_report *x)
{
	const char *before = "\n";
	uint16_t used = 0;
	bool unexplained = false;

	for (size_t i = 0; i < x->stalls.nr_insns; i++) {
		used |= x->stalls.insns[i].causes;
		unexplained |= x->stalls.insns[i].unexplained;
	}
	if (unexplained)
		used |= 1 << STALL_NR_CAUSES;
	for (int c = 0; c <= STALL_NR_CAUSES; c++) {
		if (!(used >> c & 1))
			continue;
		printf("%s%c = %s", before, stall_cause_letter((enum stall_cause)c),
		       stall_cause_name((enum stall_cause)c));
		before = ", ";
	}
	if (used)
		putchar('\n');
}

static int print_text(const struct stall_report *x, struct base_err *err)
{
	struct table t = { 0 };
	double sum = 0;
	int r;

	if (!no_header)
		print_preamble(x);
	put_heads(x, &t);
	for (size_t i = 0; i < x->stalls.nr_insns; i++) {
		sum += x->stalls.insns[i].stalled;
		put_row(x, &t, &x->stalls.insns[i], sum);
	}
	if (x->stalls.nr_others)
		put_others(x, &t);
	r = table_print(&t, !no_header, stdout);
	if (!no_header)
		print_legend(x);
	table_release(&t);
	return r < 0 ? base_fail_errno(err, r, "cannot print the table") : 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_object *json_row(const struct stall_report *x, const struct stalls_insn *insn)
{
	struct json_object *o = json_object_new_object();
	char letters[STALL_NR_CAUSES + 2];

	json_object_object_add(o, "stalled", report_json_number(insn->stalled));
	json_object_object_add(o, "count", report_json_number(insn->count));
	json_object_object_add(o, "confidence",
			       json_object_new_string(freq_confidence_text(insn->confidence)));
	json_object_object_add(o, "average",
			       insn->length >= 0 ? report_json_number(insn->length) : NULL);
	json_object_object_add(o, "unit",
			       json_object_new_string(stall_report_unit(x, insn->absolute)));
	json_object_object_add(o, "blame", json_object_new_string(blame(insn, letters)));
	json_object_object_add(o, "pc", report_json_hex(insn->vaddr));
	report_json_procedure(o, insn->procedure);
	json_object_object_add(o, "file", report_json_text(insn->file));
	json_object_object_add(o, "line", insn->file ? json_object_new_int64(insn->line) : NULL);
	report_json_image(o, insn->image);
	return o;
}

static int print_json(const struct stall_report *x, struct base_err *err)
{
	struct json_object *root = stall_report_json(x, "dcpitopstalls/1");
	struct json_object *rows = json_object_new_array();
	int r;

	for (size_t i = 0; i < x->stalls.nr_insns; i++)
		json_object_array_add(rows, json_row(x, &x->stalls.insns[i]));
	json_object_object_add(root, "stalled", report_json_number(stalled_in_all(x)));
	json_object_object_add(root, "least", report_json_number(STALLS_LEAST));
	json_object_object_add(root, "rows", rows);
	json_object_object_add(root, "others", report_json_number(stalled_in_others(x)));
	r = report_json_print(root, x->a, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run(int nr, char **what, struct base_err *err)
{
	struct stall_report x = { .options.max_insns = (size_t)number };
	int code = BASE_EXIT_OK, r = stall_report_make(&x, &sel, &estimation, nr, what, err);

	if (r >= 0)
		r = sel.json ? print_json(&x, err) : print_text(&x, err);
	if (x.a)
		code = report_problems(cmd.name, x.a, stderr);
	stall_report_release(&x);
	return r < 0 ? r : code;
}

static int dcpitopstalls_main(int argc, char **argv)
{
	return report_main(&cmd, &sel, run, argc, argv);
}

const struct tool dcpitopstalls_tool = { .cmd = &cmd, .main = dcpitopstalls_main };
