/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of small routines, given as bytes of x86-64: what is proven, and what must have no rule. */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base.h"
#include "height.h"

enum { VADDR = 0x401000, MAX_CODE = 256 };

#define RET	       0xc3
#define NOP	       0x90
#define HLT	       0xf4
#define PUSH_RAX       0x50
#define PUSH_RBX       0x53
#define PUSH_RBP       0x55
#define POP_RAX	       0x58
#define POP_RBX	       0x5b
#define POP_RBP	       0x5d
#define LEAVE	       0xc9
#define MOV_RBP_RSP    0x48, 0x89, 0xe5
#define MOV_RSP_RAX    0x48, 0x89, 0x04, 0x24 /* into memory */
#define STORE_RBP(d)   0x48, 0x89, 0x45, (d)&0xff
#define LOAD_RBP(d)    0x48, 0x8b, 0x45, (d)&0xff
#define MOV_RSP_RBP    0x48, 0x89, 0xec
#define SAVE_RBP(d)    0x48, 0x89, 0x6c, 0x24, (d) /* mov [rsp+d], rbp */
#define RESTORE_RBP(d) 0x48, 0x8b, 0x6c, 0x24, (d)
#define SUB_RSP(n)     0x48, 0x83, 0xec, (n)
#define ADD_RSP(n)     0x48, 0x83, 0xc4, (n)
#define AND_RSP	       0x48, 0x83, 0xe4, 0xc0
#define XOR_EBP	       0x31, 0xed
#define XOR_EBX	       0x31, 0xdb
#define CALL_OUT       0xe8, 0, 0, 0x10, 0
#define JMP_OUT	       0xe9, 0, 0, 0x10, 0
#define JZ(n)	       0x74, (n)
#define JMP(n)	       0xeb, (n)

static struct height *h;
static struct unwind_rule rules[MAX_CODE + 1];
static uint64_t nr_rows, last_row;
static struct height_report report;

static int row(void *ctx, uint64_t addr, const struct unwind_rule *rule)
{
	size_t len = *(const size_t *)ctx;

	assert_true(addr >= VADDR && addr <= VADDR + len);
	assert_true(!nr_rows || addr > last_row);
	assert_true(unwind_rule_valid(rule));
	for (size_t i = addr - VADDR; i <= len; i++)
		rules[i] = *rule;
	nr_rows++;
	last_row = addr;
	return 0;
}

static void run(const uint8_t *code, size_t len)
{
	uint64_t all = 0;

	memset(rules, 0, sizeof(rules));
	nr_rows = 0;
	assert_int_equal(height_rows(h, code, len, VADDR, row, &len, &report), 0);
	assert_int_equal(rules[len].how, UNWIND_NONE);
	for (size_t i = 0; i < HEIGHT_NR_REASONS; i++)
		all += report.bytes[i];
	assert_int_equal(all, len);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(rules[i].how == UNWIND_CFA,
				 height_reason_at(h, i) == HEIGHT_PROVEN);
}

#define RUN(...)                                                                                   \
	do {                                                                                       \
		static const uint8_t code[] = { __VA_ARGS__ };                                     \
		run(code, sizeof(code));                                                           \
	} while (0)

/* The same, where the runtime has told the entries. */
#define RUN_TOLD(entries, ...)                                                                     \
	do {                                                                                       \
		height_set_entries(h, entries, sizeof(entries) / sizeof(*(entries)));              \
		RUN(__VA_ARGS__);                                                                  \
	} while (0)

static void cfa(size_t at, unsigned int base, int off)
{
	assert_int_equal(rules[at].how, UNWIND_CFA);
	assert_int_equal(rules[at].base, base);
	assert_int_equal(rules[at].off, off);
	assert_int_equal(rules[at].returns, 0);
}

static void fp(size_t at, unsigned int where, int words)
{
	assert_int_equal(rules[at].fp_at, where);
	assert_int_equal(rules[at].fp_words, words);
}

static void link_reg(size_t at, unsigned int where, int words)
{
	assert_int_equal(rules[at].link_at, where);
	assert_int_equal(rules[at].link_words, words);
}

/* The whole routine has no rule, for that reason. */
static void refused(enum height_reason reason)
{
	assert_int_equal(report.refused, reason);
	assert_int_equal(nr_rows, 0);
	assert_int_equal(height_reason_at(h, 0), reason);
}

