/* SPDX-License-Identifier: BSD-2-Clause */
/* What aarch64's instructions do and which registers they touch; words as the assembler has them.
 */
#include <elf.h>
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "insn.h"

enum {
	NONE = INSN_NO_REGISTER,
	V = INSN_VECTOR,
	FP = V | INSN_FP,
	DIVIDE = FP | INSN_FP_DIVIDE,
	MULTIPLY = V | INSN_MULTIPLY,
	LOAD = INSN_LOAD,
	STORE = INSN_STORE,
	SWAP = INSN_LOAD | INSN_STORE | INSN_ATOMIC,
};

struct expected {
	const char *text;
	uint32_t word;
	uint16_t kinds;
	struct insn_registers reads, writes;
	uint8_t base, index;
};

static bool same(const struct insn_registers *a, const struct insn_registers *b)
{
	return a->gpr == b->gpr && a->vector == b->vector;
}

static void check(const struct expected *e, size_t nr)
{
	struct insn_decoder *d = NULL;
	struct insn i;

	assert_int_equal(insn_decoder_open(EM_AARCH64, &d, NULL), 0);
	for (; nr--; e++) {
		uint8_t code[] = { (uint8_t)e->word, (uint8_t)(e->word >> 8),
				   (uint8_t)(e->word >> 16), (uint8_t)(e->word >> 24) };

		insn_decode(d, code, sizeof(code), 0x1000, &i);
		if (i.flow != INSN_PLAIN || i.kinds != e->kinds)
			fail_msg("%s: flow %u, kinds 0x%x", e->text, i.flow, i.kinds);
		if (!same(&i.reads, &e->reads) || !same(&i.writes, &e->writes))
			fail_msg("%s: registers", e->text);
		if (i.base != e->base || i.index != e->index)
			fail_msg("%s: base %u, index %u", e->text, i.base, i.index);
	}
	insn_decoder_close(d);
}

#define B(n)	     (1ull << (n))
#define CHECK(table) check(table, sizeof(table) / sizeof((table)[0]))
#define COMPUTES(...)                                                                              \
	{                                                                                          \
		__VA_ARGS__, NONE, NONE                                                            \
	}

