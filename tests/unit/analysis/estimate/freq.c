/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "freq.h"

#define OUT FREQ_OUTSIDE

#define SOLVE(model, blocks, edges, r)                                                             \
	assert_int_equal(freq_solve((model), (blocks), sizeof(blocks) / sizeof(*(blocks)),         \
				    (edges), sizeof(edges) / sizeof(*(edges)), (r), NULL),         \
			 0)

static void assert_near(double is, double want)
{
	if (fabs(is - want) > 0.01 * want + 1e-6)
		fail_msg("%g is not %g", is, want);
}

/* What goes into a block comes out of it, nothing is below 0. */
static void check_flow(const struct freq_result *r, uint32_t nr_blocks,
		       const struct freq_edge *edges, uint32_t nr_edges)
{
	double *in = calloc(nr_blocks, sizeof(double)), *out = calloc(nr_blocks, sizeof(double));
	double largest = 0;

	for (uint32_t i = 0; i < nr_edges; i++) {
		assert_true(r->edge[i] >= 0);
		if (edges[i].to != OUT)
			in[edges[i].to] += r->edge[i];
		if (edges[i].from != OUT)
			out[edges[i].from] += r->edge[i];
	}
	for (uint32_t i = 0; i < nr_blocks; i++)
		largest = fmax(largest, r->block[i]);
	for (uint32_t i = 0; i < nr_blocks; i++) {
		assert_true(fabs(in[i] - r->block[i]) <= 1e-9 * largest);
		assert_true(fabs(out[i] - r->block[i]) <= 1e-9 * largest);
	}
	free(in);
	free(out);
}

/*
 * The arms have 90 together where head and tail have 100. The least sum of x - ln(x) in deviations
 * as large as the answer: (1 - 60/a)/a = (1 - 30/b)/b = 2 (100/h - 1)/h with a + b = h, which is
 * h = 95.3, a = 64.3, b = 31.0. Chords are as long as 9 %, so that half of that is near.
 */
static void test_diamond_by_time(void **state)
{
	const struct freq_block blocks[] = { { 100, 1, 10, false },
					     { 60, 1, 10, false },
					     { 60, 2, 10, false },
					     { 300, 3, 10, false } };
	const struct freq_edge edges[] = { { OUT, 0 }, { 0, 1 }, { 0, 2 },
					   { 1, 3 },   { 2, 3 }, { 3, OUT } };
	const double want[] = { 95.3, 64.3, 31.0, 95.3 };
	double moved = 0;
	struct freq_result r;

	(void)state;
	SOLVE(FREQ_TIME, blocks, edges, &r);
	check_flow(&r, 4, edges, 6);
	for (int i = 0; i < 4; i++) {
		assert_true(fabs(r.block[i] - want[i]) <= 0.045 * want[i]);
		assert_int_equal(r.confidence[i], FREQ_MEDIUM);
		moved += blocks[i].samples *
			 fabs(log(r.block[i] * blocks[i].cost / blocks[i].samples));
	}
	assert_near(r.edge[2], r.block[2]);
	assert_near(r.disagreement, moved / 520);
	freq_release(&r);
}

/* The same with costs that were measured may be called sure but for the arm that was moved. */
static void test_high_needs_measured(void **state)
{
	struct freq_block blocks[] = { { 1000, 1, 10, true },
				       { 700, 1, 10, true },
				       { 600, 2, 10, true },
				       { 50, 0.05, 10, true } };
	const struct freq_edge edges[] = { { OUT, 0 }, { 0, 1 }, { 0, 2 },
					   { 1, 3 },   { 2, 3 }, { 3, OUT } };
	struct freq_result r;

	(void)state;
	SOLVE(FREQ_TIME, blocks, edges, &r);
	assert_int_equal(r.confidence[0], FREQ_HIGH);
	assert_int_equal(r.confidence[1], FREQ_HIGH);
	assert_int_equal(r.confidence[2], FREQ_HIGH);
	assert_int_equal(r.confidence[3], FREQ_MEDIUM); /* 50 samples */
	freq_release(&r);
	blocks[1].measured = false; /* 30 % of the samples */
	SOLVE(FREQ_TIME, blocks, edges, &r);
	for (int i = 0; i < 4; i++)
		assert_int_equal(r.confidence[i], FREQ_MEDIUM);
	freq_release(&r);
	blocks[1].measured = true;
	blocks[1].samples = 200; /* flow denies it */
	SOLVE(FREQ_TIME, blocks, edges, &r);
	assert_true(r.disagreement > 0.05);
	for (int i = 0; i < 4; i++)
		assert_true(r.confidence[i] < FREQ_HIGH);
	freq_release(&r);
}

