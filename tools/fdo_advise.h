/* SPDX-License-Identifier: BSD-2-Clause */
/* Which programs would gain by a profile for their compiler or linker. */
#ifndef DCPI_FDO_ADVISE_H
#define DCPI_FDO_ADVISE_H

#include "samples.h"

/* Prints a row for each image with traces, the one with most samples first; as the rows of
 * dcpifdo/1 where @json. 0, or negative with @err. */
int fdo_advise(struct analysis *a, bool json, struct base_err *err);

#endif
