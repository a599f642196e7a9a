/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpicalc: the blocks of procedures, how often they ran, what they cost. */
#include <errno.h>
#include <stdlib.h>

#include "calc.h"
#include "choose.h"
#include "estimation.h"
#include "graph_json.h"
#include "report.h"
#include "tools.h"

static struct select sel;
static struct base_opt_list xct, tab;
static struct calc_how how;
static struct estimation estimation;
static bool several;

static const struct base_opt options[] = {
	SELECT_OPTIONS(sel),
	{ "procedures", BASE_OPT_FLAG, &several, NULL,
	  "All operands but the last, which is the image, are procedures.", 0, 0 },
	{ "cutoff", BASE_OPT_DOUBLE, &how.cutoff, "PERCENT",
	  "Leave out the instructions of blocks with less than PERCENT of the procedure's samples.",
	  0, 100 },
	{ "print_opcode", BASE_OPT_FLAG, &how.opcodes, NULL,
	  "Show the instructions' bytes before their text.", 0, 0 },
	ESTIMATION_OPTIONS(estimation),
	{ "xct", BASE_OPT_LIST, &xct, "FILE",
	  "Take the counts of dcpix instead of estimates. Repeatable: they are added up.", 0, 0 },
	{ "tab", BASE_OPT_LIST, &tab, "FILE",
	  "The table that dcpix made beside them; needed for routines made at run time.", 0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpicalc",
	.summary = "estimate how often blocks of code ran, and what they cost",
	.operands = "PROCEDURE|ADDRESS [IMAGE]  |  -procedures PROCEDURE … -- IMAGE",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpicalc fib hello",
			  "The routine 'fib' that the facility 'hello' made." },
			{ "dcpicalc -procedures mainSort fallbackSort -- libbz2.so.1.0",
			  "Two procedures of a library." },
			{ "dcpicalc -cutoff 1 main a.out | dcpisource | dcpi2ps -o main.ps",
			  "A picture, with source lines, of what took one percent or more." },
			{ "dcpicalc -xct a.xct -tab a.tab main a.out",
			  "By the counts that 'dcpix -o a a.out' made." },
			{ NULL, NULL } },
	.min_operands = 1,
	.max_operands = -1,
};

static int add(struct analysis *a, const char *what, const char *image, struct graph *g,
	       struct base_err *err)
{
	struct analysis_listing *l = NULL;
	struct graph_flow f = { 0 };
	int r = choose_procedure(a, what, image, &l, err);

	if (r >= 0)
		r = graph_flow_open(l, &f, err);
	if (r >= 0)
		r = calc_add(&f, analysis_event_default(a), &how, g, err);
	graph_flow_close(&f);
	return r;
}

static int make(struct analysis *a, int nr, char **what, struct base_err *err)
{
	const char *image = nr > 1 ? what[nr - 1] : NULL;
	int nr_procedures = nr > 1 ? nr - 1 : 1, r = 0;
	struct graph *g = graph_new();

	if (!g)
		return base_fail_errno(err, -ENOMEM, "cannot make a graph");
	for (int i = 0; i < nr_procedures && r >= 0; i++)
		r = add(a, what[i], image, g, err);
	if (r >= 0)
		r = sel.json ? graph_json_print(g, "dcpicalc/1", a, err) : graph_file_print(g, err);
	graph_free(g);
	return r;
}

static int read_counts(struct exact *e, struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; i < xct.nr && r >= 0; i++)
		r = exact_read(e, xct.items[i], err);
	for (size_t i = 0; i < tab.nr && r >= 0; i++)
		r = exact_read_tab(e, tab.items[i], err);
	if (xct.nr)
		how.exact = e;
	return r;
}

static int run(int nr, char **what, struct base_err *err)
{
	struct analysis *a = NULL;
	struct exact counts = { 0 };
	int code = BASE_EXIT_OK, r = read_counts(&counts, err);

	if (r >= 0)
		r = report_open(&sel, &a, err);
	if (r >= 0)
		r = make(a, nr, what, err);
	if (a)
		code = r < 0 && r != -EEXIST ? report_problems(cmd.name, a, stderr)
					     : report_bad(cmd.name, a, stderr);
	analysis_close(a);
	exact_release(&counts);
	return r < 0 ? r : code;
}

static int check(int nr, struct base_err *err)
{
	int r = estimation_check(&estimation, &how.least, &how.outside, err);

	if (r < 0)
		return r;
	if (several && nr < 2) {
		base_fail(err, -DCPI_EUSAGE, "-procedures needs procedures and an image");
		base_hint(err, "dcpicalc -procedures PROCEDURE … -- IMAGE");
		return -DCPI_EUSAGE;
	}
	if (!several && nr > 2) {
		base_fail(err, -DCPI_EUSAGE, "too many operands");
		base_hint(err, "for several: dcpicalc -procedures PROCEDURE … -- IMAGE");
		return -DCPI_EUSAGE;
	}
	if (tab.nr && !xct.nr)
		return base_fail(err, -DCPI_EUSAGE, "-tab is for the counts of -xct");
	return select_check(&sel, err);
}

static int dcpicalc_main(int argc, char **argv)
{
	return report_command(&cmd, check, run, argc, argv);
}

const struct tool dcpicalc_tool = { .cmd = &cmd, .main = dcpicalc_main };
