/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DCPI_SAMPLES_GATHER_H
#define DCPI_SAMPLES_GATHER_H

#include "samples.h"

/* A profile becomes part of its image, whose it is (gather.c); @out (may be NULL) is not set where
 * its label is not wanted. 0 or negative. */
int analysis_take_profile(struct analysis *a, struct profdb_profile *p,
			  struct analysis_image **out);
int analysis_note_period(struct analysis *a, const struct profdb_event *ev);
/* All that was walked. */
void analysis_forget(struct analysis *a);

/* Every profile that is chosen (gather_walk.c). Where epochs were joined meanwhile, some may be
 * there twice, and others not at all: it begins anew. */
int analysis_walk(struct analysis *a, const struct analysis_selection *sel, struct base_err *err);
void analysis_forget_headers(struct analysis *a);

#endif