/* ---- proven ---------------------------------------------------------------------------------- */

static void leaf(void **state)
{
	(void)state;
	RUN(NOP, RET);
	cfa(0, UNWIND_SP, 8);
	cfa(1, UNWIND_SP, 8);
	fp(0, UNWIND_AT_SAME, 0);
	link_reg(0, UNWIND_AT_SAME, 0);
	assert_int_equal(report.proof, HEIGHT_BY_RETURN);
	assert_int_equal(nr_rows, 2);
}

static void frame(void **state)
{
	(void)state;
	RUN(PUSH_RBP, MOV_RBP_RSP, AND_RSP, CALL_OUT, LEAVE, RET);
	cfa(0, UNWIND_SP, 8);
	cfa(1, UNWIND_SP, 16);
	fp(1, UNWIND_AT_CFA, -2);
	cfa(4, UNWIND_FP, 16);
	cfa(13, UNWIND_FP, 16);
	cfa(14, UNWIND_SP, 8);
	fp(14, UNWIND_AT_SAME, 0);
}

static void entered(void **state)
{
	(void)state;
	RUN(0xc8, 0x20, 0, 0, NOP, LEAVE, RET); /* enter 32, 0 */
	cfa(4, UNWIND_FP, 16);
	fp(4, UNWIND_AT_CFA, -2);
	cfa(6, UNWIND_SP, 8);
}

static void pushes(void **state)
{
	(void)state;
	RUN(PUSH_RBX, PUSH_RBP, SUB_RSP(24), XOR_EBP, XOR_EBX, CALL_OUT, ADD_RSP(24), POP_RBP,
	    POP_RBX, RET);
	cfa(2, UNWIND_SP, 24);
	cfa(6, UNWIND_SP, 48);
	fp(10, UNWIND_AT_CFA, -3);
	link_reg(10, UNWIND_AT_CFA, -2);
	cfa(15, UNWIND_SP, 48); /* behind the call */
	cfa(19, UNWIND_SP, 24);
	cfa(20, UNWIND_SP, 16);
	fp(20, UNWIND_AT_SAME, 0);
	cfa(21, UNWIND_SP, 8);
}

/* Saved and restored by moves; the stack pointer by lea. */
static void moves(void **state)
{
	(void)state;
	RUN(SUB_RSP(24), 0x48, 0x89, 0x6c, 0x24, 0x08, /* mov [rsp+8], rbp */
	    XOR_EBP, 0x48, 0x8b, 0x6c, 0x24, 0x08,     /* mov rbp, [rsp+8] */
	    0x48, 0x8d, 0x64, 0x24, 0x18,	       /* lea rsp, [rsp+24] */
	    RET);
	fp(4, UNWIND_AT_SAME, 0);
	fp(9, UNWIND_AT_CFA, -3);
	fp(11, UNWIND_AT_CFA, -3);
	cfa(16, UNWIND_SP, 32);
	cfa(21, UNWIND_SP, 8);
	fp(21, UNWIND_AT_SAME, 0);
}

/* A copy that is overwritten is none. */
static void overwritten(void **state)
{
	(void)state;
	RUN(PUSH_RBP, PUSH_RBX, 0x48, 0x89, 0x04, 0x24, /* mov [rsp], rax */
	    XOR_EBX, NOP, ADD_RSP(8), POP_RBP, RET);
	link_reg(2, UNWIND_AT_CFA, -3);
	link_reg(6, UNWIND_AT_SAME, 0);
	link_reg(8, UNWIND_AT_LOST, 0);
}

/* Another convention than the system's: a call may change rbx. */
static void call_changes_rbx(void **state)
{
	(void)state;
	RUN(PUSH_RAX, CALL_OUT, POP_RAX, RET);
	link_reg(1, UNWIND_AT_SAME, 0);
	link_reg(6, UNWIND_AT_LOST, 0);
	cfa(6, UNWIND_SP, 16);
}

