/* SPDX-License-Identifier: BSD-2-Clause */
/* Single steps of a walk over stacks made by hand, of x86-64 and of aarch64. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "unwind.h"

/* A stack of 128 words at an address; code that @rule describes stands everywhere. */
enum { STACK = 0x7000, NR_WORDS = 128, CODE = 0x400010 };

struct world {
	uint64_t words[NR_WORDS];
	const struct unwind_rule *rule;
	uint64_t asked; /* for the rule of this address, last */
};

static int read_word(void *ctx, uint64_t addr, uint64_t *value)
{
	struct world *w = ctx;

	if (addr < STACK || addr - STACK >= sizeof(w->words) || addr % 8)
		return -1;
	*value = w->words[(addr - STACK) / 8];
	return 0;
}

static const struct unwind_rule *rule_at(void *ctx, uint64_t addr)
{
	struct world *w = ctx;

	w->asked = addr;
	return w->rule;
}

static uint64_t *word(struct world *w, uint64_t addr)
{
	return &w->words[(addr - STACK) / 8];
}

static struct unwind_state start(void)
{
	struct unwind_state s = { .pc = CODE, .exact = 1 };

	s.reg[UNWIND_SP] = STACK + 0x100;
	s.reg[UNWIND_FP] = STACK + 0x140;
	s.reg[UNWIND_LINK] = 0x400999;
	s.reg[10] = STACK + 0x200;
	s.known = UINT16_MAX;
	return s;
}

/* Two frames, the second one's pc; or how the walk ended after the first. */
static uint64_t caller(struct world *w, const struct unwind_rule *rule,
		       const struct unwind_state *from, enum unwind_step *end)
{
	struct unwind_memory m = { .read = read_word, .rule = rule_at, .ctx = w };
	struct unwind_frame frames[2];
	size_t nr;

	w->rule = rule;
	nr = unwind_walk(&m, from, frames, 2, end);
	assert_int_equal(frames[0].pc, from->pc);
	assert_int_equal(frames[0].exact, from->exact);
	return nr == 2 ? frames[1].pc : 0;
}

static void expect_caller(struct world *w, struct unwind_rule rule, uint64_t pc)
{
	struct unwind_state s = start();
	enum unwind_step end;

	assert_int_equal(caller(w, &rule, &s, &end), pc);
}

static void expect_end(struct world *w, struct unwind_rule rule, const struct unwind_state *s,
		       enum unwind_step want)
{
	enum unwind_step end;

	assert_int_equal(caller(w, &rule, s, &end), 0);
	assert_int_equal(end, want);
}

static void by_each_rule(void **state)
{
	struct world w = { 0 };

	(void)state;
	*word(&w, STACK + 0x110) = 0x400123;
	expect_caller(&w, (struct unwind_rule){ .how = UNWIND_CFA, .base = UNWIND_SP, .off = 0x18 },
		      0x400123);
	*word(&w, STACK + 0x1f8) = 0x400456;
	expect_caller(&w, (struct unwind_rule){ .how = UNWIND_CFA, .base = 10 }, 0x400456);
	*word(&w, STACK + 0x138) = STACK + 0x1f8;
	expect_caller(
		&w,
		(struct unwind_rule){ .how = UNWIND_DEREF, .base = UNWIND_FP, .off = -8, .add = 8 },
		0x400456);
	expect_caller(&w,
		      (struct unwind_rule){
			      .how = UNWIND_CFA, .base = UNWIND_SP, .off = 8, .returns = 11 },
		      STACK + 0x200);
	*word(&w, STACK + 0x140) = STACK + 0x180;
	*word(&w, STACK + 0x148) = 0x400789;
	expect_caller(&w, (struct unwind_rule){ .how = UNWIND_FRAME_POINTER }, 0x400789);
}

/* The stub pushes a number at its byte 11. */
static void plt(void **state)
{
	struct unwind_rule rule = { .how = UNWIND_PLT, .base = UNWIND_SP, .off = 8, .add = 11 };
	struct unwind_state s = start();
	struct world w = { 0 };
	enum unwind_step end;

	(void)state;
	*word(&w, STACK + 0x100) = 0x400001;
	*word(&w, STACK + 0x108) = 0x400002;
	s.pc = 0x40000a;
	assert_int_equal(caller(&w, &rule, &s, &end), 0x400001);
	s.pc = 0x40000b;
	assert_int_equal(caller(&w, &rule, &s, &end), 0x400002);
}

