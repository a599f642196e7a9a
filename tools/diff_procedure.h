/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpidiff's second form: one procedure in two sets. */
#ifndef DCPI_DIFF_PROCEDURE_H
#define DCPI_DIFF_PROCEDURE_H

#include "sets.h"

struct diff_procedure {
	const char *what; /* its name, or an address in it */
	bool by_line;	  /* though its code is the same in both sets */
	bool json, no_header;
};

/* Compare and print; the sets are open. 0 or negative with @err. */
int diff_procedure(const struct diff_procedure *p, const struct set sets[2], const size_t event[2],
		   struct base_err *err);

#endif
