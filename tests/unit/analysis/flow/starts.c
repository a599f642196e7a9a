/* SPDX-License-Identifier: BSD-2-Clause */
/* Where procedures begin by the code that uses them, of each machine. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "starts.h"

enum { MAX = 8 };

struct starts {
	uint64_t v[MAX];
	size_t nr, stop_at;
};

static int add(void *ctx, uint64_t vaddr)
{
	struct starts *s = ctx;

	assert_true(s->nr < MAX);
	s->v[s->nr++] = vaddr;
	return s->nr == s->stop_at ? -DCPI_ELIMIT : 0;
}

static void check(uint32_t machine, const void *code, size_t len, uint64_t vaddr,
		  const uint64_t *expected, size_t nr)
{
	struct starts s = { 0 };

	assert_int_equal(analysis_starts(machine, code, len, vaddr, NULL, 0, add, &s), 0);
	assert_int_equal(s.nr, nr);
	for (size_t i = 0; i < nr; i++)
		assert_int_equal(s.v[i], expected[i]);
}

static void test_x86(void **state)
{
	static const uint8_t code[] = {
		0x48, 0x8d, 0x3d, 0x10, 0,    0,    0,	  /* 1000: lea 0x10(%rip), %rdi */
		0x4c, 0x8d, 0x05, 0xf2, 0xff, 0xff, 0xff, /* 1007: lea -0xe(%rip), %r8 */
		0x48, 0x8d, 0x47, 0x10,			  /* 100e: lea 0x10(%rdi), %rax */
		0xe8, 0xe9, 0xff, 0xff, 0xff,		  /* 1012: call 0x1000 */
		0xe8, 0,    0,	  0,	0,		  /* 1017: call 0x101c, the next one */
		0xff, 0xd0,				  /* 101c: call *%rax */
		0xeb, 0xe0,				  /* 101e: jmp 0x1000 */
		0xb8, 0xe8, 0xd8, 0xff, 0xff,		  /* 1020: mov $0xffffd8e8, %eax */
		0x06,					  /* 1025: no instruction */
		0xe8, 0x06, 0,	  0,	0,		  /* 1026: call 0x1031 */
		0xe8, 0x06,				  /* 102b: cut */
	};
	static const uint64_t expected[] = { 0x1017, 0x1000, 0x1000, 0x1031 };

	(void)state;
	check(EM_X86_64, code, sizeof(code), 0x1000, expected, 4);
}

static void test_aarch64(void **state)
{
	static const uint8_t code[] = {
		0xfe, 0xff, 0xff, 0x97, /* 10008: bl 0x10000 */
		0x00, 0x00, 0x00, 0xb0, /* 1000c: adrp x0, 0x11000 */
		0x00, 0x90, 0x08, 0x91, /* 10010: add x0, x0, #0x224 */
		0xe1, 0xff, 0xff, 0xf0, /* 10014: adrp x1, 0xf000 */
		0x21, 0x40, 0x00, 0x91, /* 10018: add x1, x1, #0x10 */
		0x00, 0x00, 0x00, 0xb0, /* 1001c: adrp x0, 0x11000 */
		0x01, 0x90, 0x08, 0x91, /* 10020: add x1, x0, #0x224 */
		0x00, 0x00, 0x3f, 0xd6, /* 10024: blr x0 */
		0x02, 0x00, 0x00, 0x14, /* 10028: b 0x10030 */
		0x01, 0x00, 0x00, 0x94, /* 1002c: bl 0x10030, the next one */
		0xc0, 0x03, 0x5f, 0xd6, /* 10030: ret */
		0x00, 0x00, 0x00, 0xb0, /* 10034: adrp, cut */
	};
	static const uint64_t expected[] = { 0x10000, 0x11224, 0xf010 };

	(void)state;
	check(EM_AARCH64, code, sizeof(code), 0x10008, expected, 3);
}

static void test_riscv(void **state)
{
	static const uint8_t code[] = {
		0xef, 0x00, 0x00, 0x01, /* 2000: jal ra, 0x2010 */
		0x6f, 0x00, 0x00, 0x01, /* 2004: jal zero, 0x2014 */
		0x82, 0x80,		/* 2008: ret */
	};
	static const uint64_t expected[] = { 0x2010 };

	(void)state;
	check(EM_RISCV, code, sizeof(code), 0x2000, expected, 1);
}

static void test_pointed(void **state)
{
	static const uint8_t code[] = {
		0xc3,		  /* 1000: ret */
		0x66, 0x90,	  /* 1001: nop */
		0x90,		  /* 1003: nop */
		0x89, 0xf8,	  /* 1004: mov %edi, %eax */
		0xff, 0xe0,	  /* 1006: jmp *%rax */
		0x90,		  /* 1008: nop */
		0xeb, 0xf5,	  /* 1009: jmp 0x1000 */
		0x0f, 0x0b,	  /* 100b: ud2 */
		0xff, 0xd0,	  /* 100d: call *%rax */
		0x31, 0xc0, 0xc3, /* 100f: xor %eax, %eax; ret */
	};
	static const struct image_pointed expected[] = {
		{ 0xfff, IMAGE_BEFORE_OTHER },	   { 0x1000, IMAGE_BEFORE_END },
		{ 0x1002, IMAGE_BEFORE_OTHER },	   { 0x1004, IMAGE_BEFORE_END },
		{ 0x1006, IMAGE_BEFORE_OTHER },	   { 0x1008, IMAGE_BEFORE_INDIRECT },
		{ 0x1009, IMAGE_BEFORE_INDIRECT }, { 0x100b, IMAGE_BEFORE_END },
		{ 0x100d, IMAGE_BEFORE_END },	   { 0x100f, IMAGE_BEFORE_OTHER },
		{ 0x1012, IMAGE_BEFORE_OTHER },
	};
	enum { NR = sizeof(expected) / sizeof(*expected) };
	struct image_pointed pointed[NR] = { 0 };
	struct starts s = { 0 };

	(void)state;
	for (size_t i = 0; i < NR; i++)
		pointed[i].vaddr = expected[i].vaddr;
	assert_int_equal(
		analysis_starts(EM_X86_64, code, sizeof(code), 0x1000, pointed, NR, add, &s), 0);
	for (size_t i = 0; i < NR; i++)
		assert_int_equal(pointed[i].before, expected[i].before);
}

static void test_failures(void **state)
{
	static const uint8_t calls[] = { 0xe8, 0, 1, 0, 0, 0xe8, 0, 1, 0, 0 };
	struct starts s = { .stop_at = 1 };

	(void)state;
	assert_int_equal(analysis_starts(EM_X86_64, calls, sizeof(calls), 0, NULL, 0, add, &s),
			 -DCPI_ELIMIT);
	assert_int_equal(s.nr, 1);
	assert_int_equal(analysis_starts(EM_S390, calls, sizeof(calls), 0, NULL, 0, add, &s),
			 -DCPI_EUNSUPPORTED);
	assert_int_equal(analysis_starts(EM_X86_64, calls, 0, 0, NULL, 0, add, &s), 0);
	assert_int_equal(s.nr, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86),	 cmocka_unit_test(test_aarch64),
		cmocka_unit_test(test_riscv),	 cmocka_unit_test(test_pointed),
		cmocka_unit_test(test_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
