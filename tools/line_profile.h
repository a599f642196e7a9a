/* SPDX-License-Identifier: BSD-2-Clause */
/* How often source lines ran, written for clang: what dcpi2bb and dcpifdo -llvm do. */
#ifndef DCPI_LINE_PROFILE_H
#define DCPI_LINE_PROFILE_H

#include "feedback.h"

/*
 * Writes the profile of the image and procedures that @what names to @output, or, where that is
 * NULL, to standard output. With f->sel.json it reports what was done, by @schema. @prog: the
 * command. An exit code, or negative with @err: those of feedback_run; -ENOENT (no lines).
 */
int line_profile_run(struct feedback *f, const char *prog, const char *schema, const char *output,
		     int nr, char **what, struct base_err *err);

#endif
