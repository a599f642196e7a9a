/* SPDX-License-Identifier: BSD-2-Clause */
/* Making a graph of the code that a walk found. */
#ifndef DCPI_FLOW_GRAPH_INTERNAL_H
#define DCPI_FLOW_GRAPH_INTERNAL_H

#include "walk.h"

/* The blocks and edges of what is known so far, in place of those that @f has. */
int flow_graph_make(const struct flow_walk *w, struct flow *f);
/* The edges that only a finished graph needs: entries of what may be led to from elsewhere, exits
 * of loops without. Then the lists by block, and the classes. */
int flow_graph_finish(const struct flow_walk *w, struct flow *f);

#endif