/* All registers are saved around a call, rbp as a frame pointer among them. */
static void frame_is_restored(void **state)
{
	(void)state;
	RUN(PUSH_RBP, MOV_RBP_RSP, SUB_RSP(32), SAVE_RBP(16), CALL_OUT, RESTORE_RBP(16),
	    ADD_RSP(32), LEAVE, RET);
	for (size_t i = 4; i < 27; i++)
		cfa(i, UNWIND_FP, 16);
	cfa(28, UNWIND_SP, 8);
	assert_int_equal(report.proof, HEIGHT_BY_RETURN);
	/* Twice, one behind the other. */
	RUN(PUSH_RBP, MOV_RBP_RSP, SUB_RSP(32), SAVE_RBP(16), CALL_OUT, RESTORE_RBP(16), NOP,
	    SAVE_RBP(16), CALL_OUT, RESTORE_RBP(16), ADD_RSP(32), LEAVE, RET);
	for (size_t i = 4; i < 43; i++)
		cfa(i, UNWIND_FP, 16);
	/* It is overwritten; another word is taken; what is below the stack pointer. */
	RUN(PUSH_RBP, MOV_RBP_RSP, SUB_RSP(32), SAVE_RBP(16), 0x48, 0x89, 0x44, 0x24, 20, CALL_OUT,
	    RESTORE_RBP(16), ADD_RSP(32), LEAVE, RET);
	assert_int_equal(height_reason_at(h, 27), HEIGHT_AFTER_CALL);
	RUN(PUSH_RBP, MOV_RBP_RSP, SUB_RSP(32), SAVE_RBP(16), CALL_OUT, RESTORE_RBP(24),
	    ADD_RSP(32), LEAVE, RET);
	assert_int_equal(height_reason_at(h, 22), HEIGHT_AFTER_CALL);
	RUN(PUSH_RBP, MOV_RBP_RSP, SUB_RSP(32), SAVE_RBP(16), ADD_RSP(32), SUB_RSP(32), CALL_OUT,
	    RESTORE_RBP(16), ADD_RSP(32), LEAVE, RET);
	assert_int_equal(height_reason_at(h, 30), HEIGHT_AFTER_CALL);
	/* A copy that only one of two paths has. */
	RUN(PUSH_RBP, MOV_RBP_RSP, SUB_RSP(32), JZ(5), SAVE_RBP(16), CALL_OUT, RESTORE_RBP(16),
	    ADD_RSP(32), LEAVE, RET);
	assert_int_equal(height_reason_at(h, 24), HEIGHT_AFTER_CALL);
}

/* The callee takes its arguments off: only the frame pointer is certain. */
static void callee_pops(void **state)
{
	(void)state;
	RUN(PUSH_RBP, MOV_RBP_RSP, PUSH_RAX, PUSH_RAX, CALL_OUT, PUSH_RAX, CALL_OUT, LEAVE, 0xc2,
	    16, 0);
	for (size_t i = 4; i <= 17; i++)
		cfa(i, UNWIND_FP, 16);
	cfa(18, UNWIND_SP, 8);
}

/* It never returns, but begins as routines that are called. */
static void prologue(void **state)
{
	(void)state;
	RUN(PUSH_RBP, MOV_RBP_RSP, JMP(-2 & 0xff));
	cfa(4, UNWIND_FP, 16);
	assert_int_equal(report.proof, HEIGHT_BY_PROLOGUE);
}

/* A table's target, which returns. */
static void table(void **state)
{
	(void)state;
	RUN(SUB_RSP(24), JZ(2), 0xff, 0xe0, /* jmp rax */
	    ADD_RSP(24), RET, NOP,	    /* +8 */
	    0x31, 0xc0, ADD_RSP(24), RET,   /* +14, not reached */
	    CALL_OUT, ADD_RSP(24), RET);
	cfa(8, UNWIND_SP, 32);
	cfa(14, UNWIND_SP, 32);
	cfa(20, UNWIND_SP, 8);
	assert_int_equal(height_reason_at(h, 13), HEIGHT_UNREACHED); /* padding */
	assert_int_equal(height_reason_at(h, 21), HEIGHT_UNREACHED); /* it may never come back */
}

/* As loops of V8 that are entered in the middle: the frame pointer is the one of the prologue. */
static void loop_in_frame(void **state)
{
	(void)state;
	RUN(PUSH_RBP, MOV_RBP_RSP, CALL_OUT, HLT, PUSH_RAX, CALL_OUT, MOV_RSP_RBP, POP_RBP, RET);
	cfa(10, UNWIND_FP, 16);
	fp(10, UNWIND_AT_CFA, -2);
	cfa(16, UNWIND_FP, 16);
	cfa(19, UNWIND_SP, 16);
	cfa(20, UNWIND_SP, 8);
}

