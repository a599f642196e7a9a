/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A64: random fields in each class of encodings. Left out: the smaller or greater of less than
 * eight bytes in memory (unicorn 2.0.1 is wrong), signed pointers (the emulator runs
 * without keys), system registers other than flags and thread pointer, and what ends a trace.
 */
#include "oracle.h"

#include <unicorn/arm64.h>

/* Registers by what is in them: 8-15 and sp point into the data, 16-23 are small. */
enum { FIRST_POINTER = 8, FIRST_SMALL = 16, NR_OF_A_KIND = 8, SP = 31 };

enum memory_kind { NO_MEMORY, BASE, BASE_INDEX };

/* Fixed bits and those that are chosen. */
struct encoding {
	uint32_t bits, chosen;
	bool integer;
	uint8_t memory; /* enum memory_kind */
};

/* Of memory, short offsets alone: further ones meet none. */
static const struct encoding encodings[] = {
	{ 0x10000000, 0xe0ffffff, true, 0 }, /* adr, adrp */
	{ 0x11000000, 0xe07fffff, true, 0 }, /* add, sub, immediate */
	{ 0x12000000, 0xe07fffff, true, 0 }, /* logic, immediate */
	{ 0x12800000, 0xe07fffff, true, 0 }, /* movn, movz, movk */
	{ 0x13000000, 0xe07fffff, true, 0 }, /* bit fields */
	{ 0x13800000, 0x807fffff, true, 0 }, /* extr */
	{ 0x93c00000, 0x001fffff, true, 0 },
	{ 0x0a000000, 0xe0ffffff, true, 0 },	/* logic */
	{ 0x0b000000, 0xe0dfffff, true, 0 },	/* add, sub */
	{ 0x0b200000, 0xe01ff3ff, true, 0 },	/* extended */
	{ 0x1a000000, 0xe01f03ff, true, 0 },	/* adc, sbc */
	{ 0x3a400000, 0xc01ffbef, true, 0 },	/* ccmn, ccmp */
	{ 0x1a800000, 0xc01ff7ff, true, 0 },	/* csel and its like */
	{ 0x1ac00800, 0x801f07ff, true, 0 },	/* udiv, sdiv */
	{ 0x1ac02000, 0x801f0fff, true, 0 },	/* shifts */
	{ 0x1ac04000, 0x801f1fff, false, 0 },	/* crc32 */
	{ 0x5ac00000, 0x800017ff, true, 0 },	/* one source */
	{ 0x1b000000, 0x801fffff, true, 0 },	/* madd, msub */
	{ 0x9b200000, 0x009fffff, true, 0 },	/* smaddl, umsubl, … */
	{ 0x9b407c00, 0x009f03ff, true, 0 },	/* smulh, umulh */
	{ 0x39000000, 0xc0c07fff, true, BASE }, /* single, offset */
	{ 0x38000000, 0xc0dfffff, true, BASE }, /* ldur, post, pre */
	{ 0x38200800, 0xc0dff3ff, true, BASE_INDEX },
	{ 0x3d000000, 0xc0c07fff, false, BASE },
	{ 0x3c000000, 0xc0dfffff, false, BASE },
	{ 0x3c200800, 0xc0dff3ff, false, BASE_INDEX },
	{ 0x18000000, 0xc000001f, true, 0 }, /* literal: of the code itself */
	{ 0x1c000000, 0xc000001f, false, 0 },
	{ 0x28000000, 0xc1ffffff, true, BASE }, /* pairs */
	{ 0x2c000000, 0xc1ffffff, false, BASE },
	{ 0x08800000, 0xc05fffff, true, BASE },	 /* ldar, stlr */
	{ 0x08407c00, 0xc0008fff, true, BASE },	 /* ldxr */
	{ 0x08000000, 0xc03fffff, false, BASE }, /* stxr, casp */
	{ 0x08a07c00, 0xc05f83ff, true, BASE },	 /* cas */
	{ 0x38200000, 0xc0dff3ff, true, BASE },	 /* ldadd, swp, … */
	{ 0x19000000, 0xc0dff3ff, true, BASE },	 /* ldapur */
	{ 0x0c000000, 0x40dfffff, false, BASE }, /* structures */
	{ 0x0d000000, 0x40ffffff, false, BASE },
	{ 0x14000000, 0x8000000f, true, 0 }, /* b, bl */
	{ 0x54000000, 0x000001ef, true, 0 },
	{ 0x34000000, 0x810001ff, true, 0 },
	{ 0x36000000, 0x81f801ff, true, 0 },
	{ 0xd61f0000, 0x006003e0, true, 0 }, /* br, blr, ret */
	{ 0xd53b4200, 0x0000001f, true, 0 }, /* mrs nzcv, tpidr_el0 */
	{ 0xd53bd040, 0x0000001f, true, 0 },
	{ 0xd51b4200, 0x0000001f, false, 0 },
	{ 0xd503201f, 0x00000020, true, 0 },  /* nop, yield */
	{ 0x1e200000, 0x80dfffff, false, 0 }, /* moved, converted, calculated */
	{ 0x1e201000, 0x00dfe01f, false, 0 },
	{ 0x1e204000, 0x00dfffff, false, 0 },
	{ 0x0e000400, 0x601f7bff, false, 0 }, /* dup, ins, umov */
	{ 0x5e000400, 0x001f03ff, false, 0 },
	{ 0x0e200400, 0x60dffbff, false, 0 }, /* three of the same */
	{ 0x0e200400, 0x60df6bff, false, 0 },
	{ 0x5e200400, 0x20dffbff, false, 0 },
	{ 0x0e200800, 0x60c1f3ff, false, 0 }, /* two registers */
	{ 0x0f000400, 0x6007fbff, false, 0 }, /* constants */
	{ 0x0f000400, 0x607ffbff, false, 0 }, /* shifts */
	{ 0x0f008400, 0x40770bff, false, 0 }, /* shrn */
	{ 0x2e000000, 0x401f7bff, false, 0 }, /* ext */
	{ 0x0e000800, 0x40df73ff, false, 0 }, /* zip and its like */
	{ 0x0e200000, 0x7fdfffff, false, 0 }, /* anything of vectors */
	{ 0x6e20a400, 0x009f03ff, false, 0 }, /* umaxp, uminp, addp */
	{ 0x4e20bc00, 0x001f03ff, false, 0 },
};

