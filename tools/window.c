/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads -since and -until, restricts samples to that time, and says to which precision. */
#include <errno.h>
#include <time.h>

#include "window.h"
#include "when.h"

/* Call paths, values and single processes have no minutes. */
static bool is_whole(const struct select *s)
{
	return s->whole || s->callers.nr || s->apart;
}

/* The whole minutes that a window touches. */
static void round_out(struct when_window *w)
{
	enum { MINUTE = 60 };

	if (w->since != INT64_MIN)
		w->since -= w->since % MINUTE;
	if (w->until != INT64_MAX && w->until % MINUTE)
		w->until += MINUTE - w->until % MINUTE;
}

int window_choose(const struct select *s, struct analysis_selection *sel, struct base_err *err)
{
	struct when_window w;
	int r = when_window(s->since, s->until, (int64_t)time(NULL), &w, err);

	if (r < 0 || (!s->since && !s->until))
		return r;
	round_out(&w);
	sel->timed = true;
	sel->whole = is_whole(s);
	sel->since = w.since;
	sel->until = w.until;
	return 0;
}

int window_epochs(const struct select *s, struct profdb *db, char ***out, struct base_err *err)
{
	struct analysis_selection sel = { .epoch = s->epoch };
	int r = window_choose(s, &sel, err);

	*out = NULL;
	if (r >= 0)
		r = profdb_epoch_select(db, s->epoch || !sel.timed ? s->epoch : "all", out, err);
	if (r < 0 || !sel.timed || profdb_epochs_within(db, *out, sel.since, sel.until))
		return r;
	return base_fail(err, -ENOENT, "no epoch has samples of this time");
}

bool window_cuts(const struct select *s, const struct analysis *a)
{
	for (size_t i = 0; i < a->nr_epochs; i++)
		if (!a->epochs[i].inside)
			return !is_whole(s);
	return false;
}

void window_whole(const struct select *s, struct analysis *a)
{
	for (size_t i = 0; is_whole(s) && i < a->nr_epochs; i++)
		a->epochs[i].whole = !a->epochs[i].inside;
}

/* ---- what is said ------------------------------------------------------------------------------
 */

static size_t nr_whole(const struct analysis *a)
{
	size_t nr = 0;

	for (size_t i = 0; i < a->nr_epochs; i++)
		nr += a->epochs[i].whole;
	return nr;
}

static void print_whole(const struct analysis *a, size_t nr, FILE *to)
{
	fprintf(to, "           of epoch%s", nr == 1 ? "" : "s");
	for (size_t i = 0; i < a->nr_epochs; i++)
		if (a->epochs[i].whole)
			fprintf(to, " %s", a->epochs[i].name);
	fputs(" no minutes are kept: counted as a whole\n", to);
}

static void print_precision(const struct analysis *a, FILE *to)
{
	const struct analysis_window *w = &a->window;
	size_t nr = nr_whole(a);

	if (nr == a->nr_epochs) {
		fputs("           whole epochs only: no minutes are kept\n", to);
		return;
	}
	if (w->cut)
		fputs("           whole minutes; procedures within 1 KiB of code are estimated by "
		      "the "
		      "epoch's shares\n",
		      to);
	if (nr)
		print_whole(a, nr, to);
	if (!w->cut && !nr)
		fputs("           all of these epochs\n", to);
}

void window_head(const struct analysis *a, FILE *to)
{
	const struct analysis_window *w = &a->window;
	char text[WHEN_TEXT];

	if (!w->chosen)
		return;
	fputs("window     ", to);
	if (w->since != INT64_MIN)
		fprintf(to, "%s%s", w->until == INT64_MAX ? "from " : "",
			when_text(w->since, text));
	if (w->until != INT64_MAX)
		fprintf(to, "%s%s", w->since == INT64_MIN ? "up to " : " to ",
			when_text(w->until, text));
	fputc('\n', to);
	print_precision(a, to);
}

static struct json_object *json_time(int64_t utc)
{
	return utc == INT64_MIN || utc == INT64_MAX ? NULL : json_object_new_int64(utc);
}

static struct json_object *json_whole(const struct analysis *a)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < a->nr_epochs; i++)
		if (a->epochs[i].whole)
			json_object_array_add(list, json_object_new_string(a->epochs[i].name));
	return list;
}

void window_json(const struct analysis *a, struct json_object *root)
{
	const struct analysis_window *w = &a->window;
	struct json_object *o;

	if (!w->chosen)
		return;
	o = json_object_new_object();
	json_object_object_add(o, "since", json_time(w->since));
	json_object_object_add(o, "until", json_time(w->until));
	json_object_object_add(o, "minutes", json_object_new_boolean(w->cut));
	json_object_object_add(o, "whole_epochs", json_whole(a));
	json_object_object_add(root, "window", o);
}
