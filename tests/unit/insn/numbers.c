/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the numbers of x86 instructions stand, and what they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "insn_x86.h"

static const struct {
	const char *bytes;
	size_t have, len, disp_at, disp_len, imm_at, imm_len;
} insns[] = {
	{ "\x90", 1, 1, 0, 0, 0, 0 },
	{ "\xc3", 1, 1, 0, 0, 0, 0 },
	{ "\xf3\x0f\x1e\xfa", 4, 4, 0, 0, 0, 0 },		      /* endbr64 */
	{ "\x48\x89\xe5", 3, 3, 0, 0, 0, 0 },			      /* mov %rsp,%rbp */
	{ "\x48\x8b\x45\xf8", 4, 4, 3, 1, 0, 0 },		      /* mov -8(%rbp),%rax */
	{ "\x48\x8b\x84\x24\x00\x01\x00\x00", 8, 8, 4, 4, 0, 0 },     /* mov 0x100(%rsp),%rax */
	{ "\x65\x48\x8b\x04\x25\x01\x02\x03\x04", 9, 9, 5, 4, 0, 0 }, /* mov %gs:abs,%rax */
	{ "\x48\x8b\x05\x01\x02\x03\x04", 7, 7, 3, 4, 0, 0 },	      /* mov rip+d,%rax */
	{ "\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08", 10, 10, 0, 0, 2, 8 },
	{ "\xb8\x01\x02\x03\x04", 5, 5, 0, 0, 1, 4 },
	{ "\x66\xb8\x01\x02", 4, 4, 0, 0, 2, 2 },
	{ "\x48\xc7\xc7\x01\x02\x03\x04", 7, 7, 0, 0, 3, 4 },
	{ "\x66\xc7\x07\x01\x02", 5, 5, 0, 0, 3, 2 },
	{ "\xe8\x01\x02\x03\x04", 5, 5, 0, 0, 1, 4 },
	{ "\x0f\x84\x01\x02\x03\x04", 6, 6, 0, 0, 2, 4 },
	{ "\x75\xf0", 2, 2, 0, 0, 1, 1 },
	{ "\xf7\xc7\x01\x02\x03\x04", 6, 6, 0, 0, 2, 4 }, /* test imm */
	{ "\xf7\xf1", 2, 2, 0, 0, 0, 0 },		  /* div */
	{ "\x0f\x1f\x44\x00\x00", 5, 5, 4, 1, 0, 0 },
	{ "\x0f\xba\xe0\x05", 4, 4, 0, 0, 3, 1 },	  /* bt $5,%eax */
	{ "\xc4\xe2\xf9\xf7\xc0", 5, 5, 0, 0, 0, 0 },	  /* shlx */
	{ "\xc5\xf8\x77", 3, 3, 0, 0, 0, 0 },		  /* vzeroupper */
	{ "\xc4\xe3\x7b\xf0\xf6\x02", 6, 6, 0, 0, 5, 1 }, /* rorx */
	{ "\x62\xf1\x7d\x48\x6f\x07", 6, 6, 0, 0, 0, 0 }, /* vmovdqa32 (%rdi),%zmm0 */
	{ "\x66\x0f\x3a\x0f\xc1\x04", 6, 6, 0, 0, 5, 1 }, /* palignr */
	{ "\xf0\x48\x0f\xb1\x0f", 5, 5, 0, 0, 0, 0 },	  /* lock cmpxchg */
	{ "\x48\xa1\x01\x02\x03\x04\x05\x06\x07\x08", 10, 10, 2, 8, 0, 0 },
	/* No instructions, or not all of one. */
	{ "\x06", 1, 0, 0, 0, 0, 0 },
	{ "\x48\xb8\x01\x02", 4, 0, 0, 0, 0, 0 },
	{ "\x48", 1, 0, 0, 0, 0, 0 },
	{ "\x0f", 1, 0, 0, 0, 0, 0 },
	{ "\xc4\xe2", 2, 0, 0, 0, 0, 0 },
	{ "\x8b\x84", 2, 0, 0, 0, 0, 0 },
	{ "", 0, 0, 0, 0, 0, 0 },
	{ "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90", 16, 0, 0, 0, 0, 0 },
};

static void test_numbers(void **state)
{
	struct insn_x86_numbers i;

	(void)state;
	for (size_t n = 0; n < sizeof(insns) / sizeof(insns[0]); n++) {
		const uint8_t *code = (const uint8_t *)insns[n].bytes;
		bool found = insn_x86_find_numbers(true, code, insns[n].have, &i);

		assert_int_equal(found, insns[n].len != 0);
		if (!found)
			continue;
		assert_int_equal(i.len, insns[n].len);
		assert_int_equal(i.disp_len, insns[n].disp_len);
		assert_int_equal(i.imm_len, insns[n].imm_len);
		if (i.disp_len)
			assert_int_equal(i.disp_at, insns[n].disp_at);
		if (i.imm_len)
			assert_int_equal(i.imm_at, insns[n].imm_at);
		/* Cut off anywhere it is none, and nothing behind its end is looked at. */
		for (size_t len = 0; len < insns[n].len; len++) {
			uint8_t *cut = malloc(len + 1);

			memcpy(cut, code, len);
			assert_true(!insn_x86_find_numbers(true, cut, len, &i) || i.len <= len);
			free(cut);
		}
	}
}