/*
 * A straight line of three blocks: two large ones, whose rates are equal, and between them a small
 * one of one instruction, which has @samples where that rate gives 1,000. It hardly moves the rate,
 * nor the disagreement of all, so that its own distance alone decides.
 */
static enum freq_confidence small_block(double samples, bool measured)
{
	const struct freq_block blocks[] = { { 100000, 1, 1000, true },
					     { samples, 0.01, 1, measured },
					     { 100000, 1, 1000, true } };
	const struct freq_edge edges[] = { { OUT, 0 }, { 0, 1 }, { 1, 2 }, { 2, OUT } };
	enum freq_confidence c;
	struct freq_result r;

	SOLVE(FREQ_TIME, blocks, edges, &r);
	assert_near(r.block[1], 100000);
	assert_true(r.disagreement < 0.01);
	assert_int_equal(r.confidence[0], FREQ_HIGH);
	assert_int_equal(r.confidence[2], FREQ_HIGH);
	c = r.confidence[1];
	freq_release(&r);
	return c;
}

/* A block that is further off than a tenth is not HIGH, and one further off than a factor of two
 * not MEDIUM, however well all others agree. */
static void test_own_distance(void **state)
{
	(void)state;
	assert_int_equal(small_block(1000, true), FREQ_HIGH);
	assert_int_equal(small_block(1080, true), FREQ_HIGH);
	assert_int_equal(small_block(920, true), FREQ_HIGH);
	assert_int_equal(small_block(1130, true), FREQ_MEDIUM);
	assert_int_equal(small_block(880, true), FREQ_MEDIUM);
	assert_int_equal(small_block(1000, false), FREQ_MEDIUM);
	assert_int_equal(small_block(1900, true), FREQ_MEDIUM);
	assert_int_equal(small_block(540, true), FREQ_MEDIUM);
	assert_int_equal(small_block(2150, true), FREQ_LOW);
	assert_int_equal(small_block(460, true), FREQ_LOW);
}

/* The least samples of each confidence. */
static void test_least_samples(void **state)
{
	static const struct {
		double samples;
		enum freq_confidence want;
	} cases[] = {
		{ 100, FREQ_HIGH }, { 99, FREQ_MEDIUM }, { 25, FREQ_MEDIUM }, { 24, FREQ_LOW }
	};
	const struct freq_edge edges[] = { { OUT, 0 }, { 0, OUT } };
	struct freq_result r;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct freq_block one[] = { { cases[i].samples, 1, 10, true } };

		SOLVE(FREQ_TIME, one, edges, &r);
		assert_int_equal(r.confidence[0], cases[i].want);
		freq_release(&r);
	}
}

/* The block in the loop that got no samples (it retires with its neighbour) runs as they do. */
static void test_loop(void **state)
{
	const struct freq_block blocks[] = { { 2, 2, 2, false },
					     { 9000, 9, 9, false },
					     { 0, 1, 1, false },
					     { 4000, 4, 4, false },
					     { 3, 3, 3, false } };
	const struct freq_edge edges[] = { { OUT, 0 }, { 0, 1 }, { 1, 2 },  { 2, 3 },
					   { 3, 1 },   { 3, 4 }, { 4, OUT } };
	struct freq_result r;

	(void)state;
	SOLVE(FREQ_TIME, blocks, edges, &r);
	check_flow(&r, 5, edges, 7);
	for (int i = 1; i < 4; i++)
		assert_near(r.block[i], 1000);
	assert_near(r.block[0], 1);
	assert_near(r.edge[4], 999);
	assert_int_equal(r.confidence[2], FREQ_LOW);
	freq_release(&r);
}

