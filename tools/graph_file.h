/* SPDX-License-Identifier: BSD-2-Clause */
/* Flow graphs as the tools hand them on: from a file or a pipe, and to standard output. */
#ifndef DCPI_GRAPH_FILE_H
#define DCPI_GRAPH_FILE_H

#include "listing.h"
#include "graph.h"

/* @path NULL or "-": standard input. Errors: those of graph_read, with the file's name. */
int graph_file_read(const char *path, struct graph **out, struct base_err *err);
/* To standard output. 0, -ENOMEM or -EIO. */
int graph_file_print(const struct graph *g, struct base_err *err);
/* The same rows: an object of report_json (@a NULL: with "schema" alone) with "procedures"
 * (graph_json.c). 0 or -ENOMEM. */
int graph_file_print_json(const struct graph *g, const char *schema, const struct analysis *a,
			  struct base_err *err);

#endif
