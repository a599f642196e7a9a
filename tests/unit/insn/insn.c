/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "insn.h"

enum { NONE = INSN_NO_REGISTER };

struct expected {
	const char *bytes;
	uint8_t len;
	enum insn_flow flow;
	uint16_t kinds;
	uint64_t target;
	struct insn_registers reads, writes;
	uint8_t base;
};

static void check(uint32_t machine, const struct expected *e, size_t nr)
{
	struct insn_decoder *d = NULL;
	struct insn insn;

	assert_int_equal(insn_decoder_open(machine, &d, NULL), 0);
	for (size_t i = 0; i < nr; i++, e++) {
		insn_decode(d, (const uint8_t *)e->bytes, e->len, 0x1000, &insn);
		assert_int_equal(insn.len, e->len);
		assert_int_equal(insn.flow, e->flow);
		assert_int_equal(insn.kinds, e->kinds);
		assert_int_equal(insn.target, e->target);
		assert_int_equal(insn.reads.gpr, e->reads.gpr);
		assert_int_equal(insn.writes.gpr, e->writes.gpr);
		assert_int_equal(insn.reads.vector, e->reads.vector);
		assert_int_equal(insn.writes.vector, e->writes.vector);
		assert_int_equal(insn.base, e->base);
	}
	insn_decoder_close(d);
}

static int step_of(uint32_t machine, const char *bytes, size_t len)
{
	struct insn_decoder *d = NULL;
	struct insn insn;

	assert_int_equal(insn_decoder_open(machine, &d, NULL), 0);
	insn_decode(d, (const uint8_t *)bytes, len, 0x1000, &insn);
	assert_int_equal(insn.len, len);
	insn_decoder_close(d);
	return insn.step;
}

static void test_step(void **state)
{
	(void)state;
	/* add $8,%rdi; sub $1,%rdi; inc %rdi; dec %rdi; lea -0x40(%rdi),%rdi */
	assert_int_equal(step_of(EM_X86_64, "\x48\x83\xc7\x08", 4), 8);
	assert_int_equal(step_of(EM_X86_64, "\x48\x83\xef\x01", 4), -1);
	assert_int_equal(step_of(EM_X86_64, "\x48\xff\xc7", 3), 1);
	assert_int_equal(step_of(EM_X86_64, "\x48\xff\xcf", 3), -1);
	assert_int_equal(step_of(EM_X86_64, "\x48\x8d\x7f\xc0", 4), -64);
	/* lea 8(%rsi),%rdi; lea (%rdi,%rax),%rdi; add %rax,%rdi; addq $8,(%rdi); add $0x10000,%edi
	 */
	assert_int_equal(step_of(EM_X86_64, "\x48\x8d\x7e\x08", 4), 0);
	assert_int_equal(step_of(EM_X86_64, "\x48\x8d\x3c\x07", 4), 0);
	assert_int_equal(step_of(EM_X86_64, "\x48\x01\xc7", 3), 0);
	assert_int_equal(step_of(EM_X86_64, "\x48\x83\x07\x08", 4), 0);
	assert_int_equal(step_of(EM_X86_64, "\x81\xc7\x00\x00\x01\x00", 6), 0);
}

#define B(n)		      (1ull << (n))
#define CHECK(machine, table) check(machine, table, sizeof(table) / sizeof((table)[0]))

static void test_x86(void **state)
{
	static const struct expected e[] = {
		/* mov 8(%rax,%rcx,4), %edx */
		{ "\x8b\x54\x88\x08",
		  4,
		  INSN_PLAIN,
		  INSN_LOAD,
		  0,
		  { B(0) | B(1), 0 },
		  { B(2), 0 },
		  0 },
		/* mov %edx, (%r9) */
		{ "\x41\x89\x11", 3, INSN_PLAIN, INSN_STORE, 0, { B(2) | B(9), 0 }, { 0, 0 }, 9 },
		/* lea 8(%rax), %rcx: no memory is touched */
		{ "\x48\x8d\x48\x08", 4, INSN_PLAIN, 0, 0, { B(0), 0 }, { B(1), 0 }, 0 },
		/* lock cmpxchg %ecx, (%rdx) */
		{ "\xf0\x0f\xb1\x0a",
		  4,
		  INSN_PLAIN,
		  INSN_LOAD | INSN_STORE | INSN_ATOMIC,
		  0,
		  { B(0) | B(1) | B(2), 0 },
		  { B(0) | INSN_FLAGS, 0 },
		  2 },
		/* div %rcx */
		{ "\x48\xf7\xf1",
		  3,
		  INSN_PLAIN,
		  INSN_DIVIDE,
		  0,
		  { B(0) | B(1) | B(2), 0 },
		  { B(0) | B(2) | INSN_FLAGS, 0 },
		  NONE },
		/* divsd %xmm1, %xmm0 */
		{ "\xf2\x0f\x5e\xc1",
		  4,
		  INSN_PLAIN,
		  INSN_FP | INSN_FP_DIVIDE | INSN_VECTOR,
		  0,
		  { 0, B(0) | B(1) },
		  { 0, B(0) },
		  NONE },
		/* rep movsb: its direction is a flag */
		{ "\xf3\xa4",
		  2,
		  INSN_PLAIN,
		  INSN_LOAD | INSN_STORE | INSN_REPEAT,
		  0,
		  { B(1) | B(6) | B(7) | INSN_FLAGS, 0 },
		  { B(1) | B(6) | B(7), 0 },
		  6 },
		/* jne 0x1000; jmp; call; call *%rax; jmp *%rax; ret; ud2; nop */
		{ "\x75\xfe", 2, INSN_BRANCH, 0, 0x1000, { INSN_FLAGS, 0 }, { 0, 0 }, NONE },
		{ "\xeb\x0e", 2, INSN_JUMP, 0, 0x1010, { 0, 0 }, { 0, 0 }, NONE },
		{ "\xe8\x0b\x00\x00\x00",
		  5,
		  INSN_CALL,
		  INSN_STORE,
		  0x1010,
		  { B(4), 0 },
		  { B(4), 0 },
		  NONE },
		{ "\x3e\xff\xe0", 3, INSN_INDIRECT_JUMP, 0, 0, { B(0), 0 }, { 0, 0 }, NONE },
		{ "\xc3", 1, INSN_RETURN, INSN_LOAD, 0, { B(4), 0 }, { B(4), 0 }, NONE },
		{ "\x0f\x0b", 2, INSN_TRAP, 0, 0, { 0, 0 }, { 0, 0 }, NONE },
		{ "\x66\x90", 2, INSN_PLAIN, INSN_PADDING, 0, { 0, 0 }, { 0, 0 }, NONE },
		/* vpcmpneqb (%rdi), %ymm16, %k1, and kmovd %k1, %eax */
		{ "\x62\xf3\x7d\x20\x3f\x0f\x04",
		  7,
		  INSN_PLAIN,
		  INSN_LOAD | INSN_VECTOR,
		  0,
		  { B(7), B(16) | B(32) },
		  { 0, B(33) },
		  7 },
		{ "\xc5\xfb\x93\xc1",
		  4,
		  INSN_PLAIN,
		  INSN_VECTOR,
		  0,
		  { 0, B(33) },
		  { B(0), 0 },
		  NONE },
		/* cmc */
		{ "\xf5", 1, INSN_PLAIN, 0, 0, { INSN_FLAGS, 0 }, { INSN_FLAGS, 0 }, NONE },
		/* push 8(%rax): the stack's memory is not its operand */
		{ "\xff\x70\x08",
		  3,
		  INSN_PLAIN,
		  INSN_LOAD | INSN_STORE,
		  0,
		  { B(0) | B(4), 0 },
		  { B(4), 0 },
		  0 },
		/* none, and one that is cut */
		{ "\x06", 1, INSN_DATA, 0, 0, { 0, 0 }, { 0, 0 }, NONE },
		{ "\xe8", 1, INSN_DATA, 0, 0, { 0, 0 }, { 0, 0 }, NONE },
	};

	(void)state;
	CHECK(EM_X86_64, e);
}

