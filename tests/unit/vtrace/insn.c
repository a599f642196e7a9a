/* SPDX-License-Identifier: BSD-2-Clause */
/* Operands, words and names of instructions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "insn_word.h"
#include "trace-inst.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, NONE = VTRACE_ZERO, XMM1 = VTRACE_VECTOR + 4 };
enum { READS = 1, WRITES = 2, IMM = 4, RESULT = 8 };

struct known {
	const char *text;
	uint8_t code[12];
	uint8_t len, class, width, form, a, b, c, result_width;
};

static const struct known x86[] = {
	{ "mov rax,[rdi+8]",
	  { 0x48, 0x8b, 0x47, 0x08 },
	  4,
	  VTRACE_CLASS_LOAD,
	  8,
	  READS | RESULT,
	  RAX,
	  RDI,
	  NONE,
	  8 },
	{ "movzx eax,byte [rsi]",
	  { 0x0f, 0xb6, 0x06 },
	  3,
	  VTRACE_CLASS_LOAD,
	  1,
	  READS | RESULT,
	  RAX,
	  RSI,
	  NONE,
	  4 },
	{ "movsx rdx,word [rcx]",
	  { 0x48, 0x0f, 0xbf, 0x11 },
	  4,
	  VTRACE_CLASS_LOAD_SIGNED,
	  2,
	  READS | RESULT,
	  RDX,
	  RCX,
	  NONE,
	  8 },
	{ "mov [rbx],r8d",
	  { 0x44, 0x89, 0x03 },
	  3,
	  VTRACE_CLASS_STORE,
	  4,
	  WRITES,
	  R8,
	  RBX,
	  NONE,
	  0 },
	{ "mov dword [rbx],7",
	  { 0xc7, 0x03, 0x07, 0, 0, 0 },
	  6,
	  VTRACE_CLASS_STORE,
	  4,
	  WRITES | IMM,
	  NONE,
	  RBX,
	  NONE,
	  0 },
	{ "add rax,[rcx]",
	  { 0x48, 0x03, 0x01 },
	  3,
	  VTRACE_CLASS_ADD,
	  8,
	  READS | RESULT,
	  RAX,
	  RCX,
	  NONE,
	  8 },
	{ "add [rcx],rax",
	  { 0x48, 0x01, 0x01 },
	  3,
	  VTRACE_CLASS_MODIFY,
	  8,
	  READS | WRITES,
	  RAX,
	  RCX,
	  NONE,
	  0 },
	{ "cmp rax,[rcx]",
	  { 0x48, 0x3b, 0x01 },
	  3,
	  VTRACE_CLASS_COMPARE,
	  8,
	  READS,
	  RAX,
	  RCX,
	  NONE,
	  0 },
	{ "add rax,rbx", { 0x48, 0x01, 0xd8 }, 3, VTRACE_CLASS_ADD, 8, RESULT, RAX, RBX, RAX, 8 },
	{ "mov eax,ebx", { 0x89, 0xd8 }, 2, VTRACE_CLASS_MOVE, 4, RESULT, RBX, NONE, RAX, 4 },
	{ "mov eax,5",
	  { 0xb8, 5, 0, 0, 0 },
	  5,
	  VTRACE_CLASS_LEA,
	  4,
	  RESULT | IMM,
	  NONE,
	  NONE,
	  RAX,
	  4 },
	{ "lea rax,[rdi+rsi*2]",
	  { 0x48, 0x8d, 0x04, 0x77 },
	  4,
	  VTRACE_CLASS_LEA,
	  8,
	  RESULT,
	  RDI,
	  RSI,
	  RAX,
	  8 },
	{ "imul rax,rbx,3",
	  { 0x48, 0x6b, 0xc3, 0x03 },
	  4,
	  VTRACE_CLASS_MULTIPLY,
	  8,
	  RESULT | IMM,
	  RBX,
	  NONE,
	  RAX,
	  8 },
	{ "mul rbx", { 0x48, 0xf7, 0xe3 }, 3, VTRACE_CLASS_MULTIPLY, 8, RESULT, RBX, RAX, RAX, 8 },
	{ "cmp rax,rbx", { 0x48, 0x39, 0xd8 }, 3, VTRACE_CLASS_COMPARE, 8, 0, RAX, RBX, NONE, 0 },
	{ "push rbx", { 0x53 }, 1, VTRACE_CLASS_PUSH, 8, WRITES, RBX, RSP, NONE, 0 },
	{ "pop rbx", { 0x5b }, 1, VTRACE_CLASS_POP, 8, READS | RESULT, RBX, RSP, NONE, 8 },
	{ "ret", { 0xc3 }, 1, VTRACE_CLASS_RETURN, 8, READS, NONE, RSP, NONE, 0 },
	{ "call rax", { 0xff, 0xd0 }, 2, VTRACE_CLASS_CALL_INDIRECT, 8, WRITES, RAX, RSP, NONE, 0 },
	{ "jmp rax", { 0xff, 0xe0 }, 2, VTRACE_CLASS_JUMP_INDIRECT, 8, 0, RAX, NONE, NONE, 0 },
	{ "movdqu xmm1,[rdi]",
	  { 0xf3, 0x0f, 0x6f, 0x0f },
	  4,
	  VTRACE_CLASS_LOAD_FP,
	  16,
	  READS | RESULT,
	  XMM1,
	  RDI,
	  NONE,
	  16 },
	{ "no instruction", { 0x06 }, 0, VTRACE_CLASS_OTHER, 8, 0, NONE, NONE, NONE, 0 },
};

enum { V1 = VTRACE_VECTOR + 4 };

static const struct known a64[] = {
	{ "ldr x0,[x1,#8]",
	  { 0x20, 0x04, 0x40, 0xf9 },
	  4,
	  VTRACE_CLASS_LOAD,
	  8,
	  READS | RESULT,
	  0,
	  1,
	  NONE,
	  8 },
	{ "ldrb w3,[x1]",
	  { 0x23, 0x00, 0x40, 0x39 },
	  4,
	  VTRACE_CLASS_LOAD,
	  1,
	  READS | RESULT,
	  3,
	  1,
	  NONE,
	  8 },
	{ "ldrsw x2,[x5]",
	  { 0xa2, 0x00, 0x80, 0xb9 },
	  4,
	  VTRACE_CLASS_LOAD_SIGNED,
	  4,
	  READS | RESULT,
	  2,
	  5,
	  NONE,
	  8 },
	{ "str x0,[sp,#16]",
	  { 0xe0, 0x0b, 0x00, 0xf9 },
	  4,
	  VTRACE_CLASS_STORE,
	  8,
	  WRITES,
	  0,
	  31,
	  NONE,
	  0 },
	{ "ldr q1,[x0]",
	  { 0x01, 0x00, 0xc0, 0x3d },
	  4,
	  VTRACE_CLASS_LOAD_FP,
	  16,
	  READS | RESULT,
	  V1,
	  0,
	  NONE,
	  16 },
	{ "add x0,x1,x2", { 0x20, 0x00, 0x02, 0x8b }, 4, VTRACE_CLASS_ADD, 8, RESULT, 1, 2, 0, 8 },
	{ "add w0,w1,#4",
	  { 0x20, 0x10, 0x00, 0x11 },
	  4,
	  VTRACE_CLASS_ADD,
	  4,
	  RESULT | IMM,
	  1,
	  NONE,
	  0,
	  4 },
	{ "cmp x1,x2", { 0x3f, 0x00, 0x02, 0xeb }, 4, VTRACE_CLASS_COMPARE, 8, 0, 1, 2, NONE, 0 },
	{ "cbz x3,.", { 0x03, 0x00, 0x00, 0xb4 }, 4, VTRACE_CLASS_BRANCH, 8, 0, 3, NONE, NONE, 0 },
	{ "b .", { 0x00, 0x00, 0x00, 0x14 }, 4, VTRACE_CLASS_JUMP, 4, 0, NONE, NONE, NONE, 0 },
	{ "bl .", { 0x00, 0x00, 0x00, 0x94 }, 4, VTRACE_CLASS_CALL, 8, 0, NONE, NONE, NONE, 0 },
	{ "blr x4",
	  { 0x80, 0x00, 0x3f, 0xd6 },
	  4,
	  VTRACE_CLASS_CALL_INDIRECT,
	  8,
	  0,
	  4,
	  NONE,
	  NONE,
	  0 },
	{ "ret", { 0xc0, 0x03, 0x5f, 0xd6 }, 4, VTRACE_CLASS_RETURN, 8, 0, 30, NONE, NONE, 0 },
	{ "fmov x0,d1",
	  { 0x20, 0x00, 0x66, 0x9e },
	  4,
	  VTRACE_CLASS_MOVE,
	  8,
	  RESULT,
	  V1,
	  NONE,
	  0,
	  8 },
};

static void check(enum vtrace_arch arch, const struct known *k)
{
	struct vtrace_operands o;

	assert_int_equal(vtrace_insn_operands(arch, k->code, sizeof(k->code), &o), 0);
	if (o.len != k->len || o.class != k->class || o.width != k->width || o.form != k->form ||
	    o.a != k->a || o.b != k->b || o.c != k->c || o.result_width != k->result_width)
		fail_msg("%s: len %u class %s width %u form %u a %u b %u c %u result %u bytes",
			 k->text, o.len, vtrace_class_name(o.class), o.width, o.form, o.a, o.b, o.c,
			 o.result_width);
	assert_int_equal(o.result, !(o.form & RESULT)	       ? NONE
				   : o.form & (READS | WRITES) ? o.a
							       : o.c);
}

static void operands(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(x86) / sizeof(x86[0]); i++)
		check(VTRACE_X86_64, &x86[i]);
	for (size_t i = 0; i < sizeof(a64) / sizeof(a64[0]); i++)
		check(VTRACE_AARCH64, &a64[i]);
}

static void words(void **state)
{
	uint32_t w = vtrace_insn_word(VTRACE_X86_64, x86[0].code, 12);

	(void)state;
	assert_int_equal(TRACE_X86_CLASS(w), TRACE_OP_LOAD);
	assert_int_equal(TRACE_X86_FORM(w), TRACE_FORM_READS | TRACE_FORM_RESULT);
	assert_int_equal(TRACE_X86_WIDTH(w), 8);
	assert_int_equal(TRACE_X86_RA(w), RAX);
	assert_int_equal(TRACE_X86_RB(w), RDI);
	assert_int_equal(TRACE_X86_RC(w), 63);
	w = vtrace_insn_word(VTRACE_X86_64, x86[20].code, 12);
	assert_int_equal(TRACE_X86_RA(w), 17);
	assert_int_equal(TRACE_X86_WIDTH(w), 16);
	assert_int_equal(vtrace_insn_word(VTRACE_X86_64, (const uint8_t[]){ 0x06 }, 1), 0);
	assert_int_equal(vtrace_insn_word(VTRACE_AARCH64, a64[0].code, 12), 0xf9400420);
	assert_int_equal(vtrace_insn_word(VTRACE_AARCH64, a64[0].code, 3), 0);
}

/* What profilers are given for a class is what it is here. */
static void classes(void **state)
{
	(void)state;
	assert_int_equal(TRACE_NR_OPS, VTRACE_NR_CLASSES);
	assert_int_equal(TRACE_OP_POP, VTRACE_CLASS_POP);
	assert_int_equal(TRACE_OP_SELECT, VTRACE_CLASS_SELECT);
	assert_int_equal(TRACE_OP_RETURN, VTRACE_CLASS_RETURN);
	assert_int_equal(TRACE_OP_SYSTEM, VTRACE_CLASS_SYSTEM);
	assert_true(TRACE_NR_OPS <= 64);
	assert_int_equal(TRACE_FORM_RESULT, VTRACE_FORM_RESULT);
}

