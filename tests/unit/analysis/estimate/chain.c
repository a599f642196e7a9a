/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs of a few nodes are run by a seeded generator, and traces begin in proportion to time.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chain.h"

#define OUT	   CHAIN_OUTSIDE
#define TRACE	   64
#define STEPS	   200000
#define MAX_NODES  8
#define MAX_STARTS (MAX_NODES * 32)

/* A node of a program: what an instruction of it takes, and where it goes on. */
struct code {
	struct chain_node node;
	double time;
	uint32_t to[2]; /* of these the second with probability @part */
	double part;
};

struct program {
	const struct code *code;
	uint32_t nr, nr_groups;
	uint32_t deaf; /* traces that come to this node's end, end there; OUT: none */
	uint32_t step[STEPS];
	double begun[STEPS + 1]; /* when */
	double truth[MAX_NODES];
	struct chain_node nodes[MAX_NODES];
	uint32_t starts[MAX_STARTS];
	struct chain_edge_count *edge_counts;
	size_t nr_edge_counts, cap_edge_counts;
};

static uint64_t seed;

/* splitmix64 */
static double draw(void)
{
	uint64_t z = seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static uint32_t next_of(const struct program *p, uint32_t at, uint32_t *back)
{
	const struct code *c = &p->code[at];

	if (c->node.returns)
		return *back;
	if (c->node.after != OUT)
		*back = c->node.after;
	return c->to[draw() < c->part];
}

static void run(struct program *p)
{
	uint32_t at = 0, back = 0;

	for (size_t i = 0; i < STEPS; i++) {
		p->step[i] = at;
		p->truth[at]++;
		p->begun[i + 1] = p->begun[i] + p->code[at].time * p->code[at].node.insns;
		at = next_of(p, at, &back);
	}
}

static void add(struct program *p, uint32_t start, uint32_t from, uint32_t to, bool odd)
{
	struct chain_edge_count m = { start, from, to, { !odd, odd } };

	assert_int_equal(
		base_grow(&p->edge_counts, &p->cap_edge_counts, p->nr_edge_counts + 1, sizeof(m)),
		0);
	p->edge_counts[p->nr_edge_counts++] = m;
}

static size_t step_at(const struct program *p, double time)
{
	size_t from = 0, to = STEPS;

	while (to - from > 1) {
		size_t mid = from + (to - from) / 2;

		if (p->begun[mid] <= time)
			from = mid;
		else
			to = mid;
	}
	return from;
}

static void trace(struct program *p, bool odd)
{
	double time = draw() * p->begun[STEPS / 2];
	size_t i = step_at(p, time);
	uint32_t at = p->step[i];
	uint32_t insn = (uint32_t)((time - p->begun[i]) / p->code[at].time);
	uint32_t start = at * 32 + insn, left = TRACE + insn;

	add(p, start, OUT, at, odd);
	for (; left > p->code[at].node.insns && at != p->deaf; at = p->step[++i]) {
		left -= p->code[at].node.insns;
		if (!p->code[at].node.falls)
			add(p, start, at, p->step[i + 1], odd);
	}
	add(p, start, at, OUT, odd);
}

static struct program *make(const struct code *code, uint32_t nr, uint32_t nr_groups, uint32_t deaf,
			    int traces)
{
	struct program *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	*p = (struct program){ .code = code, .nr = nr, .nr_groups = nr_groups, .deaf = deaf };
	seed = 1;
	for (uint32_t i = 0; i < nr; i++)
		p->nodes[i] = code[i].node;
	for (uint32_t i = 0; i < nr * 32; i++)
		p->starts[i] = i / 32;
	run(p);
	for (int i = 0; i < traces; i++)
		trace(p, i & 1);
	return p;
}

static void solve(const struct program *p, enum chain_weight weight, double *node)
{
	const struct chain_input in = { p->nodes,   p->nr,	    p->nr_groups,     p->starts,
					p->nr * 32, p->edge_counts, p->nr_edge_counts };
	const struct chain_how how = { weight, 0.0001, { true, true }, CHAIN_ALL };
	struct chain *c = NULL;

	assert_int_equal(chain_new(&in, &c, NULL), 0);
	assert_int_equal(chain_solve(c, &how, node), 0);
	chain_free(c);
}

static void release(struct program *p)
{
	free(p->edge_counts);
	free(p);
}

/* A loop whose two arms are taken alike; one takes twenty times as long. */
static const struct code arms[] = {
	{ { 4, 0, OUT, false, false }, 1, { 1, 2 }, 0.5 },
	{ { 6, 0, OUT, false, false }, 20, { 3, 3 }, 0 },
	{ { 6, 0, OUT, true, false }, 1, { 3, 3 }, 0 },
	{ { 5, 0, OUT, false, false }, 1, { 0, 0 }, 0 },
};

static void test_slow_arm(void **state)
{
	struct program *p = make(arms, 4, 1, OUT, 30000);
	double node[5];

	(void)state;
	solve(p, CHAIN_ROOT, node);
	/* 30,000 traces go through some three branches each: chance is below half a point. */
	assert_true(fabs(node[1] / (node[1] + node[2]) -
			 p->truth[1] / (p->truth[1] + p->truth[2])) < 0.02);
	assert_true(fabs(node[0] / (node[1] + node[2]) - 1) < 0.01);
	assert_true(fabs(node[3] / node[0] - 1) < 0.01);
	release(p);
}

/* One loop in another, slow outside, and a procedure called from both. */
static const struct code loops[] = {
	{ { 8, 0, OUT, true, false }, 10, { 1, 1 }, 0 },
	{ { 3, 0, 2, false, false }, 1, { 5, 5 }, 0 },
	{ { 4, 0, OUT, false, false }, 1, { 1, 3 }, 0.1 },
	{ { 6, 0, 4, false, false }, 5, { 5, 5 }, 0 },
	{ { 2, 0, OUT, false, false }, 1, { 0, 0 }, 0 },
	{ { 4, 1, OUT, false, false }, 1, { 6, 7 }, 0.3 },
	{ { 9, 1, OUT, true, false }, 1, { 7, 7 }, 0 },
	{ { 1, 1, OUT, false, true }, 1, { 0, 0 }, 0 },
};

/* The largest deviation within the procedure of nodes @from to @to, if the first is right. */
static double off(const double *node, const double *truth, uint32_t from, uint32_t to)
{
	double most = 0;

	for (uint32_t i = from; i < to; i++)
		most = fmax(most, fabs(node[i] / node[from] * truth[from] / truth[i] - 1));
	return most;
}

/* What the traces were in, as they were. */
static void visit(const struct program *p, double *node)
{
	memset(node, 0, p->nr * sizeof(*node));
	for (size_t i = 0; i < p->nr_edge_counts; i++)
		if (p->edge_counts[i].to != OUT)
			node[p->edge_counts[i].to]++;
	for (uint32_t i = 0; i + 1 < p->nr; i++)
		if (p->nodes[i].falls)
			node[i + 1] += node[i];
}

static void test_loops(void **state)
{
	struct program *p = make(loops, 8, 2, OUT, 30000);
	double node[10], visits[10];

	(void)state;
	solve(p, CHAIN_ROOT, node);
	visit(p, visits);
	/* The outer loop is left in one of ten: of 30,000 traces some 10,000 tell of that. */
	assert_true(off(node, p->truth, 0, 5) < 0.05);
	assert_true(off(node, p->truth, 5, 8) < 0.05);
	assert_true(off(visits, p->truth, 0, 5) > 2 * off(node, p->truth, 0, 5));
	release(p);
}

/* Every trace ends within the procedure that is called; the caller's loop is whole all the same.
 */
static void test_deaf_call(void **state)
{
	struct program *p = make(loops, 8, 2, 5, 30000);
	double node[10];

	(void)state;
	solve(p, CHAIN_ROOT, node);
	assert_true(off(node, p->truth, 0, 5) < 0.05);
	release(p);
}

/* Weights are what they are called: here all traces begin in one node, at one of two places. */
static void test_weights(void **state)
{
	const struct chain_node nodes[] = { { 2, 0, OUT, false, false },
					    { 1, 0, OUT, false, false },
					    { 1, 0, OUT, false, false } };
	const uint32_t starts[] = { 0, 0 };
	/* The slow start, 900 times, goes to 1; the fast one, 100 times, to 2. */
	const struct chain_edge_count edge_counts[] = {
		{ 0, OUT, 0, { 450, 450 } }, { 0, 0, 1, { 450, 450 } }, { 0, 1, 0, { 450, 450 } },
		{ 0, 0, OUT, { 450, 450 } }, { 1, OUT, 0, { 50, 50 } }, { 1, 0, 2, { 50, 50 } },
		{ 1, 2, 0, { 50, 50 } },     { 1, 0, OUT, { 50, 50 } }
	};
	const struct chain_input in = { nodes, 3, 1, starts, 2, edge_counts, 8 };
	struct chain_how how = { CHAIN_EVEN, 0.0001, { true, true }, CHAIN_ALL };
	struct chain *c = NULL;
	double node[3];

	(void)state;
	assert_int_equal(chain_new(&in, &c, NULL), 0);
	assert_int_equal(chain_solve(c, &how, node), 0);
	assert_true(fabs(node[1] / node[2] - 9) < 0.01);
	assert_true(fabs(chain_visits(c, 0) - 2000) < 1e-6);
	assert_true(fabs(chain_part(c, 0, 1) - 0.9) < 1e-6);
	assert_true(chain_part(c, 1, 2) == 0);
	/* Both begin in the same node, so that one counts as the other does. */
	how.weight = CHAIN_BY_NODE;
	assert_int_equal(chain_solve(c, &how, node), 0);
	assert_true(fabs(node[1] / node[2] - 9) < 0.01);
	/* Both places are executed alike. */
	how.weight = CHAIN_BY_START;
	assert_int_equal(chain_solve(c, &how, node), 0);
	assert_true(fabs(node[1] / node[2] - 1) < 0.01);
	/* The half that begins where it is slow knows of nothing else. */
	how.weight = CHAIN_ROOT;
	how.starts = CHAIN_SLOW;
	assert_int_equal(chain_solve(c, &how, node), 0);
	assert_true(fabs(chain_part(c, 0, 1) - 1) < 1e-6);
	how.starts = CHAIN_FAST;
	assert_int_equal(chain_solve(c, &how, node), 0);
	assert_true(fabs(chain_part(c, 0, 2) - 1) < 1e-6);
	chain_free(c);
}

/* Two loops of one procedure between which no trace goes. In the second, which has three times the
 * time of the first, traces end at once; in the first they go round a dozen times. */
static void test_apart(void **state)
{
	const struct chain_node nodes[] = { { 5, 0, OUT, false, false },
					    { 5, 0, OUT, false, false } };
	const uint32_t starts[] = { 0, 1 };
	const struct chain_edge_count edge_counts[] = {
		{ 0, OUT, 0, { 5000, 5000 } }, { 0, 0, 0, { 60000, 60000 } },
		{ 0, 0, OUT, { 5000, 5000 } }, { 1, OUT, 1, { 15000, 15000 } },
		{ 1, 1, 1, { 500, 500 } },     { 1, 1, OUT, { 15000, 15000 } },
	};
	const struct chain_input in = { nodes, 2, 1, starts, 2, edge_counts, 6 };
	const struct chain_how how = { CHAIN_EVEN, 0.0001, { true, true }, CHAIN_ALL };
	struct chain *c = NULL;
	double node[2];

	(void)state;
	assert_int_equal(chain_new(&in, &c, NULL), 0);
	assert_int_equal(chain_solve(c, &how, node), 0);
	/* Walks that begin wherever traces were are an eighth of those of the first. */
	assert_true(fabs(node[1] / node[0] / 3 - 1) < 0.15);
	chain_free(c);
}

static void test_halves(void **state)
{
	const struct chain_node nodes[] = { { 1, 0, OUT, false, false },
					    { 1, 0, OUT, false, false },
					    { 1, 0, OUT, false, false } };
	const uint32_t starts[] = { 0 };
	const struct chain_edge_count edge_counts[] = { { 0, OUT, 0, { 100, 100 } },
							{ 0, 0, 1, { 80, 20 } },
							{ 0, 0, 2, { 20, 80 } },
							{ 0, 1, OUT, { 80, 20 } },
							{ 0, 2, OUT, { 20, 80 } } };
	const struct chain_input in = { nodes, 3, 1, starts, 1, edge_counts, 5 };
	struct chain *c = NULL;
	double node[3];

	(void)state;
	assert_int_equal(chain_new(&in, &c, NULL), 0);
	assert_int_equal(
		chain_solve(c, &(struct chain_how){ CHAIN_EVEN, 0, { true, false }, CHAIN_ALL },
			    node),
		0);
	assert_true(fabs(node[1] / node[2] - 4) < 0.01);
	assert_int_equal(
		chain_solve(c, &(struct chain_how){ CHAIN_EVEN, 0, { false, true }, CHAIN_ALL },
			    node),
		0);
	assert_true(fabs(node[2] / node[1] - 4) < 0.01);
	chain_free(c);
}

static void test_refused(void **state)
{
	struct chain_node nodes[] = { { 1, 0, OUT, false, false } };
	const uint32_t starts[] = { 0 };
	struct chain_edge_count edge_count = { 0, OUT, 0, { 1, 1 } };
	struct chain_input in = { nodes, 1, 1, starts, 1, &edge_count, 1 };
	struct base_err err = { 0 };
	struct chain *c = NULL;
	double node[1];

	(void)state;
	edge_count.to = 1;
	assert_int_equal(chain_new(&in, &c, &err), -EINVAL);
	edge_count = (struct chain_edge_count){ 1, OUT, 0, { 1, 1 } };
	assert_int_equal(chain_new(&in, &c, &err), -EINVAL);
	edge_count.start = CHAIN_LOST;
	nodes[0].group = 1;
	assert_int_equal(chain_new(&in, &c, &err), -EINVAL);
	nodes[0] = (struct chain_node){ 0, 0, OUT, false, false };
	assert_int_equal(chain_new(&in, &c, &err), -EINVAL);
	nodes[0] = (struct chain_node){ 1, 0, 1, false, false };
	assert_int_equal(chain_new(&in, &c, &err), -EINVAL);
	/* Nothing at all is no error. */
	assert_int_equal(chain_new(&(struct chain_input){ 0 }, &c, &err), 0);
	assert_int_equal(chain_solve(c, &(struct chain_how){ .weight = CHAIN_ROOT }, node), 0);
	chain_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_arm),  cmocka_unit_test(test_loops),
		cmocka_unit_test(test_deaf_call), cmocka_unit_test(test_weights),
		cmocka_unit_test(test_halves),	  cmocka_unit_test(test_refused),
		cmocka_unit_test(test_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
