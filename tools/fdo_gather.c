/* SPDX-License-Identifier: BSD-2-Clause */
/* The traces of a program are added up over epochs, which age, and over its builds. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "choose.h"
#include "fdo_gather.h"
#include "paths.h"
#include "report.h"

#define DAY 86400.0

static bool is_build(const struct analysis_image *ai, const struct fdo_gather *g)
{
	return ai->kind == g->ai->kind && base_id_equal(profdb_profile_image(ai->profile),
							profdb_profile_image(g->ai->profile));
}

/* A pseudo-image has a name for each process, and grows: its file's name is its identity. */
static bool is_own(const struct analysis_image *ai, const struct fdo_gather *g)
{
	const char *one = profdb_profile_path(ai->profile, 0);
	const char *two = profdb_profile_path(g->ai->profile, 0);

	if (ai->kind != PROFDB_DYNAMIC)
		return is_build(ai, g);
	return g->ai->kind == PROFDB_DYNAMIC && one && two &&
	       strcmp(base_path_name(one), base_path_name(two)) == 0;
}

/* Is it a program of the same name? */
static bool is_version(const struct analysis_image *ai, const struct fdo_gather *g)
{
	const char *one, *two;

	if (ai->kind != PROFDB_FILE || g->ai->kind != PROFDB_FILE)
		return false;
	for (size_t i = 0; (one = profdb_profile_path(ai->profile, i)); i++)
		for (size_t k = 0; (two = profdb_profile_path(g->ai->profile, k)); k++)
			if (strcmp(base_path_name(one), base_path_name(two)) == 0)
				return true;
	return false;
}

/* ---- other builds ---------------------------------------------------------------------------- */

static struct fdo_build *find_build(struct fdo_gather *g, const struct base_id *id)
{
	for (size_t i = 0; i < g->nr_builds; i++)
		if (base_id_equal(&g->builds[i].id, id))
			return &g->builds[i];
	return NULL;
}

/* The same build among all chosen epochs: report_problems tells of those where it is not found. */
static struct analysis_image *among_all(struct fdo_gather *g, struct analysis_image *ai)
{
	for (size_t i = 0; i < g->a->nr_images; i++) {
		struct analysis_image *one = g->a->images[i];

		if (one->kind == ai->kind && base_id_equal(profdb_profile_image(one->profile),
							   profdb_profile_image(ai->profile)))
			return one;
	}
	return ai;
}

/* *@out NULL: its file is not found. */
static int open_build(struct fdo_gather *g, struct analysis_image *ai, struct fdo_build **out,
		      struct base_err *err)
{
	struct fdo_build b = { .id = *profdb_profile_image(ai->profile) };
	int r;

	*out = find_build(g, &b.id);
	ai = among_all(g, ai);
	if (*out || analysis_image_open(g->a, ai, &b.img, &ai->why) < 0)
		return 0;
	r = fdo_version_open(b.img, g->img, &b.version, err);
	if (r >= 0 &&
	    base_grow(&g->builds, &g->cap_builds, g->nr_builds + 1, sizeof(*g->builds)) < 0)
		r = base_fail_errno(err, -ENOMEM, "cannot take other builds");
	if (r < 0) {
		fdo_version_close(b.version);
		image_close(b.img);
		return r;
	}
	*out = &g->builds[g->nr_builds++];
	**out = b;
	return 0;
}

static double correct(const void *paths, uint64_t vaddr)
{
	return paths_correction(paths, vaddr);
}

/* The traces of @ai, corrected by all that were chosen of that build. 0 or -ENOMEM. */
static int traces_of(struct fdo_gather *g, struct analysis_image *ai, struct image *img,
		     double weight, struct fdo_traces *out, struct base_err *err)
{
	const struct paths *paths = NULL;
	int r = g->raw ? 0 : analysis_image_paths(among_all(g, ai), img, &paths, err);

	*out = (struct fdo_traces){ ai->profile, weight, paths ? correct : NULL, paths };
	return r;
}

static int add_own(struct fdo_gather *g, struct analysis_image *ai, double weight,
		   struct base_err *err)
{
	struct fdo_traces t;
	int r = traces_of(g, ai, g->img, weight, &t, err);

	return r < 0 ? r : fdo_add(g->making, &t, err);
}

static int add_build(struct fdo_gather *g, struct analysis_image *ai, double weight,
		     struct base_err *err)
{
	struct fdo_traces t;
	struct fdo_build *b;
	int r = open_build(g, ai, &b, err);

	if (r >= 0 && b)
		r = traces_of(g, ai, b->img, weight, &t, err);
	return r < 0 || !b ? r : fdo_add_version(g->making, &t, b->version, &b->carried, err);
}

/* ---- epochs ---------------------------------------------------------------------------------- */

static int add_images(struct fdo_gather *g, struct analysis *a, double weight, struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; i < a->nr_images && r >= 0; i++) {
		struct analysis_image *ai = a->images[i];

		if (!profdb_profile_nr_edges(ai->profile))
			continue;
		if (is_own(ai, g))
			r = add_own(g, ai, weight, err);
		else if (g->versions && is_version(ai, g))
			r = add_build(g, ai, weight, err);
	}
	return r;
}

static int add_epoch(struct fdo_gather *g, const char *name, double weight, struct base_err *err)
{
	struct select sel = *g->sel;
	struct analysis *a = NULL;
	int r;

	sel.epoch = name;
	r = report_open(&sel, &a, err);
	if (r >= 0)
		r = add_images(g, a, weight, err);
	analysis_close(a);
	return r;
}

/* Each epoch by itself: the newest counts in full. */
static int add_aged(struct fdo_gather *g, struct base_err *err)
{
	const struct analysis *a = g->a;
	int64_t newest = INT64_MIN;
	int r = 0;

	for (size_t i = 0; i < a->nr_epochs; i++)
		if (profdb_epoch_begin_time(a->epochs[i].name) > newest)
			newest = profdb_epoch_begin_time(a->epochs[i].name);
	for (size_t i = 0; i < a->nr_epochs && r >= 0; i++) {
		int64_t older = newest - profdb_epoch_begin_time(a->epochs[i].name);

		r = add_epoch(g, a->epochs[i].name, exp2(-(double)older / DAY / g->age), err);
	}
	return r;
}

int fdo_gather(struct fdo_gather *g, struct base_err *err)
{
	int ended, r = fdo_begin(g->img, &g->making, err);

	if (r < 0)
		return r;
	r = g->age > 0 ? add_aged(g, err) : add_images(g, g->a, 1, err);
	ended = fdo_end(g->making, r < 0 ? NULL : &g->f, err);
	for (size_t i = 0; i < g->nr_builds; i++)
		fdo_version_found(g->builds[i].version, &g->builds[i].procedures,
				  &g->builds[i].found);
	return r < 0 ? r : ended;
}

void fdo_gather_release(struct fdo_gather *g)
{
	fdo_free(g->f);
	for (size_t i = 0; i < g->nr_builds; i++) {
		fdo_version_close(g->builds[i].version);
		image_close(g->builds[i].img);
	}
	free(g->builds);
}

int fdo_gather_choose(struct fdo_gather *g, const char *what, struct base_err *err)
{
	return g->versions && access(what, F_OK) == 0 ? analysis_image_add(g->a, what, &g->ai, err)
						      : choose_image(g->a, what, &g->ai, err);
}