static void names(void **state)
{
	char name[VTRACE_REGISTER_NAME];

	(void)state;
	assert_string_equal(vtrace_register_name(VTRACE_X86_64, RAX, 8, name), "rax");
	assert_string_equal(vtrace_register_name(VTRACE_X86_64, RSI, 1, name), "sil");
	assert_string_equal(vtrace_register_name(VTRACE_X86_64, 15, 4, name), "r15d");
	assert_string_equal(vtrace_register_name(VTRACE_X86_64, XMM1, 8, name), "xmm1");
	assert_string_equal(vtrace_register_name(VTRACE_X86_64, XMM1, 32, name), "ymm1");
	assert_string_equal(vtrace_register_name(VTRACE_X86_64, VTRACE_MASK + 3, 8, name), "k3");
	assert_string_equal(vtrace_register_name(VTRACE_X86_64, NONE, 8, name), "");
	assert_string_equal(vtrace_register_name(VTRACE_AARCH64, 30, 8, name), "x30");
	assert_string_equal(vtrace_register_name(VTRACE_AARCH64, 4, 4, name), "w4");
	assert_string_equal(vtrace_register_name(VTRACE_AARCH64, 31, 8, name), "sp");
	assert_string_equal(vtrace_register_name(VTRACE_AARCH64, V1, 16, name), "v1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operands),
		cmocka_unit_test(words),
		cmocka_unit_test(classes),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
