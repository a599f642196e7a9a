/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base.h"
#include "kernel.h"

#define KERNEL UINT64_C(0xffffffff9a000000)
#define JIT    UINT64_C(0xffffffffc0201000)
#define AT     0x1000
/* Where everything outside is shown. */
#define SLOT 0x8000

static uint64_t asked;

static uint64_t place(void *ctx, uint64_t target)
{
	assert_ptr_equal(ctx, &asked);
	asked = target;
	return SLOT;
}

static struct kernel_view view(uint32_t machine, bool jit)
{
	return (struct kernel_view){
		.machine = machine,
		.addr = jit ? JIT : KERNEL + 0x5000,
		.at = jit ? AT : 0x5000,
		.own_start = jit ? JIT : KERNEL,
		.own_end = jit ? JIT + 0x100 : KERNEL + 0x2000000,
		.place = place,
		.ctx = &asked,
	};
}

static void put(uint8_t *to, uint64_t v, size_t len)
{
	memcpy(to, &v, len);
}

static int64_t get(const uint8_t *p, size_t len)
{
	uint64_t v = 0;

	memcpy(&v, p, len);
	return len == 4 ? (int32_t)v : (int64_t)v;
}

/* ---- x86-64 ---------------------------------------------------------------------------------- */

static void test_jit(void **state)
{
	const struct kernel_view v = view(EM_X86_64, true);
	uint8_t code[64];

	(void)state;
	memset(code, 0x90, sizeof(code));
	memcpy(code, "\xe8", 1); /* 0: call outside */
	put(code + 1, KERNEL + 0x1234 - (JIT + 5), 4);
	memcpy(code + 5, "\x48\xb8", 2); /* 5: mov $map,%rax */
	put(code + 7, 0xffff888012345678, 8);
	memcpy(code + 15, "\x48\xc7\xc7", 3); /* 15: mov $kernel address,%rdi */
	put(code + 18, KERNEL + 0x77, 4);
	memcpy(code + 22, "\x65\x48\x8b\x04\x25", 5); /* 22: mov %gs:kernel address,%rax */
	put(code + 27, KERNEL + 0x88, 4);
	memcpy(code + 31, "\x48\xb8", 2); /* 31: mov $place in here,%rax */
	put(code + 33, JIT + 41, 8);
	memcpy(code + 41, "\x75\xf0", 2); /* 41: jne, in here */
	memcpy(code + 43, "\x48\xb8", 2); /* 43: mov $a number,%rax */
	put(code + 45, 0x123456789abcdef0, 8);
	memcpy(code + 53, "\x48\xc7\xc0\xff\xff\xff\xff", 7); /* 53: mov $-1,%rax */
	assert_int_equal(kernel_view_hide(&v, code, sizeof(code)), sizeof(code));
	assert_int_equal(asked, KERNEL + 0x1234);
	assert_int_equal(get(code + 1, 4), SLOT - (AT + 5));
	assert_int_equal(get(code + 7, 8), 0);
	assert_int_equal(get(code + 18, 4), 0);
	assert_int_equal(get(code + 27, 4), 0);
	assert_int_equal(get(code + 33, 8), AT + 41);
	assert_memory_equal(code + 41, "\x75\xf0", 2);
	assert_int_equal(get(code + 45, 8), 0x123456789abcdef0);
	assert_int_equal(get(code + 56, 4), -1);
}

/* The kernel's own addresses become offsets in its image; distances within it are the same there.
 */