/* A frame that the first routine which is called makes. */
static void frame_by_other(void **state)
{
	(void)state;
	RUN(NOP, CALL_OUT, PUSH_RAX, CALL_OUT, MOV_RSP_RBP, POP_RBP, RET);
	refused(HEIGHT_NO_PROOF);
}

/* ---- no rule --------------------------------------------------------------------------------- */

/* As a trace of LuaJIT: entered by a jump, with the interpreter's frame on the stack. */
static void trace(void **state)
{
	(void)state;
	RUN(ADD_RSP(0xf0), NOP, JZ(4), JMP(-5 & 0xff), NOP, NOP, JMP_OUT);
	refused(HEIGHT_NO_PROOF);
	RUN(NOP, ADD_RSP(16), JMP_OUT);
	refused(HEIGHT_TAKES_CALLERS);
	RUN(NOP, JMP_OUT);
	refused(HEIGHT_NO_PROOF);
}

static void wrong_returns(void **state)
{
	(void)state;
	RUN(PUSH_RAX, RET);
	refused(HEIGHT_OTHER_RETURN);
	RUN(JZ(1), RET, ADD_RSP(8), RET); /* one return is right */
	refused(HEIGHT_TAKES_CALLERS);
	RUN(XOR_EBP, RET);
	refused(HEIGHT_FP_CHANGED);
}

/* Nothing is known behind it; what comes before is proven by another return. */
static void writes_own_return(void **state)
{
	(void)state;
	RUN(MOV_RSP_RAX, RET);
	refused(HEIGHT_NO_PROOF);
	RUN(JZ(6), PUSH_RAX, NOP, NOP, POP_RAX, NOP, RET, PUSH_RBX, POP_RBX, MOV_RSP_RAX, NOP, RET);
	cfa(0, UNWIND_SP, 8);
	cfa(8, UNWIND_SP, 8);
	cfa(9, UNWIND_SP, 16);
	cfa(10, UNWIND_SP, 8); /* the instruction itself */
	assert_int_equal(height_reason_at(h, 14), HEIGHT_UNKNOWN);
	assert_int_equal(height_reason_at(h, 15), HEIGHT_UNKNOWN);
}

/* A linker's symbol says that it is called: it only jumps on, in the state of the entry or not. */
static void known_to_be_called(void **state)
{
	(void)state;
	height_set_called(h, true);
	RUN(PUSH_RBX, CALL_OUT, POP_RBX, JMP_OUT);
	cfa(0, UNWIND_SP, 8);
	cfa(1, UNWIND_SP, 16);
	cfa(6, UNWIND_SP, 16);
	cfa(7, UNWIND_SP, 8);
	assert_int_equal(report.proof, HEIGHT_BY_CALLER);
	RUN(PUSH_RBX, CALL_OUT, NOP, JMP_OUT);
	cfa(1, UNWIND_SP, 16);
	assert_int_equal(height_reason_at(h, 6), HEIGHT_AFTER_CALL);
	RUN(NOP, ADD_RSP(16), JMP_OUT);
	refused(HEIGHT_TAKES_CALLERS);
	height_set_called(h, false);
	RUN(PUSH_RBX, CALL_OUT, POP_RBX, JMP_OUT);
	refused(HEIGHT_NO_PROOF);
}

