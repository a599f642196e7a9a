/* SPDX-License-Identifier: BSD-2-Clause */
/* What is left of code when everything that moving changes is taken out. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "insn.h"

enum { LEN_MAX = 64, BASE = 0x10000 };

static void mask(uint32_t machine, const char *code, size_t len, uint8_t *out)
{
	memcpy(out, code, len);
	insn_mask(machine, out, len, BASE);
}

#define CODE(text) (text), sizeof(text) - 1

static void expect(uint32_t machine, const char *code, size_t len, const char *left,
		   size_t left_len)
{
	uint8_t out[LEN_MAX];

	assert_int_equal(len, left_len);
	mask(machine, code, len, out);
	assert_memory_equal(out, left, len);
}

static void words(uint32_t machine, const uint32_t *code, const uint32_t *left, size_t nr)
{
	uint8_t bytes[LEN_MAX], want[LEN_MAX];

	for (size_t i = 0; i < 4 * nr; i++) {
		bytes[i] = (uint8_t)(code[i / 4] >> (8 * (i % 4)));
		want[i] = (uint8_t)(left[i / 4] >> (8 * (i % 4)));
	}
	insn_mask(machine, bytes, 4 * nr, BASE);
	assert_memory_equal(bytes, want, 4 * nr);
}

static void test_x86(void **state)
{
	(void)state;
	/* call and jmp out of the procedure, near and short */
	expect(EM_X86_64, CODE("\xe8\x11\x22\x33\x44\xc3"), CODE("\xe8\0\0\0\0\xc3"));
	expect(EM_X86_64, CODE("\x0f\x84\x11\x22\x33\x44"), CODE("\x0f\x84\0\0\0\0"));
	expect(EM_X86_64, CODE("\xeb\x70\xc3"), CODE("\xeb\0\xc3"));
	/* within it */
	expect(EM_X86_64, CODE("\xeb\x01\x90\xc3"), CODE("\xeb\x01\x90\xc3"));
	expect(EM_X86_64, CODE("\xe9\0\0\0\0\xc3"), CODE("\xe9\0\0\0\0\xc3"));
	/* lea 0x44332211(%rip),%rax; movl $1,0x44332211(%rip); jmp *0x44332211(%rip) */
	expect(EM_X86_64, CODE("\x48\x8d\x05\x11\x22\x33\x44"), CODE("\x48\x8d\x05\0\0\0\0"));
	expect(EM_X86_64, CODE("\xc7\x05\x11\x22\x33\x44\x01\0\0\0"),
	       CODE("\xc7\x05\0\0\0\0\x01\0\0\0"));
	expect(EM_X86_64, CODE("\xff\x25\x11\x22\x33\x44"), CODE("\xff\x25\0\0\0\0"));
	/* where the operand-size prefix is part of the opcode, or is one: movdqa
	 * 0x44332211(%rip),%xmm0; vpand 0x44332211(%rip),%ymm1,%ymm2; movw $1,0x44332211(%rip) */
	expect(EM_X86_64, CODE("\x66\x0f\x6f\x05\x11\x22\x33\x44"),
	       CODE("\x66\x0f\x6f\x05\0\0\0\0"));
	expect(EM_X86_64, CODE("\xc5\xf5\xdb\x15\x11\x22\x33\x44"),
	       CODE("\xc5\xf5\xdb\x15\0\0\0\0"));
	expect(EM_X86_64, CODE("\x66\xc7\x05\x11\x22\x33\x44\x01\0"),
	       CODE("\x66\xc7\x05\0\0\0\0\x01\0"));
	/* vpcmpub $1,0x44332211(%rip),%zmm16,%k0, and with a distance
	 * from %rdi */
	expect(EM_X86_64, CODE("\x62\xf3\x7d\x40\x3e\x05\x11\x22\x33\x44\x01\xc3"),
	       CODE("\x62\xf3\x7d\x40\x3e\x05\0\0\0\0\x01\xc3"));
	expect(EM_X86_64, CODE("\x62\xf3\x7d\x40\x3e\x87\x11\x22\x33\x44\x01\xc3"),
	       CODE("\x62\xf3\x7d\x40\x3e\x87\x11\x22\x33\x44\x01\xc3"));
	/* movabs $…,%rax */
	expect(EM_X86_64, CODE("\x48\xb8\x11\x22\x33\x44\x55\x66\x77\x88\xc3"),
	       CODE("\x48\xb8\0\0\0\0\0\0\0\0\xc3"));
	/* constants and distances from registers are what the code does: mov $5,%eax; mov
	 * 8(%rdi),%eax
	 */
	expect(EM_X86_64, CODE("\xb8\x05\0\0\0"), CODE("\xb8\x05\0\0\0"));
	expect(EM_X86_64, CODE("\x8b\x87\x11\x22\x33\x44"), CODE("\x8b\x87\x11\x22\x33\x44"));
	/* bytes that are no instruction stay, and what follows is found again */
	expect(EM_X86_64, CODE("\x06\xe8\x11\x22\x33\x44"), CODE("\x06\xe8\0\0\0\0"));
	/* nor is the call behind a comparison of AVX-512 missed: vpcmpeqb (%rdi),%ymm16,%k0 */
	expect(EM_X86_64, CODE("\x62\xf3\x7d\x20\x3f\x07\x00\xe8\x11\x22\x33\x44"),
	       CODE("\x62\xf3\x7d\x20\x3f\x07\x00\xe8\0\0\0\0"));
	/* cut in the middle */
	expect(EM_X86_64, CODE("\xe8\x11\x22"), CODE("\xe8\x11\x22"));
}

