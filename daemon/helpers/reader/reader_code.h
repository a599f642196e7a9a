/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind tables of code that a process has written. */
#ifndef DCPI_READER_CODE_H
#define DCPI_READER_CODE_H

#include <stddef.h>

#include "registry.h"

enum { READER_CODE_SLOTS = 1 << 13 };

struct unwind_table;

/* The file @fd has @nr routines (struct reader_routine), and their frames (struct wire_frame). */
struct reader_code_part {
	int fd;
	uint64_t nr, start, end;
};

/*
 * Rules of routines from earlier tables, with their code: a table is made again whenever one of its
 * routines changes, and most are then what they were. Zero-initialize; it is kept for the life of
 * its process.
 */
struct reader_code_kept {
	struct height *height;
	struct reader_code_routine *slots[READER_CODE_SLOTS];
	size_t bytes;
};

/*
 * The table of a part of a process, whose code is in @memory. What cannot be read, or is not
 * understood, has no rule. -EINVAL: the routines are not as reader.h says.
 */
int reader_code_table(const struct reader_code_part *part, const struct registry_memory *memory,
		      struct reader_code_kept *kept, struct unwind_table **out);

#endif