/* Its frame is made by what it calls first, and taken away by what it jumps to. */
static void uses_a_frame(void **state)
{
	(void)state;
	RUN(XOR_EBX, CALL_OUT, PUSH_RAX, STORE_RBP(-8), LOAD_RBP(-16), JMP_OUT);
	assert_int_equal(height_reason_at(h, 0), HEIGHT_NO_PROOF);
	assert_int_equal(height_reason_at(h, 2), HEIGHT_NO_PROOF);
	for (size_t i = 7; i < 21; i++) {
		cfa(i, UNWIND_FP, 16);
		fp(i, UNWIND_AT_CFA, -2);
		link_reg(i, UNWIND_AT_LOST, 0);
	}
	assert_int_equal(report.proof, HEIGHT_BY_USE);
	/* Only once; not of a word below; rbp is changed; the stack is, before the call; no call.
	 */
	RUN(CALL_OUT, STORE_RBP(-8), JMP_OUT);
	refused(HEIGHT_NO_PROOF);
	RUN(CALL_OUT, STORE_RBP(8), LOAD_RBP(-3), STORE_RBP(-8), JMP_OUT);
	refused(HEIGHT_NO_PROOF);
	RUN(CALL_OUT, STORE_RBP(-8), LOAD_RBP(-16), XOR_EBP, JMP_OUT);
	refused(HEIGHT_NO_PROOF);
	RUN(PUSH_RAX, CALL_OUT, STORE_RBP(-8), LOAD_RBP(-16), JMP_OUT);
	refused(HEIGHT_NO_PROOF);
	RUN(NOP, STORE_RBP(-8), LOAD_RBP(-16), JMP_OUT);
	refused(HEIGHT_NO_PROOF);
}

/* ---- told by the runtime --------------------------------------------------------------------- */

/* The interpreter's frame, with both registers saved in it. */
#define TRACE_ENTRY                                                                                \
	{                                                                                          \
		.cfa = 96, .fp = -16, .link = -24                                                  \
	}

static void in_trace(size_t at, int off)
{
	cfa(at, UNWIND_SP, off);
	fp(at, UNWIND_AT_CFA, -2);
	link_reg(at, UNWIND_AT_CFA, -3);
}

/* A loop that calls, and leaves by jumps where its own part of the stack is given back, or not. */
static void told_trace(void **state)
{
	static const struct height_entry entry[] = { TRACE_ENTRY };

	(void)state;
	RUN_TOLD(entry, ADD_RSP(0xf0), XOR_EBP, XOR_EBX, 0x0f, 0x84, 0, 0, 0x10, 0, CALL_OUT, NOP,
		 JZ(-11 & 0xff), ADD_RSP(16), JMP_OUT);
	assert_int_equal(report.proof, HEIGHT_BY_RUNTIME);
	in_trace(0, 96);
	for (size_t i = 4; i < 26; i++)
		in_trace(i, 112);
	in_trace(26, 96);
	in_trace(30, 96);
	/* It holds for one routine alone. */
	RUN(ADD_RSP(0xf0), NOP, JMP_OUT);
	refused(HEIGHT_NO_PROOF);
}

/* A value that was saved is written over: then it is nowhere. */
static void told_and_overwritten(void **state)
{
	static const struct height_entry entry[] = { TRACE_ENTRY };

	(void)state;
	RUN_TOLD(entry, 0x48, 0x89, 0x44, 0x24, 80, NOP, JMP_OUT); /* mov [rsp + 80], rax */
	in_trace(0, 96);
	cfa(5, UNWIND_SP, 96);
	fp(5, UNWIND_AT_LOST, 0);
	link_reg(5, UNWIND_AT_CFA, -3);
	RUN_TOLD(entry, 0x48, 0x89, 0x44, 0x24, 88, NOP, JMP_OUT); /* the return address */
	in_trace(0, 96);
	assert_int_equal(height_reason_at(h, 5), HEIGHT_UNKNOWN);
}

static void told_by_frame_pointer(void **state)
{
	static const struct height_entry entry[] = { { .off = 1,
						       .by_fp = true,
						       .cfa = 32,
						       .fp = HEIGHT_LOST,
						       .link = HEIGHT_IN_REGISTER } };

	(void)state;
	RUN_TOLD(entry, NOP, NOP, CALL_OUT, NOP, JMP_OUT);
	assert_int_equal(height_reason_at(h, 0), HEIGHT_UNREACHED);
	cfa(1, UNWIND_FP, 32);
	fp(1, UNWIND_AT_LOST, 0);
	link_reg(1, UNWIND_AT_SAME, 0);
	cfa(7, UNWIND_FP, 32);
	link_reg(7, UNWIND_AT_LOST, 0);
}