/* 200,000 random strings: no reading outside, no part behind the end. */
static void test_any_bytes(void **state)
{
	uint8_t code[16] = { 0 };
	struct insn_x86_numbers i;
	uint32_t seed = 1;

	(void)state;
	for (int n = 0; n < 200000; n++) {
		size_t have = seed % 17;
		uint8_t *exact = malloc(have + 1);

		for (size_t b = 0; b < sizeof(code); b++) {
			seed = seed * 1664525 + 1013904223;
			code[b] = (uint8_t)(seed >> 24);
		}
		memcpy(exact, code, have < 16 ? have : 16);
		if (insn_x86_find_numbers(true, exact, have, &i)) {
			assert_in_range(i.len, 1, have);
			assert_true(i.disp_at + i.disp_len <= i.len);
			assert_true(i.imm_at + i.imm_len <= i.len);
		}
		free(exact);
	}
}

static void test_meanings(void **state)
{
	static const struct {
		const char bytes[10];
		bool is_64, branch, address, pc_relative, no_base;
	} e[] = {
		{ "\xe8\x01\x02\x03\x04", true, true, false, false, false },
		{ "\x75\xf0", true, true, false, false, false },
		/* push, mov and cmp of 64 bits; mov of 32; and of 64 */
		{ "\x68\x01\x02\x03\x84", true, false, true, false, false },
		{ "\x48\xc7\xc7\x01\x02\x03\x84", true, false, true, false, false },
		{ "\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08", true, false, true, false, false },
		{ "\x48\x3d\x01\x02\x03\x84", true, false, true, false, false },
		{ "\xb8\x01\x02\x03\x84", true, false, false, false, false },
		{ "\x48\x25\x01\x02\x03\x84", true, false, false, false, false },
		/* mov of what stands at 4(%rip), at 4, at 4(,%rax,8), at 0x44332211(%rdi) */
		{ "\x8b\x05\x04\x00\x00\x00", true, false, false, true, true },
		{ "\x8b\x04\x25\x04\x00\x00\x00", true, false, false, false, true },
		{ "\x8b\x04\xc5\x04\x00\x00\x00", true, false, false, false, true },
		{ "\x8b\x87\x11\x22\x33\x44", true, false, false, false, false },
		/* in 32-bit code: mov of what stands at 4, by two encodings */
		{ "\x8b\x05\x04\x00\x00\x00", false, false, false, false, true },
		{ "\xa1\x04\x00\x00\x00", false, false, false, false, true },
	};
	struct insn_x86_numbers i;

	(void)state;
	for (size_t n = 0; n < sizeof(e) / sizeof(e[0]); n++) {
		uint8_t code[16] = { 0 };

		memcpy(code, e[n].bytes, sizeof(e[n].bytes));
		assert_true(insn_x86_find_numbers(e[n].is_64, code, sizeof(code), &i));
		assert_int_equal(i.branch, e[n].branch);
		assert_int_equal(i.address, e[n].address);
		assert_int_equal(i.pc_relative, e[n].pc_relative);
		assert_int_equal(i.no_base, e[n].no_base);
	}
}

/* As the decoder says. */
static struct insn_x86_numbers decoded(const ZydisDecoder *d, const uint8_t *code, size_t len)
{
	struct insn_x86_numbers out = { 0 };
	ZydisDecoderContext context;
	ZydisDecodedInstruction i;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(d, &context, code, len, &i)))
		return out;
	out.len = i.length;
	out.disp_at = i.raw.disp.offset;
	out.disp_len = i.raw.disp.size / 8;
	out.imm_at = i.raw.imm[0].offset;
	out.imm_len = i.raw.imm[0].size / 8;
	out.branch = i.raw.imm[0].is_relative;
	out.no_base =
		out.disp_len && (!(i.attributes & ZYDIS_ATTRIB_HAS_MODRM) || i.raw.modrm.mod == 0);
	out.pc_relative =
		out.no_base && i.attributes & ZYDIS_ATTRIB_HAS_MODRM && i.raw.modrm.rm == 5;
	return out;
}

/* Of these bytes, whole and cut off. */
static void compare(const ZydisDecoder *d, const uint8_t *code, size_t len)
{
	struct insn_x86_numbers want = decoded(d, code, len), got;
	bool found = insn_x86_find_numbers(true, code, len, &got);

	if (found == (want.len != 0) && (!found || got.len == want.len) &&
	    got.disp_at == want.disp_at && got.disp_len == want.disp_len &&
	    got.imm_at == want.imm_at && got.imm_len == want.imm_len && got.branch == want.branch &&
	    got.no_base == want.no_base && got.pc_relative == want.pc_relative)
		return;
	print_error("%zu bytes: %02x %02x %02x %02x\n", len, code[0], code[1], code[2], code[3]);
	fail();
}

/* What is found without the decoder is what it finds: each opcode of one byte and of two, each
 * ModRM and base, without and with the prefixes that make operands wide or other registers. */
static void test_common_ones_are_as_decoded(void **state)
{
	static const uint8_t prefixes[] = { 0, 0x40, 0x41, 0x44, 0x48, 0x4d, 0x4f, 0x66, 0xf3 };
	uint8_t code[16] = { 0 };
	ZydisDecoder d;

	(void)state;
	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (uint32_t n = 0; n < sizeof(prefixes) << 18; n++) {
		size_t at = 0;

		if (prefixes[n >> 18])
			code[at++] = prefixes[n >> 18];
		if (n >> 17 & 1)
			code[at++] = 0x0f;
		code[at++] = (uint8_t)(n >> 9);
		code[at++] = (uint8_t)(n >> 1);
		code[at++] = n & 1 ? 0x25 : 0x63;
		memset(code + at, 0x11, sizeof(code) - at);
		compare(&d, code, sizeof(code));
		if (n % 16 < 2)
			for (size_t len = 0; len < 9; len++)
				compare(&d, code, len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_meanings),
		cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_common_ones_are_as_decoded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
