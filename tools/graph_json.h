/* SPDX-License-Identifier: BSD-2-Clause */
/* Flow graphs as JSON, for the tools that hand them on. */
#ifndef DCPI_GRAPH_JSON_H
#define DCPI_GRAPH_JSON_H

#include "graph.h"
#include "listing.h"

/* The rows of a graph's text: an object of report_json (@a NULL: with "schema" alone) with
 * "procedures". 0 or -ENOMEM. */
int graph_json_print(const struct graph *g, const char *schema, const struct analysis *a,
		     struct base_err *err);

#endif