/* Instructions that end in letters of floating point are not all of it. */
static void test_x86_names(void **state)
{
	static const struct {
		size_t len;
		const char *code;
		uint16_t kinds;
	} e[] = {
		/* addps %xmm1, %xmm0; cvtsi2sd %eax, %xmm0; cmpltsd of a register, of memory */
		{ 3, "\x0f\x58\xc1", INSN_FP },
		{ 4, "\xf2\x0f\x2a\xc0", INSN_FP },
		{ 5, "\xf2\x0f\xc2\xc1\x01", INSN_FP },
		{ 5, "\xf2\x0f\xc2\x07\x01", INSN_FP },
		/* fadds (%rdi) */
		{ 2, "\xd8\x07", INSN_FP },
		/* stosd, lodsd, scasd, insd, outsd, cmpsd; rdsspd %eax */
		{ 1, "\xab", 0 },
		{ 1, "\xad", 0 },
		{ 1, "\xaf", 0 },
		{ 1, "\x6d", 0 },
		{ 1, "\x6f", 0 },
		{ 1, "\xa7", 0 },
		{ 4, "\xf3\x0f\x1e\xc8", 0 },
		/* pmaxsd, pabsd %xmm1, %xmm0; vpminsd %ymm1, %ymm2, %ymm3 */
		{ 5, "\x66\x0f\x38\x3d\xc1", 0 },
		{ 5, "\x66\x0f\x38\x1e\xc1", 0 },
		{ 5, "\xc4\xe2\x6d\x39\xd9", 0 },
		/* vscatterdps %zmm1, (%rax,%zmm2,4) {%k1} */
		{ 7, "\x62\xf2\x7d\x49\xa2\x0c\x90", 0 },
		/* pmulld %xmm1, %xmm0; vpmaddwd %xmm1, %xmm2, %xmm0 */
		{ 5, "\x66\x0f\x38\x40\xc1", INSN_MULTIPLY },
		{ 4, "\xc5\xe9\xf5\xc1", INSN_MULTIPLY },
	};
	struct insn_decoder *d = NULL;
	struct insn insn;

	(void)state;
	assert_int_equal(insn_decoder_open(EM_X86_64, &d, NULL), 0);
	for (size_t i = 0; i < sizeof(e) / sizeof(e[0]); i++) {
		uint8_t code[16] = { 0 };

		memcpy(code, e[i].code, e[i].len);
		insn_decode(d, code, sizeof(code), 0x1000, &insn);
		if (insn.len != e[i].len || insn.flow != INSN_PLAIN ||
		    (insn.kinds & (INSN_FP | INSN_MULTIPLY)) != e[i].kinds)
			fail_msg("%zu: len %u, kinds 0x%x", i, insn.len, insn.kinds);
	}
	insn_decoder_close(d);
}

/* One instruction: prefixes and opcode, then ModRM, SIB and what may follow. */
static void x86_code(uint8_t out[16], uint8_t prefix, uint8_t rex, bool second, uint8_t op,
		     uint8_t modrm)
{
	size_t n = 0;

	memset(out, 0x92, 16);
	if (prefix)
		out[n++] = prefix;
	if (rex)
		out[n++] = rex;
	if (second)
		out[n++] = 0x0f;
	out[n++] = op;
	out[n] = modrm;
	out[n + 1] = op & 1 ? 0x25 : 0x92; /* no base, or one */
}

/* Without operands it is the same instruction. 0: there is none. */
static size_t check_flow(struct insn_decoder *d, const uint8_t *code, size_t len)
{
	struct insn flow, whole;

	insn_decode_flow(d, code, len, 0x1000, &flow);
	insn_decode(d, code, len, 0x1000, &whole);
	assert_int_equal(flow.vaddr, 0x1000);
	assert_int_equal(flow.len, whole.len);
	assert_int_equal(flow.flow, whole.flow);
	assert_int_equal(flow.target, whole.target);
	assert_int_equal(flow.kinds & INSN_PADDING, whole.kinds & INSN_PADDING);
	return flow.flow != INSN_DATA;
}

/* Any opcode with any prefix and ModRM; cut ones too. */
static void test_x86_flow(void **state)
{
	static const uint8_t prefixes[] = { 0, 0x66, 0xf2, 0xf3 }, rexes[] = { 0, 0x41, 0x48 };
	struct insn_decoder *d = NULL;
	size_t nr = 0;

	(void)state;
	assert_int_equal(insn_decoder_open(EM_X86_64, &d, NULL), 0);
	for (unsigned int i = 0; i < 4 * 3 * 2 * 256; i++) {
		uint8_t prefix = prefixes[i & 3], rex = rexes[i / 4 % 3], code[16];
		bool second = i / 12 % 2;

		for (unsigned int modrm = 0; modrm < 256; modrm += 1 + (modrm & 1) * 2) {
			x86_code(code, prefix, rex, second, (uint8_t)(i / 24), (uint8_t)modrm);
			nr += check_flow(d, code, sizeof(code));
		}
		for (size_t len = 1; len < 12; len++) {
			x86_code(code, prefix, rex, second, (uint8_t)(i / 24), 0x84);
			check_flow(d, code, len);
		}
	}
	assert_true(nr > 100000);
	insn_decoder_close(d);
}

