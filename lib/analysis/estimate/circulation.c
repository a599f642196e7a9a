/* SPDX-License-Identifier: BSD-2-Clause */
/* The cheapest change of flows along a graph's edges that makes inflow and outflow equal. */
#include <errno.h>
#include <stdlib.h>

#include "circulation.h"

#define NO_NODE UINT32_MAX
#define NO_ARC	SIZE_MAX

/* A node of the spanning tree with the arc to its parent; only tree arcs have a flow that can
 * change. */
struct node {
	uint32_t parent, child, next, prev; /* first child; siblings */
	uint32_t depth;
	bool up;    /* the arc leads from the node to its parent */
	size_t arc; /* NO_ARC: an artificial arc without flow */
	int64_t price;
};

enum place { AT_EMPTY, AT_FULL, IN_TREE };

struct solver {
	struct circulation_arc *arcs;
	size_t nr_arcs;
	struct node *nodes; /* the last one is the root */
	uint32_t root;
	uint8_t *place; /* enum place, by arc */
	size_t next;	/* arc to look at */
	uint64_t work;
};

/* The cycle that an incoming arc closes with the tree. */
struct cycle {
	size_t arc;
	uint32_t tail, head; /* ends of the arc, in the direction of the push */
	uint32_t apex;
	int64_t push;
	uint32_t out; /* the node whose parent arc leaves the tree; NO_NODE: the incoming arc itself
		       */
	bool out_at_tail;
};

static int check_arcs(uint32_t nr_nodes, const struct circulation_arc *arcs, size_t nr_arcs,
		      struct base_err *err)
{
	uint64_t limit = (UINT64_C(1) << 61) / ((uint64_t)nr_nodes + 1);
	uint64_t sum = 0;

	for (size_t i = 0; i < nr_arcs; i++) {
		const struct circulation_arc *a = &arcs[i];

		if (a->cost < 0)
			sum += (uint64_t)a->cap;
		if (a->from >= nr_nodes || a->to >= nr_nodes || a->cap < 0 ||
		    a->cost > (int64_t)limit || a->cost < -(int64_t)limit ||
		    (a->cost < 0 && a->cap == CIRCULATION_NO_LIMIT) || sum >> 62)
			return base_fail(err, -EINVAL, "arc %zu of the network is not valid", i);
	}
	return 0;
}

static void detach(struct node *nodes, uint32_t n)
{
	struct node *node = &nodes[n];

	if (node->prev != NO_NODE)
		nodes[node->prev].next = node->next;
	else
		nodes[node->parent].child = node->next;
	if (node->next != NO_NODE)
		nodes[node->next].prev = node->prev;
}

static void attach(struct node *nodes, uint32_t n, uint32_t parent)
{
	nodes[n].parent = parent;
	nodes[n].prev = NO_NODE;
	nodes[n].next = nodes[parent].child;
	if (nodes[n].next != NO_NODE)
		nodes[nodes[n].next].prev = n;
	nodes[parent].child = n;
}

/* Each node begins as a child of the root, by an arc without cost that leads up. No arc leads
 * back down, so no flow ever takes these arcs. */
static int start(struct solver *s, uint32_t nr_nodes)
{
	s->root = nr_nodes;
	s->nodes = calloc((size_t)nr_nodes + 1, sizeof(*s->nodes));
	s->place = calloc(s->nr_arcs + 1, 1);
	if (!s->nodes || !s->place)
		return -ENOMEM;
	s->nodes[s->root] = (struct node){
		.parent = NO_NODE, .child = NO_NODE, .next = NO_NODE, .prev = NO_NODE, .arc = NO_ARC
	};
	for (uint32_t n = 0; n < nr_nodes; n++) {
		s->nodes[n] =
			(struct node){ .child = NO_NODE, .depth = 1, .up = true, .arc = NO_ARC };
		attach(s->nodes, n, s->root);
	}
	for (size_t i = 0; i < s->nr_arcs; i++)
		s->arcs[i].flow = 0;
	return 0;
}

/* The cost that one more unit of flow through the arc saves, all consequences included; above 0:
 * worth it. */
static int64_t saving(const struct solver *s, size_t i)
{
	const struct circulation_arc *a = &s->arcs[i];
	int64_t cost = a->cost + s->nodes[a->from].price - s->nodes[a->to].price;

	if (s->place[i] == AT_EMPTY)
		return -cost;
	return s->place[i] == AT_FULL ? cost : 0;
}

/* Searches block by block and takes the best arc of the first block that has one: nearly as good
 * as the best arc of all, and faster. */
static size_t find_incoming(struct solver *s, size_t stretch)
{
	size_t best = NO_ARC;
	int64_t most = 0;

	for (size_t seen = 0; seen < s->nr_arcs;) {
		for (size_t n = 0; n < stretch && seen < s->nr_arcs; n++, seen++) {
			int64_t v = saving(s, s->next);

			if (v > most) {
				most = v;
				best = s->next;
			}
			if (++s->next == s->nr_arcs)
				s->next = 0;
		}
		if (best != NO_ARC)
			break;
		s->work += stretch;
	}
	s->work += stretch;
	return best;
}

static uint32_t find_apex(struct solver *s, uint32_t a, uint32_t b)
{
	while (a != b) {
		if (s->nodes[a].depth >= s->nodes[b].depth)
			a = s->nodes[a].parent;
		else
			b = s->nodes[b].parent;
		s->work++;
	}
	return a;
}

