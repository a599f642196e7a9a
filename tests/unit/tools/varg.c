/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "varg.h"

enum { RDI = 1, RSI = 2, RCX = 8, ALL = 63 };

struct code {
	const char *bytes;
	size_t len;
};

static size_t read_code(void *context, uint64_t vaddr, void *out, size_t len)
{
	const struct code *c = context;

	if (vaddr < 0x1000 || vaddr - 0x1000 >= c->len)
		return 0;
	if (len > c->len - (vaddr - 0x1000))
		len = c->len - (vaddr - 0x1000);
	memcpy(out, c->bytes + (vaddr - 0x1000), len);
	return len;
}

static void check(const char *bytes, size_t len, uint32_t used, uint32_t maybe)
{
	struct code c = { bytes, len };
	struct flow_source source = { .context = &c, .bytes = read_code };
	struct image_symbol symbol = { .name = "f", .vaddr = 0x1000, .len = len };
	struct insn_decoder *d = NULL;
	struct flow *f = NULL;
	uint32_t passed;

	assert_int_equal(insn_decoder_open(EM_X86_64, &d, NULL), 0);
	assert_int_equal(flow_build_from(&source, d, &symbol, &f, NULL), 0);
	assert_int_equal(varg_used(varg_machine_of(EM_X86_64), f, &source, &passed), used);
	assert_int_equal(passed, maybe);
	flow_free(f);
	insn_decoder_close(d);
}

#define CHECK(bytes, used, maybe) check(bytes, sizeof(bytes) - 1, used, maybe)

static void test_read(void **state)
{
	(void)state;
	/* test %edi, %edi; xor %edx, %edx; add %esi, %edx; ret: edx is cleared, not read */
	CHECK("\x85\xff\x31\xd2\x01\xf2\xc3", RDI | RSI, 0);
	/* mov $1, %edi; mov %edi, %eax; ret */
	CHECK("\xbf\x01\x00\x00\x00\x89\xf8\xc3", 0, 0);
}

/* Read on one way only, after it was written on the other. */
static void test_ways(void **state)
{
	(void)state;
	/* test %edi, %edi; je 1; xor %esi, %esi; 1: mov %esi, %eax; ret */
	CHECK("\x85\xff\x74\x02\x31\xf6\x89\xf0\xc3", RDI | RSI, 0);
	/* 1: dec %edi; jne 1; mov %ecx, %eax; ret: a loop */
	CHECK("\xff\xcf\x75\xfc\x89\xc8\xc3", RDI | RCX, 0);
}

/* What a call finds may be meant for it; behind it nothing is an argument any more. */
static void test_passed_on(void **state)
{
	(void)state;
	/* xor %esi, %esi; call 0x2000; mov %edi, %eax; ret */
	CHECK("\x31\xf6\xe8\xf9\x0f\x00\x00\x89\xf8\xc3", 0, ALL & ~RSI);
	/* mov %edi, %eax; jmp 0x2000: out of the procedure */
	CHECK("\x89\xf8\xe9\xf9\x0f\x00\x00", RDI, ALL & ~RDI);
}

static void test_nothing(void **state)
{
	struct flow f = { .entry = FLOW_OUTSIDE };
	uint32_t maybe = 1;

	(void)state;
	assert_int_equal(varg_used(varg_machine_of(EM_X86_64), &f, NULL, &maybe), 0);
	assert_int_equal(maybe, 0);
	assert_null(varg_machine_of(EM_RISCV));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_passed_on),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