static void test_simd(void **state)
{
	static const struct expected e[] = {
		COMPUTES("fmla v0.4s, v1.4s, v2.4s", 0x4e22cc20, FP, { 0, 6 }, { 0, 1 }),
		COMPUTES("fadd v0.8h, v1.8h, v2.8h", 0x4e421420, FP, { 0, 6 }, { 0, 1 }),
		COMPUTES("fmul v0.4s, v1.4s, v2.s[1]", 0x4fa29020, FP, { 0, 6 }, { 0, 1 }),
		COMPUTES("bfdot v0.4s, v1.8h, v2.8h", 0x6e42fc20, FP, { 0, 6 }, { 0, 1 }),
		COMPUTES("fcmla v0.4s, v1.4s, v2.4s, #90", 0x6e82cc20, FP, { 0, 6 }, { 0, 1 }),
		COMPUTES("fmulx s0, s1, s2", 0x5e22dc20, FP, { 0, 6 }, { 0, 1 }),
		COMPUTES("fcvtzs v0.4s, v1.4s", 0x4ea1b820, FP, { 0, 2 }, { 0, 1 }),
		COMPUTES("scvtf v0.4s, v1.4s, #3", 0x4f3de420, FP, { 0, 2 }, { 0, 1 }),
		COMPUTES("fcmgt v0.4s, v1.4s, #0.0", 0x4ea0c820, FP, { 0, 2 }, { 0, 1 }),
		COMPUTES("fmaxv s0, v1.4s", 0x6e30f820, FP, { 0, 2 }, { 0, 1 }),
		COMPUTES("faddp d0, v1.2d", 0x7e70d820, FP, { 0, 2 }, { 0, 1 }),
		COMPUTES("fdiv v0.4s, v1.4s, v2.4s", 0x6e22fc20, DIVIDE, { 0, 6 }, { 0, 1 }),
		COMPUTES("fdiv v0.8h, v1.8h, v2.8h", 0x6e423c20, DIVIDE, { 0, 6 }, { 0, 1 }),
		COMPUTES("fsqrt v0.2d, v1.2d", 0x6ee1f820, DIVIDE, { 0, 2 }, { 0, 1 }),
		COMPUTES("fsqrt v0.8h, v1.8h", 0x6ef9f820, DIVIDE, { 0, 2 }, { 0, 1 }),
		COMPUTES("mul v0.4s, v1.4s, v2.4s", 0x4ea29c20, MULTIPLY, { 0, 6 }, { 0, 1 }),
		COMPUTES("sqdmulh s0, s1, s2", 0x5ea2b420, MULTIPLY, { 0, 6 }, { 0, 1 }),
		COMPUTES("umlal2 v0.4s, v1.8h, v2.8h", 0x6e628020, MULTIPLY, { 0, 6 }, { 0, 1 }),
		COMPUTES("mul v0.8h, v1.8h, v2.h[4]", 0x4f428820, MULTIPLY, { 0, 6 }, { 0, 1 }),
		COMPUTES("mul v0.8h, v1.8h, v2.h[1]", 0x4f528020, MULTIPLY, { 0, 6 }, { 0, 1 }),
		COMPUTES("sdot v0.4s, v1.16b, v2.16b", 0x4e829420, MULTIPLY, { 0, 6 }, { 0, 1 }),
		COMPUTES("add v0.4s, v1.4s, v2.4s", 0x4ea28420, V, { 0, 6 }, { 0, 1 }),
		COMPUTES("shl v0.4s, v1.4s, #3", 0x4f235420, V, { 0, 2 }, { 0, 1 }),
		COMPUTES("sminv b0, v1.16b", 0x4e31a820, V, { 0, 2 }, { 0, 1 }),
		COMPUTES("aese v0.16b, v1.16b", 0x4e284820, V, { 0, 2 }, { 0, 1 }),
		COMPUTES("movi v0.4s, #5", 0x4f0004a0, V, { 0, 0 }, { 0, 1 }),
		COMPUTES("orr v0.4s, #7", 0x4f0014e0, V, { 0, 1 }, { 0, 1 }),
		COMPUTES("dup v0.4s, w1", 0x4e040c20, V, { 2, 0 }, { 0, 1 }),
		COMPUTES("mov v0.s[1], w1", 0x4e0c1c20, V, { 2, 0 }, { 0, 1 }),
		COMPUTES("mov v0.s[1], v1.s[2]", 0x6e0c4420, V, { 0, 2 }, { 0, 1 }),
		COMPUTES("smov w0, v1.h[1]", 0x0e062c20, V, { 0, 2 }, { 1, 0 }),
		COMPUTES("umov x0, v1.d[1]", 0x4e183c20, V, { 0, 2 }, { 1, 0 }),
		COMPUTES("sudot v0.4s, v1.16b, v18.4b[1]", 0x4f32f020, MULTIPLY, { 0, B(18) | 2 },
			 { 0, 1 }),
		COMPUTES("usdot v0.4s, v1.16b, v18.4b[1]", 0x4fb2f020, MULTIPLY, { 0, B(18) | 2 },
			 { 0, 1 }),
		COMPUTES("bfmlalb v0.4s, v1.8h, v2.h[5]", 0x0fd2f820, FP, { 0, 6 }, { 0, 1 }),
		COMPUTES("bfdot v0.4s, v1.8h, v18.2h[1]", 0x4f72f020, FP, { 0, B(18) | 2 },
			 { 0, 1 }),
		COMPUTES("fmlal v0.4s, v1.4h, v2.h[5]", 0x4f920820, FP, { 0, 6 }, { 0, 1 }),
		COMPUTES("fmla v0.8h, v1.8h, v2.h[5]", 0x4f121820, FP, { 0, 6 }, { 0, 1 }),
		COMPUTES("fcmla v0.8h, v1.8h, v18.h[1], #90", 0x6f723020, FP, { 0, B(18) | 2 },
			 { 0, 1 }),
		COMPUTES("eor3 v0.16b, v1.16b, v2.16b, v3.16b", 0xce020c20, V, { 0, 0xe },
			 { 0, 1 }),
		COMPUTES("rax1 v0.2d, v1.2d, v2.2d", 0xce628c20, V, { 0, 6 }, { 0, 1 }),
	};

	(void)state;
	CHECK(e);
}

