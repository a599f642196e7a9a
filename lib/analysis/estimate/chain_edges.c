/* SPDX-License-Identifier: BSD-2-Clause */
/* Which ways there are from node to node, whatever windows count there. */
#include <errno.h>
#include <stdlib.h>

#include "chain_internal.h"

static bool is_node(const struct chain_input *in, uint32_t node)
{
	return node < in->nr_nodes || node == CHAIN_OUTSIDE;
}

static bool node_is_sound(const struct chain_input *in, const struct chain_node *n)
{
	return n->insns && n->group < in->nr_groups && is_node(in, n->after);
}

int chain_check(const struct chain_input *in, struct base_err *err)
{
	bool ok = in->nr_nodes < CHAIN_LOST - in->nr_groups && in->nr_starts < CHAIN_LOST;

	for (uint32_t i = 0; ok && i < in->nr_nodes; i++)
		ok = node_is_sound(in, &in->nodes[i]);
	for (uint32_t i = 0; ok && i < in->nr_starts; i++)
		ok = in->starts[i] < in->nr_nodes;
	for (size_t i = 0; ok && i < in->nr_moves; i++) {
		const struct chain_move *m = &in->moves[i];

		ok = (m->start < in->nr_starts || m->start >= CHAIN_LOST) && is_node(in, m->from) &&
		     is_node(in, m->to);
	}
	return ok ? 0 : base_fail(err, -EINVAL, "windows lead to no node");
}

static int by_ends(const void *pa, const void *pb)
{
	const struct chain_edge *a = pa, *b = pb;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return (a->to > b->to) - (a->to < b->to);
}

size_t chain_edge_find(const struct chain *c, const struct chain_edge *key)
{
	const struct chain_edge *e =
		bsearch(key, c->edges, c->nr_edges, sizeof(*c->edges), by_ends);

	return e ? (size_t)(e - c->edges) : SIZE_MAX;
}

bool chain_falls(const struct chain_input *in, uint32_t node)
{
	return in->nodes[node].falls && node + 1 < in->nr_nodes;
}

/* Where it goes on within the procedure, or where the procedure is left. */
static bool leaves(const struct chain *c, const struct chain_move *m, struct chain_edge *out)
{
	const struct chain_node *nodes = c->in->nodes;

	if (m->from == CHAIN_OUTSIDE || m->to == CHAIN_OUTSIDE)
		return false;
	*out = chain_edge(m->from, m->to);
	if (nodes[m->from].after != CHAIN_OUTSIDE)
		out->to = nodes[m->from].after;
	else if (nodes[m->from].returns || nodes[m->from].group != nodes[m->to].group)
		out->to = c->in->nr_nodes + nodes[m->from].group;
	return true;
}

/* What comes back from a call was never away. */
static bool comes(const struct chain *c, const struct chain_move *m, struct chain_edge *out)
{
	struct chain_edge way;

	if (m->to == CHAIN_OUTSIDE || c->is_after[m->to])
		return false;
	*out = chain_edge(c->in->nr_nodes + c->in->nodes[m->to].group, m->to);
	if (m->from == CHAIN_OUTSIDE)
		return m->start == CHAIN_OUTSIDE;
	return leaves(c, m, &way) && way.to != m->to;
}

uint32_t chain_only_way(const struct chain_input *in, uint32_t i)
{
	const struct chain_node *n = &in->nodes[i];

	if (n->after != CHAIN_OUTSIDE)
		return n->after;
	if (n->returns)
		return in->nr_nodes + n->group;
	return chain_falls(in, i) ? i + 1 : CHAIN_OUTSIDE;
}

bool chain_is_first(const struct chain_input *in, uint32_t i)
{
	return !i || in->nodes[i].group != in->nodes[i - 1].group;
}

static void list_edges(struct chain *c)
{
	const struct chain_input *in = c->in;
	struct chain_edge e;
	size_t nr = 0;

	for (uint32_t i = 0; i < in->nr_nodes; i++) {
		if (chain_only_way(in, i) != CHAIN_OUTSIDE)
			c->edges[nr++] = chain_edge(i, chain_only_way(in, i));
		if (chain_is_first(in, i))
			c->edges[nr++] = chain_edge(in->nr_nodes + in->nodes[i].group, i);
	}
	for (size_t i = 0; i < in->nr_moves; i++) {
		if (leaves(c, &in->moves[i], &e))
			c->edges[nr++] = e;
		if (comes(c, &in->moves[i], &e))
			c->edges[nr++] = e;
	}
	if (nr)
		qsort(c->edges, nr, sizeof(*c->edges), by_ends);
	for (size_t i = 0; i < nr; i++)
		if (!c->nr_edges || by_ends(&c->edges[c->nr_edges - 1], &c->edges[i]))
			c->edges[c->nr_edges++] = c->edges[i];
	for (size_t i = 0; i < in->nr_moves; i++) {
		c->edge_of[i] = leaves(c, &in->moves[i], &e) ? chain_edge_find(c, &e) : SIZE_MAX;
		c->come_of[i] = comes(c, &in->moves[i], &e) ? chain_edge_find(c, &e) : SIZE_MAX;
	}
}

static void list_into(struct chain *c)
{
	for (size_t i = 0; i < c->nr_edges; i++)
		c->first[c->edges[i].to + 1]++;
	for (uint32_t i = 0; i < c->nr_all; i++)
		c->first[i + 1] += c->first[i];
	for (size_t i = 0; i < c->nr_edges; i++)
		c->into[c->first[c->edges[i].to]++] = i;
	/* Each stands now where the next one begins. */
	for (uint32_t i = c->nr_all; i > 0; i--)
		c->first[i] = c->first[i - 1];
	c->first[0] = 0;
}

void chain_list(struct chain *c)
{
	for (uint32_t i = 0; i < c->in->nr_nodes; i++)
		if (c->in->nodes[i].after != CHAIN_OUTSIDE)
			c->is_after[c->in->nodes[i].after] = true;
	list_edges(c);
	list_into(c);
}