static void test_kernel(void **state)
{
	const struct kernel_view v = view(EM_X86_64, false);
	uint8_t code[48], was[5];

	(void)state;
	memset(code, 0x90, sizeof(code));
	memcpy(code, "\xe8\x00\x10\x00\x00", 5);
	memcpy(was, code, 5);
	memcpy(code + 5, "\x48\xc7\xc7", 3);
	put(code + 8, KERNEL + 0x17acdb8, 4);
	memcpy(code + 12, "\xe8", 1); /* into a module */
	put(code + 13, JIT - (KERNEL + 0x5000 + 17), 4);
	memcpy(code + 17, "\x48\x8b\x05\x00\x00\x10\x00", 7);
	memcpy(code + 24, "\x48\xb8", 2); /* an address in memory, patched in at start */
	put(code + 26, 0xffff888012345678, 8);
	assert_int_equal(kernel_view_hide(&v, code, sizeof(code)), sizeof(code));
	assert_memory_equal(code, was, 5);
	assert_int_equal(get(code + 8, 4), 0x17acdb8);
	assert_int_equal(asked, JIT);
	assert_int_equal(get(code + 13, 4), SLOT - (0x5000 + 17));
	assert_int_equal(get(code + 20, 4), 0x100000);
	assert_int_equal(get(code + 26, 8), 0);
}

/* A module knows the kernel's addresses and those of its own data, in every width. */
static void test_module(void **state)
{
	const struct kernel_view v = {
		.machine = EM_X86_64,
		.addr = JIT + 0x200,
		.at = 0x200,
		.own_start = JIT,
		.own_end = JIT + 0x1000,
		.place = place,
		.ctx = &asked,
	};
	uint8_t code[] = "\x48\xc7\xc7\x80\x56\x34\x9c"		    /* mov $string,%rdi */
			 "\x8b\x04\x25\x40\x11\xa2\x9b"		    /* mov variable,%eax */
			 "\x48\xc7\xc6\x00\x70\x20\xc0"		    /* mov $own data,%rsi */
			 "\x48\xb8\x40\x11\xa2\x9b\xff\xff\xff\xff" /* movabs $variable,%rax */
			 "\x48\xc7\xc6\x80\x12\x20\xc0"		    /* mov $own code,%rsi */
			 "\x68\x40\x11\xa2\x9b"			    /* push $variable */
			 "\x48\x8b\x04\xfd\x40\x11\xa2\x9b";	    /* mov table(,%rdi,8),%rax */
	const uint8_t shown[] = "\x48\xc7\xc7\0\0\0\0"
				"\x8b\x04\x25\0\0\0\0"
				"\x48\xc7\xc6\0\0\0\0"
				"\x48\xb8\0\0\0\0\0\0\0\0"
				"\x48\xc7\xc6\x80\x02\0\0"
				"\x68\0\0\0\0"
				"\x48\x8b\x04\xfd\0\0\0\0";

	(void)state;
	assert_int_equal(kernel_view_hide(&v, code, sizeof(code) - 1), sizeof(code) - 1);
	assert_memory_equal(code, shown, sizeof(shown));
}

/* Numbers that look like addresses, where no address can be: shown as they are, or what is shown
 * instead would tell the difference. */
static void test_numbers(void **state)
{
	static const char *const same[] = {
		"\x05\xdc\xbc\x1b\x8f",				/* add $0x8f1bbcdc,%eax: SHA-1's */
		"\x81\xff\xef\xbe\xad\xde",			/* cmp $0xdeadbeef,%edi */
		"\xbf\x80\x56\x34\x9c",				/* mov $0x9c345680,%edi */
		"\xc7\x07\x80\x56\x34\x9c",			/* movl $0x9c345680,(%rdi) */
		"\x48\x69\xc0\xb1\x79\x37\x9e",			/* imul $-0x61c8864f,%rax,%rax */
		"\x48\x81\xe0\x11\x11\x34\x9c",			/* and $mask,%rax */
		"\xc7\x04\x25\x80\x56\x34\x70\x11\x11\x34\x9c", /* movl $number,0x70345680 */
		"\x48\x81\xff\x00\x00\x00\x80",			/* cmp $-0x80000000,%rdi */
		"\x48\x05\x00\x00\x00\xff",			/* add $-0x1000000,%rax */
		"\x90\x90\x90\xb8\xff\xff\xff\xff",		/* mov $-1,%eax */
		"\x48\xc7\xc0\xff\xff\xff\xff",			/* mov $-1,%rax */
	};
	static const size_t lens[] = { 5, 6, 5, 6, 7, 7, 11, 7, 6, 8, 7 };
	struct kernel_view v;
	uint8_t code[16];

	(void)state;
	for (int jit = 0; jit < 2; jit++) {
		v = view(EM_X86_64, jit);
		for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
			memset(code, 0x90, sizeof(code));
			memcpy(code, same[i], lens[i]);
			assert_int_equal(kernel_view_hide(&v, code, sizeof(code)), sizeof(code));
			assert_memory_equal(code, same[i], lens[i]);
		}
	}
}

