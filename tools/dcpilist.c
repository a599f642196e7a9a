/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpilist: one procedure, its instructions and source lines with their samples. */
#include "list.h"
#include "tools.h"

static struct select sel;
static struct list_options opt = { .values = { VALUED_DEFAULTS } };

static const struct base_opt options[] = {
	LIST_OPTIONS(sel, opt),
	PROFILEME_OPTION(opt.metrics, "Columns of instruction samples too"),
	SELECT_OPTION_CALLER(sel),
	SELECT_OPTION_UNCHECKED(sel),
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpilist",
	.summary = "list a procedure's instructions and lines with their samples",
	.operands = "PROCEDURE|ADDRESS [IMAGE]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpilist -both fib hello",
			  "Source and instructions of the routine 'fib' that the facility 'hello' "
			  "made." },
			{ "dcpilist -asm memcpy libc.so.6",
			  "Instructions of a library's procedure." },
			{ "dcpilist -asm -vprof fib hello",
			  "The values that its instructions had as results." },
			{ "dcpilist -caller main -both memcpy libc.so.6",
			  "Only what 'main', and what it called, asked for." },
			{ "dcpilist 0x401136 a.out", "The procedure around an address." },
			{ NULL, NULL } },
	.min_operands = 1,
	.max_operands = 2,
};

static int dcpilist_main(int argc, char **argv)
{
	return list_main(&cmd, &sel, &opt, argc, argv);
}

const struct tool dcpilist_tool = { .cmd = &cmd, .main = dcpilist_main };
