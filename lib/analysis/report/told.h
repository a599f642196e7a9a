/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instruction samples (isample.h) are added up as the columns that a user has asked for: those of
 * an entry of a profile, of a listing's unit, or between two offsets.
 */
#ifndef DCPI_REPORT_TOLD_H
#define DCPI_REPORT_TOLD_H

#include "isample.h"
#include "listing.h"
#include "samples.h"

/* NAN: the hardware does not tell it of these samples. */
double told_value(const struct isample_columns *c, const struct told_values *v, size_t column);

/* Adds those of a listing at the address of a unit; @u NULL: all. */
void told_add_unit(const struct isample_columns *c, const struct analysis_listing *l,
		   const struct analysis_unit *u, struct told_values *v);
/* Adds those of one entry of @ai's profile, where its event is chosen and its place known. */
void told_add_entry(const struct isample_columns *c, const struct analysis_image *ai,
		    const struct profdb_insn *m, struct told_values *v);
/* Adds the values of some samples to those of others. */
void told_join(const struct isample_columns *c, const struct told_values *v,
	       struct told_values *to);

#endif