/* Two entries, whose paths meet: at the same height, or not. */
static void told_of_two_entries(void **state)
{
	static const struct height_entry same[] = {
		TRACE_ENTRY, { .off = 6, .cfa = 112, .fp = -16, .link = -32 }
	};
	static const struct height_entry others[] = { TRACE_ENTRY, { .off = 6, .cfa = 96 } };

	(void)state;
	RUN_TOLD(same, ADD_RSP(0xf0), JMP(2), NOP, NOP, NOP, JMP_OUT);
	in_trace(4, 112);
	cfa(7, UNWIND_SP, 112);
	link_reg(7, UNWIND_AT_CFA, -4);
	cfa(8, UNWIND_SP, 112);
	fp(8, UNWIND_AT_CFA, -2);
	link_reg(8, UNWIND_AT_LOST, 0);
	RUN_TOLD(others, ADD_RSP(0xf0), JMP(2), NOP, NOP, NOP, JMP_OUT);
	in_trace(4, 112);
	cfa(6, UNWIND_SP, 96);
	assert_int_equal(height_reason_at(h, 8), HEIGHT_UNKNOWN);
}

/* The code says something else: it returns, or takes stack that is the caller's. */
static void told_wrongly(void **state)
{
	static const struct height_entry entry[] = { TRACE_ENTRY };

	(void)state;
	RUN_TOLD(entry, NOP, RET);
	refused(HEIGHT_OTHER_RETURN);
	RUN_TOLD(entry, ADD_RSP(96), JMP_OUT);
	refused(HEIGHT_TAKES_CALLERS);
	RUN_TOLD(entry, ADD_RSP(88), RET);
	refused(HEIGHT_FP_CHANGED);
	RUN_TOLD(entry, JZ(3), PUSH_RAX, JMP(1), 0xb8, 0x58, 0xc3, NOP, NOP, JMP_OUT);
	refused(HEIGHT_OVERLAP);
}

