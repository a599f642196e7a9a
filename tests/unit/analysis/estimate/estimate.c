/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "estimate.h"
#include "procedures.h"

/* A loop of two blocks, of two and three instructions, with a way in and out. */
static struct insn insns[] = {
	{ .vaddr = 0x100, .len = 2 }, { .vaddr = 0x102, .len = 2 }, { .vaddr = 0x110, .len = 4 },
	{ .vaddr = 0x114, .len = 4 }, { .vaddr = 0x118, .len = 2 },
};
static struct flow_block blocks[] = {
	{ .vaddr = 0x100, .end = 0x104, .insn = 0, .nr_insns = 2 },
	{ .vaddr = 0x110, .end = 0x11a, .insn = 2, .nr_insns = 3 },
};
static struct flow_edge edges[] = { { .from = 0, .to = 1 },
				    { .from = 1, .to = 0 },
				    { .from = 1, .to = FLOW_OUTSIDE },
				    { .from = FLOW_OUTSIDE, .to = 0 } };
static const struct flow loop = { .insns = insns,
				  .nr_insns = 5,
				  .blocks = blocks,
				  .nr_blocks = 2,
				  .edges = edges,
				  .nr_edges = 4 };

static void test_events(void **state)
{
	struct analysis_event events[] = { { .name = "imiss", .sum = 900 },
					   { .name = "tick", .sum = 10 },
					   { .name = "cpu-clock", .sum = 20 },
					   { .name = "instructions", .sum = 0 } };
	struct analysis a = { .events = events, .nr_events = 4 };
	uint64_t of_one[] = { 900, 10, 9, 0 }, of_none[] = { 3, 0, 0, 0 };

	(void)state;
	assert_int_equal(estimate_model("cycles"), FREQ_TIME);
	assert_int_equal(estimate_model("cycles:p"), FREQ_TIME);
	assert_int_equal(estimate_model("retires"), FREQ_INSTRUCTIONS);
	assert_int_equal(estimate_model("cycle"), -ENOENT);
	assert_int_equal(estimate_model("branch-misses"), -ENOENT);
	/* As perf names them. */
	assert_int_equal(estimate_model("cpu_core/cycles/P"), FREQ_TIME);
	assert_int_equal(estimate_model("cycles/period=1000/u"), FREQ_TIME);
	assert_int_equal(estimate_model("cpu/cycles,period=1000/"), FREQ_TIME);
	assert_int_equal(estimate_model("cpu-clock#2"), FREQ_TIME);
	assert_int_equal(estimate_model("cpu/instructions/"), FREQ_INSTRUCTIONS);
	assert_int_equal(estimate_model("cpu/cycles-ht/"), -ENOENT);
	assert_int_equal(estimate_model("cpu/event=0x3c/"), -ENOENT);
	assert_int_equal(estimate_event(&a, NULL), 2);
	events[3].sum = 1;
	assert_int_equal(estimate_event(&a, NULL), 3);
	/* An image may have no samples of it; one without any has nothing to say. */
	assert_int_equal(estimate_event(&a, &(struct analysis_image){ .count = of_one }), 1);
	assert_int_equal(estimate_event(&a, &(struct analysis_image){ .count = of_none }), 3);
	a.nr_events = 1;
	assert_int_equal(estimate_event(&a, NULL), -ENOENT);
}

/* Two events of hardware that follows instructions: 30 retired samples by a count of operations,
 * beside some that did not retire; and 900 by a count of cycles, which say nothing. */
static void test_retired(void **state)
{
	const uint64_t by = ISAMPLE_BIT(ISAMPLE_BYCOUNT), retired = ISAMPLE_BIT(ISAMPLE_RETIRED);
	const struct profdb_insn told[] = {
		{ .off = 16, .event = 1, .known = by | retired, .bits = by | retired, .count = 10 },
		{ .off = 18, .event = 1, .known = by | retired, .bits = by | retired, .count = 20 },
		{ .off = 18, .event = 1, .known = by | retired, .bits = by, .count = 400 },
		{ .off = 18, .event = 2, .known = by | retired, .bits = retired, .count = 900 },
		{ .off = 18, .event = 2, .known = retired, .bits = retired, .count = 70 },
	};
	struct analysis_event events[] = { { .name = "cycles", .sum = 5000 },
					   { .name = "ibs_op/cnt_ctl=1/", .sum = 430 },
					   { .name = "ibs_op//", .sum = 970 } };
	uint64_t counts[] = { 5000, 430, 970 };
	struct analysis_image ai = { .count = counts, .event_of = { 0, 1, 2 } }, few = ai;
	struct analysis_image *images[] = { &ai };
	struct analysis a = { .events = events, .nr_events = 3, .images = images, .nr_images = 1 };

	(void)state;
	ai.profile = profdb_profile_new(PROFDB_FILE, NULL, "/opt/app/app");
	assert_non_null(ai.profile);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(profdb_profile_event_add(ai.profile, events[i].name, 1000), i);
	assert_int_equal(estimate_event(&a, &ai), 0);
	for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++)
		assert_int_equal(profdb_profile_insn_add(ai.profile, &told[i]), 0);
	assert_int_equal(estimate_event(&a, &ai), 1);
	assert_int_equal(estimate_event(&a, NULL), 1);
	assert_true(estimate_by_retired(&a, 1));
	assert_false(estimate_by_retired(&a, 0));
	/* Of an image that has too few of them, other events tell more. */
	few.profile = profdb_profile_new(PROFDB_FILE, NULL, "/opt/app/few");
	assert_non_null(few.profile);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(profdb_profile_event_add(few.profile, events[i].name, 1000), i);
	assert_int_equal(profdb_profile_insn_add(few.profile, &told[1]), 0);
	assert_int_equal(estimate_event(&a, &few), 0);
	profdb_profile_free(few.profile);
	/* Where the event is not chosen. */
	ai.event_of[1] = SIZE_MAX;
	assert_int_equal(estimate_event(&a, &ai), 0);
	profdb_profile_free(ai.profile);
}

