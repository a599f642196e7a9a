/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls of libdbgdyn that make routines; what they get is the test's to look at. */
#ifndef FAKE_DBGDYN_H
#define FAKE_DBGDYN_H

#include "jvmti_internal.h"

#define FAKE_CONTEXT 42u

/* Of the test. */
int fake_register(const struct dbgdyn_routine *routine);

/* The last dbgdyn_retire_code. */
extern const void *fake_retired;
extern size_t fake_retired_len;

#endif