static void ends(void **state)
{
	struct unwind_rule sp8 = { .how = UNWIND_CFA, .base = UNWIND_SP, .off = 8 };
	struct unwind_state s = start();
	struct world w = { 0 };

	(void)state;
	expect_end(&w, (struct unwind_rule){ .how = UNWIND_NONE }, &s, UNWIND_STEP_NO_ROWS);
	expect_end(&w, (struct unwind_rule){ .how = UNWIND_END }, &s, UNWIND_STEP_COMPLETE);
	expect_end(&w, sp8, &s, UNWIND_STEP_ASTRAY); /* pc 0 */
	*word(&w, STACK + 0x100) = UINT64_C(1) << 56;
	expect_end(&w, sp8, &s, UNWIND_STEP_ASTRAY);
	*word(&w, STACK + 0x100) = CODE;
	sp8.off = 0; /* down the stack */
	*word(&w, STACK + 0xf8) = CODE;
	expect_end(&w, sp8, &s, UNWIND_STEP_ASTRAY);
	sp8.off = sizeof(w.words);
	expect_end(&w, sp8, &s, UNWIND_STEP_UNREADABLE);
	s.known &= ~(1u << 12);
	expect_end(&w, (struct unwind_rule){ .how = UNWIND_CFA, .base = 12 }, &s,
		   UNWIND_STEP_NO_ROWS);
	s.reg[UNWIND_FP] = 0;
	expect_end(&w, (struct unwind_rule){ .how = UNWIND_FRAME_POINTER }, &s,
		   UNWIND_STEP_COMPLETE);
	s.reg[UNWIND_FP] = STACK;
	expect_end(&w, (struct unwind_rule){ .how = UNWIND_FRAME_POINTER }, &s, UNWIND_STEP_ASTRAY);
}

static void frames_for_which_there_is_space(void **state)
{
	struct unwind_rule sp8 = { .how = UNWIND_CFA, .base = UNWIND_SP, .off = 8 };
	struct world w = { .rule = &sp8 };
	struct unwind_memory m = { .read = read_word, .rule = rule_at, .ctx = &w };
	struct unwind_frame frames[NR_WORDS];
	struct unwind_state s = start();
	enum unwind_step end;

	(void)state;
	for (size_t i = 0; i < NR_WORDS; i++)
		w.words[i] = CODE;
	assert_int_equal(unwind_walk(&m, &s, frames, 5, &end), 5);
	assert_int_equal(end, UNWIND_STEP_NEXT);
	assert_int_equal(w.asked, CODE - 1);
	assert_int_equal(unwind_walk(&m, &s, frames, NR_WORDS, &end), NR_WORDS - 32 + 1);
	assert_int_equal(end, UNWIND_STEP_UNREADABLE);
}

/* One rule for the first address, another one for all others. */
struct two {
	struct world w;
	struct unwind_rule first, others;
};

static const struct unwind_rule *rule_of_two(void *ctx, uint64_t addr)
{
	struct two *t = ctx;

	return addr == CODE ? &t->first : &t->others;
}

