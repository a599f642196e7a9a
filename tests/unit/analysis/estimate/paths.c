/* SPDX-License-Identifier: BSD-2-Clause */
/* A procedure of this program is walked by a seeded generator; traces of that are its profile. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "estimate.h"
#include "paths.h"

enum { TRACE = 16 }; /* blocks */

static uint64_t seed = 1;

/* splitmix64 */
static uint32_t draw(uint32_t below)
{
	uint64_t z = seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (uint32_t)((z ^ z >> 31) % below);
}

/* What is walked; loops, branches, and calls of a library. */
__attribute__((noinline)) int walked(const char *text, size_t len);
int walked(const char *text, size_t len)
{
	int sum = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == 'a')
			sum += (int)strlen(text + i);
		else if (text[i] < 'm')
			sum ^= text[i] << (i & 7);
		for (int k = text[i]; k > 3; k /= 3)
			sum += k & 1 ? abs(sum) : 5;
	}
	return sum;
}

struct fixture {
	struct image *img;
	struct flow *f;
	struct profdb_profile *profile;
	double *truth;
	uint64_t start, last; /* of the trace: where it began, its last instruction */
	unsigned int nr;
};

static uint64_t off_of(const struct fixture *x, uint64_t vaddr)
{
	uint64_t off = 0;

	assert_int_equal(image_off(x->img, vaddr, &off), 0);
	return off;
}

static void edge_count(struct fixture *x, uint64_t from, uint64_t to)
{
	struct profdb_edge m = { x->start, from, to, { 0 } };

	m.count[x->nr & 1] = 1;
	assert_int_equal(profdb_profile_edge_add(x->profile, &m), 0);
}

/* All of block @b has run. */
static void run_block(struct fixture *x, uint32_t b)
{
	const struct flow_block *block = &x->f->blocks[b];

	for (uint32_t i = block->insn; i < block->insn + block->nr_insns; i++) {
		const struct insn *insn = &x->f->insns[i];
		bool call = insn->flow == INSN_CALL || insn->flow == INSN_INDIRECT_CALL;

		x->last = off_of(x, insn->vaddr);
		/* It came back from the library. */
		if (call && i + 1 < block->insn + block->nr_insns)
			edge_count(x, x->last, off_of(x, insn->vaddr + insn->len));
	}
}

/* The next block, or FLOW_OUTSIDE. The first edge twice as often as each other. */
static uint32_t proceed(const struct flow *f, uint32_t b)
{
	uint32_t nr = f->blocks[b].nr_out, k = nr ? draw(nr + 1) : 0;

	return nr ? f->edges[f->out_of[f->blocks[b].out + (k ? k - 1 : 0)]].to : FLOW_OUTSIDE;
}

/* Blocks with odd numbers take nine times as long. */
static uint32_t begin_at(const struct fixture *x, const uint32_t *row, uint32_t nr)
{
	for (;;) {
		uint32_t i = draw(nr);

		if (row[i] != FLOW_OUTSIDE && (x->f->nr_blocks < 2 || row[i] & 1 || !draw(9)))
			return i;
	}
}

static void trace(struct fixture *x, const uint32_t *row, uint32_t from)
{
	const struct flow *f = x->f;
	uint32_t i = from;

	x->start = off_of(x, f->blocks[row[i]].vaddr);
	edge_count(x, PROFDB_OUTSIDE, x->start);
	for (; i < from + TRACE && row[i] != FLOW_OUTSIDE; i++) {
		const struct flow_block *b = &f->blocks[row[i]];
		const struct insn *last = &f->insns[b->insn + b->nr_insns - 1];

		run_block(x, row[i]);
		if (i + 1 < from + TRACE && row[i + 1] != FLOW_OUTSIDE && last->flow != INSN_PLAIN)
			edge_count(x, x->last, off_of(x, f->blocks[row[i + 1]].vaddr));
	}
	edge_count(x, x->last, PROFDB_OUTSIDE);
	x->nr++;
}

static void walk(struct fixture *x, uint32_t steps, int traces)
{
	uint32_t *row = calloc(steps + TRACE, sizeof(*row)), at = x->f->entry;

	assert_non_null(row);
	for (uint32_t i = 0; i < steps + TRACE; i++) {
		row[i] = at;
		if (at != FLOW_OUTSIDE)
			x->truth[at]++;
		at = at == FLOW_OUTSIDE ? x->f->entry : proceed(x->f, at);
	}
	for (int i = 0; i < traces; i++)
		trace(x, row, begin_at(x, row, steps));
	free(row);
}

static int set_up(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));
	const struct image_symbol *symbol;
	size_t pos = 0;

	*state = x;
	if (!x || image_open_path("/proc/self/exe", IMAGE_FILE, &x->img, NULL) < 0)
		return -1;
	symbol = image_symbol_find(x->img, "walked", &pos);
	if (!symbol || flow_build(x->img, symbol, &x->f, NULL) < 0)
		return -1;
	x->truth = calloc(x->f->nr_blocks + 1, sizeof(double));
	x->profile = profdb_profile_new(PROFDB_FILE, image_id(x->img), "walked");
	return x->truth && x->profile ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *x = *state;

	profdb_profile_free(x->profile);
	free(x->truth);
	flow_free(x->f);
	image_close(x->img);
	free(x);
	return 0;
}

