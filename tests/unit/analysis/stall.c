/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stall.h"

enum { BASE = 0x1000 };

struct code {
	const uint8_t *bytes;
	size_t len;
};

static size_t bytes(void *context, uint64_t vaddr, void *out, size_t len)
{
	const struct code *c = context;

	if (vaddr - BASE >= c->len)
		return 0;
	if (len > c->len - (vaddr - BASE))
		len = c->len - (vaddr - BASE);
	memcpy(out, c->bytes + (vaddr - BASE), len);
	return len;
}

static struct flow *build(const uint8_t *code, size_t len)
{
	struct code c = { code, len };
	const struct flow_source source = { &c, bytes, NULL, NULL };
	const struct image_symbol symbol = { "f", BASE, len };
	struct flow_decoder *d = NULL;
	struct flow *f = NULL;

	assert_int_equal(flow_decoder_open(EM_X86_64, &d, NULL), 0);
	assert_int_equal(flow_build_from(&source, d, &symbol, &f, NULL), 0);
	flow_decoder_close(d);
	return f;
}

static void check_sum(const struct stall_tally *t)
{
	double sum = t->execution + t->unexplained;

	for (int c = 0; c < STALL_NR_CAUSES; c++) {
		assert_true(t->cause[c].low <= t->cause[c].likely + 1e-9);
		assert_true(t->cause[c].likely <= t->cause[c].high + 1e-9);
		sum += t->cause[c].likely;
	}
	assert_true(fabs(sum - t->samples) < 1e-6 * (1 + t->samples));
}

static void find(const struct flow *f, const double *samples, const double *block,
		 const double *edge, struct stall *s)
{
	const struct stall_input in = { f, samples, block, edge };

	assert_int_equal(stall_find(&in, s), 0);
	for (uint32_t b = 0; b < f->nr_blocks; b++)
		check_sum(&s->block[b]);
	check_sum(&s->total);
}

/* A loop of one load or division, then additions; all samples stand behind the first. */
static void check_loop(const uint8_t *code, size_t len, enum stall_cause cause)
{
	struct flow *f = build(code, len);
	double samples[16] = { 0 }, block[2] = { 1000, 1 }, edge[8];
	struct stall s;

	samples[1] = 990;
	samples[4] = 10;
	for (uint32_t i = 0; i < f->nr_edges; i++)
		edge[i] = f->edges[i].from == 0 && f->edges[i].to == 0 ? 999 : 1;
	find(f, samples, block, edge, &s);
	assert_true(s.total.samples == 1000);
	assert_true(s.total.cause[cause].low >= 950);
	for (int c = 0; c < STALL_NR_CAUSES; c++)
		assert_true(c == (int)cause || s.total.cause[c].high == 0);
	stall_release(&s);
	/* Nothing says how often the loop's branch is gone either way: it is a candidate too. */
	find(f, samples, NULL, NULL, &s);
	assert_true(s.total.cause[STALL_BRANCH].high >= 950);
	assert_true(s.total.cause[cause].high >= 950 && s.total.cause[cause].low < 50);
	stall_release(&s);
	flow_free(f);
}

static void test_memory(void **state)
{
	/* 1: mov (%rdi),%rdi; add $1,%eax (four times); dec %ecx; jne 1b; ret */
	static const uint8_t code[] = {
		0x48, 0x8b, 0x3f, 0x83, 0xc0, 0x01, 0x83, 0xc0, 0x01, 0x83,
		0xc0, 0x01, 0x83, 0xc0, 0x01, 0xff, 0xc9, 0x75, 0xed, 0xc3
	};

	(void)state;
	check_loop(code, sizeof(code), STALL_MEMORY);
}

static void test_division(void **state)
{
	/* 1: div %rsi; add $1,%ebx (four times); dec %ecx; jne 1b; ret */
	static const uint8_t code[] = {
		0x48, 0xf7, 0xf6, 0x83, 0xc3, 0x01, 0x83, 0xc3, 0x01, 0x83,
		0xc3, 0x01, 0x83, 0xc3, 0x01, 0xff, 0xc9, 0x75, 0xed, 0xc3
	};

	(void)state;
	check_loop(code, sizeof(code), STALL_DIVISION);
}

/* Either arm of a branch, and the samples on the second instruction of either. */
static void test_branch(void **state)
{
	/* 0: test %edi,%edi; jne 1f; add $1,%eax; add $1,%ebx; jmp 2f
	 * 1: add $1,%eax; add $1,%ebx; 2: dec %ecx; jne 0b; ret */
	static const uint8_t code[] = { 0x85, 0xff, 0x75, 0x08, 0x83, 0xc0, 0x01, 0x83,
					0xc3, 0x01, 0xeb, 0x06, 0x83, 0xc0, 0x01, 0x83,
					0xc3, 0x01, 0xff, 0xc9, 0x75, 0xea, 0xc3 };
	struct flow *f = build(code, sizeof(code));
	double samples[10] = { 0, 2, 0, 400, 0, 0, 400, 2, 0, 0 };
	double block[5] = { 1000, 500, 500, 1000, 1 }, edge[16];
	struct stall s;

	(void)state;
	assert_int_equal(f->nr_blocks, 5);
	for (uint32_t i = 0; i < f->nr_edges; i++) {
		uint32_t from = f->edges[i].from, to = f->edges[i].to;

		edge[i] = from == 3 && to == 0 ? 999 : from < 3 && to < 4 ? 500 : 1;
	}
	find(f, samples, block, edge, &s);
	assert_true(s.total.cause[STALL_BRANCH].low >= 780);
	stall_release(&s);
	flow_free(f);
}

/* The same pace everywhere is execution; and no samples are no division by nothing. */
static void test_even(void **state)
{
	static const uint8_t code[] = { 0x83, 0xc0, 0x01, 0x83, 0xc0, 0x01,
					0xff, 0xc9, 0x75, 0xf6, 0xc3 };
	struct flow *f = build(code, sizeof(code));
	double samples[5] = { 100, 100, 100, 100, 0 }, none[5] = { 0 }, block[2] = { 100, 0 };
	struct stall s;

	(void)state;
	find(f, samples, block, NULL, &s);
	assert_true(s.total.execution > 399);
	stall_release(&s);
	find(f, none, block, NULL, &s);
	assert_true(s.total.samples == 0 && s.total.execution == 0);
	stall_release(&s);
	flow_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_division),
		cmocka_unit_test(test_branch),
		cmocka_unit_test(test_even),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
