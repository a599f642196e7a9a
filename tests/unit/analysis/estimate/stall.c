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
	struct insn_decoder *d = NULL;
	struct flow *f = NULL;

	assert_int_equal(insn_decoder_open(EM_X86_64, &d, NULL), 0);
	assert_int_equal(flow_build_from(&source, d, &symbol, &f, NULL), 0);
	insn_decoder_close(d);
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

static void find_by(const struct stall_input *in, struct stall *s)
{
	const struct flow *f = in->flow;
	double unexplained = 0;

	assert_int_equal(stall_find(in, s), 0);
	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		const struct stall_tally *t = &s->block[b];
		double stalled = 0;

		check_sum(t);
		for (uint32_t i = 0; i < f->blocks[b].nr_insns; i++) {
			stalled += s->stalled[f->blocks[b].insn + i];
			unexplained += s->unexplained[f->blocks[b].insn + i];
		}
		assert_true(fabs(stalled - (t->samples - t->execution)) < 1e-6);
	}
	assert_true(fabs(s->total.unexplained - unexplained) < 1e-6);
	check_sum(&s->total);
}

static void find(const struct flow *f, const double *samples, const double *block,
		 const double *edge, struct stall *s)
{
	find_by(
		&(struct stall_input){
			.flow = f, .samples = samples, .block = block, .edge = edge },
		s);
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
	assert_int_equal(s.culprit[1], 0);
	assert_int_equal(s.culprit[2], FLOW_OUTSIDE);
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
	/* Nor is it ruled out where the best pace shows no samples at all. */
	samples[1] = samples[7] = 0;
	find(f, samples, block, edge, &s);
	assert_true(s.total.cause[STALL_BRANCH].low >= 780);
	stall_release(&s);
	flow_free(f);
}

/*
 * 0: cmp (%rdi),%al; jne 1f; add $1,%eax; add $1,%ebx; jmp 2f; 1: add $1,%eax; add $1,%ebx;
 * 2: mov (%rdi),%rdi; dec %ecx; jne 0b; ret, where the branch is not gone in @usual of 1,000 cases.
 * With a register in place of the load where @load is not set, and inc %rdi where @step is.
 */
static void either_way(bool load, bool step, double usual, const double *samples, struct stall *s)
{
	uint8_t code[] = { 0x3a, 0x07, 0x75, 0x08, 0x83, 0xc0, 0x01, 0x83, 0xc3,
			   0x01, 0xeb, 0x06, 0x83, 0xc0, 0x01, 0x83, 0xc3, 0x01,
			   0x48, 0x8b, 0x3f, 0xff, 0xc9, 0x75, 0xe7, 0xc3 };
	const double block[5] = { 1e6, usual * 1000, 1e6 - usual * 1000, 1e6, 1 };
	struct flow *f;
	double edge[16];

	code[1] = load ? 0x07 : 0xc7;
	if (step)
		memcpy(&code[18], "\x48\xff\xc7", 3);
	f = build(code, sizeof(code));
	assert_int_equal(f->nr_blocks, 5);
	for (uint32_t i = 0; i < f->nr_edges; i++) {
		uint32_t from = f->edges[i].from, to = f->edges[i].to, arm = from ? from : to;

		edge[i] = from == 3 && to == 0 ? 1e6 - 1 : arm == 1 || arm == 2 ? block[arm] : 1;
	}
	find(f, samples, block, edge, s);
	flow_free(f);
}

