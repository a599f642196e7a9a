/* SPDX-License-Identifier: BSD-2-Clause */
/* Execution counts from many short instruction traces: the stationary distribution of a walk
 * that continues as the traces do. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chain.h"

/* The solver. Behind the nodes of the input, each group has one node more: control that left the
 * group and enters it again. */
struct chain {
	const struct chain_input *in;
	uint32_t nr_all;
	struct chain_edge *edges; /* ascending by from, to */
	size_t nr_edges;
	double *count;	 /* indexed by edge */
	size_t *edge_of; /* indexed by edge of the input: the edge by which it leaves its node;
			    SIZE_MAX: none */
	size_t *come_of; /* indexed by edge of the input: the edge by which it enters a group;
			    SIZE_MAX: none */
	size_t *first;	 /* indexed by node: its start in @into; has one element more than nodes */
	size_t *into;	 /* edges by their target */
	bool *is_after;	 /* indexed by node: a call returns to it */
	double *visits, *ends, *left, *answer; /* indexed by node */
	double *seen;			       /* indexed by node: visits without weights */
	double *begun;			       /* indexed by node: traces that begin there */
	double *kept; /* indexed by node: the part of its visits after which the walk continues */
	double *total[2];	 /* indexed by group: sums of visits and of the answer */
	double *traces, *weight; /* indexed by start: the number of traces that begin there; the
				     weight of each */
	double damping;
};

static inline double chain_counted(const struct chain_edge_count *m, const bool half[2])
{
	return (half[0] ? (double)m->count[0] : 0) + (half[1] ? (double)m->count[1] : 0);
}

static inline struct chain_edge chain_edge(uint32_t from, uint32_t to)
{
	return (struct chain_edge){ .from = from, .to = to };
}

/* ---- edges between nodes --------------------------------------------------------------------- */

static bool is_node(const struct chain_input *in, uint32_t node)
{
	return node < in->nr_nodes || node == CHAIN_OUTSIDE;
}

static bool node_is_sound(const struct chain_input *in, const struct chain_node *n)
{
	return n->insns && n->group < in->nr_groups && is_node(in, n->after);
}

/* Checks the input. 0 or -EINVAL. */
static int chain_check(const struct chain_input *in, struct base_err *err)
{
	bool ok = in->nr_nodes < CHAIN_LOST - in->nr_groups && in->nr_starts < CHAIN_LOST;

	for (uint32_t i = 0; ok && i < in->nr_nodes; i++)
		ok = node_is_sound(in, &in->nodes[i]);
	for (uint32_t i = 0; ok && i < in->nr_starts; i++)
		ok = in->starts[i] < in->nr_nodes;
	for (size_t i = 0; ok && i < in->nr_edge_counts; i++) {
		const struct chain_edge_count *m = &in->edge_counts[i];

		ok = (m->start < in->nr_starts || m->start >= CHAIN_LOST) && is_node(in, m->from) &&
		     is_node(in, m->to);
	}
	return ok ? 0 : base_fail(err, -EINVAL, "traces lead to no node");
}

static int by_ends(const void *pa, const void *pb)
{
	const struct chain_edge *a = pa, *b = pb;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return (a->to > b->to) - (a->to < b->to);
}

/* Finds an edge; SIZE_MAX: there is none. */
static size_t chain_edge_find(const struct chain *c, const struct chain_edge *key)
{
	const struct chain_edge *e =
		bsearch(key, c->edges, c->nr_edges, sizeof(*c->edges), by_ends);

	return e ? (size_t)(e - c->edges) : SIZE_MAX;
}

/* Does control fall through from the node into the next one? */
static bool chain_falls(const struct chain_input *in, uint32_t node)
{
	return in->nodes[node].falls && node + 1 < in->nr_nodes;
}

/* The edge by which control stays in or leaves the procedure. */
static bool leaves(const struct chain *c, const struct chain_edge_count *m, struct chain_edge *out)
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

/* Does the edge enter a group? A return from a call does not: the walk did not leave. */
static bool comes(const struct chain *c, const struct chain_edge_count *m, struct chain_edge *out)
{
	struct chain_edge way;

	if (m->to == CHAIN_OUTSIDE || c->is_after[m->to])
		return false;
	*out = chain_edge(c->in->nr_nodes + c->in->nodes[m->to].group, m->to);
	if (m->from == CHAIN_OUTSIDE)
		return m->start == CHAIN_OUTSIDE;
	return leaves(c, m, &way) && way.to != m->to;
}