static void test_aarch64(void **state)
{
	static const struct expected e[] = {
		/* ldr x1, [x2, x3, lsl #3] */
		{ "\x41\x78\x63\xf8",
		  4,
		  INSN_PLAIN,
		  INSN_LOAD,
		  0,
		  { B(2) | B(3), 0 },
		  { B(1), 0 },
		  2 },
		/* stp x29, x30, [sp, #-16]! */
		{ "\xfd\x7b\xbf\xa9",
		  4,
		  INSN_PLAIN,
		  INSN_STORE,
		  0,
		  { B(29) | B(30), 0 },
		  { 0, 0 },
		  31 },
		/* ldr q0, [x1], #16 */
		{ "\x20\x04\xc1\x3c",
		  4,
		  INSN_PLAIN,
		  INSN_LOAD | INSN_VECTOR,
		  0,
		  { B(1), 0 },
		  { B(1), B(0) },
		  1 },
		/* ldaddal w1, w0, [x2] */
		{ "\x40\x00\xe1\xb8",
		  4,
		  INSN_PLAIN,
		  INSN_LOAD | INSN_STORE | INSN_ATOMIC,
		  0,
		  { B(1) | B(2), 0 },
		  { B(0), 0 },
		  2 },
		/* udiv w0, w1, w2; madd x0, x1, x2, x3; fdiv d0, d1, d2; dmb ish */
		{ "\x20\x08\xc2\x1a",
		  4,
		  INSN_PLAIN,
		  INSN_DIVIDE,
		  0,
		  { B(1) | B(2), 0 },
		  { B(0), 0 },
		  NONE },
		{ "\x20\x0c\x02\x9b",
		  4,
		  INSN_PLAIN,
		  INSN_MULTIPLY,
		  0,
		  { B(1) | B(2) | B(3), 0 },
		  { B(0), 0 },
		  NONE },
		{ "\x20\x18\x62\x1e",
		  4,
		  INSN_PLAIN,
		  INSN_FP | INSN_FP_DIVIDE | INSN_VECTOR,
		  0,
		  { 0, B(1) | B(2) },
		  { 0, B(0) },
		  NONE },
		{ "\xbf\x3b\x03\xd5", 4, INSN_PLAIN, INSN_BARRIER, 0, { 0, 0 }, { 0, 0 }, NONE },
		/* subs w0, w1, #1; csel x0, x1, x2, eq */
		{ "\x20\x04\x00\x71",
		  4,
		  INSN_PLAIN,
		  0,
		  0,
		  { B(1), 0 },
		  { B(0) | INSN_FLAGS, 0 },
		  NONE },
		{ "\x20\x00\x82\x9a",
		  4,
		  INSN_PLAIN,
		  0,
		  0,
		  { B(1) | B(2) | INSN_FLAGS, 0 },
		  { B(0), 0 },
		  NONE },
		/* b.ne, cbz x0, tbnz w1, b, bl, br x16, blr x8, ret, brk, nop */
		{ "\x81\x00\x00\x54",
		  4,
		  INSN_BRANCH,
		  0,
		  0x1010,
		  { INSN_FLAGS, 0 },
		  { 0, 0 },
		  NONE },
		{ "\x60\x00\x00\xb4", 4, INSN_BRANCH, 0, 0x100c, { B(0), 0 }, { 0, 0 }, NONE },
		{ "\xe1\xff\x07\x37", 4, INSN_BRANCH, 0, 0xffc, { B(1), 0 }, { 0, 0 }, NONE },
		{ "\x02\x00\x00\x14", 4, INSN_JUMP, 0, 0x1008, { 0, 0 }, { 0, 0 }, NONE },
		{ "\x02\x00\x00\x94", 4, INSN_CALL, 0, 0x1008, { 0, 0 }, { B(30), 0 }, NONE },
		{ "\x00\x02\x1f\xd6", 4, INSN_INDIRECT_JUMP, 0, 0, { B(16), 0 }, { 0, 0 }, NONE },
		{ "\x00\x01\x3f\xd6",
		  4,
		  INSN_INDIRECT_CALL,
		  0,
		  0,
		  { B(8), 0 },
		  { B(30), 0 },
		  NONE },
		{ "\xc0\x03\x5f\xd6", 4, INSN_RETURN, 0, 0, { B(30), 0 }, { 0, 0 }, NONE },
		{ "\x00\x00\x20\xd4", 4, INSN_TRAP, INSN_SERIALIZE, 0, { 0, 0 }, { 0, 0 }, NONE },
		{ "\x1f\x20\x03\xd5", 4, INSN_PLAIN, INSN_PADDING, 0, { 0, 0 }, { 0, 0 }, NONE },
		{ "\x00\x00\x00\x00", 4, INSN_DATA, 0, 0, { 0, 0 }, { 0, 0 }, NONE },
	};

	(void)state;
	CHECK(EM_AARCH64, e);
}

static void test_riscv(void **state)
{
	static const struct expected e[] = {
		/* ld a0, 8(a1); sd a2, -8(sp); amoadd.w a0, a1, (a2) */
		{ "\x03\xb5\x85\x00", 4, INSN_PLAIN, INSN_LOAD, 0, { B(11), 0 }, { B(10), 0 }, 11 },
		{ "\x23\x3c\xc1\xfe",
		  4,
		  INSN_PLAIN,
		  INSN_STORE,
		  0,
		  { B(2) | B(12), 0 },
		  { 0, 0 },
		  2 },
		{ "\x2f\x25\xb6\x00",
		  4,
		  INSN_PLAIN,
		  INSN_LOAD | INSN_STORE | INSN_ATOMIC,
		  0,
		  { B(11) | B(12), 0 },
		  { B(10), 0 },
		  12 },
		/* mul a0, a1, a2; divw a0, a1, a2; fdiv.d fa0, fa1, fa2 */
		{ "\x33\x85\xc5\x02",
		  4,
		  INSN_PLAIN,
		  INSN_MULTIPLY,
		  0,
		  { B(11) | B(12), 0 },
		  { B(10), 0 },
		  NONE },
		{ "\x3b\xc5\xc5\x02",
		  4,
		  INSN_PLAIN,
		  INSN_DIVIDE,
		  0,
		  { B(11) | B(12), 0 },
		  { B(10), 0 },
		  NONE },
		{ "\x53\xf5\xc5\x1a",
		  4,
		  INSN_PLAIN,
		  INSN_FP | INSN_FP_DIVIDE | INSN_VECTOR,
		  0,
		  { 0, B(11) | B(12) },
		  { 0, B(10) },
		  NONE },
		/* short: lw a1, 4(a0); sd ra, 8(sp); mv a0, a1; nop */
		{ "\x4c\x41", 2, INSN_PLAIN, INSN_LOAD, 0, { B(10), 0 }, { B(11), 0 }, 10 },
		{ "\x06\xe4", 2, INSN_PLAIN, INSN_STORE, 0, { B(1) | B(2), 0 }, { 0, 0 }, 2 },
		{ "\x2e\x85", 2, INSN_PLAIN, 0, 0, { B(11), 0 }, { B(10), 0 }, NONE },
		{ "\x01\x00", 2, INSN_PLAIN, INSN_PADDING, 0, { 0, 0 }, { 0, 0 }, NONE },
		/* Zcb: lbu, lhu, lh a5, 2(a4); lbu s0, (s1); sb, sh a5, 2(a4) */
		{ "\x3c\x83", 2, INSN_PLAIN, INSN_LOAD, 0, { B(14), 0 }, { B(15), 0 }, 14 },
		{ "\x3c\x87", 2, INSN_PLAIN, INSN_LOAD, 0, { B(14), 0 }, { B(15), 0 }, 14 },
		{ "\x7c\x87", 2, INSN_PLAIN, INSN_LOAD, 0, { B(14), 0 }, { B(15), 0 }, 14 },
		{ "\x80\x80", 2, INSN_PLAIN, INSN_LOAD, 0, { B(9), 0 }, { B(8), 0 }, 9 },
		{ "\x3c\x8b", 2, INSN_PLAIN, INSN_STORE, 0, { B(14) | B(15), 0 }, { 0, 0 }, 14 },
		{ "\x3c\x8f", 2, INSN_PLAIN, INSN_STORE, 0, { B(14) | B(15), 0 }, { 0, 0 }, 14 },
		/* mul s0, s1; zext.b, zext.h, sext.h, not s0; addw s0, s1 */
		{ "\x45\x9c",
		  2,
		  INSN_PLAIN,
		  INSN_MULTIPLY,
		  0,
		  { B(8) | B(9), 0 },
		  { B(8), 0 },
		  NONE },
		{ "\x61\x9c", 2, INSN_PLAIN, 0, 0, { B(8), 0 }, { B(8), 0 }, NONE },
		{ "\x69\x9c", 2, INSN_PLAIN, 0, 0, { B(8), 0 }, { B(8), 0 }, NONE },
		{ "\x6d\x9c", 2, INSN_PLAIN, 0, 0, { B(8), 0 }, { B(8), 0 }, NONE },
		{ "\x75\x9c", 2, INSN_PLAIN, 0, 0, { B(8), 0 }, { B(8), 0 }, NONE },
		{ "\x25\x9c", 2, INSN_PLAIN, 0, 0, { B(8) | B(9), 0 }, { B(8), 0 }, NONE },
		/* bne a0, a1, +8; c.beqz a0, +8; jal ra, +16; c.j -2; jr a5; jalr a5; ret; ebreak
		 */
		{ "\x63\x14\xb5\x00",
		  4,
		  INSN_BRANCH,
		  0,
		  0x1008,
		  { B(10) | B(11), 0 },
		  { 0, 0 },
		  NONE },
		{ "\x01\xc5", 2, INSN_BRANCH, 0, 0x1008, { B(10), 0 }, { 0, 0 }, NONE },
		{ "\xef\x00\x00\x01", 4, INSN_CALL, 0, 0x1010, { 0, 0 }, { B(1), 0 }, NONE },
		/* c.addi a6, 1; c.li t6, 1: registers from 16 on */
		{ "\x05\x08", 2, INSN_PLAIN, 0, 0, { B(16), 0 }, { B(16), 0 }, NONE },
		{ "\x85\x4f", 2, INSN_PLAIN, 0, 0, { 0, 0 }, { B(31), 0 }, NONE },
		{ "\xfd\xbf", 2, INSN_JUMP, 0, 0xffe, { 0, 0 }, { 0, 0 }, NONE },
		{ "\x82\x87", 2, INSN_INDIRECT_JUMP, 0, 0, { B(15), 0 }, { 0, 0 }, NONE },
		{ "\x82\x97", 2, INSN_INDIRECT_CALL, 0, 0, { B(15), 0 }, { B(1), 0 }, NONE },
		{ "\x82\x80", 2, INSN_RETURN, 0, 0, { B(1), 0 }, { 0, 0 }, NONE },
		{ "\x02\x90", 2, INSN_TRAP, INSN_SERIALIZE, 0, { 0, 0 }, { 0, 0 }, NONE },
		{ "\x00\x00", 2, INSN_DATA, 0, 0, { 0, 0 }, { 0, 0 }, NONE },
		{ "\xc0\x8c", 2, INSN_DATA, 0, 0, { 0, 0 }, { 0, 0 }, NONE },
	};

	(void)state;
	CHECK(EM_RISCV, e);
}

