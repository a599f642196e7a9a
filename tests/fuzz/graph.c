/* SPDX-License-Identifier: BSD-2-Clause */
/* Any text as a flow graph: refused with a reason, or what is written from it reads as itself. */
#include <stdlib.h>
#include <string.h>

#include "graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void again(const struct graph *g)
{
	struct base_buf first = { 0 }, second = { 0 };
	struct base_err err = { 0 };
	struct graph *g2 = NULL;

	if (graph_write(g, &first) < 0 ||
	    graph_read((const char *)first.data, first.len, &g2, &err) < 0 ||
	    graph_write(g2, &second) < 0)
		abort();
	if (first.len != second.len || memcmp(first.data, second.data, first.len) != 0)
		abort();
	graph_free(g2);
	base_buf_release(&first);
	base_buf_release(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct base_err err = { 0 };
	struct graph *g = NULL;
	int r = graph_read((const char *)data, len, &g, &err);

	if (r < 0 && (!err.text[0] || err.code != r))
		abort();
	if (r >= 0)
		again(g);
	graph_free(g);
	return 0;
}