/* 1 : 10 : 1000, the middle one known from its neighbours alone. */
static void test_nested_loops(void **state)
{
	const struct freq_block blocks[] = { { 10, 10, 10, false },
					     { 50, 5, 10, false },
					     { 5000, 5, 10, false },
					     { 40, 4, 10, false },
					     { 10, 10, 10, false } };
	const struct freq_edge edges[] = { { OUT, 0 }, { 0, 1 }, { 1, 2 }, { 2, 2 },
					   { 2, 3 },   { 3, 1 }, { 3, 4 }, { 4, OUT } };
	struct freq_result r;

	(void)state;
	for (int model = FREQ_TIME; model <= FREQ_INSTRUCTIONS; model++) {
		SOLVE((enum freq_model)model, blocks, edges, &r);
		check_flow(&r, 5, edges, 8);
		assert_near(r.block[0], 1);
		assert_near(r.block[1], 10);
		assert_near(r.block[2], 1000);
		assert_near(r.edge[3], 990);
		assert_near(r.edge[5], 9);
		freq_release(&r);
	}
}

/* A loop with two ways in, and one without a way out: it goes around without having been entered.
 */
static void test_odd_graphs(void **state)
{
	const struct freq_block irreducible[] = { { 20, 1, 10, false },
						  { 500, 1, 10, false },
						  { 510, 1, 10, false } };
	const struct freq_edge two_ways[] = { { OUT, 0 }, { 0, 1 }, { 0, 2 },
					      { 1, 2 },	  { 2, 1 }, { 2, OUT } };
	const struct freq_block endless[] = { { 1, 1, 10, false }, { 700, 1, 10, false } };
	const struct freq_edge no_exit[] = { { OUT, 0 }, { 0, 1 }, { 1, 1 } };
	const struct freq_edge none[] = { { OUT, OUT } };
	struct freq_result r;

	(void)state;
	SOLVE(FREQ_TIME, irreducible, two_ways, &r);
	check_flow(&r, 3, two_ways, 6);
	assert_near(r.block[0], 20);
	assert_near(r.block[1], 500);
	assert_near(r.block[2], 510);
	freq_release(&r);
	SOLVE(FREQ_TIME, endless, no_exit, &r);
	check_flow(&r, 2, no_exit, 3);
	assert_near(r.block[0], 0);
	assert_near(r.block[1], 700);
	freq_release(&r);
	/* Nothing leads anywhere. */
	SOLVE(FREQ_INSTRUCTIONS, endless, none, &r);
	assert_near(r.block[1], 0);
	assert_int_equal(r.confidence[1], FREQ_LOW);
	freq_release(&r);
}

static void test_few_and_many(void **state)
{
	const struct freq_edge straight[] = { { OUT, 0 }, { 0, OUT } };
	struct freq_block one[] = { { 0, 7, 10, false } };
	const struct freq_block huge[] = { { 1e18, 1, 10, false },
					   { 1e18, 10, 10, false },
					   { 1, 1, 10, false } };
	const struct freq_edge loop[] = { { OUT, 0 }, { 0, 0 }, { 0, 1 },  { 1, 0 },
					  { 0, 2 },   { 2, 0 }, { 2, OUT } };
	struct freq_result r;

	(void)state;
	for (int model = FREQ_TIME; model <= FREQ_INSTRUCTIONS; model++) {
		one[0].samples = 0;
		SOLVE((enum freq_model)model, one, straight, &r);
		assert_true(r.block[0] == 0 && r.edge[0] == 0);
		assert_int_equal(r.confidence[0], FREQ_NONE);
		freq_release(&r);
		one[0].samples = 21;
		SOLVE((enum freq_model)model, one, straight, &r);
		assert_near(r.block[0], 3);
		assert_int_equal(r.confidence[0], FREQ_LOW);
		freq_release(&r);
		SOLVE((enum freq_model)model, huge, loop, &r);
		assert_near(r.block[0], 1e18);
		assert_near(r.block[1], 1e17);
		freq_release(&r);
	}
	assert_int_equal(freq_solve(FREQ_TIME, NULL, 0, NULL, 0, &r, NULL), 0);
	freq_release(&r);
}

