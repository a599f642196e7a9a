/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the workloads of the chosen epochs and platforms. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

struct load {
	struct analysis *a;
	struct profdb_workloads *all;
	bool minutes;
};

static int load_one(struct load *l, struct analysis_epoch *epoch, const char *platform)
{
	struct profdb_workloads *one = NULL;
	struct base_err why = { 0 };
	int r = l->minutes
			? profdb_workloads_load(l->a->db, epoch->name, platform, &one, &why)
			: profdb_workloads_load_counts(l->a->db, epoch->name, platform, &one, &why);

	if (r == -ENOENT) {
		epoch->unrecorded = true;
		return 0;
	}
	if (r >= 0) {
		r = profdb_workloads_merge(l->all, one);
		profdb_workloads_free(one);
		return r;
	}
	if (r == -ENOMEM)
		return r;
	base_fail_errno(&why, r, "cannot read the workloads");
	analysis_note_bad(l->a, epoch->name, platform, "workloads", &why);
	return 0;
}

static bool is_chosen(const struct analysis *a, const char *platform)
{
	for (size_t i = 0; i < a->nr_platforms; i++)
		if (strcmp(a->platforms[i], platform) == 0)
			return true;
	return false;
}

static int load_epoch(struct load *l, struct analysis_epoch *epoch, struct base_err *err)
{
	char **platforms = profdb_platforms(l->a->db, epoch->name, err);
	int r = 0;

	if (!platforms)
		return err && err->code ? err->code : -ENOMEM;
	epoch->unrecorded = false;
	for (size_t i = 0; platforms[i] && r >= 0; i++)
		if (is_chosen(l->a, platforms[i]))
			r = load_one(l, epoch, platforms[i]);
	free(platforms); /* one allocation, see profdb.h */
	return r;
}

static int too_many(struct base_err *err)
{
	base_fail(err, -DCPI_ELIMIT, "the chosen epochs have more than %d workloads together",
		  PROFDB_NR_WORKLOADS);
	base_hint(err, "choose fewer by -epoch");
	return -DCPI_ELIMIT;
}

int workload_load(struct analysis *a, enum workload_part part, struct profdb_workloads **out,
		  struct base_err *err)
{
	struct load l = { a, profdb_workloads_new(), part != WORKLOAD_COUNTS };
	int r = l.all ? 0 : -ENOMEM;

	for (size_t e = 0; e < a->nr_epochs && r >= 0; e++)
		if (part != WORKLOAD_CUT || !a->epochs[e].inside)
			r = load_epoch(&l, &a->epochs[e], err);
	if (r == -DCPI_ELIMIT)
		too_many(err);
	else if (r < 0)
		base_fail_errno(err, r, "cannot add up workloads");
	if (r < 0) {
		profdb_workloads_free(l.all);
		return r;
	}
	*out = l.all;
	return 0;
}

int workload_unrecorded(const struct analysis *a, struct base_buf *out)
{
	int r = 0;

	for (size_t e = 0; e < a->nr_epochs && r >= 0; e++)
		if (a->epochs[e].unrecorded)
			r = base_buf_printf(out, " %s", a->epochs[e].name);
	return r;
}

void workload_events(const struct analysis *a, const struct profdb_workloads *w,
		     size_t event[PROFDB_NR_EVENTS])
{
	for (size_t i = 0; i < profdb_workloads_nr_events(w); i++) {
		int at = analysis_event_find(a, profdb_workloads_event(w, i)->name, NULL);

		event[i] = at < 0 ? SIZE_MAX : (size_t)at;
	}
}

int workload_image(struct analysis *a, const struct profdb_workloads *w, size_t image,
		   struct analysis_image **out)
{
	const struct profdb_image_ref *i = profdb_workloads_image(w, image);

	return analysis_image_of(a, i->kind, &i->id, i->stem ? i->stem : i->path, out);
}
