/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpiflow: the blocks of one procedure, with samples and nothing estimated. */
#include <errno.h>
#include <stdlib.h>

#include "choose.h"
#include "graph_json.h"
#include "graph_flow.h"
#include "report.h"
#include "tools.h"

static struct select sel;
static bool same_size;

static const struct base_opt options[] = {
	SELECT_OPTIONS(sel),
	{ "samesize", BASE_OPT_FLAG, &same_size, NULL,
	  "Have dcpi2ps draw all blocks in one size, not by their samples.", 0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpiflow",
	.summary = "print a procedure's flow graph with its samples",
	.operands = "PROCEDURE|ADDRESS [IMAGE]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpiflow fib hello", "The blocks of the routine 'fib' that the facility "
						"'hello' made." },
			{ "dcpiflow memcpy libc.so.6 | dcpisource | dcpi2ps -o memcpy.ps",
			  "A picture of them, with source lines." },
			{ NULL, NULL } },
	.min_operands = 1,
	.max_operands = 2,
};

static int make(struct analysis *a, int nr, char **what, struct base_err *err)
{
	struct graph *g = graph_new();
	struct analysis_listing *l = NULL;
	struct graph_flow f = { 0 };
	int r = g ? 0 : base_fail_errno(err, -ENOMEM, "cannot make a graph");

	if (r >= 0)
		r = choose_procedure(a, what[0], nr > 1 ? what[1] : NULL, &l, err);
	if (r >= 0)
		r = graph_flow_open(l, &f, err);
	if (r >= 0)
		r = graph_flow_add(&f, analysis_event_default(a), g, err);
	if (r >= 0) {
		g->procs[0].same_size = same_size;
		r = sel.json ? graph_json_print(g, "dcpiflow/1", a, err) : graph_file_print(g, err);
	}
	graph_flow_close(&f);
	graph_free(g);
	return r;
}

static int run(int nr, char **what, struct base_err *err)
{
	struct analysis *a = NULL;
	int code = BASE_EXIT_OK, r = report_open(&sel, &a, err);

	if (r >= 0)
		r = make(a, nr, what, err);
	if (a)
		code = r < 0 && r != -EEXIST ? report_problems(cmd.name, a, stderr)
					     : report_bad(cmd.name, a, stderr);
	analysis_close(a);
	return r < 0 ? r : code;
}

static int dcpiflow_main(int argc, char **argv)
{
	return report_main(&cmd, &sel, run, argc, argv);
}

const struct tool dcpiflow_tool = { .cmd = &cmd, .main = dcpiflow_main };