/* The only successor that the code allows; otherwise CHAIN_OUTSIDE. */
static uint32_t chain_only_way(const struct chain_input *in, uint32_t i)
{
	const struct chain_node *n = &in->nodes[i];

	if (n->after != CHAIN_OUTSIDE)
		return n->after;
	if (n->returns)
		return in->nr_nodes + n->group;
	return chain_falls(in, i) ? i + 1 : CHAIN_OUTSIDE;
}

/* Is it the first node of its group? Control enters there if no trace shows another entry. */
static bool chain_is_first(const struct chain_input *in, uint32_t i)
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
	for (size_t i = 0; i < in->nr_edge_counts; i++) {
		if (leaves(c, &in->edge_counts[i], &e))
			c->edges[nr++] = e;
		if (comes(c, &in->edge_counts[i], &e))
			c->edges[nr++] = e;
	}
	if (nr)
		qsort(c->edges, nr, sizeof(*c->edges), by_ends);
	for (size_t i = 0; i < nr; i++)
		if (!c->nr_edges || by_ends(&c->edges[c->nr_edges - 1], &c->edges[i]))
			c->edges[c->nr_edges++] = c->edges[i];
	for (size_t i = 0; i < in->nr_edge_counts; i++) {
		c->edge_of[i] =
			leaves(c, &in->edge_counts[i], &e) ? chain_edge_find(c, &e) : SIZE_MAX;
		c->come_of[i] =
			comes(c, &in->edge_counts[i], &e) ? chain_edge_find(c, &e) : SIZE_MAX;
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
	/* Each element now holds the start of the next node. */
	for (uint32_t i = c->nr_all; i > 0; i--)
		c->first[i] = c->first[i - 1];
	c->first[0] = 0;
}

/* Fills edges, edge_of, come_of, first, into and is_after. */
static void chain_list(struct chain *c)
{
	for (uint32_t i = 0; i < c->in->nr_nodes; i++)
		if (c->in->nodes[i].after != CHAIN_OUTSIDE)
			c->is_after[c->in->nodes[i].after] = true;
	list_edges(c);
	list_into(c);
}

/* ---- weights of traces ----------------------------------------------------------------------- */

/* The weight of a trace is within this factor of the median weight. */
#define CLIP 50.0

struct weighed {
	double weight, traces;
};

static int by_weight(const void *pa, const void *pb)
{
	const struct weighed *a = pa, *b = pb;

	return (a->weight > b->weight) - (a->weight < b->weight);
}

/* The weight of the median trace. */
static double median(struct weighed *v, size_t nr)
{
	double all = 0, upto = 0;

	if (nr)
		qsort(v, nr, sizeof(*v), by_weight);
	for (size_t i = 0; i < nr; i++)
		all += v[i].traces;
	for (size_t i = 0; i < nr; i++) {
		upto += v[i].traces;
		if (upto >= all / 2)
			return v[i].weight;
	}
	return 0;
}

/* Counts the traces that begin at each start. */
static void chain_count_traces(struct chain *c, const bool half[2])
{
	memset(c->traces, 0, c->in->nr_starts * sizeof(double));
	for (size_t i = 0; i < c->in->nr_edge_counts; i++) {
		const struct chain_edge_count *m = &c->in->edge_counts[i];

		if (m->start < CHAIN_LOST && m->from == CHAIN_OUTSIDE)
			c->traces[m->start] += chain_counted(m, half);
	}
}

static void weigh_starts(struct chain *c, enum chain_weight how, double *by_node)
{
	const uint32_t *starts = c->in->starts;

	for (uint32_t i = 0; i < c->in->nr_starts; i++)
		by_node[starts[i]] += c->traces[i];
	for (uint32_t i = 0; i < c->in->nr_starts; i++) {
		double executed = c->answer[starts[i]], begun = by_node[starts[i]];

		if (how == CHAIN_BY_START)
			begun = c->traces[i];
		else
			executed *= c->in->nodes[starts[i]].insns;
		c->weight[i] = begun > 0 ? executed / begun : 0;
		if (how == CHAIN_ROOT)
			c->weight[i] = sqrt(c->weight[i]);
	}
}

