/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flow graph as a drawing, in graphviz's language. The scale is DCPI's: a block's letters are as
 * large as it is frequent, it is as many lines high as it takes cycles, and so its area is its
 * time; within bounds, so that all can be read.
 */
#ifndef DCPI_DRAW_H
#define DCPI_DRAW_H

#include "graph.h"

struct draw_options {
	/* Blocks with less than this share of the procedure's samples, in percent, are small boxes
	 * with a name. Below 0: chosen by the number of blocks. */
	double cutoff;
	bool same_size;
};

/* The elements of a drawing. */
struct draw_counts {
	uint32_t blocks; /* drawn with their instructions */
	uint32_t small;	 /* that stand in small boxes */
	uint32_t boxes;	 /* small ones */
	size_t lines;	 /* between blocks and boxes */
};

/* Append the procedure's drawing. 0 or -ENOMEM. */
int draw_proc(const struct graph_proc *p, const struct draw_options *options, struct base_buf *to,
	      struct draw_counts *counts);

#endif
