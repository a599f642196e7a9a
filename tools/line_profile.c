/* SPDX-License-Identifier: BSD-2-Clause */
/* The profile of source lines that a compiler reads is made of an image's procedures. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "line_profile.h"
#include "report.h"

struct making {
	struct feedback *f;
	const struct line_profile *how;
	struct sampleprof *profile;
	unsigned int nr, nr_left; /* procedures, and those without a known line */
	double part;		  /* share of all counts */
};

static int add(void *context, const struct runs_procedure *p, struct base_err *err)
{
	struct making *m = context;
	int r = sampleprof_add(m->profile, m->f->runs.img, p);

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
				    "# %s %s: image '%s'\n# %s\n"
				    "# %u procedures, with %.2f%% of its %s; %u more have no known "
				    "line with a count\n",
				    m->how->prog, base_release(), table_clean(image), unit, m->nr,
				    percent(m, f),
				    f->runs.exact ? "executed instructions" : "samples",
				    m->nr_left);
	free(image);
	return r;
}

static int put(const struct making *m, const struct base_buf *text, struct base_err *err)
{
	if (m->how->output)
		return base_output_write(m->how->output, 0644, text->data, text->len, err);
	if (m->f->sel.json)
		return 0;
	if (fwrite(text->data, 1, text->len, stdout) != text->len || fflush(stdout) != 0)
		return base_fail_errno(err, -errno, "cannot write the profile");
	return 0;
}

static int tell(const struct making *m, const struct feedback *f, struct base_err *err)
{
	struct json_object *root = feedback_json(f, "dcpi2bb/1");

	done_file(root, m->how->output);
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
	r = m->how->comments ? head(m, f, &text) : 0;
	if (r >= 0)
		r = m->how->write(m->profile, &text);
	r = r < 0 ? base_fail_errno(err, r, "cannot write the profile") : put(m, &text, err);
	base_buf_release(&text);
	if (r >= 0 && m->how->written)
		r = m->how->written(f, err);
	return r >= 0 && f->sel.json ? tell(m, f, err) : r;
}

int line_profile_run(struct feedback *f, const struct line_profile *how, int nr, char **what,
		     struct base_err *err)
{
	struct making m = { .f = f, .how = how };
	int r = sampleprof_new(&m.profile);

	if (r < 0)
		return base_fail_errno(err, r, "cannot start");
	r = feedback_run(f, how->prog, nr, what, add, finish, &m, err);
	sampleprof_free(m.profile);
	return r;
}
