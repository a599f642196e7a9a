/* SPDX-License-Identifier: BSD-2-Clause */
/* Return addresses from calls and returns of a trace: right, or 0. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "context.h"

enum { RSP = 7, RBP = 6, NONE = VTRACE_ZERO, A64_STACK = 31 };
#define TOP 0x7000ull

static struct vtrace_contexts contexts;
static struct vtrace_state after;
static const struct vtrace_operands nothing = { .a = NONE, .b = NONE, .c = NONE, .result = NONE };

static void begin(enum vtrace_arch arch)
{
	vtrace_contexts_init(&contexts, arch);
	after = (struct vtrace_state){ 0 };
	after.r[RSP] = after.r[A64_STACK] = TOP;
}

/* A four-byte instruction; returns its number. */
static uint32_t add(struct vtrace_entry e, const struct vtrace_operands *o)
{
	e.len = 4;
	e.after = &after;
	vtrace_contexts_add(&contexts, &e, o);
	return contexts.nr - 1;
}

static uint32_t plain(uint64_t pc)
{
	return add((struct vtrace_entry){ .pc = pc, .class = VTRACE_CLASS_ADD }, &nothing);
}

static uint32_t x86_call(uint64_t pc)
{
	after.r[RSP] -= 8;
	return add((struct vtrace_entry){ .pc = pc,
					  .class = VTRACE_CLASS_CALL,
					  .store = { after.r[RSP], pc + 4, 8, 0, true } },
		   &nothing);
}

static uint32_t x86_ret(uint64_t pc, uint64_t target)
{
	after.r[RSP] += 8;
	return add((struct vtrace_entry){ .pc = pc,
					  .class = VTRACE_CLASS_RETURN,
					  .target = target,
					  .load = { after.r[RSP] - 8, target, 8, 0, true } },
		   &nothing);
}

static void assert_context(uint32_t index, uint64_t c0, uint64_t c1)
{
	uint64_t got0, got1;

	vtrace_contexts_get(&contexts, index, &got0, &got1);
	assert_int_equal(got0, c0);
	assert_int_equal(got1, c1);
}

/* Called twice deep, back, and back from where the trace began. */
static void calls_and_returns(void **state)
{
	uint32_t first, in_b, in_c, again, caller, last;

	(void)state;
	begin(VTRACE_X86_64);
	first = plain(0x100);
	x86_call(0x104);
	in_b = plain(0x200);
	x86_call(0x204);
	in_c = plain(0x300);
	x86_ret(0x304, 0x208);
	again = plain(0x208);
	x86_ret(0x20c, 0x108);
	assert_context(first, 0, 0);
	assert_context(in_b, 0x108, 0);
	assert_context(in_c, 0x208, 0x108);
	x86_ret(0x108, 0x50c);
	caller = plain(0x50c);
	assert_context(first, 0x50c, 0);
	assert_context(in_b, 0x108, 0x50c);
	assert_context(again, 0x108, 0x50c);
	assert_context(caller, 0, 0);
	last = x86_ret(0x510, 0x60c);
	assert_context(first, 0x50c, 0x60c);
	assert_context(caller, 0x60c, 0);
	assert_context(last, 0x60c, 0);
	assert_context(contexts.nr, 0, 0);
}

/* The address of the next instruction, taken by a call: the procedure is still the same. */
static void call_and_pop(void **state)
{
	uint32_t behind;

	(void)state;
	begin(VTRACE_X86_64);
	x86_call(0x100);
	after.r[RSP] += 8;
	add((struct vtrace_entry){ .pc = 0x104,
				   .class = VTRACE_CLASS_POP,
				   .load = { TOP - 8, 0x104, 8, 0, true } },
	    &nothing);
	behind = plain(0x108);
	assert_context(behind, 0, 0);
	x86_ret(0x10c, 0x900);
	assert_context(behind, 0x900, 0);
}

