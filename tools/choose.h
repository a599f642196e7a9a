/* SPDX-License-Identifier: BSD-2-Clause */
/* Which procedure the user means, by name or address and perhaps image. */
#ifndef DCPI_CHOOSE_H
#define DCPI_CHOOSE_H

#include "analysis.h"

/*
 * Its listing, the samples of all places included where it is one routine of a facility that stands
 * in several. Errors: those of analysis_find and analysis_listing_open; -EEXIST where several
 * procedures are meant, the candidates named in the hint.
 */
int choose_procedure(struct analysis *a, const char *what, const char *image,
		     struct analysis_listing **out, struct base_err *err);

#endif