/* The residual capacity of the arc between @n and its parent. */
static int64_t space(const struct solver *s, uint32_t n, bool upwards)
{
	const struct node *node = &s->nodes[n];
	const struct circulation_arc *a;

	if (node->arc == NO_ARC)
		return node->up == upwards ? INT64_MAX : 0;
	a = &s->arcs[node->arc];
	if (node->up != upwards)
		return a->flow;
	return a->cap == CIRCULATION_NO_LIMIT ? INT64_MAX : a->cap - a->flow;
}

/* Among several blocking arcs the last one on the cycle, seen from the apex, leaves: so the tree
 * stays strongly feasible, and no tree repeats. */
static struct cycle find_cycle(struct solver *s, size_t arc)
{
	const struct circulation_arc *a = &s->arcs[arc];
	bool more = s->place[arc] == AT_EMPTY;
	struct cycle c = { .arc = arc,
			   .tail = more ? a->from : a->to,
			   .head = more ? a->to : a->from,
			   .push = a->cap,
			   .out = NO_NODE };

	c.apex = find_apex(s, c.tail, c.head);
	for (uint32_t n = c.tail; n != c.apex; n = s->nodes[n].parent) {
		int64_t can = space(s, n, false);

		if (can < c.push) {
			c.push = can;
			c.out = n;
			c.out_at_tail = true;
		}
	}
	for (uint32_t n = c.head; n != c.apex; n = s->nodes[n].parent) {
		int64_t can = space(s, n, true);

		if (can <= c.push) {
			c.push = can;
			c.out = n;
			c.out_at_tail = false;
		}
	}
	return c;
}

static void push_along(struct solver *s, uint32_t n, uint32_t apex, bool upwards, int64_t push)
{
	for (; n != apex; n = s->nodes[n].parent) {
		const struct node *node = &s->nodes[n];

		if (node->arc != NO_ARC)
			s->arcs[node->arc].flow += node->up == upwards ? push : -push;
	}
}

/* Updates the prices and depths in @top's subtree. */
static void settle(struct solver *s, uint32_t top)
{
	struct node *nodes = s->nodes;
	int64_t cost = s->arcs[nodes[top].arc].cost;
	int64_t parent = nodes[nodes[top].parent].price;
	int64_t by = (nodes[top].up ? parent - cost : parent + cost) - nodes[top].price;

	for (uint32_t n = top; n != NO_NODE;) {
		nodes[n].price += by;
		nodes[n].depth = nodes[nodes[n].parent].depth + 1;
		s->work++;
		if (nodes[n].child != NO_NODE) {
			n = nodes[n].child;
			continue;
		}
		while (n != top && nodes[n].next == NO_NODE)
			n = nodes[n].parent;
		n = n == top ? NO_NODE : nodes[n].next;
	}
}

/* Reverses the path from @from up to @out and attaches it to @parent by @arc. */
static void rehang(struct solver *s, uint32_t from, uint32_t out, uint32_t parent, size_t arc)
{
	uint32_t n = from;
	bool up = s->arcs[arc].from == from;

	for (;;) {
		struct node old = s->nodes[n];

		detach(s->nodes, n);
		attach(s->nodes, n, parent);
		s->nodes[n].arc = arc;
		s->nodes[n].up = up;
		if (n == out)
			break;
		parent = n;
		arc = old.arc;
		up = !old.up;
		n = old.parent;
	}
	settle(s, from);
}

static void bring_in(struct solver *s, size_t arc)
{
	struct cycle c = find_cycle(s, arc);
	bool more = s->place[arc] == AT_EMPTY;
	size_t leaving;

	if (c.push) {
		s->arcs[arc].flow += more ? c.push : -c.push;
		push_along(s, c.tail, c.apex, false, c.push);
		push_along(s, c.head, c.apex, true, c.push);
	}
	if (c.out == NO_NODE) {
		s->place[arc] = more ? AT_FULL : AT_EMPTY;
		return;
	}
	leaving = s->nodes[c.out].arc;
	if (leaving != NO_ARC)
		s->place[leaving] = s->arcs[leaving].flow ? AT_FULL : AT_EMPTY;
	s->place[arc] = IN_TREE;
	if (c.out_at_tail)
		rehang(s, c.tail, c.out, c.head, arc);
	else
		rehang(s, c.head, c.out, c.tail, arc);
}

int circulation_solve(uint32_t nr_nodes, struct circulation_arc *arcs, size_t nr_arcs,
		      uint64_t max_work, struct base_err *err)
{
	struct solver s = { .arcs = arcs, .nr_arcs = nr_arcs };
	size_t stretch = 16, arc;
	int r = check_arcs(nr_nodes, arcs, nr_arcs, err);

	if (r < 0)
		return r;
	r = start(&s, nr_nodes);
	if (r < 0) {
		base_fail_errno(err, r, "cannot solve a network of %zu arcs", nr_arcs);
		goto out;
	}
	while (stretch * stretch < nr_arcs)
		stretch *= 2;
	while ((arc = find_incoming(&s, stretch)) != NO_ARC) {
		if (s.work > max_work) {
			r = 1;
			break;
		}
		bring_in(&s, arc);
	}
out:
	free(s.nodes);
	free(s.place);
	return r;
}