/* Code as a kernel at @base has it, with a module at @module. */
static size_t put_code(uint8_t *to, uint64_t base, uint64_t module, uint64_t addr)
{
	static const char *const heads[] = { "\x48\xc7\xc7", "\x8b\x04\x25", "\x48\x3d", "\x68",
					     "\x48\x81\xc7" };
	const uint64_t values[] = { base + 0x1121140, base + 0x5010, module + 0x2000 };
	uint8_t *p = to;

	for (size_t v = 0; v < 3; v++) {
		for (size_t h = 0; h < 5; h++) {
			memcpy(p, heads[h], strlen(heads[h]));
			put(p + strlen(heads[h]), values[v], 4);
			p += strlen(heads[h]) + 4;
		}
		memcpy(p, "\x48\xb8", 2);
		put(p + 2, values[v], 8);
		memcpy(p + 10, "\xe8", 1);
		put(p + 11, values[v] - (addr + (uint64_t)(p + 15 - to)), 4);
		memcpy(p + 15, "\x90\x90\xb8\xff\xff\xff\xff", 7);
		memcpy(p + 22, "\x05\xdc\xbc\x1b\x8f", 5);
		p += 27;
	}
	return (size_t)(p - to);
}

/* What is shown does not depend on where the kernel lies: nothing of that can be read from it. */
static void test_any_base(void **state)
{
	const uint64_t bases[] = { 0xffffffff81000000, 0xffffffff8f000000, 0xffffffff9a600000,
				   0xffffffffb7e00000 };
	uint8_t first[3][256] = { 0 }, code[256];
	size_t len;

	(void)state;
	for (size_t b = 0; b < 4; b++) {
		const uint64_t module = 0xffffffffc0200000 + b * 0x7000;
		const uint64_t jit = 0xffffffffc0400000 + b * 0x3040;
		const struct kernel_view views[] = {
			{ .addr = bases[b] + 0x5000,
			  .at = 0x5000,
			  .own_start = bases[b],
			  .own_end = bases[b] + 0x2000000 },
			{ .addr = module + 0x40,
			  .at = 0x40,
			  .own_start = module,
			  .own_end = module + 0x1000 },
			{ .addr = jit, .at = AT, .own_start = jit, .own_end = jit + 0x100 },
		};

		for (size_t i = 0; i < 3; i++) {
			struct kernel_view v = views[i];

			v.machine = EM_X86_64;
			v.place = place;
			v.ctx = &asked;
			memset(code, 0x90, sizeof(code));
			len = put_code(code, bases[b], module, v.addr);
			assert_true(len < sizeof(code));
			kernel_view_hide(&v, code, sizeof(code));
			if (!b)
				memcpy(first[i], code, sizeof(code));
			assert_memory_equal(code, first[i], sizeof(code));
		}
	}
}

/* The same code elsewhere is the same when it is shown. */
static void test_place_does_not_matter(void **state)
{
	uint8_t a[16], b[16];
	struct kernel_view v = view(EM_X86_64, true);

	(void)state;
	memset(a, 0x90, sizeof(a));
	memset(b, 0x90, sizeof(b));
	a[0] = b[0] = 0xe9;
	put(a + 1, KERNEL + 0x1234 - (v.addr + 5), 4);
	kernel_view_hide(&v, a, sizeof(a));
	v.addr += 0x4440;
	put(b + 1, KERNEL + 0x1234 - (v.addr + 5), 4);
	kernel_view_hide(&v, b, sizeof(b));
	assert_memory_equal(a, b, sizeof(a));
}