static const int general[] = {
	UC_ARM64_REG_X0,	UC_ARM64_REG_X1,  UC_ARM64_REG_X2,  UC_ARM64_REG_X3,
	UC_ARM64_REG_X4,	UC_ARM64_REG_X5,  UC_ARM64_REG_X6,  UC_ARM64_REG_X7,
	UC_ARM64_REG_X8,	UC_ARM64_REG_X9,  UC_ARM64_REG_X10, UC_ARM64_REG_X11,
	UC_ARM64_REG_X12,	UC_ARM64_REG_X13, UC_ARM64_REG_X14, UC_ARM64_REG_X15,
	UC_ARM64_REG_X16,	UC_ARM64_REG_X17, UC_ARM64_REG_X18, UC_ARM64_REG_X19,
	UC_ARM64_REG_X20,	UC_ARM64_REG_X21, UC_ARM64_REG_X22, UC_ARM64_REG_X23,
	UC_ARM64_REG_X24,	UC_ARM64_REG_X25, UC_ARM64_REG_X26, UC_ARM64_REG_X27,
	UC_ARM64_REG_X28,	UC_ARM64_REG_X29, UC_ARM64_REG_X30, UC_ARM64_REG_SP,
	UC_ARM64_REG_TPIDR_EL0,
};

static const uint8_t numbers[] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
				   11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
				   22, 23, 24, 25, 26, 27, 28, 29, 30, 31, VTRACE_TLS };