static void test_scalar_fp(void **state)
{
	static const struct expected e[] = {
		COMPUTES("scvtf s0, w1", 0x1e220020, FP, { 2, 0 }, { 0, 1 }),
		COMPUTES("scvtf d0, x1, #3", 0x9e42f420, FP, { 2, 0 }, { 0, 1 }),
		COMPUTES("fcvtzs w0, s1", 0x1e380020, FP, { 0, 2 }, { 1, 0 }),
		COMPUTES("fjcvtzs w0, d1", 0x1e7e0020, FP, { 0, 2 }, { 1, 0 }),
		COMPUTES("fmov x0, d1", 0x9e660020, V, { 0, 2 }, { 1, 0 }),
		COMPUTES("fmov s0, s1", 0x1e204020, V, { 0, 2 }, { 0, 1 }),
		COMPUTES("fmov d0, #2.5", 0x1e609000, V, { 0, 0 }, { 0, 1 }),
		COMPUTES("fcvt d0, s1", 0x1e22c020, FP, { 0, 2 }, { 0, 1 }),
		COMPUTES("frintx s0, s1", 0x1e274020, FP, { 0, 2 }, { 0, 1 }),
		COMPUTES("fcmp s1, s2", 0x1e222020, FP, { 0, 6 }, { INSN_FLAGS, 0 }),
		COMPUTES("fcmp s1, #0.0", 0x1e202028, FP, { 0, 2 }, { INSN_FLAGS, 0 }),
		COMPUTES("fccmp s1, s2, #3, eq", 0x1e220423, FP, { INSN_FLAGS, 6 },
			 { INSN_FLAGS, 0 }),
		COMPUTES("fsqrt d0, d1", 0x1e61c020, DIVIDE, { 0, 2 }, { 0, 1 }),
		COMPUTES("fmadd d0, d1, d2, d3", 0x1f420c20, FP, { 0, 0xe }, { 0, 1 }),
		COMPUTES("fmul s0, s1, s2", 0x1e220820, FP, { 0, 6 }, { 0, 1 }),
		COMPUTES("fdiv s0, s1, s2", 0x1e221820, DIVIDE, { 0, 6 }, { 0, 1 }),
		COMPUTES("fcsel s0, s1, s2, eq", 0x1e220c20, V, { INSN_FLAGS, 6 }, { 0, 1 }),
	};

	(void)state;
	CHECK(e);
}

static void test_general(void **state)
{
	static const struct expected e[] = {
		COMPUTES("clz x1, x2", 0xdac01041, 0, { B(2), 0 }, { B(1), 0 }),
		COMPUTES("ccmp w1, #2, #3, eq", 0x7a420823, 0, { INSN_FLAGS | B(1), 0 },
			 { INSN_FLAGS, 0 }),
		COMPUTES("ccmp w2, #2, #3, eq", 0x7a420843, 0, { INSN_FLAGS | B(2), 0 },
			 { INSN_FLAGS, 0 }),
		COMPUTES("ccmp w1, w2, #3, eq", 0x7a420023, 0, { INSN_FLAGS | B(1) | B(2), 0 },
			 { INSN_FLAGS, 0 }),
		COMPUTES("mrs x3, tpidr_el0", 0xd53bd043, 0, { 0, 0 }, { B(3), 0 }),
		COMPUTES("msr tpidr_el0, x3", 0xd51bd043, 0, { B(3), 0 }, { 0, 0 }),
		COMPUTES("extr x0, x1, x2, #4", 0x93c21020, 0, { 6, 0 }, { 1, 0 }),
		COMPUTES("movk x0, #3", 0xf2800060, 0, { 1, 0 }, { 1, 0 }),
		COMPUTES("movz x0, #3", 0xd2800060, 0, { 0, 0 }, { 1, 0 }),
		COMPUTES("bfxil x0, x1, #2, #2", 0xb3420c20, 0, { 3, 0 }, { 1, 0 }),
		COMPUTES("sbfx x0, x1, #2, #2", 0x93420c20, 0, { 2, 0 }, { 1, 0 }),
		COMPUTES("ands x0, x1, #1", 0xf2400020, 0, { 2, 0 }, { INSN_FLAGS | 1, 0 }),
		COMPUTES("and x0, x1, #1", 0x92400020, 0, { 2, 0 }, { 1, 0 }),
		COMPUTES("adds x0, x1, #1", 0xb1000420, 0, { 2, 0 }, { INSN_FLAGS | 1, 0 }),
		COMPUTES("adds x0, x1, x2", 0xab020020, 0, { 6, 0 }, { INSN_FLAGS | 1, 0 }),
		COMPUTES("subs x0, x1, w2, sxtw", 0xeb22c020, 0, { 6, 0 }, { INSN_FLAGS | 1, 0 }),
		COMPUTES("add w0, w1, w2, uxth #1", 0x0b222420, 0, { 6, 0 }, { 1, 0 }),
		COMPUTES("ands x0, x1, x2", 0xea020020, 0, { 6, 0 }, { INSN_FLAGS | 1, 0 }),
		COMPUTES("bics w0, w1, w2", 0x6a220020, 0, { 6, 0 }, { INSN_FLAGS | 1, 0 }),
		COMPUTES("orr x0, x1, x2", 0xaa020020, 0, { 6, 0 }, { 1, 0 }),
		COMPUTES("adc x0, x1, x2", 0x9a020020, 0, { INSN_FLAGS | 6, 0 }, { 1, 0 }),
		COMPUTES("sbcs x0, x1, x2", 0xfa020020, 0, { INSN_FLAGS | 6, 0 },
			 { INSN_FLAGS | 1, 0 }),
	};

	(void)state;
	CHECK(e);
}

