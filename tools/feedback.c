/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples are written as a profile that a compiler reads. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "feedback.h"
#include "report.h"
#include "estimation.h"

/* Options about estimates and stalls that span procedures are checked. */

static int find_outside(const char *how, enum stall_outside *out, struct base_err *err)
{
	static const char *const names[] = {
		[STALL_OPTIMISTIC] = "optimistic",
		[STALL_PESSIMISTIC] = "pessimistic",
		[STALL_SELECTIVE] = "selective",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(how, names[i]) != 0)
			continue;
		*out = (enum stall_outside)i;
		return 0;
	}
	base_fail(err, -DCPI_EUSAGE, "-cross_procedure cannot be '%s'", how);
	base_hint(err, "optimistic, pessimistic or selective");
	return -DCPI_EUSAGE;
}

/* The confidence that is sure enough, @usual without an option. 0 or -DCPI_EUSAGE with @err. */
static int estimation_least(const struct estimation *e, enum freq_confidence usual,
			    enum freq_confidence *least, struct base_err *err)
{
	if (e->low + e->medium + e->high > 1)
		return base_fail(err, -DCPI_EUSAGE,
				 "-conf_low, -conf_med and -conf_high exclude each other");
	*least = e->low ? FREQ_LOW : e->medium ? FREQ_MEDIUM : e->high ? FREQ_HIGH : usual;
	return 0;
}

void estimation_text(double freq, enum freq_confidence confidence, char *buf, size_t buf_len)
{
	char digits[32];

	/* Within 10 % is one digit, a factor of two is none. */
	snprintf(digits, sizeof(digits), "%.*e", confidence == FREQ_HIGH ? 1 : 0, freq);
	snprintf(buf, buf_len, "%g", strtod(digits, NULL));
}

int estimation_check(const struct estimation *e, enum freq_confidence *least,
		     enum stall_outside *outside, struct base_err *err)
{
	int r = estimation_least(e, FREQ_MEDIUM, least, err);

	*outside = STALL_OPTIMISTIC;
	return r >= 0 && e->outside ? find_outside(e->outside, outside, err) : r;
}

typedef int finish_fn(void *context, struct feedback *f, struct base_err *err);

/*
 * The option, without its dash, that selects samples or says where their images are; NULL: none. A
 * database that the counts do not need may be named.
 */
static const char *choice(const struct select *s)
{
	return s->epoch		    ? "epoch"
	       : s->platform	    ? "platform"
	       : s->event	    ? "event"
	       : s->since	    ? "since"
	       : s->until	    ? "until"
	       : s->labels.nr	    ? "label"
	       : select_workload(s) ? select_workload(s)
	       : s->files.nr	    ? "p"
	       : s->maps.nr	    ? "m"
				    : NULL;
}

int feedback_check(struct feedback *f, enum freq_confidence usual, struct base_err *err)
{
	int r = estimation_least(&f->how, usual, &f->runs.least, err);

	if (r < 0)
		return r;
	if (f->tab.nr && !f->xct.nr)
		return base_fail(err, -DCPI_EUSAGE, "-tab is for the counts of -xct");
	if (f->xct.nr && choice(&f->sel))
		return base_fail(err, -DCPI_EUSAGE,
				 "-%s does not go with -xct: IMAGE is a file then, and no samples "
				 "are read",
				 choice(&f->sel));
	return f->xct.nr ? 0 : select_check(&f->sel, err);
}

void feedback_unit(const struct feedback *f, char *buf, size_t buf_len)
{
	const struct runs *r = &f->runs;
	size_t len;

	if (r->exact) {
		snprintf(buf, buf_len, "executions, counted");
		return;
	}
	estimate_text(r->a->events[r->event].name, r->nr_absolute && r->nr_absolute == r->nr_known,
		      r->traces, buf, buf_len);
	len = strlen(buf);
	if (r->nr_absolute && r->nr_absolute < r->nr_known)
		snprintf(buf + len, buf_len - len,
			 "; executions for %zu of %zu procedures, whose blocks have measured costs",
			 r->nr_absolute, r->nr_known);
}

static void add_all(struct json_object *to, struct json_object *from)
{
	json_object_object_foreach(from, key, value)
		json_object_object_add(to, key, json_object_get(value));
	json_object_put(from);
}

struct json_object *feedback_json(const struct feedback *f, const char *schema)
{
	struct json_object *root = done_json(schema);
	uint64_t sums[ANALYSIS_NR_EVENTS];
	char id[BASE_ID_TEXT_LEN], unit[300];

	feedback_unit(f, unit, sizeof(unit));
	if (!f->runs.exact) {
		add_all(root, report_json(NULL, f->runs.a, report_sums(f->runs.a, sums)));
		report_json_problems(root, f->runs.a);
	}
	json_object_object_add(root, "image", report_json_text(f->image));
	json_object_object_add(
		root, "build_id",
		f->runs.id->len ? json_object_new_string(base_id_text(f->runs.id, id)) : NULL);
	json_object_object_add(root, "counted", json_object_new_boolean(f->runs.exact != NULL));
	json_object_object_add(root, "unit", json_object_new_string(unit));
	return root;
}

