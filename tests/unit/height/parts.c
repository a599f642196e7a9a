/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A routine of many parts in one frame, as HotSpot's interpreter: which of its instructions have
 * the frame's rule, and what must not be taken for one.
 */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "height.h"

enum { VADDR = 0x401000, HEAD = 32, WORD = 2, MAX_LEN = 2048, MAX_PARTS = 24, RAX = 0 };

#define PUSH_RAX      0x50
#define PUSH_RDX      0x52
#define POP_RAX	      0x58
#define POP_RDX	      0x5a
#define POP_RSI	      0x5e
#define PUSH_RBP      0x55
#define POP_RBP	      0x5d
#define PUSH_R13      0x41, 0x55
#define PUSH_0	      0x6a, 0
#define NOP	      0x90
#define RET	      0xc3
#define HLT	      0xf4
#define LEAVE	      0xc9
#define MOV_RBP_RSP   0x48, 0x89, 0xe5
#define MOV_RSP_RBX   0x48, 0x89, 0xdc
#define MOV_RSP_R13   0x4c, 0x89, 0xec
#define SLOT_TO_RBX   0x48, 0x8b, 0x5d, 0xf8 /* mov rbx, [rbp-8] */
#define RAX_TO_SLOT   0x48, 0x89, 0x45, 0xf8
#define RAX_TO_RETURN 0x48, 0x89, 0x45, 0x08
#define RAX_TO_LOCAL  0x48, 0x89, 0x45, 0x10
#define R13_TO_FRAME  0x4c, 0x89, 0x6d, 0xc0 /* mov [rbp-0x40], r13 */
#define FRAME_TO_R13  0x4c, 0x8b, 0x6d, 0xc0
#define JMP_TABLE     0x41, 0xff, 0x24, 0xda /* jmp [r10+rbx*8] */
#define JMP_METHOD    0xff, 0x63, 0x50	     /* jmp [rbx+0x50] */
#define JMP_RSI	      0xff, 0xe6
#define JMP_RAX	      0xff, 0xe0
#define CALL(n)	      0xe8, (n), 0, 0, 0
#define CALL_OUT      0xe8, 0, 0, 0x10, 0
#define JMP(n)	      0xeb, (n)&0xff
#define JMP_FAR(n)    0xe9, (n)&0xff, (n) >> 8 & 0xff, (n) >> 16 & 0xff, (n) >> 24 & 0xff
#define JZ(n)	      0x74, (n)

#define MAKE_FRAME PUSH_RAX, PUSH_RBP, MOV_RBP_RSP, PUSH_R13, PUSH_0, JMP_TABLE
#define ENTRY	   POP_RAX, PUSH_RAX, PUSH_RBP, MOV_RBP_RSP, PUSH_R13, PUSH_0, R13_TO_FRAME, JMP_TABLE
#define END	   SLOT_TO_RBX, LEAVE, POP_RSI, MOV_RSP_RBX, JMP_RSI
#define BYTECODE   PUSH_RAX, JMP_TABLE
#define INTRINSIC  POP_RAX, MOV_RSP_R13, JMP_RAX
#define HANDLER	   NOP, RET
#define INVOKE	   PUSH_RDX, R13_TO_FRAME, JMP_METHOD

static struct height *h;
static uint8_t code[MAX_LEN];
static size_t len, part[MAX_PARTS], nr_parts; /* @part: where the code of each begins */
static struct unwind_rule rules[MAX_LEN + 1];
static struct height_report report;

static void begin(void)
{
	memset(code, 0, sizeof(code));
	len = nr_parts = 0;
}

static void add(const uint8_t *bytes, size_t n)
{
	uint32_t size = (uint32_t)((HEAD + n + HEAD - 1) / HEAD * HEAD);

	assert_true(len + size <= MAX_LEN && nr_parts < MAX_PARTS);
	memcpy(code + len + WORD * sizeof(size), &size, sizeof(size));
	memset(code + len + HEAD, NOP, size - HEAD);
	memcpy(code + len + HEAD, bytes, n);
	part[nr_parts++] = len + HEAD;
	len += size;
}