/* A routine has saved what its caller's frame is found by: rbp, or rbx. */
static void saved_registers(void **state)
{
	static const uint8_t bases[] = { UNWIND_FP, UNWIND_LINK };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct two t = {
			.first = { .how = UNWIND_CFA,
				   .base = UNWIND_SP,
				   .off = 0x20,
				   .fp_at = UNWIND_AT_CFA,
				   .fp_words = -2,
				   .link_at = UNWIND_AT_FP,
				   .link_words = -3 },
			.others = { .how = UNWIND_CFA, .base = bases[i], .off = 16 },
		};
		struct unwind_memory m = { .read = read_word, .rule = rule_of_two, .ctx = &t };
		struct unwind_frame frames[3];
		struct unwind_state s = start();
		enum unwind_step end;

		*word(&t.w, STACK + 0x118) = 0x400123;
		*word(&t.w, STACK + 0x110) = STACK + 0x1c0; /* rbp */
		*word(&t.w, STACK + 0x128) = STACK + 0x1e0; /* rbx */
		*word(&t.w, STACK + 0x1c8) = 0x400aaa;
		*word(&t.w, STACK + 0x1e8) = 0x400bbb;
		assert_int_equal(unwind_walk(&m, &s, frames, 3, &end), 3);
		assert_int_equal(frames[1].pc, 0x400123);
		assert_int_equal(frames[2].pc, i ? 0x400bbb : 0x400aaa);
		t.first.fp_at = t.first.link_at = UNWIND_AT_LOST;
		assert_int_equal(unwind_walk(&m, &s, frames, 3, &end), 2);
		assert_int_equal(end, UNWIND_STEP_NO_ROWS);
	}
}

/* ---- a return address that is not below the CFA ---------------------------------------------- */

/* As HotSpot's interpreter: the caller's stack pointer is in a slot of the frame. */
static void returns_by_frame_pointer(void **state)
{
	struct unwind_rule rule = { .how = UNWIND_DEREF,
				    .base = UNWIND_FP,
				    .off = -8,
				    .fp_at = UNWIND_AT_FP,
				    .link_at = UNWIND_AT_LOST,
				    .returns = UNWIND_RETURNS_FP };
	struct world w = { .rule = &rule };
	struct unwind_memory m = { .read = read_word, .rule = rule_at, .ctx = &w };
	struct unwind_frame frames[4];
	struct unwind_state s = start();
	enum unwind_step end;

	(void)state;
	*word(&w, STACK + 0x138) = STACK + 0x160;
	*word(&w, STACK + 0x140) = STACK + 0x190;
	*word(&w, STACK + 0x148) = 0x400123;
	*word(&w, STACK + 0x158) = 0x400bad; /* below the CFA */
	*word(&w, STACK + 0x188) = STACK + 0x1a0;
	*word(&w, STACK + 0x190) = 0;
	*word(&w, STACK + 0x198) = 0x400456;
	assert_int_equal(unwind_walk(&m, &s, frames, 4, &end), 3);
	assert_int_equal(frames[1].pc, 0x400123);
	assert_int_equal(frames[2].pc, 0x400456);
	*word(&w, STACK + 0x138) = STACK + 0x148; /* at the return address */
	expect_caller(&w, rule, 0x400123);
	*word(&w, STACK + 0x138) = STACK + 0x140; /* below it */
	expect_end(&w, rule, &s, UNWIND_STEP_ASTRAY);
	*word(&w, STACK + 0x138) = 0;
	expect_end(&w, rule, &s, UNWIND_STEP_ASTRAY);
	*word(&w, STACK + 0x138) = STACK + 0x160;
	s.reg[UNWIND_SP] = STACK + 0x150; /* below the stack pointer */
	expect_end(&w, rule, &s, UNWIND_STEP_ASTRAY);
	s.known &= ~(1u << UNWIND_FP);
	expect_end(&w, rule, &s, UNWIND_STEP_NO_ROWS);
}

/* The same before the frame is there: the caller's stack pointer is in a register. */
static void returns_by_stack_pointer(void **state)
{
	struct unwind_rule rule = { .how = UNWIND_CFA, .base = 10, .returns = UNWIND_RETURNS_SP };
	struct unwind_state s = start();
	struct world w = { 0 };

	(void)state;
	*word(&w, STACK + 0x100) = 0x400123;
	expect_caller(&w, rule, 0x400123);
	s.exact = 0;
	expect_end(&w, rule, &s, UNWIND_STEP_NO_ROWS);
	s.exact = 1;
	s.reg[10] = STACK + 0xf8;
	expect_end(&w, rule, &s, UNWIND_STEP_ASTRAY);
	s.reg[10] = STACK + 0x200;
	s.reg[UNWIND_SP] = STACK + sizeof(w.words);
	expect_end(&w, rule, &s, UNWIND_STEP_ASTRAY);
	s.reg[10] = STACK + 0x2000;
	expect_end(&w, rule, &s, UNWIND_STEP_UNREADABLE);
}

