/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often code ran by what windows saw of it: the moves in an image's profile as nodes of
 * chain.h, and its answer as blocks and edges of a procedure's flow graph.
 *
 * In proportion to one another within a procedure, no more: how much runs in a unit of time, which
 * differs between procedures, is not in windows.
 */
#ifndef DCPI_PATHS_H
#define DCPI_PATHS_H

#include "flow.h"
#include "freq.h"
#include "image.h"
#include "profdb.h"

/* A procedure with fewer instructions in windows, by blocks, is left to its samples. */
#define PATHS_MIN_VISITS 100

struct paths;

/* Needs neither @p nor @img later. -ENOENT: the profile has no windows. Others, with @err: -ENOMEM,
 * those of insn_decoder_open. */
int paths_make(const struct profdb_profile *p, struct image *img, struct paths **out,
	       struct base_err *err);
void paths_free(struct paths *p);
/* How many began in the image or came into it. */
uint64_t paths_windows(const struct paths *p);
/*
 * Fill in @out, whose arrays are there. What goes into a block comes out of it but for some
 * percent.
 *
 * The confidence of a block is *high* where the two halves of the windows agree within 5 %, other
 * ways to weigh them within 8 %, each half of them that begins where the procedure's code is slow,
 * or fast, within 10 %, and there were 300 visits; *medium* where halves and weights agree within a
 * third and there were 25.
 *
 * 0; -ENOENT: too few windows were in the graph's code.
 */
int paths_flow(const struct paths *p, const struct flow *f, struct freq_result *out);

#endif
