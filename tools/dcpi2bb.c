/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpi2bb: how often source lines ran, for a compiler. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "feedback.h"
#include "report.h"
#include "sampleprof.h"
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

struct making {
	struct sampleprof *profile;
	unsigned int nr, nr_left; /* procedures, and those without a known line */
	double part;		  /* share of all counts */
};

static int add(void *context, const struct runs_procedure *p, struct base_err *err)
{
	struct making *m = context;
	struct feedback *f = &feedback;
	int r = sampleprof_add(m->profile, f->runs.img, p);

	if (r < 0)
		return base_fail_errno(err, r, "cannot add '%s'", p->symbol->name);
	m->nr += r > 0;
	m->nr_left += r == 0;
	m->part += r > 0 ? p->part : 0;
	return 0;
}

static double percent(const struct making *m, const struct feedback *f)
{
	return f->runs.total > 0 ? 100 * m->part / f->runs.total : 0;
}

/* A comment to its reader. */
static int head(const struct making *m, const struct feedback *f, struct base_buf *out)
{
	char *image = strdup(f->image), unit[300];
	int r = -ENOMEM;

	feedback_unit(f, unit, sizeof(unit));
	if (image)
		r = base_buf_printf(out,
				    "# dcpi2bb %s: image '%s'\n# %s\n"
				    "# %u procedures, with %.2f%% of its %s; %u more have no known "
				    "line with a count\n",
				    base_release(), table_clean(image), unit, m->nr, percent(m, f),
				    f->runs.exact ? "executed instructions" : "samples",
				    m->nr_left);
	free(image);
	return r;
}

static int put(const struct base_buf *text, struct base_err *err)
{
	if (output)
		return base_output_write(output, 0644, text->data, text->len, err);
	if (feedback.sel.json)
		return 0;
	if (fwrite(text->data, 1, text->len, stdout) != text->len || fflush(stdout) != 0)
		return base_fail_errno(err, -errno, "cannot write the profile");
	return 0;
}

static int tell(const struct making *m, const struct feedback *f, struct base_err *err)
{
	struct json_object *root = feedback_json(f, "dcpi2bb/1");

	done_file(root, output);
	json_object_object_add(root, "procedures", json_object_new_int64(m->nr));
	json_object_object_add(root, "without_lines", json_object_new_int64(m->nr_left));
	json_object_object_add(root, "percent", report_json_number(percent(m, f)));
	return done_print(root, err);
}

static int finish(void *context, struct feedback *f, struct base_err *err)
{
	struct making *m = context;
	struct base_buf text = { 0 };
	int r;

	if (!m->nr) {
		base_fail(err, -ENOENT, "no procedure of '%s' tells where its lines are", f->image);
		base_hint(err, "compile it with -g, and for clang -fdebug-info-for-profiling");
		return -ENOENT;
	}
	r = head(m, f, &text);
	if (r >= 0)
		r = sampleprof_format(m->profile, &text);
	r = r < 0 ? base_fail_errno(err, r, "cannot write the profile") : put(&text, err);
	base_buf_release(&text);
	return r >= 0 && f->sel.json ? tell(m, f, err) : r;
}

static int run(int nr, char **what, struct base_err *err)
{
	struct making m = { 0 };
	int r = sampleprof_new(&m.profile);

	if (r < 0)
		return base_fail_errno(err, r, "cannot start");
	r = feedback_run(&feedback, cmd.name, nr, what, add, finish, &m, err);
	sampleprof_free(m.profile);
	return r;
}

int dcpi2bb_main(int argc, char **argv)
{
	struct base_err err = { 0 };
	int r = base_opt_parse(&cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0)
		r = feedback_check(&feedback, FREQ_LOW, &err);
	if (r >= 0)
		r = run(argc, argv, &err);
	return report_end(&cmd, r, &err);
}