/* As an assembler has them. */
static void test_riscv_forms(void **state)
{
	static const struct expected e[] = {
		/* c.fld fa0, 8(a1) */
		{ "\x88\x25",
		  2,
		  INSN_PLAIN,
		  INSN_LOAD | INSN_VECTOR,
		  0,
		  { B(11), 0 },
		  { 0, B(10) },
		  11 },
		/* c.lw a0, 4(a1) */
		{ "\xc8\x41", 2, INSN_PLAIN, INSN_LOAD, 0, { B(11), 0 }, { B(10), 0 }, 11 },
		/* c.ld a0, 8(a1) */
		{ "\x88\x65", 2, INSN_PLAIN, INSN_LOAD, 0, { B(11), 0 }, { B(10), 0 }, 11 },
		/* c.fsd fa0, 8(a1) */
		{ "\x88\xa5",
		  2,
		  INSN_PLAIN,
		  INSN_STORE | INSN_VECTOR,
		  0,
		  { B(11), B(10) },
		  { 0, 0 },
		  11 },
		/* c.sw a0, 4(a1) */
		{ "\xc8\xc1", 2, INSN_PLAIN, INSN_STORE, 0, { B(10) | B(11), 0 }, { 0, 0 }, 11 },
		/* c.sd a0, 200(a1) */
		{ "\xe8\xe5", 2, INSN_PLAIN, INSN_STORE, 0, { B(10) | B(11), 0 }, { 0, 0 }, 11 },
		/* c.srli a0, 3 */
		{ "\x0d\x81", 2, INSN_PLAIN, 0, 0, { B(10), 0 }, { B(10), 0 }, NONE },
		/* c.srai a0, 40 */
		{ "\x21\x95", 2, INSN_PLAIN, 0, 0, { B(10), 0 }, { B(10), 0 }, NONE },
		/* c.andi a0, -5 */
		{ "\x6d\x99", 2, INSN_PLAIN, 0, 0, { B(10), 0 }, { B(10), 0 }, NONE },
		/* c.addiw a0, -3 */
		{ "\x75\x35", 2, INSN_PLAIN, 0, 0, { B(10), 0 }, { B(10), 0 }, NONE },
		/* c.addi16sp sp, -64 */
		{ "\x39\x71", 2, INSN_PLAIN, 0, 0, { B(2), 0 }, { B(2), 0 }, NONE },
		/* c.addi16sp sp, 496 */
		{ "\x7d\x61", 2, INSN_PLAIN, 0, 0, { B(2), 0 }, { B(2), 0 }, NONE },
		/* c.lui a0, 5 */
		{ "\x15\x65", 2, INSN_PLAIN, 0, 0, { 0, 0 }, { B(10), 0 }, NONE },
		/* c.lui a0, 1048545 */
		{ "\x05\x75", 2, INSN_PLAIN, 0, 0, { 0, 0 }, { B(10), 0 }, NONE },
		/* c.fldsp fa0, 24(sp) */
		{ "\x62\x25",
		  2,
		  INSN_PLAIN,
		  INSN_LOAD | INSN_VECTOR,
		  0,
		  { B(2), 0 },
		  { 0, B(10) },
		  2 },
		/* c.lwsp a0, 12(sp) */
		{ "\x32\x45", 2, INSN_PLAIN, INSN_LOAD, 0, { B(2), 0 }, { B(10), 0 }, 2 },
		/* c.ldsp a0, 264(sp) */
		{ "\x32\x65", 2, INSN_PLAIN, INSN_LOAD, 0, { B(2), 0 }, { B(10), 0 }, 2 },
		/* c.fsdsp fa0, 40(sp) */
		{ "\x2a\xb4",
		  2,
		  INSN_PLAIN,
		  INSN_STORE | INSN_VECTOR,
		  0,
		  { B(2), B(10) },
		  { 0, 0 },
		  2 },
		/* c.swsp a0, 200(sp) */
		{ "\xaa\xc5", 2, INSN_PLAIN, INSN_STORE, 0, { B(2) | B(10), 0 }, { 0, 0 }, 2 },
		/* c.sdsp a0, 264(sp) */
		{ "\x2a\xe6", 2, INSN_PLAIN, INSN_STORE, 0, { B(2) | B(10), 0 }, { 0, 0 }, 2 },
		/* c.addi4spn a0, sp, 64 */
		{ "\x88\x00", 2, INSN_PLAIN, 0, 0, { B(2), 0 }, { B(10), 0 }, NONE },
		/* fld fa0, -8(a1) */
		{ "\x07\xb5\x85\xff",
		  4,
		  INSN_PLAIN,
		  INSN_LOAD | INSN_VECTOR,
		  0,
		  { B(11), 0 },
		  { 0, B(10) },
		  11 },
		/* flw fa0, 4(a1) */
		{ "\x07\xa5\x45\x00",
		  4,
		  INSN_PLAIN,
		  INSN_LOAD | INSN_VECTOR,
		  0,
		  { B(11), 0 },
		  { 0, B(10) },
		  11 },
		/* lr.d a0, (a1) */
		{ "\x2f\xb5\x05\x10",
		  4,
		  INSN_PLAIN,
		  INSN_LOAD | INSN_STORE | INSN_ATOMIC,
		  0,
		  { B(11), 0 },
		  { B(10), 0 },
		  11 },
		/* sc.d a0, a2, (a1) */
		{ "\x2f\xb5\xc5\x18",
		  4,
		  INSN_PLAIN,
		  INSN_LOAD | INSN_STORE | INSN_ATOMIC,
		  0,
		  { B(11) | B(12), 0 },
		  { B(10), 0 },
		  11 },
		/* mret */
		{ "\x73\x00\x20\x30", 4, INSN_RETURN, INSN_SERIALIZE, 0, { 0, 0 }, { 0, 0 }, NONE },
		/* sret */
		{ "\x73\x00\x20\x10", 4, INSN_RETURN, INSN_SERIALIZE, 0, { 0, 0 }, { 0, 0 }, NONE },
		/* csrrw a0, mstatus, a1 */
		{ "\x73\x95\x05\x30",
		  4,
		  INSN_PLAIN,
		  INSN_SERIALIZE,
		  0,
		  { B(11), 0 },
		  { B(10), 0 },
		  NONE },
		/* csrrwi a0, mstatus, 3 */
		{ "\x73\xd5\x01\x30",
		  4,
		  INSN_PLAIN,
		  INSN_SERIALIZE,
		  0,
		  { 0, 0 },
		  { B(10), 0 },
		  NONE },
		/* csrrs a0, cycle, zero */
		{ "\x73\x25\x00\xc0",
		  4,
		  INSN_PLAIN,
		  INSN_SERIALIZE,
		  0,
		  { 0, 0 },
		  { B(10), 0 },
		  NONE },
		/* fence iorw, iorw */
		{ "\x0f\x00\xf0\x0f", 4, INSN_PLAIN, INSN_BARRIER, 0, { 0, 0 }, { 0, 0 }, NONE },
		/* fence.i */
		{ "\x0f\x10\x00\x00", 4, INSN_PLAIN, INSN_SERIALIZE, 0, { 0, 0 }, { 0, 0 }, NONE },
		/* wfi */
		{ "\x73\x00\x50\x10", 4, INSN_PLAIN, INSN_SERIALIZE, 0, { 0, 0 }, { 0, 0 }, NONE },
		/* ecall */
		{ "\x73\x00\x00\x00", 4, INSN_PLAIN, INSN_SERIALIZE, 0, { 0, 0 }, { 0, 0 }, NONE },
		/* fmadd.d fa0, fa1, fa2, fa3 */
		{ "\x43\xf5\xc5\x6a",
		  4,
		  INSN_PLAIN,
		  INSN_FP | INSN_VECTOR,
		  0,
		  { 0, B(11) | B(12) | B(13) },
		  { 0, B(10) },
		  NONE },
		/* fnmsub.s fa0, fa1, fa2, fa3 */
		{ "\x4b\xf5\xc5\x68",
		  4,
		  INSN_PLAIN,
		  INSN_FP | INSN_VECTOR,
		  0,
		  { 0, B(11) | B(12) | B(13) },
		  { 0, B(10) },
		  NONE },
		/* fcvt.d.w fa0, a1 */
		{ "\x53\x85\x05\xd2",
		  4,
		  INSN_PLAIN,
		  INSN_FP | INSN_VECTOR,
		  0,
		  { B(11), 0 },
		  { 0, B(10) },
		  NONE },
		/* fcvt.w.d a0, fa1 */
		{ "\x53\xf5\x05\xc2",
		  4,
		  INSN_PLAIN,
		  INSN_FP | INSN_VECTOR,
		  0,
		  { 0, B(11) },
		  { B(10), 0 },
		  NONE },
		/* fmv.x.d a0, fa1 */
		{ "\x53\x85\x05\xe2",
		  4,
		  INSN_PLAIN,
		  INSN_FP | INSN_VECTOR,
		  0,
		  { 0, B(11) },
		  { B(10), 0 },
		  NONE },
		/* feq.d a0, fa1, fa2 */
		{ "\x53\xa5\xc5\xa2",
		  4,
		  INSN_PLAIN,
		  INSN_FP | INSN_VECTOR,
		  0,
		  { 0, B(11) | B(12) },
		  { B(10), 0 },
		  NONE },
		/* fsqrt.d fa0, fa1 */
		{ "\x53\xf5\x05\x5a",
		  4,
		  INSN_PLAIN,
		  INSN_FP | INSN_FP_DIVIDE | INSN_VECTOR,
		  0,
		  { 0, B(11) },
		  { 0, B(10) },
		  NONE },
		/* c.sub s0, s1 */
		{ "\x05\x8c", 2, INSN_PLAIN, 0, 0, { B(8) | B(9), 0 }, { B(8), 0 }, NONE },
		/* c.xor s0, s1 */
		{ "\x25\x8c", 2, INSN_PLAIN, 0, 0, { B(8) | B(9), 0 }, { B(8), 0 }, NONE },
		/* c.or s0, s1 */
		{ "\x45\x8c", 2, INSN_PLAIN, 0, 0, { B(8) | B(9), 0 }, { B(8), 0 }, NONE },
		/* c.and s0, s1 */
		{ "\x65\x8c", 2, INSN_PLAIN, 0, 0, { B(8) | B(9), 0 }, { B(8), 0 }, NONE },
		/* c.subw s0, s1 */
		{ "\x05\x9c", 2, INSN_PLAIN, 0, 0, { B(8) | B(9), 0 }, { B(8), 0 }, NONE },
		/* c.slli a0, 4 */
		{ "\x12\x05", 2, INSN_PLAIN, 0, 0, { B(10), 0 }, { B(10), 0 }, NONE },
		/* c.mv a0, a1 */
		{ "\x2e\x85", 2, INSN_PLAIN, 0, 0, { B(11), 0 }, { B(10), 0 }, NONE },
		/* c.add a0, a1 */
		{ "\x2e\x95", 2, INSN_PLAIN, 0, 0, { B(10) | B(11), 0 }, { B(10), 0 }, NONE },
		/* c.lui a0, 16 */
		{ "\x41\x65", 2, INSN_PLAIN, 0, 0, { 0, 0 }, { B(10), 0 }, NONE },
		/* auipc a0, 1 */
		{ "\x17\x15\x00\x00", 4, INSN_PLAIN, 0, 0, { 0, 0 }, { B(10), 0 }, NONE },
		/* c.addi sp, -32 */
		{ "\x01\x11", 2, INSN_PLAIN, 0, 0, { B(2), 0 }, { B(2), 0 }, NONE },
		/* addiw a0, a1, 1 */
		{ "\x1b\x85\x15\x00", 4, INSN_PLAIN, 0, 0, { B(11), 0 }, { B(10), 0 }, NONE },
		/* slli a0, a1, 3 */
		{ "\x13\x95\x35\x00", 4, INSN_PLAIN, 0, 0, { B(11), 0 }, { B(10), 0 }, NONE },
		/* add s2, s3, s4 */
		{ "\x33\x89\x49\x01",
		  4,
		  INSN_PLAIN,
		  0,
		  0,
		  { B(19) | B(20), 0 },
		  { B(18), 0 },
		  NONE },
		/* ld s2, 8(s3) */
		{ "\x03\xb9\x89\x00", 4, INSN_PLAIN, INSN_LOAD, 0, { B(19), 0 }, { B(18), 0 }, 19 },
		/* sd s4, 8(s3) */
		{ "\x23\xb4\x49\x01",
		  4,
		  INSN_PLAIN,
		  INSN_STORE,
		  0,
		  { B(19) | B(20), 0 },
		  { 0, 0 },
		  19 },
		/* fmadd.d fs2, fs3, fs4, fs5 */
		{ "\x43\xf9\x49\xab",
		  4,
		  INSN_PLAIN,
		  INSN_FP | INSN_VECTOR,
		  0,
		  { 0, B(19) | B(20) | B(21) },
		  { 0, B(18) },
		  NONE },
		/* amoadd.w s2, s4, (s3) */
		{ "\x2f\xa9\x49\x01",
		  4,
		  INSN_PLAIN,
		  INSN_LOAD | INSN_STORE | INSN_ATOMIC,
		  0,
		  { B(19) | B(20), 0 },
		  { B(18), 0 },
		  19 },
		/* c.mv s2, s3 */
		{ "\x4e\x89", 2, INSN_PLAIN, 0, 0, { B(19), 0 }, { B(18), 0 }, NONE },
		/* c.add s2, s3 */
		{ "\x4e\x99", 2, INSN_PLAIN, 0, 0, { B(18) | B(19), 0 }, { B(18), 0 }, NONE },
		/* c.ldsp s2, 8(sp) */
		{ "\x22\x69", 2, INSN_PLAIN, INSN_LOAD, 0, { B(2), 0 }, { B(18), 0 }, 2 },
		/* c.sdsp s4, 8(sp) */
		{ "\x52\xe4", 2, INSN_PLAIN, INSN_STORE, 0, { B(2) | B(20), 0 }, { 0, 0 }, 2 },
		/* c.fldsp fs2, 8(sp) */
		{ "\x22\x29",
		  2,
		  INSN_PLAIN,
		  INSN_LOAD | INSN_VECTOR,
		  0,
		  { B(2), 0 },
		  { 0, B(18) },
		  2 },
		/* c.fsdsp fs4, 8(sp) */
		{ "\x52\xa4",
		  2,
		  INSN_PLAIN,
		  INSN_STORE | INSN_VECTOR,
		  0,
		  { B(2), B(20) },
		  { 0, 0 },
		  2 },
		/* c.slli s2, 3 */
		{ "\x0e\x09", 2, INSN_PLAIN, 0, 0, { B(18), 0 }, { B(18), 0 }, NONE },
		/* c.lui s2, 3 */
		{ "\x0d\x69", 2, INSN_PLAIN, 0, 0, { 0, 0 }, { B(18), 0 }, NONE },
		/* csrrw s2, mstatus, s3 */
		{ "\x73\x99\x09\x30",
		  4,
		  INSN_PLAIN,
		  INSN_SERIALIZE,
		  0,
		  { B(19), 0 },
		  { B(18), 0 },
		  NONE },
		/* c.lui s2, 5 */
		{ "\x15\x69", 2, INSN_PLAIN, 0, 0, { 0, 0 }, { B(18), 0 }, NONE },
		/* fcvt.d.w fs2, s3 */
		{ "\x53\x89\x09\xd2",
		  4,
		  INSN_PLAIN,
		  INSN_FP | INSN_VECTOR,
		  0,
		  { B(19), 0 },
		  { 0, B(18) },
		  NONE },
		/* fcvt.w.d s2, fs3 */
		{ "\x53\xf9\x09\xc2",
		  4,
		  INSN_PLAIN,
		  INSN_FP | INSN_VECTOR,
		  0,
		  { 0, B(19) },
		  { B(18), 0 },
		  NONE },
		/* fadd.d fs2, fs3, fs4 */
		{ "\x53\xf9\x49\x03",
		  4,
		  INSN_PLAIN,
		  INSN_FP | INSN_VECTOR,
		  0,
		  { 0, B(19) | B(20) },
		  { 0, B(18) },
		  NONE },
		/* mulw s2, s3, s4 */
		{ "\x3b\x89\x49\x03",
		  4,
		  INSN_PLAIN,
		  INSN_MULTIPLY,
		  0,
		  { B(19) | B(20), 0 },
		  { B(18), 0 },
		  NONE },
	};

	(void)state;
	CHECK(EM_RISCV, e);
}