static void test_unknown_code(void **state)
{
	struct kernel_view v = view(EM_X86_64, true);
	uint8_t code[] = { 0x90, 0x90, 0x06, 0x12, 0x34 }, zeros[5] = { 0 };

	(void)state;
	assert_int_equal(kernel_view_hide(&v, code, sizeof(code)), 2);
	assert_memory_equal(code, "\x90\x90\0\0\0", 5);
	/* Of a machine that nobody taught us nothing can be shown. */
	v.machine = EM_RISCV;
	memset(code, 0x13, sizeof(code));
	assert_int_equal(kernel_view_hide(&v, code, sizeof(code)), 0);
	assert_memory_equal(code, zeros, sizeof(code));
}

static void test_data_between(void **state)
{
	const struct kernel_view v = view(EM_X86_64, false);
	uint8_t code[24];

	(void)state;
	/* As bytes of instructions that read as such: cmp $x,%al; … */
	memset(code, 0x90, sizeof(code));
	put(code + 5, KERNEL + 0x1111, 8);
	kernel_view_hide(&v, code, sizeof(code));
	assert_int_not_equal(get(code + 5, 8), KERNEL + 0x1111);
}

/* ---- aarch64 --------------------------------------------------------------------------------- */

static void test_aarch64(void **state)
{
	const struct kernel_view v = view(EM_AARCH64, true);
	uint32_t code[] = {
		0x94000000 | (0x100000 >> 2),  /* bl far away */
		0x17ffffff,		       /* b to the one before */
		0x92800000 | 0x1234 << 5 | 10, /* movn x10, #0x1234 */
		0xf2a00000 | 0x8234 << 5 | 10, /* movk x10, #0x8234, lsl 16 */
		0xf2c00000 | 0xffff << 5 | 10, /* movk x10, #0xffff, lsl 32 */
		0xd2800000 | 0x1234 << 5 | 11, /* movz x11, #0x1234 */
		0xf2a00000 | 0x1234 << 5 | 11, /* movk x11, … : a number */
		0xb0000000 | 5,		       /* adrp x5 */
		0xd65f03c0,		       /* ret */
	};

	(void)state;
	assert_int_equal(kernel_view_hide(&v, (uint8_t *)code, sizeof(code)), sizeof(code));
	assert_int_equal(asked, JIT + 0x100000);
	assert_int_equal(code[0], 0x94000000 | ((SLOT - AT) >> 2));
	assert_int_equal(code[1], 0x17ffffff);
	assert_int_equal(code[2], 0x92800000 | 10);
	assert_int_equal(code[3], 0xf2a00000 | 10);
	assert_int_equal(code[4], 0xf2c00000 | 10);
	assert_int_equal(code[5], 0xd2800000 | 0x1234 << 5 | 11);
	assert_int_equal(code[6], 0xf2a00000 | 0x1234 << 5 | 11);
	assert_int_equal(code[7], 0x90000000 | 5);
	assert_int_equal(code[8], 0xd65f03c0);
}

static void test_aarch64_kernel(void **state)
{
	const struct kernel_view v = view(EM_AARCH64, false);
	uint32_t code[] = {
		0x94000000 | (0x1000 >> 2), 0xb0000005, 0x94000000 | (0x3ffffff >> 1),
		0xf0ffffe5, /* adrp x5, a page before */
	};

	(void)state;
	assert_int_equal(kernel_view_hide(&v, (uint8_t *)code, sizeof(code)), sizeof(code));
	assert_int_equal(code[0], 0x94000000 | (0x1000 >> 2));
	assert_int_equal(code[1], 0xb0000005);
	assert_int_equal(code[2] & 0x3ffffff, (SLOT - 0x5008) >> 2);
	assert_int_equal(code[3], 0xf0ffffe5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jit),	     cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_module),	     cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_any_base),     cmocka_unit_test(test_place_does_not_matter),
		cmocka_unit_test(test_unknown_code), cmocka_unit_test(test_data_between),
		cmocka_unit_test(test_aarch64),	     cmocka_unit_test(test_aarch64_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
