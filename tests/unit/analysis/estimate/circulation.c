/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "circulation.h"

#define NO_LIMIT CIRCULATION_NO_LIMIT
#define WORK	 UINT64_C(1000000000)

static int64_t total(const struct circulation_arc *arcs, size_t nr)
{
	int64_t sum = 0;

	for (size_t i = 0; i < nr; i++)
		sum += arcs[i].cost * arcs[i].flow;
	return sum;
}

/* Two ways around, of which the better one is full at 3. */
static void test_two_ways(void **state)
{
	struct circulation_arc arcs[] = {
		{ 0, 1, 10, -5, 0 },
		{ 1, 0, 3, 1, 0 },
		{ 1, 2, NO_LIMIT, 2, 0 },
		{ 2, 0, NO_LIMIT, 2, 0 },
	};

	(void)state;
	assert_int_equal(circulation_solve(3, arcs, 4, WORK, NULL), 0);
	assert_int_equal(arcs[0].flow, 10);
	assert_int_equal(arcs[1].flow, 3);
	assert_int_equal(arcs[2].flow, 7);
	assert_int_equal(arcs[3].flow, 7);
	/* The longer way costs more than it brings. */
	arcs[2].cost = 4;
	assert_int_equal(circulation_solve(3, arcs, 4, WORK, NULL), 0);
	assert_int_equal(arcs[0].flow, 3);
	assert_int_equal(arcs[2].flow, 0);
}

static void test_nothing_to_do(void **state)
{
	struct circulation_arc arcs[] = { { 0, 1, 5, -7, 9 }, { 2, 2, NO_LIMIT, 0, 9 } };

	(void)state;
	/* No way back from 1. */
	assert_int_equal(circulation_solve(3, arcs, 2, WORK, NULL), 0);
	assert_int_equal(arcs[0].flow, 0);
	assert_int_equal(arcs[1].flow, 0);
	assert_int_equal(circulation_solve(0, NULL, 0, WORK, NULL), 0);
	arcs[1] = (struct circulation_arc){ 2, 2, 4, -1, 0 };
	assert_int_equal(circulation_solve(3, arcs, 2, WORK, NULL), 0);
	assert_int_equal(arcs[1].flow, 4);
}

static void test_refused(void **state)
{
	struct circulation_arc unbounded = { 0, 1, NO_LIMIT, -1, 0 };
	struct circulation_arc outside = { 0, 2, 1, 0, 0 };
	struct circulation_arc negative = { 0, 1, -1, 0, 0 };
	struct circulation_arc dear = { 0, 1, 1, INT64_MAX, 0 };

	(void)state;
	assert_int_equal(circulation_solve(2, &unbounded, 1, WORK, NULL), -EINVAL);
	assert_int_equal(circulation_solve(2, &outside, 1, WORK, NULL), -EINVAL);
	assert_int_equal(circulation_solve(2, &negative, 1, WORK, NULL), -EINVAL);
	assert_int_equal(circulation_solve(2, &dear, 1, WORK, NULL), -EINVAL);
}

static uint32_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

#define NODES_MAX 12
#define ARCS_MAX  40

static size_t draw_network(struct circulation_arc *arcs, uint32_t nodes)
{
	size_t nr = 1 + draw(ARCS_MAX);

	for (size_t i = 0; i < nr; i++) {
		arcs[i] = (struct circulation_arc){ .from = draw(nodes),
						    .to = draw(nodes),
						    .cap = draw(20),
						    .cost = (int64_t)draw(21) - 10 };
		if (arcs[i].cost >= 0 && draw(2))
			arcs[i].cap = NO_LIMIT;
	}
	return nr;
}

static void check_circulation(const struct circulation_arc *arcs, size_t nr, uint32_t nodes)
{
	int64_t balance[NODES_MAX] = { 0 };

	for (size_t i = 0; i < nr; i++) {
		assert_true(arcs[i].flow >= 0 && arcs[i].flow <= arcs[i].cap);
		balance[arcs[i].from] -= arcs[i].flow;
		balance[arcs[i].to] += arcs[i].flow;
	}
	for (uint32_t n = 0; n < nodes; n++)
		assert_int_equal(balance[n], 0);
}

/* The cheapest is one that no further cycle makes cheaper: Bellman and Ford's distances settle. */
static void check_cheapest(const struct circulation_arc *arcs, size_t nr, uint32_t nodes)
{
	int64_t far[NODES_MAX] = { 0 };
	bool moved = true;

	for (uint32_t round = 0; round <= nodes && moved; round++) {
		moved = false;
		for (size_t i = 0; i < nr; i++) {
			const struct circulation_arc *a = &arcs[i];

			if (a->flow < a->cap && far[a->from] + a->cost < far[a->to]) {
				far[a->to] = far[a->from] + a->cost;
				moved = true;
			}
			if (a->flow > 0 && far[a->to] - a->cost < far[a->from]) {
				far[a->from] = far[a->to] - a->cost;
				moved = true;
			}
		}
	}
	assert_false(moved);
}

static void test_random(void **state)
{
	struct circulation_arc arcs[ARCS_MAX];
	size_t gains = 0;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		uint32_t nodes = 1 + draw(NODES_MAX);
		size_t nr = draw_network(arcs, nodes);

		assert_int_equal(circulation_solve(nodes, arcs, nr, WORK, NULL), 0);
		check_circulation(arcs, nr, nodes);
		check_cheapest(arcs, nr, nodes);
		gains += total(arcs, nr) < 0;
	}
	assert_true(gains > 1000);
}

/* Who has to stop early still has a circulation. */
static void test_out_of_work(void **state)
{
	struct circulation_arc arcs[ARCS_MAX];
	size_t stopped = 0;

	(void)state;
	for (int i = 0; i < 300; i++) {
		uint32_t nodes = 1 + draw(NODES_MAX);
		size_t nr = draw_network(arcs, nodes);
		int r = circulation_solve(nodes, arcs, nr, draw(200), NULL);

		assert_true(r == 0 || r == 1);
		stopped += (size_t)r;
		check_circulation(arcs, nr, nodes);
	}
	assert_true(stopped > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_ways),    cmocka_unit_test(test_nothing_to_do),
		cmocka_unit_test(test_refused),	    cmocka_unit_test(test_random),
		cmocka_unit_test(test_out_of_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
