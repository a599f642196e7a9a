/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpivlst: dcpilist -asm -vprof, of one procedure or of all of an image. */
#include "list.h"
#include "tools.h"

static struct select sel;
static struct list_options opt = { .valued = true, .values = { VALUED_DEFAULTS } };

static const struct base_opt options[] = {
	LIST_OPTIONS(sel, opt),
	{ "allprocs", BASE_OPT_FLAG, &opt.all, NULL,
	  "List all procedures of the images, those with most samples first; operands are images.",
	  0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpivlst",
	.summary = "list procedures with the values at their instructions",
	.operands = "PROCEDURE|ADDRESS [IMAGE] | -allprocs IMAGE …",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpivlst mix hello",
			  "Instructions of the routine 'mix' that the facility 'hello' made, and "
			  "the values of their results." },
			{ "dcpivlst -allprocs -vshow 3 a.out",
			  "All that was seen in a program, three values each." },
			{ "dcpivlst -vtrace /opt/vp-addr.so mix hello",
			  "The addresses that its loads and stores went to, as 'dcpid -vtrace "
			  "/opt/vp-addr.so' collected them." },
			{ NULL, NULL } },
	.min_operands = 1,
	.max_operands = -1,
};

static int dcpivlst_main(int argc, char **argv)
{
	return list_main(&cmd, &sel, &opt, argc, argv);
}

const struct tool dcpivlst_tool = { .cmd = &cmd, .main = dcpivlst_main };