static void test_memory(void **state)
{
	static const struct expected e[] = {
		{ "ldapr x1, [x2]", 0xf8bfc041, LOAD, { B(2), 0 }, { B(1), 0 }, 2, NONE },
		{ "ldapur x1, [x2, #8]", 0xd9408041, LOAD, { B(2), 0 }, { B(1), 0 }, 2, NONE },
		{ "stlur x1, [x2, #8]", 0xd9008041, STORE, { B(1) | B(2), 0 }, { 0, 0 }, 2, NONE },
		{ "ldar x1, [x2]", 0xc8dffc41, LOAD, { B(2), 0 }, { B(1), 0 }, 2, NONE },
		COMPUTES("ldr x1, =…", 0x580006c1, LOAD, { 0, 0 }, { 2, 0 }),
		COMPUTES("ldr d1, =…", 0x5c000001, V | LOAD, { 0, 0 }, { 0, 2 }),
		{ "ldr x0, [x1], #8", 0xf8408420, LOAD, { 2, 0 }, { 3, 0 }, 1, NONE },
		{ "ldr x0, [x1, x2, lsl #3]", 0xf8627820, LOAD, { 6, 0 }, { 1, 0 }, 1, 2 },
		{ "ldadda x1, x3, [x2]",
		  0xf8a10043,
		  SWAP,
		  { B(1) | B(2), 0 },
		  { B(3), 0 },
		  2,
		  NONE },
		{ "prfm pldl1keep, [x2]", 0xf9800040, 0, { B(2), 0 }, { 0, 0 }, 2, NONE },
		{ "ldraa x1, [x2, #8]!",
		  0xf8201c41,
		  LOAD,
		  { B(2), 0 },
		  { B(1) | B(2), 0 },
		  2,
		  NONE },
		{ "casal x1, x3, [x2]",
		  0xc8e1fc43,
		  SWAP,
		  { B(1) | B(2) | B(3), 0 },
		  { B(1), 0 },
		  2,
		  NONE },
		{ "casp x4, x5, x6, x7, [x2]",
		  0x48247c46,
		  SWAP,
		  { 0xf4, 0 },
		  { 0x30, 0 },
		  2,
		  NONE },
		{ "ldxp x1, x3, [x2]",
		  0xc87f0c41,
		  LOAD | INSN_ATOMIC,
		  { B(2), 0 },
		  { B(1) | B(3), 0 },
		  2,
		  NONE },
		{ "stxp w4, x1, x3, [x2]",
		  0xc8240c41,
		  STORE | INSN_ATOMIC,
		  { 0xe, 0 },
		  { B(4), 0 },
		  2,
		  NONE },
		{ "ld1 {v1.4s}, [x2], x5",
		  0x4cc57841,
		  V | LOAD,
		  { B(2) | B(5), 0 },
		  { B(2), B(1) },
		  2,
		  NONE },
	};

	(void)state;
	CHECK(e);
}

