/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpi2bb: how often source lines ran, for a compiler. */
#include "line_profile.h"
#include "report.h"
#include "tools.h"

static struct feedback feedback;
static const char *output;

static const struct base_opt options[] = {
	FEEDBACK_OPTIONS(feedback),
	{ "conf_low", BASE_OPT_FLAG, &feedback.how.low, NULL,
	  "Write estimates of any confidence (the default).", 0, 0 },
	{ "conf_med", BASE_OPT_FLAG, &feedback.how.medium, NULL,
	  "Write those of medium and high confidence.", 0, 0 },
	{ "conf_high", BASE_OPT_FLAG, &feedback.how.high, NULL,
	  "Write those of high confidence alone.", 0, 0 },
	{ "o", BASE_OPT_STRING, &output, "FILE",
	  "Write the profile here (default: standard output).", 0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpi2bb",
	.summary = "tell a compiler how often source lines ran",
	.operands = "IMAGE [PROCEDURE …]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpi2bb -o a.prof a.out", "Of the newest epoch's samples." },
			{ "clang -O2 -gline-tables-only -fprofile-sample-use=a.prof -o a.out a.c",
			  "A program compiled by them." },
			{ "dcpi2bb -xct a.xct -o a.prof ./a.out",
			  "By the counts that 'dcpix -o a ./a.out' made." },
			{ "dcpi2bb libfoo.so.1 parse match", "Two procedures of a library." },
			{ NULL, NULL } },
	.min_operands = 1,
	.max_operands = -1,
};

static int dcpi2bb_main(int argc, char **argv)
{
	struct line_profile how = { cmd.name, NULL, sampleprof_format, true, NULL };
	struct base_err err = { 0 };
	int r = base_opt_parse(&cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0)
		r = feedback_check(&feedback, FREQ_LOW, &err);
	how.output = output;
	if (r >= 0)
		r = line_profile_run(&feedback, &how, argc, argv, &err);
	return report_end(&cmd, r, &err);
}

const struct tool dcpi2bb_tool = { .cmd = &cmd, .main = dcpi2bb_main };
