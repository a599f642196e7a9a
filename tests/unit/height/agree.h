/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules that lib/height computes are compared with those that compilers wrote (.eh_frame). */
#ifndef TESTS_UNIT_HEIGHT_AGREE_H
#define TESTS_UNIT_HEIGHT_AGREE_H

#include <stdint.h>
#include <stdio.h>

#include "base.h"
#include "height.h"

struct agree {
	uint64_t routines, refused;
	uint64_t bytes[HEIGHT_NR_REASONS];
	/* Bytes with a rule of both; of a rule that cannot be compared; and where they differ. */
	uint64_t compared, apart, wrong;
	/* Routines with a difference. */
	uint64_t wrong_routines;
	/* Lines of the first differences go here; NULL: nowhere. */
	FILE *to;
	uint64_t max_lines;
};

/* All routines of a file, added to *@a. 0, or negative: the file cannot be read. */
int agree_file(const char *path, struct agree *a, struct base_err *err);
void agree_print(const struct agree *a, FILE *to);

#endif