static void told_nonsense(void **state)
{
	static const struct height_entry bad[] = {
		{ .cfa = 0 },
		{ .cfa = INT32_MIN },
		{ .cfa = (1 << 24) + 8 },
		{ .cfa = 96, .fp = -8 },
		{ .cfa = 96, .fp = 16 },
		{ .cfa = 96, .fp = -20 },
		{ .cfa = 96, .link = -104 },
		{ .cfa = 96, .link = INT32_MIN + 8 },
		{ .by_fp = true, .cfa = 16 }, /* the frame pointer is not the caller's as well */
		{ .by_fp = true, .cfa = INT32_MIN, .fp = -16 },
		{ .off = 6, .cfa = 96 },
		{ .off = UINT32_MAX, .cfa = 96 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		height_set_entries(h, &bad[i], 1);
		RUN(NOP, JMP_OUT);
		assert_int_equal(nr_rows, 0);
	}
}

static int stop(void *ctx, uint64_t addr, const struct unwind_rule *rule)
{
	(void)ctx;
	(void)addr;
	(void)rule;
	return -ENOSPC;
}

/* ---- assembly with one rule ------------------------------------------------------------------ */

/*
 * Blocks that keep the frame of 40 bytes; one that is called, and makes it; one that has more on
 * the stack, and gets the frame from elsewhere again.
 */
static void steady(void **state)
{
	static const uint8_t code[] = {
		NOP,	     JMP_OUT,				 /* 0, 1 */
		PUSH_RBP,    SUB_RSP(24), NOP,	       CALL_OUT, /* 6, 7, 11, 12 */
		ADD_RSP(24), POP_RBP,	  RET,			 /* 17, 21, 22 */
		PUSH_RAX,    PUSH_RAX,	  PUSH_RBX,    CALL_OUT, /* 23, 24, 25, 26 */
		0x48,	     0x89,	  0xcc,	       NOP,
		JMP_OUT, /* 31: mov rsp, rcx; 34, 35 */
		PUSH_RAX,    POP_RAX,	  SUB_RSP(16), 0xff,
		0xe0,					    /* 40, 41, 42, 46: jmp rax */
		JZ(2),	     PUSH_RAX,	  0x0f,	       NOP, /* 48, 50; 51: no instruction */
	};
	static const struct {
		uint8_t from, holds;
	} parts[] = { { 0, 1 },	 { 7, 0 },  { 11, 1 }, { 21, 0 }, { 23, 1 }, { 24, 0 }, { 34, 1 },
		      { 41, 0 }, { 42, 1 }, { 46, 0 }, { 48, 1 }, { 51, 0 }, { 52, 1 } };
	const struct unwind_rule rule = { .how = UNWIND_CFA, .base = UNWIND_SP, .off = 40 };
	size_t len = sizeof(code), n = 0;

	(void)state;
	memset(rules, 0, sizeof(rules));
	nr_rows = 0;
	assert_int_equal(height_steady(h, code, len, VADDR, &rule, row, &len), 0);
	assert_int_equal(nr_rows, sizeof(parts) / sizeof(*parts));
	for (size_t i = 0; i < 53; i++) {
		n += n + 1 < sizeof(parts) / sizeof(*parts) && i == parts[n + 1].from;
		assert_int_equal(rules[i].how, parts[n].holds ? UNWIND_CFA : UNWIND_NONE);
	}
	assert_int_equal(height_steady(h, code, len, VADDR, &rule, stop, NULL), -ENOSPC);
}

/* A call that takes arguments off shows at the return. */
static void return_misses(void **state)
{
	(void)state;
	RUN(PUSH_RAX, PUSH_RAX, CALL_OUT, RET);
	refused(HEIGHT_OTHER_RETURN);
}

static void merged(void **state)
{
	(void)state;
	RUN(JZ(1), RET, JZ(1), PUSH_RAX, NOP, HLT);
	cfa(5, UNWIND_SP, 8);
	assert_int_equal(height_reason_at(h, 6), HEIGHT_UNKNOWN);
	assert_int_equal(height_reason_at(h, 7), HEIGHT_UNKNOWN);
}

/* A call that may never come back, and code behind it that never returns. */
static void behind_call(void **state)
{
	(void)state;
	RUN(JZ(1), RET, PUSH_RAX, CALL_OUT, NOP, HLT);
	cfa(4, UNWIND_SP, 16); /* the call itself, where return addresses are looked up */
	cfa(8, UNWIND_SP, 16);
	assert_int_equal(height_reason_at(h, 9), HEIGHT_AFTER_CALL);
	RUN(PUSH_RBP, MOV_RBP_RSP, CALL_OUT, NOP, HLT);
	cfa(8, UNWIND_FP, 16);
	assert_int_equal(height_reason_at(h, 9), HEIGHT_AFTER_CALL);
}

/* Code that is not reached leads to code that never returns. */
static void side(void **state)
{
	(void)state;
	RUN(JZ(1), RET, NOP, HLT, PUSH_RAX, JMP(-5 & 0xff));
	assert_int_equal(height_reason_at(h, 3), HEIGHT_SIDE_ENTRY);
	assert_int_equal(height_reason_at(h, 4), HEIGHT_SIDE_ENTRY);
	cfa(2, UNWIND_SP, 8);
}

/* Code that is not reached, and never returns; or at another height than anything known. */
static void unreached(void **state)
{
	(void)state;
	RUN(SUB_RSP(24), ADD_RSP(24), RET, PUSH_RAX, CALL_OUT, HLT);
	assert_int_equal(height_reason_at(h, 9), HEIGHT_UNREACHED);
	RUN(SUB_RSP(24), NOP, ADD_RSP(24), RET, 0x31, 0xc0, ADD_RSP(40), RET);
	assert_int_equal(height_reason_at(h, 10), HEIGHT_UNREACHED);
}

/* A jump out of code that is not reached proves nothing: it may lead to another part of it. */
static void jump_from_unreached(void **state)
{
	(void)state;
	RUN(SUB_RSP(24), JZ(2), 0xff, 0xe0, ADD_RSP(24), RET, NOP, 0x31, 0xc0, JZ(5), JMP_OUT, RET,
	    0x31, 0xc0, JMP_OUT);
	cfa(8, UNWIND_SP, 32);
	assert_int_equal(height_reason_at(h, 24), HEIGHT_UNREACHED);
}

static void overlapping(void **state)
{
	(void)state;
	/* mov eax, imm32, into whose number the jump leads at another height: push rax; ret */
	RUN(JZ(3), PUSH_RAX, JMP(1), 0xb8, 0x58, 0xc3, NOP, NOP, RET);
	refused(HEIGHT_OVERLAP);
}

/* "call next; next: pop rax": the part that is called takes its own return address. */
static void own_address(void **state)
{
	(void)state;
	RUN(PUSH_RBX, 0xe8, 0, 0, 0, 0, POP_RAX, POP_RBX, RET);
	assert_int_not_equal(report.proof, HEIGHT_BY_RETURN);
	assert_int_equal(nr_rows, 0);
}

/* A switch of stacks. */
static void stack_switch(void **state)
{
	(void)state;
	RUN(PUSH_RBP, PUSH_RBX, 0x48, 0x89, 0x27, 0x48, 0x8b, 0x26, POP_RBX, POP_RBP, RET);
	refused(HEIGHT_NO_PROOF);
}

static void cut_off(void **state)
{
	(void)state;
	RUN(JZ(1), RET, 0xe8, 0, 0);
	assert_int_equal(height_reason_at(h, 3), HEIGHT_NO_CODE);
	RUN(0x0f);
	refused(HEIGHT_NO_PROOF);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void arguments(void **state)
{
	static const uint8_t ret = RET;
	struct height *other;
	uint8_t *large = calloc(1, HEIGHT_MAX_LEN + 1);

	(void)state;
	assert_int_equal(height_open(EM_AARCH64, &other), -DCPI_EUNSUPPORTED);
	assert_null(other);
	height_close(NULL);
	assert_int_equal(height_rows(h, &ret, 1, VADDR, stop, NULL, NULL), -ENOSPC);
	assert_int_equal(height_rows(h, &ret, 1, UINT64_MAX, stop, NULL, NULL), -EINVAL);
	assert_int_equal(height_rows(h, NULL, 0, VADDR, stop, NULL, &report), 0);
	assert_non_null(large);
	assert_int_equal(height_rows(h, large, HEIGHT_MAX_LEN + 1, VADDR, stop, NULL, &report), 0);
	assert_int_equal(report.bytes[HEIGHT_TOO_LARGE], HEIGHT_MAX_LEN + 1);
	free(large);
	for (int i = 0; i < HEIGHT_NR_REASONS; i++)
		assert_string_not_equal(height_reason_text((enum height_reason)i), "?");
}

/* ---- time ------------------------------------------------------------------------------------ */

/* As many branches as there is space for, each to another place at another height. */
static void hostile(void **state)
{
	enum { LEN = 1 << 16 };
	uint8_t *code = malloc(LEN);
	uint32_t seed = 1;

	(void)state;
	assert_non_null(code);
	for (size_t i = 0; i < LEN; i++) {
		seed = seed * 1103515245 + 12345;
		code[i] = (uint8_t)(i % 3 == 0	 ? 0x50 + (seed >> 16) % 16
				    : i % 3 == 1 ? 0x74
						 : seed >> 16);
	}
	assert_int_equal(height_rows(h, code, LEN, VADDR, stop, NULL, &report), 0);
	free(code);
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
		cmocka_unit_test(leaf),
		cmocka_unit_test(frame),
		cmocka_unit_test(entered),
		cmocka_unit_test(pushes),
		cmocka_unit_test(moves),
		cmocka_unit_test(overwritten),
		cmocka_unit_test(call_changes_rbx),
		cmocka_unit_test(frame_is_restored),
		cmocka_unit_test(callee_pops),
		cmocka_unit_test(prologue),
		cmocka_unit_test(table),
		cmocka_unit_test(loop_in_frame),
		cmocka_unit_test(frame_by_other),
		cmocka_unit_test(trace),
		cmocka_unit_test(wrong_returns),
		cmocka_unit_test(writes_own_return),
		cmocka_unit_test(known_to_be_called),
		cmocka_unit_test(uses_a_frame),
		cmocka_unit_test(told_trace),
		cmocka_unit_test(told_and_overwritten),
		cmocka_unit_test(told_by_frame_pointer),
		cmocka_unit_test(told_of_two_entries),
		cmocka_unit_test(told_wrongly),
		cmocka_unit_test(told_nonsense),
		cmocka_unit_test(steady),
		cmocka_unit_test(return_misses),
		cmocka_unit_test(merged),
		cmocka_unit_test(behind_call),
		cmocka_unit_test(side),
		cmocka_unit_test(unreached),
		cmocka_unit_test(jump_from_unreached),
		cmocka_unit_test(overlapping),
		cmocka_unit_test(own_address),
		cmocka_unit_test(stack_switch),
		cmocka_unit_test(cut_off),
		cmocka_unit_test(arguments),
		cmocka_unit_test(hostile),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
