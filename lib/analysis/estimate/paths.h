/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Execution counts from instruction traces: the edges in an image's profile become nodes of
 * chain.h, and its solution becomes blocks and edges of a procedure's flow graph.
 *
 * The counts are in proportion to one another within a procedure only: traces do not tell how much
 * runs in a unit of time, which differs between procedures.
 */
#ifndef DCPI_PATHS_H
#define DCPI_PATHS_H

#include "flow.h"
#include "freq.h"
#include "image.h"
#include "profdb.h"

/* A procedure with fewer traced instructions, by blocks, is estimated from its samples. */
#define PATHS_MIN_VISITS 100

struct paths;

/* Makes *@out, released with paths_free, from a profile; @p and @img are not used afterwards.
 * -ENOENT: the profile has no traces. With @err: -ENOMEM, errors of insn_decoder_open. */
int paths_make(const struct profdb_profile *p, struct image *img, struct paths **out,
	       struct base_err *err);
void paths_free(struct paths *p);
/* The number of traces that begin in the image or enter it. */
uint64_t paths_traces(const struct paths *p);
/*
 * Returns the factor for the number of traces that left the instruction at @vaddr for another
 * place, so that the numbers of a procedure are in proportion to its executions: slow code has too
 * many traces, and what ran before a trace began, or after it ended, is in none. The sum of a
 * procedure stays about the same. 1: not known.
 */
double paths_correction(const struct paths *p, uint64_t vaddr);
/*
 * Fills @out, whose arrays the caller provides. Flow into a block equals flow out of it within some
 * percent.
 *
 * The confidence of a block is
 * - *high* where the two halves of the traces agree within 5 %, other weights within 8 %, the
 *   traces that begin in slow and in fast code within 10 %, and there are 300 visits;
 * - *medium* where halves and weights agree within a third and there are 25 visits.
 *
 * 0, -ENOENT (too few traces in the graph's code) or -ENOMEM.
 */
int paths_flow(const struct paths *p, const struct flow *f, struct freq_result *out);

#endif
