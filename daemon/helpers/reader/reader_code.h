/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind tables of code that a process has written. */
#ifndef DCPI_READER_CODE_H
#define DCPI_READER_CODE_H

#include "registry.h"

struct unwind_table;

/*
 * The table of [start, end), whose routines (struct reader_routine) are in the file @fd, and their
 * code in @memory. What cannot be read, or is not understood, has no rule. -EINVAL: the routines
 * are not as reader.h says.
 */
int reader_code_table(int fd, uint64_t start, uint64_t end, const struct registry_memory *memory,
		      struct unwind_table **out);

#endif