/* Computes weights from the last answer. 0 or -ENOMEM. */
static int chain_weigh(struct chain *c, enum chain_weight how)
{
	double *by_node = calloc((size_t)c->in->nr_nodes + 1, sizeof(*by_node)), middle;
	struct weighed *v = calloc((size_t)c->in->nr_starts + 1, sizeof(*v));
	int r = by_node && v ? 0 : -ENOMEM;

	if (r >= 0) {
		weigh_starts(c, how, by_node);
		for (uint32_t i = 0; i < c->in->nr_starts; i++)
			v[i] = (struct weighed){ c->weight[i], c->traces[i] };
		middle = median(v, c->in->nr_starts);
		for (uint32_t i = 0; i < c->in->nr_starts; i++)
			c->weight[i] =
				middle > 0 ? fmin(CLIP, fmax(1 / CLIP, c->weight[i] / middle)) : 1;
	}
	free(by_node);
	free(v);
	return r;
}

struct ranked {
	double fast; /* executions of the instruction for each trace that begins at it */
	uint32_t group, start;
};

static int by_rank(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->fast != b->fast)
		return a->fast < b->fast ? -1 : 1;
	return (a->start > b->start) - (a->start < b->start);
}

/* Sets the weights of the traces in one half of a procedure's starts, which are sorted, to 0. */
static void leave_out(struct chain *c, enum chain_starts which, const struct ranked *v, size_t nr)
{
	double all = 0, upto = 0;

	for (size_t i = 0; i < nr; i++)
		all += c->traces[v[i].start];
	for (size_t i = 0; i < nr; i++) {
		double traces = c->traces[v[i].start];
		bool slow = upto + traces / 2 < all / 2;

		upto += traces;
		if (slow != (which == CHAIN_SLOW))
			c->weight[v[i].start] = 0;
	}
}

/* Limits the traces to one half of the starts. 0 or -ENOMEM. */
static int chain_choose(struct chain *c, enum chain_starts which)
{
	uint32_t nr = 0, from = 0;
	struct ranked *v = calloc((size_t)c->in->nr_starts + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->in->nr_starts; i++) {
		uint32_t node = c->in->starts[i];

		if (c->traces[i] > 0)
			v[nr++] = (struct ranked){ c->answer[node] / c->traces[i],
						   c->in->nodes[node].group, i };
	}
	if (nr)
		qsort(v, nr, sizeof(*v), by_rank);
	for (uint32_t i = 0; i < nr; i++)
		if (i + 1 == nr || v[i].group != v[i + 1].group) {
			leave_out(c, which, v + from, i + 1 - from);
			from = i + 1;
		}
	free(v);
	return 0;
}

/* Damping times number of transitions, for each node that matters. */
#define ENOUGH	    2
#define DAMPING_MAX 0.05
/* The least number of walks that begin at a start, by its visits: where few traces begin, walks
 * would be few. */
#define FAINT	   0.01
#define MAX_SWEEPS 4000
#define PRECISION  1e-7

/* ---- counting -------------------------------------------------------------------------------- */

static void add(struct chain *c, size_t edge, double n)
{
	if (edge == SIZE_MAX)
		return;
	c->count[edge] += n;
	c->left[c->edges[edge].from] += n;
}

static void add_edge_counts(struct chain *c, const bool half[2])
{
	for (size_t i = 0; i < c->in->nr_edge_counts; i++) {
		const struct chain_edge_count *m = &c->in->edge_counts[i];
		double n = chain_counted(m, half);

		if (m->start < CHAIN_LOST)
			n *= c->weight[m->start];
		if (m->to != CHAIN_OUTSIDE)
			c->visits[m->to] += n;
		else if (m->from != CHAIN_OUTSIDE)
			c->ends[m->from] += n;
		/* All visits of a node with a call continue behind the call, whatever the callee
		 * does. */
		add(c, c->edge_of[i], n);
		add(c, c->come_of[i], n);
	}
}

/* Visits that neither end nor take an edge fall through into the next node. */
static void add_falls(struct chain *c)
{
	for (uint32_t i = 0; i < c->in->nr_nodes; i++) {
		const struct chain_edge e = chain_edge(i, i + 1);
		double on = c->visits[i] - c->ends[i] - c->left[i];

		if (!chain_falls(c->in, i) || c->in->nodes[i].after != CHAIN_OUTSIDE)
			continue;
		on = fmax(0, on);
		c->visits[i + 1] += on;
		add(c, chain_edge_find(c, &e), on);
	}
}

/* Is the edge the only one out of its node, in the code or in all traces? The question matters
 * where no selected trace leaves the node. */
