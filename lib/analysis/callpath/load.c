/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the call paths of the chosen epochs and platforms. */
#include <errno.h>

#include "callpath_internal.h"

static int load_one(struct analysis *a, const char *epoch, const char *platform,
		    struct profdb_callpaths *to, size_t *nr)
{
	struct profdb_callpaths *one = NULL;
	struct base_err why = { 0 };
	int r = profdb_callpaths_load(a->db, epoch, platform, &one, &why);

	if (r == -ENOENT)
		return 0;
	if (r >= 0) {
		++*nr;
		r = profdb_callpaths_merge(to, one);
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

int callpath_load(struct analysis *a, struct profdb_callpaths **out, struct base_err *err)
{
	struct profdb_callpaths *all = profdb_callpaths_new();
	size_t nr = 0;
	int r = all ? 0 : -ENOMEM;

	for (size_t e = 0; e < a->nr_epochs; e++)
		for (size_t p = 0; p < a->nr_platforms && r >= 0; p++)
			r = load_one(a, a->epochs[e].name, a->platforms[p], all, &nr);
	if (r < 0)
		base_fail_errno(err, r, "cannot add up call paths");
	else if (!nr && !a->nr_bad)
		r = no_paths(err);
	else if (!nr)
		r = base_fail(err, -DCPI_EFORMAT, "no call paths can be read");
	if (r < 0) {
		profdb_callpaths_free(all);
		return r;
	}
	*out = all;
	return 0;
}