/* A load may have been waited for behind the branch that it is joined with: neither is sure. */
static void test_joined(void **state)
{
	double samples[11] = { 2, 0, 400, 2, 0, 400, 2, 2, 0, 0, 0 };
	const uint16_t memory = 1 << STALL_MEMORY, branch = 1 << STALL_BRANCH;
	struct stall s;

	(void)state;
	either_way(true, false, 500, samples, &s);
	assert_int_equal(s.candidates[2], memory | branch);
	assert_int_equal(s.candidates[5], memory | branch);
	assert_true(s.total.cause[STALL_BRANCH].low < 20);
	assert_true(s.total.cause[STALL_MEMORY].low < 20);
	assert_true(s.total.cause[STALL_BRANCH].high > 780);
	assert_true(s.total.cause[STALL_MEMORY].high > 780);
	stall_release(&s);
	either_way(false, false, 500, samples, &s);
	assert_true(s.total.cause[STALL_BRANCH].low > 780);
	stall_release(&s);
	/* It comes to another line in one of 64 cases. */
	either_way(true, true, 500, samples, &s);
	assert_true(s.total.cause[STALL_MEMORY].high > 780);
	assert_true(s.total.cause[STALL_BRANCH].likely > 60 * s.total.cause[STALL_MEMORY].likely);
	stall_release(&s);
	/* It is not where the branch shows the load's wait. */
	samples[1] = 400;
	either_way(true, false, 500, samples, &s);
	assert_int_equal(s.candidates[1], memory);
	assert_int_equal(s.candidates[2], branch);
	assert_true(s.total.cause[STALL_BRANCH].low > 780);
	assert_true(s.total.cause[STALL_MEMORY].low > 380);
	stall_release(&s);
}

/* The usual way is gone wrongly no oftener than the other, which shows what that takes. */
static void test_usual_way(void **state)
{
	const double samples[11] = { 2, 0, 400, 0, 0, 20, 0, 2, 0, 0, 0 };
	/* 95 of 100 numbers of samples where 20 are expected, twice */
	const double most = 2 * (20 + 1.645 * sqrt(20) + 3);
	const struct stall_tally *usual;
	struct stall s;

	(void)state;
	either_way(false, false, 900, samples, &s);
	usual = &s.block[1];
	assert_true(fabs(usual->cause[STALL_BRANCH].high - most) < 0.01);
	assert_true(usual->unexplained > 320);
	stall_release(&s);
	either_way(true, false, 900, samples, &s);
	usual = &s.block[1];
	assert_true(fabs(usual->cause[STALL_BRANCH].high - most) < 0.01);
	assert_true(usual->cause[STALL_BRANCH].low < 1e-9);
	assert_true(usual->cause[STALL_MEMORY].low > 320);
	/* And the rare one may have been waited for in each case. */
	assert_true(s.block[2].cause[STALL_BRANCH].high > 19);
	stall_release(&s);
}

/* What is fetched once in 100 executions is less likely than a load in each. */
static void test_chance(void **state)
{
	/* add $1,%eax; 0: call (elsewhere); 1: mov (%rsi),%rsi; add $1,%ebx (four times); dec %ecx;
	 * jne 1b; dec %edx; jne 0b; ret */
	static const uint8_t code[] = { 0x83, 0xc0, 0x01, 0xe8, 0x00, 0x01, 0x00, 0x00,
					0x48, 0x8b, 0x36, 0x83, 0xc3, 0x01, 0x83, 0xc3,
					0x01, 0x83, 0xc3, 0x01, 0x83, 0xc3, 0x01, 0xff,
					0xc9, 0x75, 0xed, 0xff, 0xca, 0x75, 0xe4, 0xc3 };
	struct flow *f = build(code, sizeof(code));
	const double samples[12] = { [1] = 5, [3] = 1000 }, block[5] = { 1, 1000, 100000, 1000, 1 };
	const double out[5] = { 1, 1000, 1000, 999, 1 }; /* to the next block; inside: the rest */
	double edge[16];
	struct stall s;

	(void)state;
	assert_int_equal(f->nr_blocks, 5);
	for (uint32_t i = 0; i < f->nr_edges; i++) {
		uint32_t from = f->edges[i].from, to = f->edges[i].to;

		if (from == FLOW_OUTSIDE || to == FLOW_OUTSIDE)
			edge[i] = 1;
		else
			edge[i] = to == 4 ? 1 : from == 2 && to == 2 ? 99000 : out[from];
	}
	find(f, samples, block, edge, &s);
	assert_int_equal(s.candidates[3], 1 << STALL_MEMORY | 1 << STALL_FRONT_END);
	assert_true(s.total.cause[STALL_FRONT_END].high > 900);
	assert_true(s.total.cause[STALL_MEMORY].likely >
		    50 * s.total.cause[STALL_FRONT_END].likely);
	stall_release(&s);
	flow_free(f);
}

