/* SPDX-License-Identifier: BSD-2-Clause */
/* How often source lines ran, written for a compiler: what dcpi2bb, dcpifdo -llvm and -gcc do. */
#ifndef DCPI_LINE_PROFILE_H
#define DCPI_LINE_PROFILE_H

#include "feedback.h"
#include "sampleprof.h"

struct line_profile {
	const char *prog;   /* the command */
	const char *output; /* NULL: standard output */
	sampleprof_write *write;
	bool comments; /* the form has comments */
	/* Called when the profile is written, while the image is open; NULL: not. */
	int (*written)(const struct feedback *f, struct base_err *err);
};

/*
 * Writes the profile of the image and procedures that @what names. With f->sel.json it reports what
 * was done, as dcpi2bb/1. An exit code, or negative with @err: those of feedback_run; -ENOENT (no
 * lines).
 */
int line_profile_run(struct feedback *f, const struct line_profile *how, int nr, char **what,
		     struct base_err *err);

#endif
