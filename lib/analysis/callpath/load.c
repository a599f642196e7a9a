/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the call paths of the chosen epochs and platforms. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "callpath_internal.h"

/* To the paths of some workloads. */
static bool is_restricted(const struct analysis *a)
{
	return a->by_owner || a->labels.nr;
}

/* Marks the workloads of @c whose paths are chosen. */
static int mark(const struct analysis *a, const struct profdb_callpaths *c, bool *wanted)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < profdb_callpaths_nr_workloads(c); i++) {
		r = analysis_owner_chosen(a, profdb_callpaths_workload(c, i));
		wanted[i] = r > 0;
	}
	return r;
}

static int take(struct analysis *a, const struct profdb_callpaths *from, bool owners,
		struct profdb_callpaths *to)
{
	bool *wanted;
	int r;

	if (!is_restricted(a))
		return profdb_callpaths_select(to, from, NULL, owners);
	wanted = calloc(profdb_callpaths_nr_workloads(from) + 1, sizeof(*wanted));
	r = wanted ? mark(a, from, wanted) : -ENOMEM;
	if (r >= 0)
		r = profdb_callpaths_select(to, from, wanted, owners);
	free(wanted);
	return r;
}

static int load_one(struct analysis *a, const char *epoch, const char *platform, bool owners,
		    struct profdb_callpaths *to, size_t *nr)
{
	struct profdb_callpaths *one = NULL;
	struct base_err why = { 0 };
	int r = profdb_callpaths_load(a->db, epoch, platform, &one, &why);

	if (r == -ENOENT)
		return 0;
	if (r >= 0) {
		++*nr;
		r = take(a, one, owners, to);
		profdb_callpaths_free(one);
		return r;
	}
	if (r != -ENOMEM) {
		base_fail_errno(&why, r, "cannot read the call paths");
		analysis_note_bad(a, epoch, platform, "callpaths", &why);
		return 0;
	}
	return r;
}

static int no_paths(struct base_err *err)
{
	base_fail(err, -ENOENT, "no call paths were kept in the chosen epochs");
	base_hint(err, "dcpid keeps them unless it was started with '-callpaths 0' or says that it "
		       "cannot; 'dcpiprof' needs none");
	return -ENOENT;
}

static int no_chosen(struct base_err *err)
{
	base_fail(err, -ENOENT, "no call paths of what was chosen were kept");
	base_hint(err, "dcpid keeps those of one sample in so many; an older one did not keep "
		       "whose they are");
	return -ENOENT;
}

static int remark(struct analysis *a, const char *text)
{
	return base_buf_append(&a->remarks, text, strlen(text) + 1);
}

static bool is_kept(const struct analysis *a, const char *name)
{
	for (size_t i = 0; i < a->nr_kept; i++)
		if (strcmp(a->kept[i].name, name) == 0)
			return true;
	return false;
}

/* How paths were chosen by less than samples were. */
static int remarks(struct analysis *a)
{
	int r = 0;

	if (is_kept(a, "pid") || is_kept(a, "thread"))
		r = remark(a, "call paths are those of all processes and threads that are equal "
			      "but for pid and thread");
	if (r >= 0 && a->window.cut)
		r = remark(a, "call paths are those of whole epochs");
	return r;
}

int callpath_load(struct analysis *a, bool owners, struct profdb_callpaths **out,
		  struct base_err *err)
{
	struct profdb_callpaths *all = profdb_callpaths_new();
	size_t nr = 0;
	int r = all ? 0 : -ENOMEM;

	for (size_t e = 0; e < a->nr_epochs; e++)
		for (size_t p = 0; p < a->nr_platforms && r >= 0; p++)
			r = load_one(a, a->epochs[e].name, a->platforms[p], owners, all, &nr);
	if (r >= 0)
		r = remarks(a);
	if (r < 0)
		base_fail_errno(err, r, "cannot add up call paths");
	else if (!nr && !a->nr_bad)
		r = no_paths(err);
	else if (nr && is_restricted(a) &&
		 profdb_callpaths_nr_nodes(all) == PROFDB_NR_CALLPATH_ENDS)
		r = no_chosen(err);
	else if (!nr)
		r = base_fail(err, -DCPI_EFORMAT, "no call paths can be read");
	if (r < 0) {
		profdb_callpaths_free(all);
		return r;
	}
	*out = all;
	return 0;
}
