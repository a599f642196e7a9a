/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpisumxct: the exact counts of several runs added up. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "done.h"
#include "report.h"
#include "tools.h"

static const char *output;
static bool json;

static const struct base_opt options[] = {
	{ "o", BASE_OPT_STRING, &output, "FILE", "Write the sum here (default: standard output).",
	  0, 0 },
	DONE_OPTION(json),
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpisumxct",
	.summary = "add up exact counts of several runs",
	.operands = "FILE.xct …",
	.opts = options,
	.examples = (const struct base_example[]){ { "dcpisumxct a.xct b.xct -o sum.xct",
						     "The counts of both runs." },
						   { NULL, NULL } },
	.min_operands = 1,
	.max_operands = -1,
};

static int put(const struct base_buf *sum, struct base_err *err)
{
	if (output)
		return base_output_write(output, 0644, sum->data, sum->len, err);
	if (json)
		return 0;
	if (fwrite(sum->data, 1, sum->len, stdout) != sum->len || fflush(stdout) != 0)
		return base_fail_errno(err, -errno, "cannot write the sum");
	return 0;
}

static int tell(const struct exact *e, struct base_err *err)
{
	struct json_object *root = done_json("dcpisumxct/1");

	done_file(root, output);
	done_exact(root, e);
	return done_print(root, err);
}

static int run(int nr, char **files, struct base_err *err)
{
	struct base_buf sum = { 0 };
	struct exact e = { 0 };
	int r = 0;

	for (int i = 0; i < nr && r >= 0; i++)
		r = exact_read(&e, files[i], err);
	if (r >= 0 && (r = exact_format(&e, &sum)) < 0)
		base_fail_errno(err, r, "cannot add");
	if (r >= 0)
		r = put(&sum, err);
	if (r >= 0 && json)
		r = tell(&e, err);
	base_buf_release(&sum);
	exact_release(&e);
	return r;
}

static int dcpisumxct_main(int argc, char **argv)
{
	return report_command(&cmd, NULL, run, argc, argv);
}

const struct tool dcpisumxct_tool = { .cmd = &cmd, .main = dcpisumxct_main };