/* "push; ret" goes anywhere, and is no return. */
static void return_as_jump(void **state)
{
	uint32_t first;

	(void)state;
	begin(VTRACE_X86_64);
	first = plain(0x100);
	after.r[RSP] -= 8;
	add((struct vtrace_entry){ .pc = 0x104,
				   .class = VTRACE_CLASS_PUSH,
				   .store = { TOP - 8, 0x900, 8, 0, true } },
	    &nothing);
	x86_ret(0x108, 0x900);
	assert_context(first, 0, 0);
	x86_ret(0x900, 0x800);
	assert_context(first, 0x800, 0);
}

/* Another stack: what is popped there is nobody's here. */
static void another_stack(void **state)
{
	const struct vtrace_operands moved = { .a = RBP + 4, .c = RSP, .result = RSP };
	const struct vtrace_operands leave = { .a = RBP, .c = RSP, .result = RSP };
	uint32_t first, then;

	(void)state;
	begin(VTRACE_X86_64);
	first = plain(0x100);
	after.r[RSP] -= 64;
	add((struct vtrace_entry){ .pc = 0x104, .class = VTRACE_CLASS_MOVE }, &moved);
	then = plain(0x108);
	x86_ret(0x10c, 0x900);
	assert_context(first, 0, 0);
	assert_context(then, 0x900, 0);
	/* By the frame pointer it is the same. */
	begin(VTRACE_X86_64);
	first = plain(0x100);
	after.r[RSP] += 64;
	add((struct vtrace_entry){ .pc = 0x104, .class = VTRACE_CLASS_MOVE }, &leave);
	x86_ret(0x10c, 0x900);
	assert_context(first, 0x900, 0);
	/* Far away, and to what is not known. */
	begin(VTRACE_X86_64);
	first = plain(0x100);
	after.r[RSP] -= 1u << 24;
	plain(0x104);
	x86_ret(0x108, 0x900);
	assert_context(first, 0, 0);
	begin(VTRACE_X86_64);
	first = plain(0x100);
	after.unknown[RSP] = 1;
	plain(0x104);
	after.unknown[RSP] = 0;
	plain(0x108);
	x86_ret(0x10c, 0x900);
	assert_context(first, 0, 0);
}

static uint32_t a64_call(uint64_t pc)
{
	return add((struct vtrace_entry){ .pc = pc, .class = VTRACE_CLASS_CALL }, &nothing);
}

static uint32_t a64_ret(uint64_t pc, uint64_t target)
{
	return add(
		(struct vtrace_entry){ .pc = pc, .class = VTRACE_CLASS_RETURN, .target = target },
		&nothing);
}

static void link_register(void **state)
{
	uint32_t first, in_b, strange;

	(void)state;
	begin(VTRACE_AARCH64);
	first = plain(0x100);
	a64_call(0x104);
	in_b = plain(0x200);
	a64_ret(0x204, 0x108);
	a64_ret(0x108, 0x500);
	assert_context(first, 0x500, 0);
	assert_context(in_b, 0x108, 0x500);
	/* Not back to where it was called: nothing is known from there on. */
	begin(VTRACE_AARCH64);
	first = plain(0x100);
	a64_call(0x104);
	a64_ret(0x200, 0x900);
	strange = plain(0x900);
	a64_ret(0x904, 0x700);
	assert_context(first, 0, 0);
	assert_context(strange, 0x700, 0);
}

/* A trace of nothing but calls and returns fits. */
static void many(void **state)
{
	(void)state;
	begin(VTRACE_X86_64);
	for (unsigned int i = 0; i < 2 * VTRACE_CONTEXTS; i++) {
		after.unknown[RSP] = i & 1;
		x86_ret(0x100, 0x200);
		x86_call(0x100);
	}
	assert_true(contexts.nr_frames <= sizeof(contexts.frames) / sizeof(contexts.frames[0]));
	assert_int_equal(contexts.nr, VTRACE_CONTEXTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_and_returns), cmocka_unit_test(call_and_pop),
		cmocka_unit_test(return_as_jump),    cmocka_unit_test(another_stack),
		cmocka_unit_test(link_register),     cmocka_unit_test(many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
