/* SPDX-License-Identifier: BSD-2-Clause */
/* Between draw.c, which writes the drawing, and draw_shape.c, which finds its shape. */
#ifndef DCPI_DRAW_INTERNAL_H
#define DCPI_DRAW_INTERNAL_H

#include "draw.h"

/* Do both ends lie in the procedure? */
bool draw_edge_stays(const struct graph_edge *e);
/* Mark (in @back, by edge, zeroed) the edges that close a loop: those that lead back to a block on
 * the way from an entry. 0 or -ENOMEM. */
int draw_loops(const struct graph_proc *p, bool *back);
/*
 * Put small blocks that are reached from one other small one alone into one box with it, again and
 * again, so that a cold region behind one branch becomes one box; where that leaves too many, all
 * that hang together. Edges that are @hidden do not count. @group: by block, the block whose box it
 * stands in. 0 or -ENOMEM.
 */
int draw_groups(const struct graph_proc *p, const bool *hidden, const bool *small, uint32_t *group);

#endif