/*
 * 1: mov (%rdi),%rdi; add $1,%eax (four times); dec %ecx; jne 1b; ret, all samples behind the load
 * but for a few: 1,000, of which 990 stalled; how often the branch was gone is not known, so that
 * memory and branch are candidates alike.
 */
static void with_evidence(const struct stall_evidence *v, size_t nr, struct stall *s)
{
	static const uint8_t code[] = {
		0x48, 0x8b, 0x3f, 0x83, 0xc0, 0x01, 0x83, 0xc0, 0x01, 0x83,
		0xc0, 0x01, 0x83, 0xc0, 0x01, 0xff, 0xc9, 0x75, 0xed, 0xc3
	};
	struct flow *f = build(code, sizeof(code));
	const double samples[16] = { [1] = 1000 };

	find_by(
		&(struct stall_input){
			.flow = f, .samples = samples, .evidence = v, .nr_evidence = nr },
		s);
	flow_free(f);
}

static void test_evidence_rules_out(void **state)
{
	const double none[16] = { 0 };
	struct stall_evidence branch = { STALL_BRANCH, false, none, 100, NULL };
	struct stall s;

	(void)state;
	with_evidence(NULL, 0, &s);
	assert_true(s.total.cause[STALL_MEMORY].low == 0 && s.total.cause[STALL_BRANCH].high > 990);
	stall_release(&s);
	/* Ten samples would have stood for all: that none came says it. */
	with_evidence(&branch, 1, &s);
	assert_true(s.total.cause[STALL_MEMORY].low > 990 && s.total.cause[STALL_BRANCH].high == 0);
	assert_int_equal(s.candidates[1], 1 << STALL_MEMORY);
	stall_release(&s);
	/* Had two caused it all, none may have come by chance; the other may have had nothing. */
	branch.each = 500;
	with_evidence(&branch, 1, &s);
	assert_true(s.total.cause[STALL_MEMORY].low == 0 && s.total.cause[STALL_BRANCH].high > 990);
	stall_release(&s);
	/* With neither, nothing explains it. */
	{
		const struct stall_evidence both[] = { { STALL_BRANCH, false, none, 100, NULL },
						       { STALL_MEMORY, false, none, 100, NULL } };

		with_evidence(both, 2, &s);
		assert_true(s.total.unexplained > 990 && s.candidates[1] == 0);
		stall_release(&s);
	}
}