static void test_refused(void **state)
{
	struct freq_block b = { 1, 0, 1, false };
	struct freq_edge e = { 0, 1 };
	struct freq_result r;

	(void)state;
	assert_int_equal(freq_solve(FREQ_TIME, &b, 1, &e, 1, &r, NULL), -EINVAL);
	b.cost = 1;
	assert_int_equal(freq_solve(FREQ_TIME, &b, 1, &e, 1, &r, NULL), -EINVAL);
	e.to = OUT;
	b.samples = NAN;
	assert_int_equal(freq_solve(FREQ_TIME, &b, 1, &e, 1, &r, NULL), -EINVAL);
	b.samples = -1;
	assert_int_equal(freq_solve(FREQ_TIME, &b, 1, &e, 1, &r, NULL), -EINVAL);
	b.samples = 1;
	b.insns = 0;
	assert_int_equal(freq_solve(FREQ_TIME, &b, 1, &e, 1, &r, NULL), -EINVAL);
	freq_release(&r);
}

/* The likelihood of a diamond whose arms run @left and @right times. */
static double likelihood(const struct freq_block *b, double left, double right)
{
	const double rate[] = { left + right, left, right, left + right };
	double sum = 0;

	for (int i = 0; i < 4; i++)
		sum += (b[i].samples * log(rate[i]) - b[i].cost * rate[i]) /
		       (1 + 0.0004 * b[i].samples);
	return sum;
}

/* Against trying them all, in steps of half a percent. */
static void test_likeliest(void **state)
{
	const struct freq_block blocks[] = { { 130, 1, 10, false },
					     { 90, 1, 10, false },
					     { 95, 2, 10, false },
					     { 340, 3, 10, false } };
	const struct freq_edge edges[] = { { OUT, 0 }, { 0, 1 }, { 0, 2 },
					   { 1, 3 },   { 2, 3 }, { 3, OUT } };
	double best = -INFINITY, best_left = 0, best_right = 0;
	struct freq_result r;

	(void)state;
	for (double left = 20; left < 200; left *= 1.005) {
		for (double right = 10; right < 150; right *= 1.005) {
			double l = likelihood(blocks, left, right);

			if (l > best) {
				best = l;
				best_left = left;
				best_right = right;
			}
		}
	}
	SOLVE(FREQ_INSTRUCTIONS, blocks, edges, &r);
	assert_true(fabs(r.block[1] / best_left - 1) < 0.015);
	assert_true(fabs(r.block[2] / best_right - 1) < 0.015);
	freq_release(&r);
}

/* ---- programs drawn at random ---------------------------------------------------------------- */

static uint64_t seed = 7;

static double draw(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(seed >> 11) * 0x1p-53;
}

#define NR_BLOCKS 60

struct program {
	struct freq_block blocks[NR_BLOCKS];
	struct freq_edge edges[2 * NR_BLOCKS + 1];
	double odds[NR_BLOCKS]; /* of the second way out */
	uint32_t nr_edges;
	double ran[NR_BLOCKS], went[2 * NR_BLOCKS + 1];
};

/* Edge 2 b goes on from block b, 2 b + 1 elsewhere. */
static void make(struct program *p)
{
	for (uint32_t b = 0; b < NR_BLOCKS; b++) {
		uint32_t to = (uint32_t)(draw() * NR_BLOCKS);

		if (draw() < 0.5)
			to = b > 8 ? b - (uint32_t)(draw() * 8) : b;
		p->edges[2 * b] = (struct freq_edge){ b, b + 1 < NR_BLOCKS ? b + 1 : OUT };
		p->edges[2 * b + 1] = (struct freq_edge){ b, to };
		p->odds[b] = draw() < 0.3 ? 0 : draw() * 0.9;
		p->blocks[b] = (struct freq_block){ 0, 1 + floor(draw() * 9), 10, false };
	}
	p->edges[2 * NR_BLOCKS] = (struct freq_edge){ OUT, 0 };
	p->nr_edges = 2 * NR_BLOCKS + 1;
}

static void run(struct program *p, int steps)
{
	uint32_t at = OUT;

	for (int i = 0; i < steps || at != OUT; i++) {
		uint32_t e = 2 * NR_BLOCKS;

		if (at != OUT) {
			p->ran[at]++;
			e = 2 * at + (draw() < p->odds[at]);
		}
		p->went[e]++;
		at = p->edges[e].to;
	}
}