static void test_riscv_ops(void **state)
{
	enum { HELD = 1, LOADED = 2, SIGNED = 4 };
	static const struct {
		const char *text, *code;
		size_t len;
		unsigned int how;
		uint8_t dst, a, b, scale, size;
		int64_t disp;
		uint64_t max;
	} e[] = {
		{ "lbu a5, 2(a4)", "\x3c\x83", 2, LOADED, 15, 14, NONE, 1, 1, 2, 0xff },
		{ "lhu a5, 2(a4)", "\x3c\x87", 2, LOADED, 15, 14, NONE, 1, 2, 2, 0xffff },
		{ "lh a5, 2(a4)", "\x7c\x87", 2, LOADED | SIGNED, 15, 14, NONE, 1, 2, 2,
		  UINT64_MAX },
		{ "zext.b s0", "\x61\x9c", 2, 0, 8, NONE, NONE, 1, 8, 0, 0xff },
		{ "zext.h s0", "\x69\x9c", 2, 0, 8, NONE, NONE, 1, 8, 0, 0xffff },
		{ "not s0", "\x75\x9c", 2, 0, 8, NONE, NONE, 1, 8, 0, UINT64_MAX },
		{ "andi a0, 5", "\x15\x89", 2, 0, 10, NONE, NONE, 1, 8, 0, 5 },
		{ "andi a0, -5", "\x6d\x99", 2, 0, 10, NONE, NONE, 1, 8, 0, UINT64_MAX },
		{ "lw a0, 4(a1)", "\xc8\x41", 2, LOADED | SIGNED, 10, 11, NONE, 1, 4, 4,
		  UINT64_MAX },
		{ "ld a0, 8(a1)", "\x88\x65", 2, LOADED | SIGNED, 10, 11, NONE, 1, 8, 8,
		  UINT64_MAX },
		{ "lwsp a0, 12(sp)", "\x32\x45", 2, LOADED | SIGNED, 10, 2, NONE, 1, 4, 12,
		  UINT64_MAX },
		{ "ldsp a0, 264(sp)", "\x32\x65", 2, LOADED | SIGNED, 10, 2, NONE, 1, 8, 264,
		  UINT64_MAX },
		{ "addi4spn a0, sp, 64", "\x88\x00", 2, HELD, 10, 2, NONE, 1, 8, 64, UINT64_MAX },
		{ "addi16sp sp, -64", "\x39\x71", 2, HELD, 2, 2, NONE, 1, 8, -64, UINT64_MAX },
		{ "addi16sp sp, 496", "\x7d\x61", 2, HELD, 2, 2, NONE, 1, 8, 496, UINT64_MAX },
		{ "addiw a0, -3", "\x75\x35", 2, HELD | SIGNED, 10, 10, NONE, 1, 4, -3,
		  UINT64_MAX },
		{ "lui a0, 5", "\x15\x65", 2, HELD, 10, NONE, NONE, 1, 8, 0x5000, UINT64_MAX },
		{ "lui a0, 0xfffe1", "\x05\x75", 2, HELD, 10, NONE, NONE, 1, 8, -0x1f000,
		  UINT64_MAX },
		{ "auipc a0, 1", "\x17\x15\x00\x00", 4, HELD, 10, NONE, NONE, 1, 8, 0x2000,
		  UINT64_MAX },
		{ "slli a0, 4", "\x12\x05", 2, HELD, 10, NONE, 10, 16, 8, 0, UINT64_MAX },
		{ "slliw a0, a1, 2", "\x1b\x95\x25\x00", 4, HELD | SIGNED, 10, NONE, 11, 4, 4, 0,
		  UINT64_MAX },
		{ "slli a0, a1, 7", "\x13\x95\x75\x00", 4, 0, 10, NONE, 11, 1, 8, 0, UINT64_MAX },
		{ "mv a0, a1", "\x2e\x85", 2, HELD, 10, NONE, 11, 1, 8, 0, UINT64_MAX },
		{ "add a0, a1", "\x2e\x95", 2, HELD, 10, 10, 11, 1, 8, 0, UINT64_MAX },
		{ "addw s0, s1", "\x25\x9c", 2, HELD | SIGNED, 8, 8, 9, 1, 4, 0, UINT64_MAX },
		{ "sub s0, s1", "\x05\x8c", 2, 0, 8, NONE, NONE, 1, 8, 0, UINT64_MAX },
		{ "li t6, 1", "\x85\x4f", 2, HELD, 31, NONE, NONE, 1, 8, 1, UINT64_MAX },
		{ "jr a5", "\x82\x87", 2, HELD, INSN_TARGET, 15, NONE, 1, 8, 0, UINT64_MAX },
		{ "fsd fa0, 8(a1)", "\x88\xa5", 2, 0, NONE, NONE, NONE, 1, 8, 0, UINT64_MAX },
	};
	struct insn_decoder *d = NULL;
	struct insn_op op;

	(void)state;
	assert_int_equal(insn_decoder_open(EM_RISCV, &d, NULL), 0);
	for (size_t i = 0; i < sizeof(e) / sizeof(e[0]); i++) {
		insn_decode_op(d, (const uint8_t *)e[i].code, e[i].len, 0x1000, &op);
		if (op.known != !!(e[i].how & (HELD | LOADED)) ||
		    op.load != !!(e[i].how & LOADED) || op.sign != !!(e[i].how & SIGNED))
			fail_msg("%s: known %d, load %d, sign %d", e[i].text, op.known, op.load,
				 op.sign);
		if (op.dst != e[i].dst || op.a != e[i].a || op.b != e[i].b ||
		    op.scale != e[i].scale)
			fail_msg("%s: dst %u, a %u, b %u", e[i].text, op.dst, op.a, op.b);
		if (op.size != e[i].size || op.disp != e[i].disp || op.max != e[i].max)
			fail_msg("%s: size %u, disp %lld", e[i].text, op.size, (long long)op.disp);
	}
	insn_decoder_close(d);
}