/* Samples between the blocks, and around them, are in neither. */
static void test_place(void **state)
{
	struct estimate_sample v[] = { { 0xff, 1 },   { 0x100, 2 },  { 0x103, 4 }, { 0x104, 8 },
				       { 0x110, 16 }, { 0x119, 32 }, { 0x11a, 64 } };
	struct estimate_samples s = { .v = v, .nr = 7 };
	double by_insn[5] = { 0 };

	(void)state;
	assert_int_equal(estimate_samples_place(&s, &loop, by_insn), 2 + 4 + 16 + 32);
	assert_true(by_insn[0] == 2 && by_insn[1] == 4 && by_insn[2] == 16);
	assert_true(by_insn[3] == 0 && by_insn[4] == 32);
	assert_true(estimate_samples_of(&loop, 0, by_insn) == 6);
	assert_true(estimate_samples_of(&loop, 1, by_insn) == 48);
}

static void test_units(void **state)
{
	const double by_insn[5] = { 1000, 1000, 1000, 1000, 1000 };
	struct estimate_input in = {
		.flow = &loop, .by_insn = by_insn, .event = "cpu-clock", .period = 500
	};
	struct base_err err = { 0 };
	struct estimate e;

	(void)state;
	assert_int_equal(estimate_frequencies(&in, &e, &err), 0);
	assert_false(e.absolute);
	assert_true(e.units[0] == 1e6 && e.units[1] == 1.5e6);
	assert_true(fabs(e.freq.block[0] - 500000) < 1);
	assert_true(fabs(e.freq.block[1] - 500000) < 1);
	assert_int_equal(e.freq.confidence[0], FREQ_MEDIUM);
	estimate_release(&e);
	in.event = "instructions";
	assert_int_equal(estimate_frequencies(&in, &e, &err), 0);
	assert_true(e.absolute);
	assert_true(fabs(e.freq.block[0] / 500000 - 1) < 0.01);
	assert_int_equal(e.freq.confidence[0], FREQ_HIGH);
	estimate_release(&e);
	in.event = "branch-misses";
	assert_int_equal(estimate_frequencies(&in, &e, &err), -EINVAL);
	estimate_release(&e);
}

/* A cost for each block of this program's main, seven units an instruction. */
static void cost_of(const struct flow *f, const struct image *img, struct profdb_costs *costs)
{
	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		struct profdb_cost c = { .len = f->blocks[b].end - f->blocks[b].vaddr,
					 .samples = ESTIMATE_MIN_SAMPLES,
					 .units = 7000 * (uint64_t)f->blocks[b].nr_insns,
					 .executions = 1000 };

		assert_int_equal(image_off(img, f->blocks[b].vaddr, &c.off), 0);
		assert_int_equal(profdb_costs_add(costs, &c), 0);
	}
}

static void test_costs(void **state)
{
	struct profdb_costs costs = { 0 };
	const struct image_symbol *symbol;
	struct base_err err = { 0 };
	struct image *img = NULL;
	struct flow *f = NULL;
	struct estimate e;
	size_t pos = 0;
	double *by_insn;

	(void)state;
	assert_int_equal(image_open_path("/proc/self/exe", IMAGE_FILE, &img, &err), 0);
	symbol = image_symbol_find(img, "main", &pos);
	assert_non_null(symbol);
	assert_int_equal(flow_build(img, symbol, &f, &err), 0);
	cost_of(f, img, &costs);
	by_insn = calloc(f->nr_insns, sizeof(*by_insn));
	for (uint32_t i = 0; i < f->nr_blocks; i++)
		by_insn[f->blocks[i].insn] = 70 * f->blocks[i].nr_insns;
	assert_int_equal(estimate_frequencies(&(struct estimate_input){ .flow = f,
									.by_insn = by_insn,
									.event = "cpu-clock",
									.period = 100,
									.img = img,
									.costs = &costs },
					      &e, &err),
			 0);
	assert_true(e.absolute);
	for (uint32_t i = 0; i < f->nr_blocks; i++)
		assert_true(e.measured[i]);
	/* 70 samples of 100 units an instruction that costs 7. */
	assert_true(fabs(e.freq.block[f->entry] - 1000) < 1);
	estimate_release(&e);
	/* Of too few samples, a cost is not used. */
	for (size_t i = 0; i < costs.nr; i++)
		costs.v[i].samples--;
	assert_int_equal(estimate_frequencies(&(struct estimate_input){ .flow = f,
									.by_insn = by_insn,
									.event = "cpu-clock",
									.period = 100,
									.img = img,
									.costs = &costs },
					      &e, &err),
			 0);
	assert_false(e.absolute || e.measured[0]);
	estimate_release(&e);
	free(by_insn);
	profdb_costs_release(&costs);
	flow_free(f);
	image_close(img);
}

/* Tools without the switch -conf_low say it, too. */
static void test_remedy(void **state)
{
	(void)state;
	for (uint64_t traces = 0; traces < 2; traces++)
		assert_null(strstr(estimate_remedy(traces), "-conf_low"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events), cmocka_unit_test(test_retired),
		cmocka_unit_test(test_place),  cmocka_unit_test(test_units),
		cmocka_unit_test(test_costs),  cmocka_unit_test(test_remedy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