#define PART(...)                                                                                  \
	do {                                                                                       \
		const uint8_t bytes[] = { __VA_ARGS__ };                                           \
		add(bytes, sizeof(bytes));                                                         \
	} while (0)

#define CASE(...)                                                                                  \
	{                                                                                          \
		sizeof((const uint8_t[]){ __VA_ARGS__ }),                                          \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

static int row(void *ctx, uint64_t addr, const struct unwind_rule *rule)
{
	(void)ctx;
	assert_true(unwind_rule_valid(rule));
	for (size_t i = addr - VADDR; i <= len; i++)
		rules[i] = *rule;
	return 0;
}

static void run(void)
{
	memset(rules, 0, sizeof(rules));
	assert_int_equal(height_rows(h, code, len, VADDR, row, NULL, &report), 0);
	assert_int_equal(rules[len].how, UNWIND_NONE);
}

/* Eight parts or more. What a test adds is the last one. */
static void begin_interpreter(void)
{
	begin();
	PART(ENTRY);
	PART(END);
	PART(END);
	PART(BYTECODE);
	PART(INTRINSIC);
	PART(HANDLER);
	PART(INVOKE);
	PART(BYTECODE);
}

static void frame(size_t at)
{
	const struct unwind_rule *r = &rules[at];

	assert_int_equal(r->how, UNWIND_DEREF);
	assert_int_equal(r->base, UNWIND_FP);
	assert_int_equal(r->off, -8);
	assert_int_equal(r->add, 0);
	assert_int_equal(r->fp_at, UNWIND_AT_FP);
	assert_int_equal(r->fp_words, 0);
	assert_int_equal(r->link_at, UNWIND_AT_LOST);
	assert_int_equal(r->returns, UNWIND_RETURNS_FP);
	assert_int_equal(height_reason_at(h, at), HEIGHT_PROVEN);
}

/* A method was entered: r13 has the caller's stack pointer. */
static void entry(size_t at, unsigned int returns)
{
	assert_int_equal(rules[at].how, UNWIND_CFA);
	assert_int_equal(rules[at].base, 13);
	assert_int_equal(rules[at].off, 0);
	assert_int_equal(rules[at].fp_at, UNWIND_AT_SAME);
	assert_int_equal(rules[at].link_at, UNWIND_AT_LOST);
	assert_int_equal(rules[at].returns, returns);
}

static void none(size_t from, size_t end)
{
	for (size_t i = from; i < end; i++)
		if (rules[i].how != UNWIND_NONE)
			fail_msg("a rule at %zu", i);
}

/* It is taken for an ordinary routine, and has no such rule. */
static void refused(void)
{
	run();
	assert_int_not_equal(report.proof, HEIGHT_BY_PARTS);
	for (size_t i = 0; i <= len; i++)
		assert_int_not_equal(rules[i].how, UNWIND_DEREF);
}

/* ---- proven ---------------------------------------------------------------------------------- */

static void interpreter(void **state)
{
	(void)state;
	begin_interpreter();
	run();
	assert_int_equal(report.proof, HEIGHT_BY_PARTS);
	none(0, part[0]);
	entry(part[0], UNWIND_RETURNS_SP);
	for (size_t i = part[0] + 1; i < part[0] + 6; i++)
		entry(i, RAX + 1);
	assert_int_equal(rules[part[0] + 6].base, 13); /* the push of the slot */
	assert_int_equal(rules[part[0] + 6].fp_at, UNWIND_AT_FP);
	assert_int_equal(rules[part[0] + 6].returns, UNWIND_RETURNS_FP);
	for (size_t i = part[0] + 8; i < part[0] + 18; i++)
		frame(i);
	frame(part[1]);
	frame(part[1] + 4); /* leave */
	frame(part[3]);
	frame(part[3] + 1);
	none(part[4], part[4] + 6);
	none(part[5], part[5] + 2);
	for (size_t i = part[6]; i < part[6] + 8; i++)
		frame(i);
	/* A return address is looked up in the byte before it. */
	frame(part[3] - 1);
	frame(part[3] - HEAD);
	none(part[4] - HEAD, part[4]);
	none(part[5] - HEAD, part[5]);
}

/* The code that a part calls returns as routines do. */
static void calls_its_own(void **state)
{
	size_t at;

	(void)state;
	begin_interpreter();
	PART(CALL(2), JMP(11), R13_TO_FRAME, CALL_OUT, NOP, RET, JMP_TABLE);
	at = part[nr_parts - 1];
	run();
	frame(at);
	frame(at + 4); /* the call's last byte */
	frame(at + 5);
	for (size_t i = at + 7; i < at + 18; i++) {
		assert_int_equal(rules[i].how, UNWIND_CFA);
		assert_int_equal(rules[i].base, UNWIND_SP);
		assert_int_equal(rules[i].off, 8);
		assert_int_equal(rules[i].fp_at, UNWIND_AT_SAME);
		assert_int_equal(rules[i].returns, 0);
	}
	frame(at + 18);
	/* It never comes back, but shows what rbp is. */
	PART(CALL(1), HLT, R13_TO_FRAME, RET);
	at = part[nr_parts - 1];
	run();
	frame(at);
	frame(at + 5);
}

/* Locals are pushed in a loop; where the stack is full there is another way out. */
static void enters(void **state)
{
	size_t at;

	(void)state;
	begin_interpreter();
	at = len + HEAD;
	PART(NOP, JZ(10), POP_RAX, MOV_RSP_R13, PUSH_RAX, JMP_FAR(0x100000), POP_RAX, PUSH_0,
	     JZ(-4 & 0xff), MAKE_FRAME);
	run();
	for (size_t i = at; i < at + 4; i++)
		entry(i, UNWIND_RETURNS_SP);
	for (size_t i = at + 4; i < at + 13; i++)
		entry(i, RAX + 1);
	entry(at + 13, UNWIND_RETURNS_SP);
	for (size_t i = at + 14; i < at + 23; i++)
		entry(i, RAX + 1);
	frame(at + 25);
}

/* ---- no rule --------------------------------------------------------------------------------- */

/* An instruction that may lead to an end without the frame, or to where one is made, has none. */
static void leads_elsewhere(void **state)
{
	size_t at;

	(void)state;
	begin_interpreter();
	at = len + HEAD;
	/* 0: use of the frame, 4: a branch to the handler, 6: through the table */
	PART(R13_TO_FRAME, JZ(4), JMP_TABLE, RET);
	run();
	none(at, at + 6);
	frame(at + 6);
	none(at + 10, at + 11);
	begin_interpreter();
	at = len + HEAD;
	PART(NOP, JZ(4), JMP_TABLE, POP_RAX, MOV_RSP_R13, NOP, JMP_RAX);
	run();
	none(at, at + 3);
	frame(at + 3);
	none(at + 7, len);
	begin_interpreter();
	at = len + HEAD;
	PART(R13_TO_FRAME, JMP_FAR(-((int)at + 4 + 5 - HEAD))); /* to the entry */
	run();
	assert_int_equal(report.proof, HEIGHT_BY_PARTS);
	none(at, at + 9);
}

/* Code that leads to none that uses the frame; and what stands behind it. */
static void unknown(void **state)
{
	size_t at;

	(void)state;
	begin_interpreter();
	at = len + HEAD;
	PART(PUSH_RAX, HLT, JMP_RAX);
	run();
	none(at - HEAD, at + 4);
	begin_interpreter();
	at = len + HEAD;
	PART(R13_TO_FRAME, POP_RBP, NOP, JMP_TABLE);
	run();
	frame(at);
	frame(at + 3);
	none(at + 5, at + 10); /* of another frame */
}

/* Another value is pushed than was popped, or r13 is not what it was. */
static void enters_otherwise(void **state)
{
	static const struct {
		size_t len;
		uint8_t bytes[32];
	} entries[] = {
		CASE(POP_RAX, 0x31, 0xc0, MAKE_FRAME),	     /* xor eax, eax */
		CASE(POP_RAX, 0xb4, 0, MAKE_FRAME),	     /* mov ah, 0 */
		CASE(POP_RAX, 0x49, 0xff, 0xc5, MAKE_FRAME), /* inc r13 */
		CASE(PUSH_RDX, POP_RAX, MAKE_FRAME),
		CASE(POP_RDX, MAKE_FRAME),
		CASE(NOP, MAKE_FRAME),
		CASE(JZ(1), POP_RAX, MAKE_FRAME),
		CASE(POP_RAX, CALL_OUT, MAKE_FRAME),
		CASE(POP_RAX, MAKE_FRAME, MAKE_FRAME),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		size_t at;

		begin_interpreter();
		at = len + HEAD;
		add(entries[i].bytes, entries[i].len);
		run();
		assert_int_equal(report.proof, HEIGHT_BY_PARTS);
		none(at, at + 6);
	}
	/* Another part jumps into it. */
	begin_interpreter();
	PART(POP_RAX, NOP, MAKE_FRAME);
	PART(NOP, JMP_FAR(-2 * HEAD - 5));
	run();
	none(part[nr_parts - 2], part[nr_parts - 2] + 8);
}

static void frame_is_written(void **state)
{
	(void)state;
	begin_interpreter();
	PART(RAX_TO_LOCAL, JMP_TABLE);
	run();
	assert_int_equal(report.proof, HEIGHT_BY_PARTS);
	begin_interpreter();
	PART(RAX_TO_SLOT, JMP_TABLE);
	refused();
	begin_interpreter();
	PART(RAX_TO_RETURN, JMP_TABLE);
	refused();
	begin_interpreter();
	PART(0xc6, 0x45, 0xff, 0, JMP_TABLE); /* mov byte [rbp-1], 0 */
	refused();
}

static void other_ends(void **state)
{
	(void)state;
	/* One is not enough. */
	begin();
	PART(ENTRY);
	PART(END);
	for (int i = 0; i < 7; i++)
		PART(BYTECODE);
	refused();
	/* Each must take the stack pointer from a register behind "leave". */
	begin_interpreter();
	PART(SLOT_TO_RBX, LEAVE, POP_RSI, NOP, JMP_RSI);
	refused();
	begin_interpreter();
	PART(LEAVE, RET);
	refused();
	/* A jump to behind it. */
	begin_interpreter();
	PART(SLOT_TO_RBX, LEAVE, POP_RSI, MOV_RSP_RBX, JMP_RSI, JMP(-8));
	refused();
	/* A frame without the slot. */
	begin_interpreter();
	PART(PUSH_RBP, MOV_RBP_RSP, NOP, JMP_TABLE);
	refused();
}

static void no_chain(void **state)
{
	(void)state;
	begin_interpreter();
	code[WORD * 4] += HEAD;
	refused();
	begin_interpreter();
	len -= HEAD;
	refused();
	begin_interpreter();
	PART(NOP, 0x0f, 0x0b, 0x06); /* no instruction */
	refused();
	begin_interpreter();
	PART(JMP(-3 - HEAD / 2), JMP_TABLE); /* into a head */
	refused();
	/* Too few. */
	begin();
	PART(ENTRY);
	PART(END);
	PART(END);
	PART(BYTECODE);
	refused();
}

static int setup(void **state)
{
	(void)state;
	return height_open(EM_X86_64, &h);
}

static int teardown(void **state)
{
	(void)state;
	height_close(h);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interpreter),	    cmocka_unit_test(calls_its_own),
		cmocka_unit_test(enters),	    cmocka_unit_test(enters_otherwise),
		cmocka_unit_test(leads_elsewhere),  cmocka_unit_test(unknown),
		cmocka_unit_test(frame_is_written), cmocka_unit_test(other_ends),
		cmocka_unit_test(no_chain),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
