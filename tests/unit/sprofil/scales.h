/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of HP-UX's sprofil(2), as printed there: instructions that map into each element. */
#ifndef SCALES_H
#define SCALES_H

#include <stddef.h>

struct scales_row {
	unsigned int scale;
	double ratio[3]; /* PROF_USHORT, PROF_UINT, PROF_UINT64 */
};

extern const struct scales_row scales4[]; /* "On PA-RISC machines, instructions are 4 bytes each" */
extern const struct scales_row scales16[]; /* "a 16-byte bundle containing three instructions" */
extern const size_t scales_nr4, scales_nr16;
extern const unsigned int scales_flags[3];

#endif
