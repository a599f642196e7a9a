/* SPDX-License-Identifier: BSD-2-Clause */
/* The words of dcpifdo about a profile, beside the profile itself. */
#ifndef DCPI_FDO_REPORT_H
#define DCPI_FDO_REPORT_H

#include <json.h>

#include "fdo_gather.h"

/* One line, and a warning for all that makes the profile worth less: too few traces, code that is
 * not what ran. */
void fdo_report_quality(const char *prog, const char *image, const struct fdo_quality *q, FILE *to);
struct json_object *fdo_report_quality_json(const struct fdo_quality *q);
/* A line for each other build: how much of its traces is in the profile. */
void fdo_report_builds(const char *prog, const struct fdo_gather *g, FILE *to);
/* The value of "versions" of dcpifdo/1. */
struct json_object *fdo_report_builds_json(const struct fdo_gather *g);
/* Warns of all that keeps llvm-bolt from laying out this file anew. */
void fdo_report_relink(const char *prog, const struct image *img, FILE *to);
/*
 * The edges of the procedures that @wanted (of the symbol; NULL: all) accepts, by name and offset:
 * the value of "procedures" of dcpifdo/1.
 */
struct json_object *fdo_report_edges(const struct fdo *f, struct image *img,
				     bool (*wanted)(void *context, const struct image_symbol *s),
				     void *context);

#endif