static const int vectors[] = {
	UC_ARM64_REG_Q0,  UC_ARM64_REG_Q1,  UC_ARM64_REG_Q2,  UC_ARM64_REG_Q3,	UC_ARM64_REG_Q4,
	UC_ARM64_REG_Q5,  UC_ARM64_REG_Q6,  UC_ARM64_REG_Q7,  UC_ARM64_REG_Q8,	UC_ARM64_REG_Q9,
	UC_ARM64_REG_Q10, UC_ARM64_REG_Q11, UC_ARM64_REG_Q12, UC_ARM64_REG_Q13, UC_ARM64_REG_Q14,
	UC_ARM64_REG_Q15, UC_ARM64_REG_Q16, UC_ARM64_REG_Q17, UC_ARM64_REG_Q18, UC_ARM64_REG_Q19,
	UC_ARM64_REG_Q20, UC_ARM64_REG_Q21, UC_ARM64_REG_Q22, UC_ARM64_REG_Q23, UC_ARM64_REG_Q24,
	UC_ARM64_REG_Q25, UC_ARM64_REG_Q26, UC_ARM64_REG_Q27, UC_ARM64_REG_Q28, UC_ARM64_REG_Q29,
	UC_ARM64_REG_Q30, UC_ARM64_REG_Q31,
};

static void prepare(uc_engine *uc)
{
	uint64_t vectors_allowed = 3 << 20;

	uc_reg_write(uc, UC_ARM64_REG_CPACR_EL1, &vectors_allowed);
}

static uint64_t flags_to_machine(uint8_t f)
{
	return (f & VTRACE_S ? 8u << 28 : 0) | (f & VTRACE_Z ? 4u << 28 : 0) |
	       (f & VTRACE_C ? 2u << 28 : 0) | (f & VTRACE_O ? 1u << 28 : 0);
}

static uint8_t flags_of_machine(uint64_t f)
{
	return (f >> 31 & 1 ? VTRACE_S : 0) | (f >> 30 & 1 ? VTRACE_Z : 0) |
	       (f >> 29 & 1 ? VTRACE_C : 0) | (f >> 28 & 1 ? VTRACE_O : 0);
}

static uint64_t content(int number)
{
	if (number == SP)
		return oracle_pointer() & ~15ull;
	if (number >= FIRST_POINTER && number < FIRST_POINTER + NR_OF_A_KIND)
		return oracle_pointer() & ~(oracle_random() & 15);
	if (number >= FIRST_SMALL && number < FIRST_SMALL + NR_OF_A_KIND)
		return oracle_random() % 64;
	return oracle_value();
}

static uint32_t set_register(uint32_t word, unsigned int at, uint32_t reg)
{
	return (word & ~(31u << at)) | reg << at;
}

static size_t generate(uint8_t *code, bool *integer, bool *jumps)
{
	const struct encoding *e =
		&encodings[oracle_random() % (sizeof(encodings) / sizeof(encodings[0]))];
	uint32_t word = e->bits | ((uint32_t)oracle_random() & e->chosen);

	if (e->memory) {
		uint32_t base = (uint32_t)oracle_random() % (NR_OF_A_KIND + 1);

		word = set_register(word, 5, base == NR_OF_A_KIND ? SP : FIRST_POINTER + base);
	}
	if (e->memory == BASE_INDEX)
		word = set_register(word, 16, FIRST_SMALL + oracle_random() % NR_OF_A_KIND);
	/* Of less than eight bytes the emulator compares all of the register. */
	if ((word & 0x3f20cc00) == 0x38204000)
		word |= 3u << 30;
	/* Of some that are none it aborts. */
	if ((word & 0x8f7e0c00) == 0x0e780800)
		word ^= 1 << 10;
	for (int i = 0; i < 4; i++)
		code[i] = (uint8_t)(word >> 8 * i);
	*integer = e->integer;
	*jumps = false;
	return 4;
}

const struct oracle_arch oracle_aarch64 = {
	.name = "aarch64",
	.arch = VTRACE_AARCH64,
	.uc_arch = UC_ARCH_ARM64,
	.uc_mode = UC_MODE_ARM,
	.cpu = UC_CPU_ARM64_MAX,
	.pc = UC_ARM64_REG_PC,
	.flags = UC_ARM64_REG_NZCV,
	.general = general,
	.vectors = vectors,
	.numbers = numbers,
	.nr_general = sizeof(numbers),
	.nr_vectors = 32,
	.known_pct = 90,
	.prepare = prepare,
	.flags_to_machine = flags_to_machine,
	.flags_of_machine = flags_of_machine,
	.flags_compared = VTRACE_S | VTRACE_Z | VTRACE_C | VTRACE_O,
	.content = content,
	.generate = generate,
};
