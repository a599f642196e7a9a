/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of time: which epochs are in one only in part, and what those without minutes add. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

enum { MINUTE = 60 };

/*
 * An epoch without minutes ends where the next one begins, as what was brought from elsewhere was
 * written later. One that shares less than a minute with the window is another hour's.
 */
static bool has_a_minute(struct analysis *a, size_t epoch)
{
	int64_t begin, end, next;

	profdb_epoch_span(a->db, a->epochs[epoch].name, &begin, &end);
	if (epoch + 1 < a->nr_epochs) {
		next = profdb_epoch_begin_time(a->epochs[epoch + 1].name);
		end = end > next && next > begin ? next : end;
	}
	begin = begin > a->window.since ? begin : a->window.since;
	end = end < a->window.until ? end : a->window.until;
	return end - begin >= MINUTE;
}

static bool is_chosen(const struct analysis *a, const char *platform)
{
	for (size_t i = 0; i < a->nr_platforms; i++)
		if (strcmp(a->platforms[i], platform) == 0)
			return true;
	return false;
}

/* A file that cannot be read has been noted, and counts as recorded. */
static bool has_workloads(struct analysis *a, const char *epoch, const char *platform)
{
	struct profdb_workloads *w = NULL;
	struct base_err why = { 0 };
	int r = profdb_workloads_load_counts(a->db, epoch, platform, &w, &why);

	if (r >= 0)
		profdb_workloads_free(w);
	return r != -ENOENT;
}

/* Adds what platforms without minutes have, if @add; returns how many have some, or negative. */
static int fill_epoch(struct analysis *a, struct analysis_epoch *epoch, bool add,
		      struct base_err *err)
{
	char **platforms = profdb_platforms(a->db, epoch->name, err);
	int r = platforms ? 0 : -ENOMEM, recorded = 0;

	for (size_t i = 0; r >= 0 && platforms[i]; i++) {
		if (!is_chosen(a, platforms[i]))
			continue;
		if (has_workloads(a, epoch->name, platforms[i]))
			recorded++;
		else if (add)
			r = analysis_add_again(a, epoch->name, platforms[i], err);
	}
	free(platforms); /* one allocation, see profdb.h */
	epoch->whole = add;
	return r < 0 ? r : recorded;
}

int workload_window_fill(struct analysis *a, struct base_err *err)
{
	size_t kept = 0;
	int r = 0;

	a->window.cut = false;
	for (size_t i = 0; i < a->nr_epochs; i++) {
		int recorded = 1;
		bool add = true;

		if (r >= 0 && a->epochs[i].unrecorded) {
			add = has_a_minute(a, i);
			r = recorded = fill_epoch(a, &a->epochs[i], add, err);
		}
		a->window.cut = a->window.cut || (recorded > 0 && !a->epochs[i].inside);
		/* None of its samples are in the window. */
		if (!add && !recorded)
			free(a->epochs[i].name);
		else
			a->epochs[kept++] = a->epochs[i];
	}
	a->nr_epochs = kept;
	if (r >= 0)
		r = analysis_sum(a);
	return r < 0 ? base_fail_errno(err, r, "cannot add epochs without minutes") : 0;
}

/* ---- epochs in part, and the others ---------------------------------------------------------- */

static int add_inside(struct analysis *a, const char *epoch, struct base_err *err)
{
	char **platforms = profdb_platforms(a->db, epoch, err);
	int r = platforms ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && platforms[i]; i++)
		if (is_chosen(a, platforms[i]))
			r = analysis_add_again(a, epoch, platforms[i], err);
	free(platforms); /* one allocation, see profdb.h */
	return r;
}

int workload_window_restrict(struct analysis *a, struct base_err *err)
{
	struct profdb_workloads *w = NULL;
	struct workload_filter f;
	int r = workload_load(a, WORKLOAD_CUT, &w, err);

	workload_filter_init(&f);
	f.since = a->window.since;
	f.until = a->window.until;
	if (r >= 0)
		r = workload_only(a, w, &f, err);
	for (size_t i = 0; r >= 0 && i < a->nr_epochs; i++)
		if (a->epochs[i].inside)
			r = add_inside(a, a->epochs[i].name, err);
	if (r >= 0)
		r = workload_window_fill(a, err);
	profdb_workloads_free(w);
	return r < 0 ? base_fail_errno(err, r, "cannot choose a time") : 0;
}