static void test_sve(void **state)
{
	static const struct expected e[] = {
		{ "ld1w {z1.s}, p1/z, [x2, x3, lsl #2]",
		  0xa5434441,
		  V | LOAD,
		  { B(2) | B(3), 0 },
		  { 0, B(1) },
		  2,
		  3 },
		{ "ld1rw {z1.s}, p1/z, [x2]",
		  0x8540c441,
		  V | LOAD,
		  { B(2), 0 },
		  { 0, B(1) },
		  2,
		  NONE },
		{ "ldr z1, [x2]", 0x85804041, V | LOAD, { B(2), 0 }, { 0, B(1) }, 2, NONE },
		{ "ldr p1, [x2]", 0x85800041, V | LOAD, { B(2), 0 }, { 0, 0 }, 2, NONE },
		{ "ld1d {z1.d}, p1/z, [x2, z3.d]",
		  0xc5c3c441,
		  V | LOAD,
		  { B(2), 0 },
		  { 0, B(1) },
		  2,
		  NONE },
		{ "ld1sw {z1.d}, p1/z, [z2.d, #4]",
		  0xc5218441,
		  V | LOAD,
		  { 0, 0 },
		  { 0, B(1) },
		  NONE,
		  NONE },
		{ "st1w {z1.s}, p1, [x2, x3, lsl #2]",
		  0xe5434441,
		  V | STORE,
		  { B(2) | B(3), B(1) },
		  { 0, 0 },
		  2,
		  3 },
		{ "stnt1d {z1.d}, p5, [x24, x14, lsl #3]",
		  0xe58e7701,
		  V | STORE,
		  { B(24) | B(14), B(1) },
		  { 0, 0 },
		  24,
		  14 },
		{ "str z1, [x2]", 0xe5804041, V | STORE, { B(2), B(1) }, { 0, 0 }, 2, NONE },
		COMPUTES("prfb pldl1keep, p1, [x2, #3, mul vl]", 0x85c30440, V, { 0, 0 }, { 0, 0 }),
		COMPUTES("prfd pldl1keep, p1, [x2, x3, lsl #3]", 0x8583c440, V, { 0, 0 }, { 0, 0 }),
		COMPUTES("prfw pldl1keep, p1, [x2, z3.s, uxtw #2]", 0x84234440, V, { 0, 0 },
			 { 0, 0 }),
		COMPUTES("prfd pldl1keep, p1, [x2, z3.d, lsl #3]", 0xc463e440, V, { 0, 0 },
			 { 0, 0 }),
		COMPUTES("prfd pldl1keep, p1, [x2, z3.d, sxtw #3]", 0xc4636440, V, { 0, 0 },
			 { 0, 0 }),
		COMPUTES("prfd pldl1keep, p1, [z2.d, #8]", 0xc581e440, V, { 0, 0 }, { 0, 0 }),
		COMPUTES("fmla z0.s, p1/m, z1.s, z2.s", 0x65a20420, FP, { 0, 0 }, { 0, 0 }),
		COMPUTES("bfdot z0.s, z1.h, z2.h", 0x64628020, FP, { 0, 0 }, { 0, 0 }),
		COMPUTES("fdivr z0.s, p1/m, z0.s, z2.s", 0x658c8440, DIVIDE, { 0, 0 }, { 0, 0 }),
		COMPUTES("fsqrt z0.s, p1/m, z1.s", 0x658da420, DIVIDE, { 0, 0 }, { 0, 0 }),
		COMPUTES("mla z0.s, p1/m, z1.s, z2.s", 0x04824420, MULTIPLY, { 0, 0 }, { 0, 0 }),
		COMPUTES("sdot z0.s, z1.b, z2.b", 0x44820020, MULTIPLY, { 0, 0 }, { 0, 0 }),
		COMPUTES("sdiv z0.s, p1/m, z0.s, z1.s", 0x04940420, V | INSN_DIVIDE, { 0, 0 },
			 { 0, 0 }),
		COMPUTES("add z0.s, z1.s, z2.s", 0x04a20020, V, { 0, 0 }, { 0, 0 }),
		COMPUTES("incw x3", 0x04b0e3e3, V, { 0, 0 }, { B(3), 0 }),
		/* SME */
		COMPUTES("fmopa za0.s, p0/m, p1/m, z1.s, z2.s", 0x80822020, V, { 0, 0 }, { 0, 0 }),
	};

	(void)state;
	CHECK(e);
}