static void check(const struct fixture *x, const struct estimate *e)
{
	double is = 0, truth = 0;

	for (uint32_t i = 0; i < x->f->nr_blocks; i++) {
		is += e->freq.block[i];
		truth += x->truth[i];
	}
	/* Some thousands of 80,000 traces pass each block that matters: chance is one percent. */
	for (uint32_t i = 0; i < x->f->nr_blocks; i++)
		if (x->truth[i] > truth / 100)
			assert_true(fabs(e->freq.block[i] / is * truth / x->truth[i] - 1) < 0.05);
	for (uint32_t i = 0; i < x->f->nr_blocks; i++) {
		const struct flow_block *b = &x->f->blocks[i];
		double out = 0;

		for (uint32_t k = 0; k < b->nr_out; k++)
			out += e->freq.edge[x->f->out_of[b->out + k]];
		if (x->truth[i] > truth / 100)
			assert_true(fabs(out / e->freq.block[i] - 1) < 0.05);
	}
}

/* Blocks with calls have edges of these too; what leaves the procedure here, and enters it, has no
 * edge. */
static bool is_plain(const struct flow *f, const struct flow_block *b)
{
	bool yes = !b->nr_calls;

	for (uint32_t k = 0; k < b->nr_out; k++)
		yes = yes && f->edges[f->out_of[b->out + k]].to != FLOW_OUTSIDE;
	return yes;
}

/* Traces that left a block, corrected, are in proportion to its executions. */
static void check_correction(const struct fixture *x, const struct paths *paths)
{
	double *left = calloc(x->f->nr_blocks + 1, sizeof(*left)), is = 0, truth = 0;
	int compared = 0;

	assert_non_null(left);
	for (size_t i = 0; i < profdb_profile_nr_edges(x->profile); i++) {
		const struct profdb_edge *e = profdb_profile_edge(x->profile, i);
		uint64_t vaddr;

		if (e->from == PROFDB_OUTSIDE || e->to == PROFDB_OUTSIDE)
			continue;
		assert_int_equal(image_vaddr(x->img, e->from, &vaddr), 0);
		left[flow_block_at(x->f, vaddr)] +=
			(double)(e->count[0] + e->count[1]) * paths_correction(paths, vaddr);
	}
	for (uint32_t i = 0; i < x->f->nr_blocks; i++) {
		if (i == x->f->entry || !is_plain(x->f, &x->f->blocks[i]))
			left[i] = 0;
		is += left[i];
		truth += left[i] > 0 ? x->truth[i] : 0;
	}
	for (uint32_t i = 0; i < x->f->nr_blocks; i++) {
		if (left[i] <= 0 || x->truth[i] <= truth / 100)
			continue;
		compared++;
		assert_true(fabs(left[i] / is * truth / x->truth[i] - 1) < 0.05);
	}
	assert_true(compared > 3);
	assert_true(paths_correction(paths, 1) == 1);
	free(left);
}

static void test_frequencies(void **state)
{
	struct fixture *x = *state;
	double *by_insn = calloc(x->f->nr_insns + 1, sizeof(*by_insn));
	struct estimate_input in = { .flow = x->f,
				     .by_insn = by_insn,
				     .event = "cpu-clock",
				     .period = 1000,
				     .img = x->img };
	struct base_err err = { 0 };
	struct paths *paths = NULL;
	struct estimate e;
	int high = 0;

	assert_non_null(by_insn);
	assert_int_equal(paths_make(x->profile, x->img, &paths, &err), -ENOENT);
	walk(x, 1000000, 80000);
	assert_int_equal(paths_make(x->profile, x->img, &paths, &err), 0);
	assert_int_equal(paths_traces(paths), 80000);
	in.paths = paths;
	/* The samples tell nothing but how many they are. */
	by_insn[0] = 700;
	assert_int_equal(estimate_frequencies(&in, &e, &err), 0);
	assert_int_equal(e.traces, 80000);
	assert_false(e.absolute);
	check(x, &e);
	check_correction(x, paths);
	for (uint32_t i = 0; i < x->f->nr_blocks; i++)
		high += e.freq.confidence[i] == FREQ_HIGH;
	assert_true(high > 0);
	estimate_release(&e);
	/* Instructions that were counted know better. */
	in.event = "instructions";
	assert_int_equal(estimate_frequencies(&in, &e, &err), 0);
	assert_int_equal(e.traces, 0);
	estimate_release(&e);
	paths_free(paths);
	free(by_insn);
}

/* Samples alone, where traces are few, and where moves lie in no code. */
static void test_few(void **state)
{
	struct fixture *x = *state;
	const struct profdb_edge wild[] = {
		{ PROFDB_OUTSIDE, PROFDB_OUTSIDE, PROFDB_OUTSIDE, { 5, 5 } },
		{ PROFDB_ANY_START, 0x7fffffffffff, 3, { 5, 5 } },
		{ 1, PROFDB_OUTSIDE, 0x7fffffffffff, { 5, 5 } },
		{ 0, 1, 2, { 5, 5 } },
	};
	double *by_insn = calloc(x->f->nr_insns + 1, sizeof(*by_insn));
	struct estimate_input in = { .flow = x->f,
				     .by_insn = by_insn,
				     .event = "cpu-clock",
				     .period = 1000,
				     .img = x->img };
	struct base_err err = { 0 };
	struct paths *paths = NULL;
	struct estimate e;

	assert_non_null(by_insn);
	by_insn[0] = 700;
	for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++)
		assert_int_equal(profdb_profile_edge_add(x->profile, &wild[i]), 0);
	walk(x, 1000, 3);
	assert_int_equal(paths_make(x->profile, x->img, &paths, &err), 0);
	in.paths = paths;
	assert_int_equal(estimate_frequencies(&in, &e, &err), 0);
	assert_int_equal(e.traces, 0);
	estimate_release(&e);
	paths_free(paths);
	free(by_insn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_frequencies, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_few, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