/* Of @samples in proportion to cost, with the scatter that they have (sum of twelve draws). */
static void sample(struct program *p, double samples)
{
	double all = 0;

	for (int b = 0; b < NR_BLOCKS; b++)
		all += p->ran[b] * p->blocks[b].cost;
	for (int b = 0; b < NR_BLOCKS; b++) {
		double mean = p->ran[b] * p->blocks[b].cost * samples / all, chance = -6;

		for (int i = 0; i < 12; i++)
			chance += draw();
		p->blocks[b].samples = fmax(0, round(mean + sqrt(mean) * chance));
	}
}

/* Share of the executions within 10 % of the truth, blocks and edges. */
static void share_right(const struct program *p, const struct freq_result *r, double right[2])
{
	double scale = 0, all[2] = { 0 };
	double ran = 0, cost = 0;

	right[0] = right[1] = 0;
	for (int b = 0; b < NR_BLOCKS; b++) {
		ran += p->ran[b] * p->blocks[b].cost;
		cost += r->block[b] * p->blocks[b].cost;
	}
	scale = ran / cost;
	for (int b = 0; b < NR_BLOCKS; b++) {
		all[0] += p->ran[b];
		if (fabs(r->block[b] * scale - p->ran[b]) <= 0.1 * p->ran[b])
			right[0] += p->ran[b];
	}
	for (uint32_t e = 0; e < p->nr_edges; e++) {
		all[1] += p->went[e];
		if (fabs(r->edge[e] * scale - p->went[e]) <= 0.1 * p->went[e])
			right[1] += p->went[e];
	}
	right[0] /= all[0];
	right[1] /= all[1];
}

static void test_ideal_samples(void **state)
{
	double blocks = 0, edges = 0, right[2];
	enum { PROGRAMS = 20 };

	(void)state;
	for (int i = 0; i < PROGRAMS; i++) {
		struct program p = { 0 };
		struct freq_result r;

		make(&p);
		run(&p, 20000);
		sample(&p, 100000);
		assert_int_equal(freq_solve(FREQ_INSTRUCTIONS, p.blocks, NR_BLOCKS, p.edges,
					    p.nr_edges, &r, NULL),
				 0);
		check_flow(&r, NR_BLOCKS, p.edges, p.nr_edges);
		share_right(&p, &r, right);
		blocks += right[0] / PROGRAMS;
		edges += right[1] / PROGRAMS;
		freq_release(&r);
	}
	assert_true(blocks > 0.95);
	assert_true(edges > 0.85);
}

/* Whatever the samples and edges, an answer that conserves flow. */
static void test_any_graph(void **state)
{
	(void)state;
	for (int i = 0; i < 400; i++) {
		enum { MOST = 30 };
		struct freq_block blocks[MOST];
		struct freq_edge edges[3 * MOST];
		uint32_t nr = 1 + (uint32_t)(draw() * MOST);
		uint32_t nr_edges = (uint32_t)(draw() * 3 * nr);
		struct freq_result r;

		for (uint32_t b = 0; b < nr; b++) {
			blocks[b].samples = draw() < 0.3 ? 0 : exp(30 * draw());
			blocks[b].cost = exp(20 * draw() - 10);
			blocks[b].insns = 1 + (uint32_t)(draw() * 20);
			blocks[b].measured = draw() < 0.5;
		}
		for (uint32_t e = 0; e < nr_edges; e++) {
			edges[e].from = draw() < 0.1 ? OUT : (uint32_t)(draw() * nr);
			edges[e].to = draw() < 0.1 ? OUT : (uint32_t)(draw() * nr);
		}
		assert_int_equal(
			freq_solve((enum freq_model)(i % 2), blocks, nr, edges, nr_edges, &r, NULL),
			0);
		assert_false(r.unfinished);
		check_flow(&r, nr, edges, nr_edges);
		freq_release(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_diamond_by_time),
		cmocka_unit_test(test_high_needs_measured),
		cmocka_unit_test(test_own_distance),
		cmocka_unit_test(test_least_samples),
		cmocka_unit_test(test_loop),
		cmocka_unit_test(test_nested_loops),
		cmocka_unit_test(test_odd_graphs),
		cmocka_unit_test(test_few_and_many),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_likeliest),
		cmocka_unit_test(test_ideal_samples),
		cmocka_unit_test(test_any_graph),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
