/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Execution counts of source lines in the text that clang reads by -fprofile-sample-use: LLVM's
 * sample profile (llvm/ProfileData/SampleProfReader.h, LLVM 14). Line numbers are relative to the
 * first line of their routine, so that code may move in its file; each inlined copy is kept apart
 * by its place.
 */
#ifndef DCPI_SAMPLEPROF_H
#define DCPI_SAMPLEPROF_H

#include "runs.h"

struct sampleprof;

int sampleprof_new(struct sampleprof **out); /* released with sampleprof_free; 0 or -ENOMEM */
void sampleprof_free(struct sampleprof *s);
/*
 * Adds a procedure of @img. The count of a line is that of its instruction that ran most often, as
 * the others may have been moved away; in a loop that LLVM unrolled, it is multiplied by the
 * executions that one instruction stands for. Procedures of one name add up. 1; 0 (its lines are
 * not known); -ENOMEM.
 */
int sampleprof_add(struct sampleprof *s, struct image *img, const struct runs_procedure *p);
/* Appends the profile to @out, functions with the largest counts first; once. 0 or -ENOMEM. */
typedef int sampleprof_write(struct sampleprof *s, struct base_buf *out);
/* The text for clang. */
sampleprof_write sampleprof_format;
/* The file for gcc (-fauto-profile), as its releases from 12 on read it: version 2, the lengths of
 * strings in bytes. It has one count for a line, and no discriminators. */
sampleprof_write sampleprof_format_gcov;

/*
 * LLVM packs three numbers into a discriminator, of which two matter here: the block of the line
 * (which clang assigns to the lines of a source), and the number of executions of the source that
 * one of this instruction stands for, at least 1.
 */
unsigned int sampleprof_block_of(unsigned int discriminator);
unsigned int sampleprof_copies_of(unsigned int discriminator);

#endif