static void test_evidence_limits(void **state)
{
	const double misses[16] = { [3] = 100 }, none[16] = { 0 }, hits[2] = { 200, 0 };
	/* 100 + 1.645 * 10 + 3 samples, of one each. */
	const struct stall_evidence limit[] = { { STALL_MEMORY, false, misses, 1, NULL } };
	/* And half as much again for what it does not count; the stricter of two holds. */
	const struct stall_evidence more[] = { { STALL_MEMORY, false, none, 100, hits },
					       { STALL_MEMORY, true, misses, 1, NULL } };
	struct stall s;

	(void)state;
	with_evidence(limit, 1, &s);
	assert_true(fabs(s.total.cause[STALL_MEMORY].high - 119.45) < 0.01);
	assert_true(s.total.cause[STALL_MEMORY].low == 0);
	assert_true(fabs(s.total.cause[STALL_BRANCH].low - (1000 - 119.45)) < 0.01);
	assert_true(s.total.unexplained < 1e-9);
	stall_release(&s);
	/* 3 * 100 + 200 by the first, 119.45 beside it. */
	with_evidence(more, 2, &s);
	assert_true(fabs(s.total.cause[STALL_MEMORY].high - 619.45) < 0.01);
	stall_release(&s);
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

static uint16_t candidates_of(const struct flow *f, uint32_t insn, enum stall_outside outside)
{
	double samples[5] = { 0 };
	struct stall_input in = {
		.flow = f, .samples = samples, .outside = outside, .machine = EM_X86_64
	};
	uint16_t c;
	struct stall s;

	samples[insn] = 100;
	assert_int_equal(stall_find(&in, &s), 0);
	check_sum(&s.total);
	/* All samples are above the pace, which is that of the instructions without any. */
	assert_true(s.total.execution == 0);
	c = s.candidates[insn];
	stall_release(&s);
	return c;
}

/* Each mode has the candidates of the one before it, and the last has all where control comes in.
 */
static void test_outside(void **state)
{
	/* mov %ebx,%eax; add %edi,%eax; call .; add %eax,%ebx; ret */
	static const uint8_t code[] = { 0x89, 0xd8, 0x01, 0xf8, 0xe8, 0x00,
					0x00, 0x00, 0x00, 0x01, 0xc3, 0xc3 };
	const uint16_t value = 1 << STALL_MEMORY | 1 << STALL_DIVISION | 1 << STALL_ARITHMETIC;
	const uint16_t front_end = 1 << STALL_FRONT_END, store = 1 << STALL_STORE;
	const uint16_t memory = 1 << STALL_MEMORY;
	const uint16_t all = (1 << STALL_NR_CAUSES) - 1;
	const struct {
		uint16_t optimistic, selective, pessimistic;
	} want[5] = {
		{ front_end, front_end, all },		     /* reads no argument */
		{ front_end, front_end, front_end | value }, /* the first one waited, not this */
		{ store, store, store },		     /* the call itself */
		{ store, store | value, all },		     /* behind the call, which it reads */
		{ memory, value, value },		     /* the one before it read that */
	};
	struct flow *f = build(code, sizeof(code));

	(void)state;
	assert_int_equal(f->nr_insns, 5);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(candidates_of(f, i, STALL_OPTIMISTIC), want[i].optimistic);
		assert_int_equal(candidates_of(f, i, STALL_SELECTIVE), want[i].selective);
		assert_int_equal(candidates_of(f, i, STALL_PESSIMISTIC), want[i].pessimistic);
	}
	flow_free(f);
}

/* An argument is what the first instruction of the procedure may wait for. */
static void test_argument(void **state)
{
	/* add %edi,%eax; add %ebx,%eax; add %edi,%eax; ret */
	static const uint8_t code[] = { 0x01, 0xf8, 0x01, 0xd8, 0x01, 0xf8, 0xc3 };
	const uint16_t value = 1 << STALL_MEMORY | 1 << STALL_DIVISION | 1 << STALL_ARITHMETIC;
	struct flow *f = build(code, sizeof(code));

	(void)state;
	assert_int_equal(candidates_of(f, 0, STALL_SELECTIVE), value | 1 << STALL_FRONT_END);
	assert_int_equal(candidates_of(f, 1, STALL_SELECTIVE), value | 1 << STALL_FRONT_END);
	assert_int_equal(candidates_of(f, 2, STALL_SELECTIVE), 0);
	assert_int_equal(candidates_of(f, 2, STALL_PESSIMISTIC), 0);
	flow_free(f);
}

static void test_order(void **state)
{
	struct stall_tally t = { .unexplained = 5 };
	enum stall_cause order[STALL_NR_CAUSES + 1];

	(void)state;
	t.cause[STALL_MEMORY].likely = 2;
	t.cause[STALL_BRANCH].likely = 9;
	assert_int_equal(stall_order(&t, order), 3);
	assert_int_equal(order[0], STALL_BRANCH);
	assert_int_equal(order[1], STALL_NR_CAUSES);
	assert_int_equal(order[2], STALL_MEMORY);
	assert_int_equal(stall_cause_letter(order[1]), '?');
	assert_string_equal(stall_cause_name(order[1]), "unexplained");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),	cmocka_unit_test(test_division),
		cmocka_unit_test(test_branch),	cmocka_unit_test(test_even),
		cmocka_unit_test(test_outside), cmocka_unit_test(test_argument),
		cmocka_unit_test(test_order),	cmocka_unit_test(test_evidence_rules_out),
		cmocka_unit_test(test_joined),	cmocka_unit_test(test_usual_way),
		cmocka_unit_test(test_chance),	cmocka_unit_test(test_evidence_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