/* ---- aarch64 --------------------------------------------------------------------------------- */

/* Its return address is in x30, until that is saved. */
static void aarch64_leaf(void **state)
{
	struct unwind_rule leaf = { .how = UNWIND_CFA,
				    .base = UNWIND_SP,
				    .returns = UNWIND_RETURNS_LINK };
	struct unwind_state s = start();
	struct world w = { 0 };
	enum unwind_step end;

	(void)state;
	assert_int_equal(caller(&w, &leaf, &s, &end), 0x400999);
	s.reg[UNWIND_LINK] |= UINT64_C(0x2a) << 48; /* signed */
	assert_int_equal(caller(&w, &leaf, &s, &end), 0x400999);
	s.exact = 0; /* a routine that called has no return address in x30 */
	expect_end(&w, leaf, &s, UNWIND_STEP_NO_ROWS);
	s.exact = 1;
	s.known &= ~(1u << UNWIND_LINK);
	expect_end(&w, leaf, &s, UNWIND_STEP_NO_ROWS);
}

static void aarch64_frames(void **state)
{
	struct unwind_rule frame = { .how = UNWIND_CFA,
				     .base = UNWIND_SP,
				     .off = 0x30,
				     .fp_at = UNWIND_AT_CFA,
				     .fp_words = -6,
				     .link_at = UNWIND_AT_CFA,
				     .link_words = -5,
				     .returns = UNWIND_RETURNS_LINK };
	struct world w = { .rule = &frame };
	struct unwind_memory m = { .read = read_word, .rule = rule_at, .ctx = &w };
	struct unwind_frame frames[4];
	struct unwind_state s = start();
	enum unwind_step end;

	(void)state;
	*word(&w, STACK + 0x108) = 0x400100;
	*word(&w, STACK + 0x138) = 0x400200 | UINT64_C(0x7f) << 48;
	*word(&w, STACK + 0x168) = 0;
	assert_int_equal(unwind_walk(&m, &s, frames, 4, &end), 3);
	assert_int_equal(end, UNWIND_STEP_ASTRAY);
	assert_int_equal(frames[1].pc, 0x400100);
	assert_int_equal(frames[2].pc, 0x400200);
}

static void signals(void **state)
{
	static const struct {
		uint8_t how;
		uint16_t sp, pc;
	} machines[] = { { UNWIND_SIGNAL_X86, 160, 168 }, { UNWIND_SIGNAL_AARCH64, 560, 568 } };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct unwind_rule rule = { .how = machines[i].how };
		struct world w = { .rule = &rule };
		struct unwind_memory m = { .read = read_word, .rule = rule_at, .ctx = &w };
		struct unwind_frame frames[2];
		struct unwind_state s = start();
		enum unwind_step end;

		*word(&w, STACK + 0x100 + machines[i].sp) = 0x100; /* anywhere */
		*word(&w, STACK + 0x100 + machines[i].pc) = 0x400321;
		assert_int_equal(unwind_walk(&m, &s, frames, 2, &end), 2);
		assert_int_equal(frames[1].pc, 0x400321);
		assert_true(frames[1].exact);
		assert_int_equal(w.asked, 0x400321);
		*word(&w, STACK + 0x100 + machines[i].pc) = 0;
		expect_end(&w, rule, &s, UNWIND_STEP_ASTRAY);
		s.reg[UNWIND_SP] = STACK + sizeof(w.words) - 8;
		expect_end(&w, rule, &s, UNWIND_STEP_UNREADABLE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_each_rule),
		cmocka_unit_test(plt),
		cmocka_unit_test(ends),
		cmocka_unit_test(frames_for_which_there_is_space),
		cmocka_unit_test(saved_registers),
		cmocka_unit_test(returns_by_frame_pointer),
		cmocka_unit_test(returns_by_stack_pointer),
		cmocka_unit_test(aarch64_leaf),
		cmocka_unit_test(aarch64_frames),
		cmocka_unit_test(signals),
	};

	return cmocka_run_group_tests_name("unwind/step", tests, NULL, NULL);
}