/* The last number is what is compared with, or the bound of the result; 0: there is none. */
static void test_x86_values(void **state)
{
	enum { HELD = 1, LOADED = 2, SIGNED = 4, COMPARED = 8, READ = 16 };
	static const struct {
		const char *text, *code;
		size_t len;
		unsigned int how;
		uint8_t dst, a, b, plus, scale, size;
		int64_t disp, number;
	} e[] = {
		{ "mov %rsi,%rax", "\x48\x89\xf0", 3, HELD, 0, 6, NONE, NONE, 1, 8, 0, 0 },
		{ "mov %esi,%eax", "\x89\xf0", 2, HELD, 0, 6, NONE, NONE, 1, 4, 0, 0 },
		{ "mov $0x7,%eax", "\xb8\x07\x00\x00\x00", 5, HELD, 0, NONE, NONE, NONE, 1, 8, 7,
		  0 },
		{ "mov $0xffffffffffffffff,%rax", "\x48\xc7\xc0\xff\xff\xff\xff", 7, HELD, 0, NONE,
		  NONE, NONE, 1, 8, -1, 0 },
		{ "mov $0xffffffff,%eax", "\xb8\xff\xff\xff\xff", 5, HELD, 0, NONE, NONE, NONE, 1,
		  8, 4294967295, 0 },
		{ "mov 0x8(%rbx,%rcx,4),%rax", "\x48\x8b\x44\x8b\x08", 5, LOADED, 0, 3, 1, NONE, 4,
		  8, 8, 0 },
		{ "mov 0x10(%rip),%rax", "\x48\x8b\x05\x10\x00\x00\x00", 7, LOADED, 0, NONE, NONE,
		  NONE, 1, 8, 4119, 0 },
		{ "mov %al,%bl", "\x88\xc3", 2, 0, 3, 0, NONE, NONE, 1, 1, 0, 0 },
		{ "movzbl %sil,%eax", "\x40\x0f\xb6\xc6", 4, HELD, 0, 6, NONE, NONE, 1, 1, 0,
		  0xff },
		{ "movzwl (%rdi),%eax", "\x0f\xb7\x07", 3, LOADED, 0, 7, NONE, NONE, 1, 2, 0,
		  0xffff },
		{ "movsbl %sil,%eax", "\x40\x0f\xbe\xc6", 4, HELD | SIGNED, 0, 6, NONE, NONE, 1, 1,
		  0, 0 },
		{ "movslq %esi,%rax", "\x48\x63\xc6", 3, HELD | SIGNED, 0, 6, NONE, NONE, 1, 4, 0,
		  0 },
		{ "movslq (%rdi,%rcx,4),%rax", "\x48\x63\x04\x8f", 4, LOADED | SIGNED, 0, 7, 1,
		  NONE, 4, 4, 0, 0 },
		{ "lea 0x8(%rdi,%rsi,2),%rax", "\x48\x8d\x44\x77\x08", 5, HELD, 0, 7, 6, NONE, 2, 8,
		  8, 0 },
		{ "lea 0x10(%rip),%rax", "\x48\x8d\x05\x10\x00\x00\x00", 7, HELD, 0, NONE, NONE,
		  NONE, 1, 8, 4119, 0 },
		{ "lea 0x4(%rdi),%ax", "\x66\x8d\x47\x04", 4, 0, 0, 7, NONE, NONE, 1, 8, 4, 0 },
		{ "lea 0x8(%rdi),%eax", "\x8d\x47\x08", 3, HELD, 0, 7, NONE, NONE, 1, 8, 8, 0 },
		{ "add $0x5,%rax", "\x48\x83\xc0\x05", 4, HELD, 0, 0, NONE, NONE, 1, 8, 5, 0 },
		{ "sub $0x5,%rax", "\x48\x83\xe8\x05", 4, HELD, 0, 0, NONE, NONE, 1, 8, -5, 0 },
		{ "add %rcx,%rax", "\x48\x01\xc8", 3, HELD, 0, 0, 1, NONE, 1, 8, 0, 0 },
		{ "sub %rcx,%rax", "\x48\x29\xc8", 3, 0, 0, 0, 1, NONE, 1, 8, 0, 0 },
		{ "add 0x8(%rdi),%rax", "\x48\x03\x47\x08", 4, LOADED, 0, 7, NONE, 0, 1, 8, 8, 0 },
		{ "sub 0x8(%rdi),%rax", "\x48\x2b\x47\x08", 4, READ, 0, 7, NONE, 0, 1, 8, 8, 0 },
		{ "add $0x5,%ax", "\x66\x83\xc0\x05", 4, 0, 0, NONE, NONE, NONE, 1, 8, 0, 0 },
		{ "shl $0x3,%rax", "\x48\xc1\xe0\x03", 4, HELD, 0, NONE, 0, NONE, 8, 8, 0, 0 },
		{ "shl $0x7,%rax", "\x48\xc1\xe0\x07", 4, 0, 0, NONE, 0, NONE, 1, 8, 0, 0 },
		{ "shl $0x3,%ax", "\x66\xc1\xe0\x03", 4, 0, 0, NONE, 0, NONE, 1, 8, 0, 0 },
		{ "shl %cl,%rax", "\x48\xd3\xe0", 3, 0, 0, NONE, 0, NONE, 1, 8, 0, 0 },
		{ "xor %eax,%eax", "\x31\xc0", 2, HELD, 0, NONE, NONE, NONE, 1, 8, 0, 0 },
		{ "xor %ecx,%eax", "\x31\xc8", 2, 0, 0, NONE, NONE, NONE, 1, 8, 0, 0 },
		{ "bsf %rcx,%rax", "\x48\x0f\xbc\xc1", 4, 0, 0, NONE, NONE, NONE, 1, 8, 0, 0x3f },
		{ "tzcnt %ecx,%eax", "\xf3\x0f\xbc\xc1", 4, 0, 0, NONE, NONE, NONE, 1, 8, 0, 0x20 },
		{ "and $0xf,%eax", "\x83\xe0\x0f", 3, 0, 0, NONE, NONE, NONE, 1, 8, 0, 0xf },
		{ "and $0xfffffffffffffff0,%rax", "\x48\x83\xe0\xf0", 4, 0, 0, NONE, NONE, NONE, 1,
		  8, 0, 0 },
		{ "and %rcx,%rax", "\x48\x21\xc8", 3, 0, 0, NONE, NONE, NONE, 1, 8, 0, 0 },
		{ "cltq", "\x48\x98", 2, HELD | SIGNED, 0, 0, NONE, NONE, 1, 4, 0, 0 },
		{ "cmp $0x9,%eax", "\x83\xf8\x09", 3, COMPARED, NONE, 0, NONE, NONE, 1, 4, 0, 9 },
		{ "cmpb $0xc8,(%rdi)", "\x80\x3f\xc8", 3, READ | COMPARED, NONE, 7, NONE, NONE, 1,
		  1, 0, 200 },
		{ "cmp $0xffff,%ax", "\x66\x83\xf8\xff", 4, COMPARED, NONE, 0, NONE, NONE, 1, 2, 0,
		  -1 },
		{ "cmp %rcx,%rax", "\x48\x39\xc8", 3, 0, NONE, NONE, NONE, NONE, 1, 8, 0, 0 },
		{ "cmpl $0x3,0x4(%rdi,%rsi,4)", "\x83\x7c\xb7\x04\x03", 5, READ | COMPARED, NONE, 7,
		  6, NONE, 4, 4, 4, 3 },
		{ "jmp *%rax", "\xff\xe0", 2, HELD, INSN_TARGET, 0, NONE, NONE, 1, 8, 0, 0 },
		{ "jmp *0x8(,%rax,8)", "\xff\x24\xc5\x08\x00\x00\x00", 7, LOADED, INSN_TARGET, NONE,
		  0, NONE, 8, 8, 8, 0 },
		{ "jmp *0x10(%rip)", "\xff\x25\x10\x00\x00\x00", 6, LOADED, INSN_TARGET, NONE, NONE,
		  NONE, 1, 8, 4118, 0 },
		{ "movq %xmm0,%rax", "\x66\x48\x0f\x7e\xc0", 5, 0, 0, NONE, NONE, NONE, 1, 8, 0,
		  0 },
		{ "mov %rax,(%rdi)", "\x48\x89\x07", 3, 0, NONE, NONE, NONE, NONE, 1, 8, 0, 0 },
		{ "imul $0x3,%rcx,%rax", "\x48\x6b\xc1\x03", 4, 0, NONE, NONE, NONE, NONE, 1, 8, 0,
		  0 },
		{ "or $0x3,%eax", "\x83\xc8\x03", 3, 0, 0, NONE, NONE, NONE, 1, 8, 0, 0 },
	};
	struct insn_decoder *d = NULL;
	struct insn_op op;

	(void)state;
	assert_int_equal(insn_decoder_open(EM_X86_64, &d, NULL), 0);
	for (size_t i = 0; i < sizeof(e) / sizeof(e[0]); i++) {
		bool compares = e[i].how & COMPARED;

		insn_decode_op(d, (const uint8_t *)e[i].code, e[i].len, 0x1000, &op);
		if (op.known != !!(e[i].how & (HELD | LOADED)) ||
		    op.load != !!(e[i].how & (LOADED | READ)) || op.sign != !!(e[i].how & SIGNED) ||
		    op.compare != compares || op.with_b)
			fail_msg("%s: known %d, load %d, sign %d", e[i].text, op.known, op.load,
				 op.sign);
		if (op.dst != e[i].dst || op.a != e[i].a || op.b != e[i].b ||
		    op.plus != e[i].plus || op.scale != e[i].scale)
			fail_msg("%s: dst %u, a %u, b %u", e[i].text, op.dst, op.a, op.b);
		if (op.size != e[i].size || op.disp != e[i].disp)
			fail_msg("%s: size %u, disp %lld", e[i].text, op.size, (long long)op.disp);
		if (op.max != (!compares && e[i].number ? (uint64_t)e[i].number : UINT64_MAX) ||
		    (compares && op.value != e[i].number))
			fail_msg("%s: max %llx, value %lld", e[i].text, (unsigned long long)op.max,
				 (long long)op.value);
	}
	insn_decoder_close(d);
}

