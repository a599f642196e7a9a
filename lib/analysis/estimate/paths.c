/* SPDX-License-Identifier: BSD-2-Clause */
/* Execution counts of a procedure's blocks from the instruction traces in an image's profile. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chain.h"
#include "paths.h"

#define MAX_INSNS  4096 /* instructions in a node */
#define MAX_ROUNDS 4	/* rounds of finding the ends of nodes */

#define MOST 8.0 /* what few traces say is not corrected by more */

#define HALVES	      0.05
#define ALIKE	      0.08
#define SLOW_AND_FAST 0.10
#define HIGH_VISITS   300
#define ROUGHLY	      0.33
#define MEDIUM_VISITS 25

/* The solutions: the final one, those of each half of the traces, those with other weights, and
 * those of the traces alone that begin in slow, or in fast code. */
enum {
	ANSWER,
	EVEN_HALF,
	ODD_HALF,
	UNWEIGHED,
	BY_NODE,
	BY_START,
	DAMPED,
	SLOW,
	FAST,
	NR_ANSWERS,
};

static const struct chain_how how[NR_ANSWERS] = {
	[ANSWER] = { CHAIN_ROOT, 0.0001, { true, true }, CHAIN_ALL },
	[EVEN_HALF] = { CHAIN_ROOT, 0.0001, { true, false }, CHAIN_ALL },
	[ODD_HALF] = { CHAIN_ROOT, 0.0001, { false, true }, CHAIN_ALL },
	[UNWEIGHED] = { CHAIN_EVEN, 0.0001, { true, true }, CHAIN_ALL },
	[BY_NODE] = { CHAIN_BY_NODE, 0.0001, { true, true }, CHAIN_ALL },
	[BY_START] = { CHAIN_BY_START, 0.0001, { true, true }, CHAIN_ALL },
	[DAMPED] = { CHAIN_ROOT, 0.001, { true, true }, CHAIN_ALL },
	[SLOW] = { CHAIN_ROOT, 0.0001, { true, true }, CHAIN_SLOW },
	[FAST] = { CHAIN_ROOT, 0.0001, { true, true }, CHAIN_FAST },
};

struct node {
	uint64_t vaddr, end;
	uint8_t flow; /* enum insn_flow of the last instruction */
	double answer[NR_ANSWERS];
	double left;	   /* traces that went on elsewhere behind it */
	double correction; /* paths_correction */
};

struct paths {
	struct node *nodes; /* ascending */
	struct chain_node *of_chain;
	struct chain_input in;
	uint32_t *starts;
	struct chain_edge_count *edge_counts;
	struct chain *chain;
	uint64_t traces;
};

/* ---- where nodes begin ----------------------------------------------------------------------- */

struct making {
	struct paths *p;
	const struct profdb_profile *profile;
	struct image *img;
	struct insn_decoder *d;
	uint64_t *bounds; /* ascending, once sorted */
	size_t nr_bounds, cap_bounds;
};

static int add_bound(struct making *m, uint64_t vaddr)
{
	int r = base_grow(&m->bounds, &m->cap_bounds, m->nr_bounds + 1, sizeof(*m->bounds));

	if (r >= 0)
		m->bounds[m->nr_bounds++] = vaddr;
	return r;
}

