/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of time: which epochs are in one only in part, and what those without minutes add. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

enum { MINUTE = 60 };

void workload_round(int64_t *since, int64_t *until)
{
	if (*since != INT64_MIN)
		*since -= *since % MINUTE;
	if (*until != INT64_MAX && *until % MINUTE)
		*until += MINUTE - *until % MINUTE;
}

static bool is_inside(struct analysis *a, const char *epoch)
{
	int64_t begin, end;

	profdb_epoch_span(a->db, epoch, &begin, &end);
	return begin >= a->window.since && end <= a->window.until;
}

bool workload_window_cuts(struct analysis *a)
{
	for (size_t i = 0; a->window.chosen && i < a->nr_epochs; i++)
		if (!is_inside(a, a->epochs[i].name))
			return true;
	return false;
}

int workload_window_whole(struct analysis *a)
{
	int r = 0;

	base_buf_clear(&a->window.whole);
	for (size_t i = 0; i < a->nr_epochs && r >= 0; i++)
		if (!is_inside(a, a->epochs[i].name))
			r = base_buf_printf(&a->window.whole, " %s", a->epochs[i].name);
	return r;
}

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

/* 1: it was added as a whole; 0: it has workloads, or cannot be read; negative. */
static int add_unrecorded(struct analysis *a, const char *epoch, const char *platform,
			  struct base_err *err)
{
	struct profdb_workloads *w = NULL;
	struct base_err why = { 0 };
	int r = profdb_workloads_load(a->db, epoch, platform, &w, &why);

	if (r >= 0)
		profdb_workloads_free(w);
	if (r != -ENOENT)
		return 0;
	r = analysis_add_again(a, epoch, platform, err);
	return r < 0 ? r : 1;
}

static int add_epoch(struct analysis *a, const char *epoch, struct base_err *err)
{
	char **platforms = profdb_platforms(a->db, epoch, err);
	int r = platforms ? 0 : -ENOMEM;
	bool any = false;

	for (size_t i = 0; r >= 0 && platforms[i]; i++) {
		if (!is_chosen(a, platforms[i]))
			continue;
		r = add_unrecorded(a, epoch, platforms[i], err);
		any = any || r > 0;
	}
	free(platforms); /* one allocation, see profdb.h */
	return r >= 0 && any ? base_buf_printf(&a->window.whole, " %s", epoch) : r;
}

static bool is_unrecorded(const struct analysis *a, const char *epoch)
{
	return a->unrecorded.len &&
	       memmem(a->unrecorded.data, a->unrecorded.len, epoch, strlen(epoch));
}

int workload_window_fill(struct analysis *a, struct base_err *err)
{
	int r = 0;

	a->window.cut = true;
	base_buf_clear(&a->window.whole);
	for (size_t i = 0; i < a->nr_epochs && r >= 0; i++)
		if (is_unrecorded(a, a->epochs[i].name) && has_a_minute(a, i))
			r = add_epoch(a, a->epochs[i].name, err);
	if (r >= 0)
		r = analysis_sum(a);
	return r < 0 ? base_fail_errno(err, r, "cannot add epochs without minutes") : 0;
}
