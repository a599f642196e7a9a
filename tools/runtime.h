/* SPDX-License-Identifier: BSD-2-Clause */
/* Which switch has a runtime name the code that it makes (docs/RUNTIMES.md). */
#ifndef DCPI_RUNTIME_H
#define DCPI_RUNTIME_H

#include "base.h"

/* @facility: of a pseudo-image, as "node: dynamic, unnamed". A sentence for its user; NULL: the
 * code has names, or none is known for that program. */
const char *runtime_hint(const char *facility);

#endif