static int by_value(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

static void sort_bounds(struct making *m)
{
	size_t nr = m->nr_bounds;

	m->nr_bounds = 0;
	if (nr)
		qsort(m->bounds, nr, sizeof(*m->bounds), by_value);
	for (size_t i = 0; i < nr; i++)
		if (!m->nr_bounds || m->bounds[m->nr_bounds - 1] != m->bounds[i])
			m->bounds[m->nr_bounds++] = m->bounds[i];
}

static bool decode(const struct making *m, uint64_t vaddr, struct insn *out)
{
	uint8_t code[16];
	size_t len = image_bytes(m->img, vaddr, code, sizeof(code));

	if (!len)
		return false;
	insn_decode(m->d, code, len, vaddr, out);
	return out->flow != INSN_DATA;
}

/* Decodes a node from @vaddr to its first branch, or to @next. Returns the number of its
 * instructions. */
static uint32_t walk_node(const struct making *m, uint64_t vaddr, uint64_t next, struct node *out)
{
	struct insn insn;
	uint32_t nr = 0;

	*out = (struct node){ .vaddr = vaddr, .end = vaddr };
	while (out->end < next && nr < MAX_INSNS && out->flow == INSN_PLAIN &&
	       decode(m, out->end, &insn)) {
		out->end += insn.len;
		out->flow = insn.flow;
		nr++;
	}
	return nr;
}

static uint64_t next_bound(const struct making *m, size_t i, size_t nr)
{
	return i + 1 < nr ? m->bounds[i + 1] : UINT64_MAX;
}

static int add_edge_counts_bounds(struct making *m, const struct profdb_edge *v)
{
	uint64_t vaddr;
	int r = 0;

	if (v->to == PROFDB_OUTSIDE || image_vaddr(m->img, v->to, &vaddr) < 0)
		return 0;
	/* Traces begin anywhere, so their starts do not bound nodes. */
	if (v->from != PROFDB_OUTSIDE || v->start == PROFDB_OUTSIDE)
		r = add_bound(m, vaddr);
	return r;
}

/* The end of each node is the start of another. */
static int follow_bounds(struct making *m)
{
	size_t was = 0;
	struct node node;
	int r = 0;

	sort_bounds(m);
	for (int round = 0; round < MAX_ROUNDS && m->nr_bounds != was && r >= 0; round++) {
		was = m->nr_bounds;
		for (size_t i = 0; i < was && r >= 0; i++)
			if (walk_node(m, m->bounds[i], next_bound(m, i, was), &node))
				r = add_bound(m, node.end);
		sort_bounds(m);
	}
	return r;
}

static bool is_covered(const struct making *m, uint64_t vaddr)
{
	size_t from = 0, to = m->nr_bounds;
	struct node node;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (m->bounds[mid] <= vaddr)
			from = mid + 1;
		else
			to = mid;
	}
	return from && walk_node(m, m->bounds[from - 1], vaddr + 1, &node) && vaddr < node.end;
}

/* Traces also begin in code that no other trace enters. */
static int add_starts(struct making *m)
{
	size_t nr = profdb_profile_nr_edges(m->profile), sorted = m->nr_bounds;
	int r = 0;

	for (size_t i = 0; i < nr && r >= 0; i++) {
		const struct profdb_edge *v = profdb_profile_edge(m->profile, i);
		size_t all = m->nr_bounds;
		uint64_t vaddr;
		bool covered;

		if (v->from != PROFDB_OUTSIDE || image_vaddr(m->img, v->to, &vaddr) < 0)
			continue;
		m->nr_bounds = sorted;
		covered = is_covered(m, vaddr);
		m->nr_bounds = all;
		if (!covered)
			r = add_bound(m, vaddr);
	}
	return r < 0 ? r : follow_bounds(m);
}

