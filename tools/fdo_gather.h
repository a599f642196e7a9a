/* SPDX-License-Identifier: BSD-2-Clause */
/* The traces of a program: of all chosen epochs, aged, and of its other builds. */
#ifndef DCPI_FDO_GATHER_H
#define DCPI_FDO_GATHER_H

#include "fdo.h"
#include "samples.h"
#include "select.h"

/* Another build whose traces were taken. */
struct fdo_build {
	struct base_id id;
	struct image *img;
	struct fdo_version *version;
	struct fdo_carried carried;
	uint32_t procedures, found; /* with traces; known in the build that the profile is for */
};

struct fdo_gather {
	const struct select *sel;
	struct analysis *a;
	struct analysis_image *ai; /* the build that the profile is for, opened as @img */
	struct image *img;
	double age;    /* days in which traces come to count half; 0: they stay as they are */
	bool versions; /* other builds are taken */
	bool raw;      /* counts are those of traces */
	/* The result: */
	struct fdo *f;
	struct fdo_build *builds;
	size_t nr_builds, cap_builds;
	struct fdo_making *making; /* its own */
};

/* Makes @f. 0, or negative with @err as of fdo_make. A build whose file is not found is left out,
 * and report_problems tells of it. */
int fdo_gather(struct fdo_gather *g, struct base_err *err);
void fdo_gather_release(struct fdo_gather *g);
/* The image to lay out: of several builds that are to be taken together, that of the file @what. */
int fdo_gather_choose(struct fdo_gather *g, const char *what, struct base_err *err);

#endif