/* What takes stack and what gives it back; all else, though it is at the stack, does neither. */
static void test_stack_moves(void **state)
{
	static const struct {
		uint32_t machine;
		size_t len;
		const char *code;
		int move;
	} e[] = {
		/* push rbx, r12; pop rbx, r12; leave; add and sub 8 of rsp, sub 256 */
		{ EM_X86_64, 1, "\x53", -1 },
		{ EM_X86_64, 2, "\x41\x54", -1 },
		{ EM_X86_64, 1, "\x5b", 1 },
		{ EM_X86_64, 2, "\x41\x5c", 1 },
		{ EM_X86_64, 1, "\xc9", 1 },
		{ EM_X86_64, 4, "\x48\x83\xc4\x08", 1 },
		{ EM_X86_64, 4, "\x48\x83\xec\x08", -1 },
		{ EM_X86_64, 7, "\x48\x81\xec\x00\x01\x00\x00", -1 },
		/* the same of r12: add 8, add 256, sub 8; lea 8(%rbx), %r12 */
		{ EM_X86_64, 4, "\x49\x83\xc4\x08", 0 },
		{ EM_X86_64, 7, "\x49\x81\xc4\x00\x01\x00\x00", 0 },
		{ EM_X86_64, 4, "\x49\x83\xec\x08", 0 },
		{ EM_X86_64, 4, "\x4c\x8d\x63\x08", 0 },
		/* lea -8(%r13), %rsp */
		{ EM_X86_64, 4, "\x49\x8d\x65\xf8", 1 },
		/* lea -16(%rbp), %rsp; lea 8(%rsp), %rax; mov %rsp, %rbp; add $8, %rax */
		{ EM_X86_64, 4, "\x48\x8d\x65\xf0", 1 },
		{ EM_X86_64, 5, "\x48\x8d\x44\x24\x08", 0 },
		{ EM_X86_64, 3, "\x48\x89\xe5", 0 },
		{ EM_X86_64, 4, "\x48\x83\xc0\x08", 0 },
		/* stp x29, x30, [sp, #-16]!; ldp x29, x30, [sp], #16; the same at [sp, #16] */
		{ EM_AARCH64, 4, "\xfd\x7b\xbf\xa9", -1 },
		{ EM_AARCH64, 4, "\xfd\x7b\xc1\xa8", 1 },
		{ EM_AARCH64, 4, "\xfd\x7b\x01\xa9", 0 },
		{ EM_AARCH64, 4, "\xf3\x53\x41\xa9", 0 },
		/* str x30, [sp, #-16]!; ldr x30, [sp], #16; str and stur x0, [sp, #8] */
		{ EM_AARCH64, 4, "\xfe\x0f\x1f\xf8", -1 },
		{ EM_AARCH64, 4, "\xfe\x07\x41\xf8", 1 },
		{ EM_AARCH64, 4, "\xe0\x07\x00\xf9", 0 },
		{ EM_AARCH64, 4, "\xe0\x83\x00\xf8", 0 },
		/* sub and add 16 of sp; mov x29, sp; stp x29, x30, [x1, #-16]! */
		{ EM_AARCH64, 4, "\xff\x43\x00\xd1", -1 },
		{ EM_AARCH64, 4, "\xff\x43\x00\x91", 1 },
		{ EM_AARCH64, 4, "\xfd\x03\x00\x91", 0 },
		{ EM_AARCH64, 4, "\x3d\x78\xbf\xa9", 0 },
		/* addi sp, -32; addi16sp sp, 496; addi4spn a0, sp, 64; ldsp a0, 264(sp) */
		{ EM_RISCV, 2, "\x01\x11", -1 },
		{ EM_RISCV, 2, "\x7d\x61", 1 },
		{ EM_RISCV, 2, "\x88\x00", 0 },
		{ EM_RISCV, 2, "\x32\x65", 0 },
	};
	struct insn_decoder *d = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(e) / sizeof(e[0]); i++) {
		uint8_t code[16] = { 0 };

		memcpy(code, e[i].code, e[i].len);
		assert_int_equal(insn_decoder_open(e[i].machine, &d, NULL), 0);
		if (insn_stack_move(d, code, sizeof(code)) != e[i].move)
			fail_msg("%zu is no %d", i, e[i].move);
		insn_decoder_close(d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_step),	    cmocka_unit_test(test_x86),
		cmocka_unit_test(test_x86_names),   cmocka_unit_test(test_aarch64),
		cmocka_unit_test(test_riscv),	    cmocka_unit_test(test_riscv_ops),
		cmocka_unit_test(test_riscv_forms), cmocka_unit_test(test_x86_values),
		cmocka_unit_test(test_stack_moves), cmocka_unit_test(test_x86_flow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