/* Registers from 16 on: each field has five bits. */
static void test_high_registers(void **state)
{
	static const struct expected e[] = {
		{ "mov x20, #0x3", 0xd2800074, 0, { 0, 0 }, { B(20), 0 }, NONE, NONE },
		{ "adr x20, 10", 0x10000074, 0, { 0, 0 }, { B(20), 0 }, NONE, NONE },
		{ "add x20, x21, #0x1", 0x910006b4, 0, { B(21), 0 }, { B(20), 0 }, NONE, NONE },
		{ "sub w20, w21, #0x5", 0x510016b4, 0, { B(21), 0 }, { B(20), 0 }, NONE, NONE },
		{ "uxtb w20, w21", 0x53001eb4, 0, { B(21), 0 }, { B(20), 0 }, NONE, NONE },
		{ "sxtw x20, w21", 0x93407eb4, 0, { B(21), 0 }, { B(20), 0 }, NONE, NONE },
		{ "mov x20, x22", 0xaa1603f4, 0, { B(22), 0 }, { B(20), 0 }, NONE, NONE },
		{ "add x20, x21, x22, lsl #2",
		  0x8b160ab4,
		  0,
		  { B(21) | B(22), 0 },
		  { B(20), 0 },
		  NONE,
		  NONE },
		{ "add x20, x21, w22, uxtw #2",
		  0x8b364ab4,
		  0,
		  { B(21) | B(22), 0 },
		  { B(20), 0 },
		  NONE,
		  NONE },
		{ "ldrb w20, [x21, #5]", 0x394016b4, LOAD, { B(21), 0 }, { B(20), 0 }, 21, NONE },
		{ "ldr x20, [x21, x22, lsl #3]",
		  0xf8767ab4,
		  LOAD,
		  { B(21) | B(22), 0 },
		  { B(20), 0 },
		  21,
		  22 },
		{ "cmp x21, #0x2a", 0xf100aabf, 0, { B(21), 0 }, { INSN_FLAGS, 0 }, NONE, NONE },
		{ "fmadd d20, d21, d22, d23",
		  0x1f565eb4,
		  FP,
		  { 0, B(21) | B(22) | B(23) },
		  { 0, B(20) },
		  NONE,
		  NONE },
		{ "fmul s20, s21, s22",
		  0x1e360ab4,
		  FP,
		  { 0, B(21) | B(22) },
		  { 0, B(20) },
		  NONE,
		  NONE },
		{ "fcvtzs w20, s21", 0x1e3802b4, FP, { 0, B(21) }, { B(20), 0 }, NONE, NONE },
		{ "scvtf s20, w21", 0x1e2202b4, FP, { B(21), 0 }, { 0, B(20) }, NONE, NONE },
		{ "fcsel s20, s21, s22, eq",
		  0x1e360eb4,
		  V,
		  { INSN_FLAGS, B(21) | B(22) },
		  { 0, B(20) },
		  NONE,
		  NONE },
		{ "fcmp s21, s22",
		  0x1e3622a0,
		  FP,
		  { 0, B(21) | B(22) },
		  { INSN_FLAGS, 0 },
		  NONE,
		  NONE },
		{ "fmla v20.4s, v21.4s, v22.4s",
		  0x4e36ceb4,
		  FP,
		  { 0, B(21) | B(22) },
		  { 0, B(20) },
		  NONE,
		  NONE },
		{ "eor3 v20.16b, v21.16b, v22.16b, v23.16b",
		  0xce165eb4,
		  V,
		  { 0, B(21) | B(22) | B(23) },
		  { 0, B(20) },
		  NONE,
		  NONE },
		{ "mrs x20, tpidr_el0", 0xd53bd054, 0, { 0, 0 }, { B(20), 0 }, NONE, NONE },
		{ "extr x20, x21, x22, #4",
		  0x93d612b4,
		  0,
		  { B(21) | B(22), 0 },
		  { B(20), 0 },
		  NONE,
		  NONE },
		{ "movk x20, #0x3", 0xf2800074, 0, { B(20), 0 }, { B(20), 0 }, NONE, NONE },
		{ "adds x20, x21, x22",
		  0xab1602b4,
		  0,
		  { B(21) | B(22), 0 },
		  { INSN_FLAGS | B(20), 0 },
		  NONE,
		  NONE },
		{ "madd x20, x21, x22, x23",
		  0x9b165eb4,
		  INSN_MULTIPLY,
		  { B(21) | B(22) | B(23), 0 },
		  { B(20), 0 },
		  NONE,
		  NONE },
		{ "udiv x20, x21, x22",
		  0x9ad60ab4,
		  INSN_DIVIDE,
		  { B(21) | B(22), 0 },
		  { B(20), 0 },
		  NONE,
		  NONE },
		{ "ccmp w21, w22, #0x3, eq",
		  0x7a5602a3,
		  0,
		  { INSN_FLAGS | B(21) | B(22), 0 },
		  { INSN_FLAGS, 0 },
		  NONE,
		  NONE },
		{ "ldr x20, c0", 0x58000294, LOAD, { 0, 0 }, { B(20), 0 }, NONE, NONE },
		{ "ldr x20, [x21], #8",
		  0xf84086b4,
		  LOAD,
		  { B(21), 0 },
		  { B(20) | B(21), 0 },
		  21,
		  NONE },
		{ "stp x20, x22, [x21, #16]!",
		  0xa9815ab4,
		  STORE,
		  { B(20) | B(21) | B(22), 0 },
		  { B(21), 0 },
		  21,
		  NONE },
		{ "ldp d20, d22, [x21]",
		  0x6d405ab4,
		  V | LOAD,
		  { B(21), 0 },
		  { 0, B(20) | B(22) },
		  21,
		  NONE },
		{ "ldxp x20, x22, [x21]",
		  0xc87f5ab4,
		  INSN_LOAD | INSN_ATOMIC,
		  { B(21), 0 },
		  { B(20) | B(22), 0 },
		  21,
		  NONE },
		{ "stxp w24, x20, x22, [x21]",
		  0xc8385ab4,
		  INSN_STORE | INSN_ATOMIC,
		  { B(20) | B(21) | B(22), 0 },
		  { B(24), 0 },
		  21,
		  NONE },
		{ "ldadda x20, x22, [x21]",
		  0xf8b402b6,
		  SWAP,
		  { B(20) | B(21), 0 },
		  { B(22), 0 },
		  21,
		  NONE },
		{ "casp x24, x25, x26, x27, [x21]",
		  0x48387eba,
		  SWAP,
		  { B(21) | B(24) | B(25) | B(26) | B(27), 0 },
		  { B(24) | B(25), 0 },
		  21,
		  NONE },
		{ "ld1 {v20.4s}, [x21], x22",
		  0x4cd67ab4,
		  V | LOAD,
		  { B(21) | B(22), 0 },
		  { B(21), B(20) },
		  21,
		  NONE },
		{ "ld1 {v20.s}[1], [x21]",
		  0x0d4092b4,
		  V | LOAD,
		  { B(21), 0 },
		  { 0, B(20) },
		  21,
		  NONE },
		{ "ld1 {v20.s}[1], [x21], x22",
		  0x0dd692b4,
		  V | LOAD,
		  { B(21) | B(22), 0 },
		  { B(21), B(20) },
		  21,
		  NONE },
		{ "ldur x20, [x21, #-8]", 0xf85f82b4, LOAD, { B(21), 0 }, { B(20), 0 }, 21, NONE },
		{ "str d20, [x21, x22]",
		  0xfc366ab4,
		  V | STORE,
		  { B(21) | B(22), B(20) },
		  { 0, 0 },
		  21,
		  22 },
		{ "ldapur x20, [x21, #8]", 0xd94082b4, LOAD, { B(21), 0 }, { B(20), 0 }, 21, NONE },
		{ "stlur x20, [x21, #8]",
		  0xd90082b4,
		  STORE,
		  { B(20) | B(21), 0 },
		  { 0, 0 },
		  21,
		  NONE },
		{ "dup v20.4s, w21", 0x4e040eb4, V, { B(21), 0 }, { 0, B(20) }, NONE, NONE },
		{ "smov w20, v21.h[1]", 0x0e062eb4, V, { 0, B(21) }, { B(20), 0 }, NONE, NONE },
	};

	(void)state;
	CHECK(e);
}