/* ---- procedures ------------------------------------------------------------------------------ */

static bool wanted(void *context, const struct image_symbol *symbol)
{
	struct feedback *f = context;
	bool yes = !f->nr_names;

	for (int i = 0; i < f->nr_names; i++)
		if (demangle_is(symbol->name, f->names[i]))
			yes = f->used[i] = true;
	return yes;
}

static int visit(void *context, const struct runs_procedure *p, struct base_err *err)
{
	struct feedback *f = context;

	return f->visit(f->context, p, err);
}

static int unknown(const struct feedback *f, int i, struct base_err *err)
{
	size_t pos = 0;

	if (image_symbol_find(f->runs.img, f->names[i], &pos))
		return base_fail(err, -DCPI_ENOSYMBOL, "procedure '%s' of '%s' has no %s",
				 f->names[i], f->image, f->runs.exact ? "counts" : "samples");
	return base_fail(err, -DCPI_ENOSYMBOL, "no procedure '%s' in image '%s'", f->names[i],
			 f->image);
}

static int visit_all(struct feedback *f, finish_fn *finish, struct base_err *err)
{
	int r;

	f->runs.wanted = wanted;
	f->runs.visit = visit;
	f->runs.context = f;
	r = runs_make(&f->runs, err);
	for (int i = 0; i < f->nr_names && r >= 0; i++)
		if (!f->used[i])
			r = unknown(f, i, err);
	return r < 0 ? r : finish(f->context, f, err);
}

/* ---- counts ---------------------------------------------------------------------------------- */

/* A pseudo-image says so in its note. */
static int open_file(const char *path, struct image **out, struct base_err *err)
{
	int r = image_open_path(path, IMAGE_DYNAMIC, out, err);

	if (r >= 0 && !image_process(*out)) {
		image_close(*out);
		r = image_open_path(path, IMAGE_FILE, out, err);
	}
	return r < 0 ? r : image_symbols_load(*out, err);
}

static int read_counts(const struct feedback *f, struct exact *e, struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; i < f->xct.nr && r >= 0; i++)
		r = exact_read(e, f->xct.items[i], err);
	for (size_t i = 0; i < f->tab.nr && r >= 0; i++)
		r = exact_read_tab(e, f->tab.items[i], err);
	return r;
}

static int of_counts(struct feedback *f, finish_fn *finish, struct base_err *err)
{
	struct exact counts = { 0 };
	struct base_id id;
	int r = read_counts(f, &counts, err);

	if (r >= 0)
		r = open_file(f->image, &f->runs.img, err);
	if (r >= 0)
		r = image_identify(AT_FDCWD, f->image, &id, err);
	if (r >= 0) {
		f->runs.exact = &counts;
		f->runs.id = &id;
		r = visit_all(f, finish, err);
	}
	image_close(f->runs.img);
	exact_release(&counts);
	return r;
}

/* ---- samples --------------------------------------------------------------------------------- */

static int of_image(struct feedback *f, struct analysis *a, finish_fn *finish, struct base_err *err)
{
	struct analysis_image *ai;
	int event = estimate_event(a, NULL), r;

	if (event < 0)
		return base_fail(err, event, "no samples of time or instructions are chosen");
	r = choose_image(a, f->image, &ai, err);
	if (r < 0)
		return r;
	event = estimate_event(a, ai);
	if (!ai->count[event])
		return base_fail(err, -ENOENT,
				 "no samples of time or instructions of '%s' are chosen", ai->name);
	r = analysis_image_open(a, ai, &f->runs.img, err);
	if (r >= 0) {
		f->image = ai->name;
		f->runs.a = a;
		f->runs.ai = ai;
		f->runs.event = (size_t)event;
		f->runs.id = profdb_profile_image(ai->profile);
		r = visit_all(f, finish, err);
	} else {
		ai->state = ANALYSIS_UNOPENED; /* @err tells it: once is enough */
	}
	image_close(f->runs.img);
	return r;
}

static int of_samples(struct feedback *f, const char *prog, finish_fn *finish, struct base_err *err)
{
	struct analysis *a = NULL;
	int code = BASE_EXIT_OK, r = report_open(&f->sel, &a, err);

	if (r >= 0)
		r = of_image(f, a, finish, err);
	if (a)
		code = report_problems(prog, a, stderr);
	analysis_close(a);
	return r < 0 ? r : code;
}

int feedback_run(struct feedback *f, const char *prog, int nr, char **what, runs_visit *visitor,
		 finish_fn *finish, void *context, struct base_err *err)
{
	int r;

	f->image = what[0];
	f->names = what + 1;
	f->nr_names = nr - 1;
	f->visit = visitor;
	f->context = context;
	f->used = calloc((size_t)nr, sizeof(*f->used));
	if (!f->used)
		return base_fail_errno(err, -ENOMEM, "cannot start");
	r = f->xct.nr ? of_counts(f, finish, err) : of_samples(f, prog, finish, err);
	free(f->used);
	return r;
}