static void test_aarch64(void **state)
{
	/* adrp x0; add x0, x0, #0x10; add x1, x1, #0x10; ldr x2, [x0, #8] (not behind adrp) */
	const uint32_t page[] = { 0xb0000020, 0x91004000, 0x91004021, 0xf9400402 };
	const uint32_t page_left[] = { 0x90000000, 0x91000000, 0x91004021, 0xf9400402 };
	/* adrp x0; ldr x2, [x0, #8]; adr x3 */
	const uint32_t load[] = { 0xb0000020, 0xf9400402, 0x10000083 };
	const uint32_t load_left[] = { 0x90000000, 0xf9400002, 0x10000003 };
	/* bl out; b to the start; b.eq out; cbz in; tbz out; ldr literal out */
	const uint32_t branch[] = { 0x94000100, 0x17ffffff, 0x54001000,
				    0xb4ffffe0, 0x36001001, 0x58001002 };
	const uint32_t branch_left[] = { 0x94000000, 0x17ffffff, 0x54000000,
					 0xb4ffffe0, 0x36000001, 0x58000002 };
	/* movz x0, #1; movk x0, #2, lsl 16; mov x1, #5; mov w2, #7 */
	const uint32_t wide[] = { 0xd2800020, 0xf2a00040, 0xd28000a1, 0x528000e2 };
	const uint32_t wide_left[] = { 0xd2800000, 0xf2a00000, 0xd28000a1, 0x528000e2 };

	(void)state;
	words(EM_AARCH64, page, page_left, 4);
	words(EM_AARCH64, load, load_left, 3);
	words(EM_AARCH64, branch, branch_left, 6);
	words(EM_AARCH64, wide, wide_left, 4);
}

static void test_riscv(void **state)
{
	/* auipc a0, 1; addi a0, a0, 16; addi a0, a0, 16 (a sum) */
	const uint32_t place[] = { 0x00001517, 0x01050513, 0x01050513 };
	const uint32_t place_left[] = { 0x00000517, 0x00050513, 0x01050513 };
	/* jal ra, +0x1000; jal zero, -4; auipc t0, 1; sd a0, 8(t0); bne */
	const uint32_t branch[] = { 0x000010ef, 0xffdff06f, 0x00001297, 0x00a2b423, 0xfe051ee3 };
	const uint32_t branch_left[] = { 0x000000ef, 0xffdff06f, 0x00000297, 0x00a2b023,
					 0xfe051ee3 };

	(void)state;
	words(EM_RISCV, place, place_left, 3);
	words(EM_RISCV, branch, branch_left, 5);
	/* compressed: c.nop; jal ra out; cut */
	expect(EM_RISCV, CODE("\x01\x00\xef\x10\x00\x00\xef\x10"),
	       CODE("\x01\x00\xef\x00\x00\x00\xef\x10"));
}

static void test_any_bytes(void **state)
{
	static const uint32_t machines[] = { EM_X86_64, EM_386, EM_AARCH64, EM_RISCV, EM_SPARC };
	uint8_t code[LEN_MAX], again[LEN_MAX];
	uint32_t seed = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint32_t machine = machines[i % 5];
		size_t len = (size_t)i / 5 % LEN_MAX;

		for (size_t k = 0; k < len; k++)
			code[k] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
		memcpy(again, code, len);
		insn_mask(machine, code, len, UINT64_MAX - 8);
		insn_mask(machine, again, len, UINT64_MAX - 8);
		assert_memory_equal(code, again, len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86),
		cmocka_unit_test(test_aarch64),
		cmocka_unit_test(test_riscv),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