/* Values in sums: registers, and how much of them; what is absent is none, 8 bytes and scale 1. */
struct computed {
	const char *text;
	uint32_t word;
	uint8_t dst;
	bool known, load;
	uint8_t a, b, scale, size, b_size;
	bool sign, b_sign;
	int64_t disp;
	uint64_t max;
};

static bool same_sum(const struct computed *e, const struct insn_op *op)
{
	return op->a == e->a && op->b == (e->b ? e->b : NONE) && op->plus == NONE &&
	       op->scale == (e->scale ? e->scale : 1) &&
	       op->b_size == (e->b_size ? e->b_size : 8) && op->b_sign == e->b_sign &&
	       op->disp == e->disp;
}

static void test_values(void **state)
{
	static const struct computed e[] = {
		{ "movz x0, #3", 0xd2800060, 0, true, .a = NONE, .disp = 3 },
		{ "movz x0, #0x1234, lsl #16", 0xd2a24680, 0, true, .a = NONE, .disp = 0x12340000 },
		{ "movz w0, #7", 0x528000e0, 0, true, .a = NONE, .disp = 7 },
		{ "movk x0, #3", 0xf2800060, 0, .a = NONE },
		{ "adr x0, .+12", 0x10000060, 0, true, .a = NONE, .disp = 0x123c },
		{ "adrp x0, .+8192", 0xd0000000, 0, true, .a = NONE, .disp = 0x3000 },
		{ "add x0, x1, #1", 0x91000420, 0, true, .a = 1, .disp = 1 },
		{ "add x0, x1, #1, lsl #12", 0x91400420, 0, true, .a = 1, .disp = 4096 },
		{ "sub x0, x1, #5", 0xd1001420, 0, true, .a = 1, .disp = -5 },
		{ "add w0, w1, #1", 0x11000420, 0, true, .a = 1, .disp = 1, .size = 4 },
		{ "adds x0, x1, #1", 0xb1000420, 0, .a = 1, .disp = 1 },
		{ "and w0, w1, #0x3f", 0x12001420, 0, .a = NONE, .max = 0x3f },
		{ "uxtb w0, w1", 0x53001c20, 0, true, .a = 1, .size = 1, .max = 0xff },
		{ "uxth w0, w1", 0x53003c20, 0, true, .a = 1, .size = 2, .max = 0xffff },
		{ "sxtw x0, w1", 0x93407c20, 0, true, .a = 1, .size = 4, .sign = true },
		{ "mov x0, x2", 0xaa0203e0, 0, true, .a = 2 },
		{ "mov w0, w2", 0x2a0203e0, 0, true, .a = 2, .size = 4 },
		{ "orr x0, x1, x2", 0xaa020020, 0, .a = NONE },
		{ "add x0, x1, x2, lsl #2", 0x8b020820, 0, true, .a = 1, .b = 2, .scale = 4 },
		{ "add x0, x1, w2, uxtw #2", 0x8b224820, 0, true, .a = 1, .b = 2, .scale = 4,
		  .b_size = 4 },
		{ "add x0, x1, w2, sxtb", 0x8b228020, 0, true, .a = 1, .b = 2, .b_size = 1,
		  .b_sign = true },
		{ "add w0, w1, w2, uxth #1", 0x0b222420, 0, true, .a = 1, .b = 2, .scale = 2,
		  .b_size = 2, .size = 4 },
		{ "ldrb w0, [x1, #5]", 0x39401420, 0, true, true, 1, .disp = 5, .size = 1,
		  .max = 0xff },
		{ "ldrsh x0, [x1, #6]", 0x79800c20, 0, true, true, 1, .disp = 6, .size = 2,
		  .sign = true },
		{ "ldrsw x0, [x1, #8]", 0xb9800820, 0, true, true, 1, .disp = 8, .size = 4,
		  .sign = true },
		{ "ldr x0, [x1, #32]", 0xf9401020, 0, true, true, 1, .disp = 32 },
		{ "ldr x0, [x1, x2, lsl #3]", 0xf8627820, 0, true, true, 1, .b = 2, .scale = 8 },
		{ "ldr w0, [x1, w2, sxtw #2]", 0xb862d820, 0, true, true, 1, 2, 4, 4, 4,
		  .b_sign = true },
		{ "ldrb w0, [x1, w2, uxtw]", 0x38624820, 0, true, true, 1, 2, 1, 1, 4,
		  .max = 0xff },
		{ "ldrh w0, [x1, x2]", 0x78626820, 0, true, true, 1, 2, 1, 2, .max = 0xffff },
		{ "ldr x0, [x1], #8", 0xf8408420, NONE, .a = NONE },
		{ "ldr d0, [x1]", 0xfd400020, NONE, .a = NONE },
		{ "br x7", 0xd61f00e0, INSN_TARGET, true, .a = 7 },
		{ "ccmp w1, w2, #3, eq", 0x7a420023, NONE, .a = NONE },
		{ "mov x20, #0x3", 0xd2800074, 20, true, false, .a = NONE, .disp = 3 },
		{ "add x20, x21, #0x1", 0x910006b4, 20, true, false, .a = 21, .disp = 1 },
		{ "sub w20, w21, #0x5", 0x510016b4, 20, true, false, .a = 21, .size = 4,
		  .disp = -5 },
		{ "uxtb w20, w21", 0x53001eb4, 20, true, false, .a = 21, .size = 1, .max = 0xff },
		{ "sxtw x20, w21", 0x93407eb4, 20, true, false, .a = 21, .size = 4, .sign = true },
		{ "mov x20, x22", 0xaa1603f4, 20, true, false, .a = 22 },
		{ "add x20, x21, x22, lsl #2", 0x8b160ab4, 20, true, false, .a = 21, .b = 22,
		  .scale = 4 },
		{ "add x20, x21, w22, uxtw #2", 0x8b364ab4, 20, true, false, .a = 21, .b = 22,
		  .scale = 4, .b_size = 4 },
		{ "ldrb w20, [x21, #5]", 0x394016b4, 20, true, true, .a = 21, .size = 1, .disp = 5,
		  .max = 0xff },
		{ "ldr x20, [x21, x22, lsl #3]", 0xf8767ab4, 20, true, true, .a = 21, .b = 22,
		  .scale = 8 },
		{ "br x23", 0xd61f02e0, INSN_TARGET, true, false, .a = 23 },
	};
	struct insn_decoder *d = NULL;
	struct insn_op op;

	(void)state;
	assert_int_equal(insn_decoder_open(EM_AARCH64, &d, NULL), 0);
	for (size_t i = 0; i < sizeof(e) / sizeof(e[0]); i++) {
		uint8_t code[4];

		memcpy(code, &(uint32_t){ htole32(e[i].word) }, 4);
		insn_decode_op(d, code, 4, 0x1230, &op);
		if (op.dst != e[i].dst || op.known != e[i].known || op.load != e[i].load)
			fail_msg("%s: dst %u, known %d", e[i].text, op.dst, op.known);
		if (!same_sum(&e[i], &op))
			fail_msg("%s: a %u, b %u, disp %lld", e[i].text, op.a, op.b,
				 (long long)op.disp);
		if (op.size != (e[i].size ? e[i].size : 8) || op.sign != e[i].sign ||
		    op.max != (e[i].max ? e[i].max : UINT64_MAX) || op.compare)
			fail_msg("%s: size %u", e[i].text, op.size);
	}
	insn_decoder_close(d);
}

/* Compared with a number: cmp x1, #42; cmp w1, #1, lsl #12. */
static void test_compares(void **state)
{
	static const uint8_t code[] = { 0x3f, 0xa8, 0x00, 0xf1, 0x3f, 0x04, 0x40, 0x71 };
	struct insn_decoder *d = NULL;
	struct insn_op op;

	(void)state;
	assert_int_equal(insn_decoder_open(EM_AARCH64, &d, NULL), 0);
	insn_decode_op(d, code, 4, 0, &op);
	assert_true(op.compare && !op.with_b && !op.load && op.a == 1 && op.size == 8);
	assert_int_equal(op.value, 42);
	insn_decode_op(d, code + 4, 4, 0, &op);
	assert_true(op.compare && op.a == 1 && op.size == 4);
	assert_int_equal(op.value, 4096);
	insn_decoder_close(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_simd),	 cmocka_unit_test(test_scalar_fp),
		cmocka_unit_test(test_general),	 cmocka_unit_test(test_memory),
		cmocka_unit_test(test_sve),	 cmocka_unit_test(test_values),
		cmocka_unit_test(test_compares), cmocka_unit_test(test_high_registers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
