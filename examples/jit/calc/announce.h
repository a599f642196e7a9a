/* SPDX-License-Identifier: BSD-2-Clause */
/* calc's way to libdbgdyn: all that this JIT does to be seen by DCPI. */
#ifndef CALC_ANNOUNCE_H
#define CALC_ANNOUNCE_H

#include <dbgdyn.h>

#include "calc.h"

/* Before any code is made. Nothing here fails: without a daemon it does nothing. */
void announce_begin(dbgdyn_context *context);
/* Fits calc_options.made, with the context's address as its argument. */
void announce_routine(void *context, const struct calc_routine *routine);
/* At the end: waits until the profiler has written what it knows. A warning, or NULL. */
const char *announce_end(dbgdyn_context context);

#endif