static int find_bounds(struct making *m)
{
	size_t nr = profdb_profile_nr_edges(m->profile);
	int r = 0;

	for (size_t i = 0; i < nr && r >= 0; i++)
		r = add_edge_counts_bounds(m, profdb_profile_edge(m->profile, i));
	if (r >= 0)
		r = follow_bounds(m);
	return r < 0 ? r : add_starts(m);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static uint32_t node_at(const struct paths *p, uint64_t vaddr)
{
	uint32_t from = 0, to = p->in.nr_nodes;

	while (from < to) {
		uint32_t mid = from + (to - from) / 2;

		if (p->nodes[mid].vaddr <= vaddr)
			from = mid + 1;
		else
			to = mid;
	}
	return from && vaddr < p->nodes[from - 1].end ? from - 1 : CHAIN_OUTSIDE;
}

static void describe_node(struct making *m, uint32_t i, const struct image_symbol **last)
{
	struct paths *p = m->p;
	struct chain_node *to = &p->of_chain[i];
	const struct node *n = &p->nodes[i];
	const struct image_symbol *symbol = image_symbol_at(m->img, n->vaddr);

	if (!i || symbol != *last)
		p->in.nr_groups++;
	*last = symbol;
	to->group = p->in.nr_groups - 1;
	to->returns = n->flow == INSN_RETURN;
	to->falls = n->flow == INSN_PLAIN && i + 1 < p->in.nr_nodes && n->end == n[1].vaddr;
	to->after = CHAIN_OUTSIDE;
	if (n->flow == INSN_CALL || n->flow == INSN_INDIRECT_CALL)
		to->after = node_at(p, n->end);
}

static int make_nodes(struct making *m)
{
	const struct image_symbol *last = NULL;
	struct paths *p = m->p;
	int r = find_bounds(m);

	if (r < 0)
		return r;
	p->nodes = calloc(m->nr_bounds + 1, sizeof(*p->nodes));
	p->of_chain = calloc(m->nr_bounds + 1, sizeof(*p->of_chain));
	if (!p->nodes || !p->of_chain || m->nr_bounds >= CHAIN_LOST / 2)
		return -ENOMEM;
	for (size_t i = 0; i < m->nr_bounds; i++) {
		uint32_t insns = walk_node(m, m->bounds[i], next_bound(m, i, m->nr_bounds),
					   &p->nodes[p->in.nr_nodes]);

		if (insns)
			p->of_chain[p->in.nr_nodes++].insns = insns;
	}
	for (uint32_t i = 0; i < p->in.nr_nodes; i++)
		describe_node(m, i, &last);
	p->in.nodes = p->of_chain;
	return 0;
}

/* ---- moves ----------------------------------------------------------------------------------- */

static uint32_t node_of(const struct making *m, uint64_t off)
{
	uint64_t vaddr;

	if (off >= PROFDB_ANY_START || image_vaddr(m->img, off, &vaddr) < 0)
		return CHAIN_OUTSIDE;
	return node_at(m->p, vaddr);
}

/* Edges of one start are adjacent. */
static uint32_t start_of(struct making *m, const struct profdb_edge *v, uint64_t *last)
{
	struct paths *p = m->p;
	uint32_t at;

	if (v->start == PROFDB_OUTSIDE)
		return CHAIN_OUTSIDE;
	at = node_of(m, v->start);
	if (at == CHAIN_OUTSIDE)
		return CHAIN_LOST;
	if (v->start != *last)
		p->starts[p->in.nr_starts++] = at;
	*last = v->start;
	return p->in.nr_starts - 1;
}

static int take_edge_counts(struct making *m)
{
	size_t nr = profdb_profile_nr_edges(m->profile);
	uint64_t last = PROFDB_OUTSIDE;
	struct paths *p = m->p;

	p->edge_counts = calloc(nr + 1, sizeof(*p->edge_counts));
	p->starts = calloc(nr + 1, sizeof(*p->starts));
	if (!p->edge_counts || !p->starts || nr >= CHAIN_LOST)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const struct profdb_edge *v = profdb_profile_edge(m->profile, i);
		struct chain_edge_count to = { start_of(m, v, &last),
					       node_of(m, v->from),
					       node_of(m, v->to),
					       { v->count[0], v->count[1] } };

		if (v->from == PROFDB_OUTSIDE && v->to != PROFDB_OUTSIDE)
			p->traces += v->count[0] + v->count[1];
		/* Edges from or to addresses without code are ignored. */
		if ((to.from != CHAIN_OUTSIDE || v->from == PROFDB_OUTSIDE) &&
		    (to.to != CHAIN_OUTSIDE || v->to == PROFDB_OUTSIDE))
			p->edge_counts[p->in.nr_edge_counts++] = to;
	}
	p->in.edge_counts = p->edge_counts;
	p->in.starts = p->starts;
	return 0;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* The final solution is computed last, as chain_part refers to the last one. */
static int solve(struct paths *p, struct base_err *err)
{
	double *node = calloc((size_t)p->in.nr_nodes + 1, sizeof(*node));
	int r = node ? chain_new(&p->in, &p->chain, err) : -ENOMEM;

	for (int a = NR_ANSWERS - 1; a >= 0 && r >= 0; a--) {
		r = chain_solve(p->chain, &how[a], node);
		for (uint32_t i = 0; i < p->in.nr_nodes && r >= 0; i++)
			p->nodes[i].answer[a] = node[i];
	}
	free(node);
	return r;
}

static void count_left(struct paths *p)
{
	for (size_t i = 0; i < p->in.nr_edge_counts; i++) {
		const struct chain_edge_count *e = &p->edge_counts[i];

		if (e->from != CHAIN_OUTSIDE && e->to != CHAIN_OUTSIDE)
			p->nodes[e->from].left += (double)e->count[0] + (double)e->count[1];
	}
}

static void correct_group(struct paths *p, uint32_t from, uint32_t to)
{
	double visits = 0, answer = 0;

	for (uint32_t i = from; i < to; i++) {
		visits += chain_visits(p->chain, i) * p->of_chain[i].insns;
		answer += p->nodes[i].answer[ANSWER] * p->of_chain[i].insns;
	}
	for (uint32_t i = from; i < to; i++) {
		struct node *n = &p->nodes[i];
		double by = n->left > 0 && answer > 0
				    ? n->answer[ANSWER] * visits / answer / n->left
				    : 1;

		n->correction = fmin(fmax(by, 1 / MOST), MOST);
	}
}

static void correct(struct paths *p)
{
	uint32_t to;

	count_left(p);
	for (uint32_t from = 0; from < p->in.nr_nodes; from = to) {
		for (to = from;
		     to < p->in.nr_nodes && p->of_chain[to].group == p->of_chain[from].group;)
			to++;
		correct_group(p, from, to);
	}
}

int paths_make(const struct profdb_profile *profile, struct image *img, struct paths **out,
	       struct base_err *err)
{
	struct making m = { .profile = profile, .img = img };
	int r;

	if (!profdb_profile_nr_edges(profile))
		return -ENOENT;
	r = insn_decoder_open(image_machine(img), &m.d, err);
	if (r < 0)
		return r;
	m.p = calloc(1, sizeof(*m.p));
	r = m.p ? make_nodes(&m) : -ENOMEM;
	if (r >= 0)
		r = take_edge_counts(&m);
	if (r >= 0)
		r = solve(m.p, err);
	if (r >= 0)
		correct(m.p);
	free(m.bounds);
	insn_decoder_close(m.d);
	if (r < 0) {
		paths_free(m.p);
		return base_fail_errno(err, r, "cannot follow the traces of '%s'", image_path(img));
	}
	*out = m.p;
	return 0;
}

void paths_free(struct paths *p)
{
	if (!p)
		return;
	chain_free(p->chain);
	free(p->nodes);
	free(p->of_chain);
	free(p->starts);
	free(p->edge_counts);
	free(p);
}

uint64_t paths_traces(const struct paths *p)
{
	return p->traces;
}

double paths_correction(const struct paths *p, uint64_t vaddr)
{
	uint32_t at = node_at(p, vaddr);

	return at == CHAIN_OUTSIDE ? 1 : p->nodes[at].correction;
}

/* ---- procedures ------------------------------------------------------------------------------ */

/* A block's result from its nodes: the mean over its instructions. */
struct announced {
	double answer[NR_ANSWERS];
	double visits; /* visits of the node that was visited most */
	double insns;
};

static void tell_block(const struct paths *p, const struct flow *f, uint32_t block,
		       struct announced *out)
{
	const struct flow_block *b = &f->blocks[block];

	memset(out, 0, sizeof(*out));
	for (uint32_t i = 0; i < b->nr_insns; i++) {
		uint32_t at = node_at(p, f->insns[b->insn + i].vaddr);

		if (at == CHAIN_OUTSIDE)
			continue;
		for (int a = 0; a < NR_ANSWERS; a++)
			out->answer[a] += p->nodes[at].answer[a];
		out->visits = fmax(out->visits, chain_visits(p->chain, at));
		out->insns++;
	}
	for (int a = 0; a < NR_ANSWERS && out->insns > 0; a++)
		out->answer[a] /= out->insns;
}

static double edge_of(const struct paths *p, const struct flow *f, const struct flow_edge *e,
		      const double *block)
{
	const struct flow_block *b = &f->blocks[e->from];
	const struct insn *last = &f->insns[b->insn + b->nr_insns - 1];
	uint32_t from = node_at(p, last->vaddr), to = node_at(p, f->blocks[e->to].vaddr);

	if (last->flow == INSN_PLAIN || last->flow == INSN_CALL || last->flow == INSN_INDIRECT_CALL)
		return block[e->from];
	if (from == CHAIN_OUTSIDE || to == CHAIN_OUTSIDE)
		return 0;
	return block[e->from] * chain_part(p->chain, from, to);
}

/* The flow that enters or leaves the procedure at @block: the difference that its other edges
 * leave. */
static double outer_edge(const struct flow *f, uint32_t block, bool entry, const double *edge,
			 double rest)
{
	const struct flow_block *b = &f->blocks[block];
	const uint32_t *list = entry ? f->into + b->in : f->out_of + b->out;
	uint32_t nr = entry ? b->nr_in : b->nr_out, outer = 0;

	for (uint32_t i = 0; i < nr; i++) {
		const struct flow_edge *e = &f->edges[list[i]];

		if (e->from == FLOW_OUTSIDE || e->to == FLOW_OUTSIDE)
			outer++;
		else
			rest -= edge[list[i]];
	}
	return rest > 0 ? rest / outer : 0;
}

static void find_edges(const struct paths *p, const struct flow *f, struct freq_result *out)
{
	for (uint32_t i = 0; i < f->nr_edges; i++)
		if (f->edges[i].from != FLOW_OUTSIDE && f->edges[i].to != FLOW_OUTSIDE)
			out->edge[i] = edge_of(p, f, &f->edges[i], out->block);
	for (uint32_t i = 0; i < f->nr_edges; i++) {
		const struct flow_edge *e = &f->edges[i];
		uint32_t block = e->from == FLOW_OUTSIDE ? e->to : e->from;

		if (e->from == FLOW_OUTSIDE || e->to == FLOW_OUTSIDE)
			out->edge[i] = outer_edge(f, block, e->from == FLOW_OUTSIDE, out->edge,
						  out->block[block]);
	}
}

static enum freq_confidence judge(const struct announced *t, const double total[NR_ANSWERS])
{
	double halves = 0, others = 0, speeds = 0;

	for (int a = 1; a < NR_ANSWERS; a++) {
		double is = t->answer[a] / total[a], want = t->answer[ANSWER] / total[ANSWER];
		double off = is > 0 && want > 0 ? fabs(log(is / want)) : INFINITY;

		if (a == EVEN_HALF || a == ODD_HALF)
			halves = fmax(halves, off);
		else if (a == SLOW || a == FAST)
			speeds = fmax(speeds, off);
		else
			others = fmax(others, off);
	}
	if (t->visits >= HIGH_VISITS && halves <= HALVES && others <= ALIKE &&
	    speeds <= SLOW_AND_FAST)
		return FREQ_HIGH;
	return t->visits >= MEDIUM_VISITS && fmax(halves, others) <= ROUGHLY ? FREQ_MEDIUM
									     : FREQ_LOW;
}

int paths_flow(const struct paths *p, const struct flow *f, struct freq_result *out)
{
	struct announced *announced = calloc((size_t)f->nr_blocks + 1, sizeof(*announced));
	double total[NR_ANSWERS] = { 0 }, visits = 0;

	if (!announced)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->nr_blocks; i++) {
		tell_block(p, f, i, &announced[i]);
		visits += announced[i].visits;
		for (int a = 0; a < NR_ANSWERS; a++)
			total[a] += announced[i].answer[a] * f->blocks[i].nr_insns;
	}
	for (uint32_t i = 0; i < f->nr_blocks && visits >= PATHS_MIN_VISITS; i++) {
		out->block[i] = announced[i].answer[ANSWER];
		out->confidence[i] = judge(&announced[i], total);
	}
	if (visits >= PATHS_MIN_VISITS)
		find_edges(p, f, out);
	free(announced);
	return visits >= PATHS_MIN_VISITS ? 0 : -ENOENT;
}