static bool is_only(const struct chain *c, size_t i)
{
	const struct chain_edge *e = &c->edges[i];

	if (e->from >= c->in->nr_nodes)
		return chain_is_first(c->in, e->to);
	if (e->to == chain_only_way(c->in, e->from))
		return true;
	return (i == 0 || e[-1].from != e->from) && (i + 1 == c->nr_edges || e[1].from != e->from);
}

static void divide(struct chain *c)
{
	for (size_t i = 0; i < c->nr_edges; i++) {
		struct chain_edge *e = &c->edges[i];

		e->part = c->left[e->from] > 0 ? c->count[i] / c->left[e->from] : is_only(c, i);
	}
}

static void count(struct chain *c, const bool half[2])
{
	memset(c->visits, 0, c->nr_all * sizeof(double));
	memset(c->ends, 0, c->nr_all * sizeof(double));
	memset(c->left, 0, c->nr_all * sizeof(double));
	memset(c->count, 0, c->nr_edges * sizeof(double));
	add_edge_counts(c, half);
	add_falls(c);
	divide(c);
}

/* ---- solving --------------------------------------------------------------------------------- */

/* The damping grows as the traces become fewer for each node, where the number of nodes is that
 * of a uniform distribution with the same entropy: with fewer transitions the answer is held
 * closer to the starts of traces. */
static double damping_of(const struct chain *c, double least)
{
	double visits = 0, edge_counts = 0, entropy = 0;

	for (uint32_t i = 0; i < c->in->nr_nodes; i++) {
		visits += c->visits[i];
		edge_counts += c->left[i];
	}
	for (uint32_t i = 0; i < c->in->nr_nodes; i++)
		if (c->visits[i] > 0)
			entropy -= c->visits[i] / visits * log(c->visits[i] / visits);
	if (!(edge_counts > 0))
		return DAMPING_MAX;
	return fmin(DAMPING_MAX, fmax(least, ENOUGH * exp(entropy) / edge_counts));
}

static void begin(struct chain *c, const bool half[2])
{
	for (uint32_t i = 0; i < c->in->nr_nodes; i++) {
		c->begun[i] = FAINT * c->visits[i];
		c->kept[i] = pow(1 - c->damping, c->in->nodes[i].insns);
	}
	/* All walks that left a group enter it again. */
	for (uint32_t i = c->in->nr_nodes; i < c->nr_all; i++)
		c->kept[i] = 1;
	for (size_t i = 0; i < c->in->nr_edge_counts; i++) {
		const struct chain_edge_count *m = &c->in->edge_counts[i];

		if (m->from == CHAIN_OUTSIDE && m->to != CHAIN_OUTSIDE && m->start < CHAIN_LOST)
			c->begun[m->to] += chain_counted(m, half) * c->weight[m->start];
	}
}

/* N = d B + P' K N, one row of it. */
static double answer_of(const struct chain *c, uint32_t i)
{
	double in = 0, self = 0;

	for (size_t k = c->first[i]; k < c->first[i + 1]; k++) {
		const struct chain_edge *e = &c->edges[c->into[k]];
		double part = e->part * c->kept[e->from];

		if (e->from == i)
			self = part;
		else
			in += part * c->answer[e->from];
	}
	return (c->damping * c->begun[i] + in) / (1 - self);
}

/* Solves by Gauss-Seidel sweeps, forwards and backwards in turn. */
static void walk(struct chain *c)
{
	double sum = 0, moved = INFINITY;

	/* An estimate of the sum of the answers. */
	for (uint32_t i = 0; i < c->in->nr_nodes; i++)
		sum += c->begun[i] / c->in->nodes[i].insns;
	for (int sweep = 0; sweep < MAX_SWEEPS && moved > PRECISION * sum; sweep++) {
		moved = 0;
		for (uint32_t k = 0; k < c->nr_all; k++) {
			uint32_t i = sweep & 1 ? c->nr_all - 1 - k : k;
			double now = answer_of(c, i);

			moved += fabs(now - c->answer[i]);
			c->answer[i] = now;
		}
	}
}

/* Visits determine the proportion between procedures. */
static void scale(struct chain *c)
{
	const struct chain_node *nodes = c->in->nodes;

	for (int k = 0; k < 2; k++)
		memset(c->total[k], 0, c->in->nr_groups * sizeof(double));
	for (uint32_t i = 0; i < c->in->nr_nodes; i++) {
		c->total[0][nodes[i].group] += c->visits[i];
		c->total[1][nodes[i].group] += c->answer[i];
	}
	for (uint32_t i = 0; i < c->in->nr_nodes; i++)
		if (c->total[1][nodes[i].group] > 0)
			c->answer[i] *= c->total[0][nodes[i].group] / c->total[1][nodes[i].group];
}

