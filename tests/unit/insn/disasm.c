/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "insn.h"

static struct insn_disasm *open_for(uint32_t machine)
{
	struct insn_disasm *d = NULL;
	struct base_err err = { 0 };

	assert_int_equal(insn_disasm_open(machine, &d, &err), 0);
	return d;
}

static void expect(struct insn_disasm *d, const void *code, size_t len, uint32_t insn_len,
		   const char *text, uint64_t target)
{
	struct insn_line insn;

	insn_disasm_one(d, code, len, 0x1000, &insn);
	assert_string_equal(insn.text, text);
	assert_int_equal(insn.len, insn_len);
	assert_int_equal(insn.vaddr, 0x1000);
	assert_int_equal(insn.has_target, target != 0);
	assert_int_equal(insn.target, target);
}

static void test_x86(void **state)
{
	struct insn_disasm *d = open_for(EM_X86_64);
	struct insn_line insn;

	(void)state;
	expect(d, "\xc3\x90", 2, 1, "retq", 0);
	expect(d, "\xe8\x0b\x00\x00\x00", 5, 5, "callq   0x1010", 0x1010);
	expect(d, "\x75\xfe", 2, 2, "jne     0x1000", 0x1000);
	expect(d, "\xff\x25\x00\x10\x00\x00", 6, 6, "jmpq    *0x1000(%rip)", 0);
	expect(d, "\xff\xd0", 2, 2, "callq   *%rax", 0);
	/* Not an instruction, and one that is cut. */
	expect(d, "\x06\xc3", 2, 1, ".byte   0x06", 0);
	expect(d, "\xe8\x0b", 2, 1, ".byte   0xe8", 0);
	insn_disasm_one(d, (const uint8_t *)"\xe8\x0b\x00\x00\x00", 5, 0x1000, &insn);
	assert_int_equal(insn.target_at, 8);
	assert_int_equal(insn.target_len, 6);
	insn_disasm_close(d);
}

static void test_x86_vector(void **state)
{
	struct insn_disasm *d = open_for(EM_X86_64);

	(void)state;
	expect(d, "\x62\xf3\x7d\x20\x3f\x47\x02\x00", 8, 8, "vpcmpeqb 0x40(%rdi), %ymm16, %k0", 0);
	expect(d, "\xc5\xfb\x93\xc0", 4, 4, "kmovd   %k0, %eax", 0);
	expect(d, "\x62\xf1\x7f\xca\x6f\x47\x01", 7, 7, "vmovdqu8 0x40(%rdi), %zmm0 {%k2} {z}", 0);
	expect(d, "\x62\xf1\x7c\x58\x58\x01", 6, 6, "vaddps  (%rcx){1to16}, %zmm0, %zmm0", 0);
	expect(d, "\x62\xf1\x7c\x78\x58\xc1", 6, 6, "vaddps  {rz-sae}, %zmm1, %zmm0, %zmm0", 0);
	/* An opcode that no manual has, and one that is cut. */
	expect(d, "\xc5\xfb\x0d\xc0\x90", 5, 1, ".byte   0xc5", 0);
	expect(d, "\x62\xf1\x7d\x20\x0d\x84\xd8\x11", 8, 1, ".byte   0x62", 0);
	insn_disasm_close(d);
}

/* The suffixes, stars and numbers of AT&T syntax, as objdump prints them. */
static void test_x86_syntax(void **state)
{
	struct insn_disasm *d = open_for(EM_X86_64);

	(void)state;
	expect(d, "\x0f\xb6\x43\x10", 4, 4, "movzbl  0x10(%rbx), %eax", 0);
	expect(d, "\x48\x63\x04\x8a", 4, 4, "movslq  (%rdx, %rcx, 4), %rax", 0);
	expect(d, "\x48\xc7\x44\x24\x08\xff\xff\xff\xff", 9, 9, "movq    $-1, 8(%rsp)", 0);
	expect(d, "\x48\x83\xe4\xf0", 4, 4, "andq    $0xfffffffffffffff0, %rsp", 0);
	expect(d, "\x83\xe4\xf0", 3, 3, "andl    $0xfffffff0, %esp", 0);
	expect(d, "\x48\xb8\x11\x22\x33\x44\x55\x66\x77\x88", 10, 10,
	       "movabsq $0x8877665544332211, %rax", 0);
	expect(d, "\xf3\x48\xab", 3, 3, "rep stosq %rax, (%rdi)", 0);
	expect(d, "\xf0\x0f\xb1\x11", 4, 4, "lock cmpxchgl %edx, (%rcx)", 0);
	expect(d, "\x0f\x94\xc0", 3, 3, "sete    %al", 0);
	expect(d, "\x0f\x4d\xc1", 3, 3, "cmovgel %ecx, %eax", 0);
	expect(d, "\x0f\x1f\x44\x00\x00", 5, 5, "nopl    (%rax, %rax)", 0);
	expect(d, "\x64\x48\x8b\x04\x25\x28\x00\x00\x00", 9, 9, "movq    %fs:0x28, %rax", 0);
	expect(d, "\xdb\x6c\x24\x08", 4, 4, "fldt    8(%rsp)", 0);
	expect(d, "\xdf\x7c\x24\x08", 4, 4, "fistpll 8(%rsp)", 0);
	expect(d, "\xde\xe9", 2, 2, "fsubrp  %st(0), %st(1)", 0);
	expect(d, "\xff\x14\xc5\x00\x10\x00\x00", 7, 7, "callq   *0x1000(, %rax, 8)", 0);
	expect(d, "\x48\x98", 2, 2, "cltq", 0);
	insn_disasm_close(d);
}

