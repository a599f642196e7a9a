/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often source lines ran, in the text that clang reads by -fprofile-sample-use: LLVM's sample
 * profile (llvm/ProfileData/SampleProfReader.h, LLVM 14). Lines count from the one that their
 * routine begins at, so that code may move in its file; what was inlined is kept apart by where.
 */
#ifndef DCPI_SAMPLEPROF_H
#define DCPI_SAMPLEPROF_H

#include "runs.h"

struct sampleprof;

int sampleprof_new(struct sampleprof **out); /* 0 or -ENOMEM */
void sampleprof_free(struct sampleprof *s);
/*
 * Add a procedure of @img. A line has the count of its instruction that ran most often, for the
 * others may have been moved; of a loop that LLVM unrolled, times what one instruction stands for.
 * Procedures of one name add up. 1; 0: nothing tells where its lines are; -ENOMEM.
 */
int sampleprof_add(struct sampleprof *s, struct image *img, const struct runs_procedure *p);
/* The profile's text, functions with most counts first. 0 or -ENOMEM. */
int sampleprof_format(struct sampleprof *s, struct base_buf *out);

/*
 * LLVM packs three numbers into a discriminator, of which two matter here: the block of the line
 * (what clang itself gives to the lines of a source), and how many executions of the source one of
 * this instruction stands for, at least 1.
 */
unsigned int sampleprof_block_of(unsigned int discriminator);
unsigned int sampleprof_copies_of(unsigned int discriminator);

#endif