/* ---- the interface --------------------------------------------------------------------------- */

static void solve(struct chain *c, const struct chain_how *how)
{
	count(c, how->half);
	c->damping = damping_of(c, how->damping);
	begin(c, how->half);
	walk(c);
	scale(c);
}

int chain_solve(struct chain *c, const struct chain_how *how, double *node)
{
	int r = 0;

	for (uint32_t i = 0; i < c->in->nr_starts; i++)
		c->weight[i] = 1;
	memset(c->answer, 0, c->nr_all * sizeof(double));
	chain_count_traces(c, how->half);
	solve(c, how);
	if (how->weight == CHAIN_EVEN) {
		memcpy(c->seen, c->visits, c->in->nr_nodes * sizeof(double));
	} else {
		r = chain_weigh(c, how->weight);
		if (r >= 0 && how->starts != CHAIN_ALL)
			r = chain_choose(c, how->starts);
		if (r >= 0)
			solve(c, how);
	}
	memcpy(node, c->answer, c->in->nr_nodes * sizeof(double));
	return r;
}

double chain_part(const struct chain *c, uint32_t from, uint32_t to)
{
	const struct chain_edge e = chain_edge(from, to);
	size_t at = chain_edge_find(c, &e);

	return at == SIZE_MAX ? 0 : c->edges[at].part;
}

double chain_visits(const struct chain *c, uint32_t node)
{
	return c->seen[node];
}

static int allocate(struct chain *c)
{
	size_t nodes = (size_t)c->nr_all + 2, starts = (size_t)c->in->nr_starts + 1;
	size_t edge_counts = c->in->nr_edge_counts + 1, edges = 2 * edge_counts + 2 * nodes;

	c->edges = calloc(edges, sizeof(*c->edges));
	c->count = calloc(edges, sizeof(*c->count));
	c->into = calloc(edges, sizeof(*c->into));
	c->edge_of = calloc(edge_counts, sizeof(*c->edge_of));
	c->come_of = calloc(edge_counts, sizeof(*c->come_of));
	c->first = calloc(nodes, sizeof(*c->first));
	c->is_after = calloc(nodes, sizeof(*c->is_after));
	c->visits = calloc(nodes, sizeof(*c->visits));
	c->ends = calloc(nodes, sizeof(*c->ends));
	c->left = calloc(nodes, sizeof(*c->left));
	c->answer = calloc(nodes, sizeof(*c->answer));
	c->seen = calloc(nodes, sizeof(*c->seen));
	c->begun = calloc(nodes, sizeof(*c->begun));
	c->kept = calloc(nodes, sizeof(*c->kept));
	for (int k = 0; k < 2; k++)
		c->total[k] = calloc((size_t)c->in->nr_groups + 1, sizeof(double));
	c->traces = calloc(starts, sizeof(*c->traces));
	c->weight = calloc(starts, sizeof(*c->weight));
	return c->edges && c->count && c->into && c->edge_of && c->come_of && c->first &&
			       c->is_after && c->visits && c->ends && c->left && c->answer &&
			       c->seen && c->begun && c->kept && c->total[0] && c->total[1] &&
			       c->traces && c->weight
		       ? 0
		       : -ENOMEM;
}

int chain_new(const struct chain_input *in, struct chain **out, struct base_err *err)
{
	struct chain *c = NULL;
	int r = chain_check(in, err);

	if (r < 0)
		return r;
	c = calloc(1, sizeof(*c));
	r = c ? 0 : -ENOMEM;
	if (r >= 0) {
		c->in = in;
		c->nr_all = in->nr_nodes + in->nr_groups;
		r = allocate(c);
	}
	if (r < 0) {
		chain_free(c);
		return base_fail_errno(err, r, "cannot follow the traces");
	}
	chain_list(c);
	*out = c;
	return 0;
}

void chain_free(struct chain *c)
{
	if (!c)
		return;
	free(c->edges);
	free(c->count);
	free(c->into);
	free(c->edge_of);
	free(c->come_of);
	free(c->first);
	free(c->is_after);
	free(c->visits);
	free(c->ends);
	free(c->left);
	free(c->answer);
	free(c->seen);
	free(c->begun);
	free(c->kept);
	free(c->total[0]);
	free(c->total[1]);
	free(c->traces);
	free(c->weight);
	free(c);
}