/* Some bytes are an instruction in 32 bits only, or another one. */
static void test_386(void **state)
{
	struct insn_disasm *d = open_for(EM_386);

	(void)state;
	expect(d, "\xc3\x90", 2, 1, "retl", 0);
	expect(d, "\x06\xc3", 2, 1, "pushl   %es", 0);
	expect(d, "\x40\xc3", 2, 1, "incl    %eax", 0);
	expect(d, "\xe8\x0b\x00\x00\x00", 5, 5, "calll   0x1010", 0x1010);
	insn_disasm_close(d);
}

static void test_aarch64(void **state)
{
	struct insn_disasm *d = open_for(EM_AARCH64);

	(void)state;
	expect(d, "\x02\x00\x00\x94", 4, 4, "bl      #0x1008", 0x1008);
	expect(d, "\x60\x00\x00\xb4", 4, 4, "cbz     x0, #0x100c", 0x100c);
	expect(d, "\xc0\x03\x5f\xd6", 4, 4, "ret", 0);
	expect(d, "\x00\x00\x00\x00", 4, 4, ".word   0x00000000", 0);
	expect(d, "\x02\x00", 2, 1, ".byte   0x02", 0);
	insn_disasm_close(d);
}

/* Whatever this capstone knows of it, lengths must be right. */
static void test_riscv(void **state)
{
	struct insn_disasm *d = open_for(EM_RISCV);
	struct insn_line insn;

	(void)state;
	insn_disasm_one(d, (const uint8_t *)"\x82\x80\x13\x05\x15\x00", 6, 0x1000, &insn);
	assert_int_equal(insn.len, 2);
	insn_disasm_one(d, (const uint8_t *)"\x13\x05\x15\x00", 4, 0x1002, &insn);
	assert_int_equal(insn.len, 4);
	insn_disasm_close(d);
}

static void test_unknown_machine(void **state)
{
	struct insn_disasm *d = NULL;
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(insn_disasm_open(EM_S390, &d, &err), -DCPI_EUNSUPPORTED);
	assert_null(d);
	assert_non_null(strstr(err.text, "machine 22"));
}

/* Any bytes: steps forward, ends at the end, stays in its buffer. */
static void test_any_bytes(void **state)
{
	static const uint32_t machines[] = { EM_X86_64, EM_386, EM_AARCH64, EM_RISCV };
	struct insn_line insn;
	uint8_t code[512];

	(void)state;
	srandom(7);
	for (size_t m = 0; m < sizeof(machines) / sizeof(machines[0]); m++) {
		struct insn_disasm *d = open_for(machines[m]);

		for (size_t i = 0; i < sizeof(code); i++)
			code[i] = (uint8_t)random();
		for (size_t at = 0; at < sizeof(code); at += insn.len) {
			insn_disasm_one(d, code + at, sizeof(code) - at, at, &insn);
			assert_true(insn.len > 0 && insn.len <= sizeof(code) - at);
			assert_true(*insn.text);
			if (insn.has_target)
				assert_true(insn.target_at + insn.target_len <= strlen(insn.text));
		}
		insn_disasm_close(d);
	}
}

/* Text and decoder agree on lengths and targets, whatever the bytes are. */
static void compare_text(uint32_t machine)
{
	struct insn_disasm *d = open_for(machine);
	struct insn_decoder *decoder = NULL;
	uint64_t state = 88172645463325252ull;
	struct insn_line line;
	struct insn insn;
	uint8_t code[16];

	assert_int_equal(insn_decoder_open(machine, &decoder, NULL), 0);
	for (int i = 0; i < 20000; i++) {
		for (size_t k = 0; k < sizeof(code); k++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			code[k] = (uint8_t)state;
		}
		/* Branches are rare among random bytes. */
		if (i % 3 == 0)
			code[0] = (uint8_t[]){ 0xe8, 0xe9, 0xeb, 0x75, 0xff, 0xe2, 0xf2 }[i % 7];
		insn_disasm_one(d, code, sizeof(code), 0x401000, &line);
		insn_decode(decoder, code, sizeof(code), 0x401000, &insn);
		assert_int_equal(line.len, insn.len);
		if (line.has_target)
			assert_int_equal(line.target, insn.target);
		else
			assert_false(insn.flow == INSN_BRANCH || insn.flow == INSN_JUMP ||
				     insn.flow == INSN_CALL);
	}
	insn_decoder_close(decoder);
	insn_disasm_close(d);
}

static void test_text(void **state)
{
	(void)state;
	compare_text(EM_X86_64);
	compare_text(EM_386);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86),	   cmocka_unit_test(test_x86_vector),
		cmocka_unit_test(test_x86_syntax), cmocka_unit_test(test_386),
		cmocka_unit_test(test_aarch64),	   cmocka_unit_test(test_text),
		cmocka_unit_test(test_riscv),	   cmocka_unit_test(test_unknown_machine),
		cmocka_unit_test(test_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
