/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of call paths against code: this program's own, whose calls are known. */
#include <elf.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "callpath_internal.h"

#define APART __attribute__((noinline, noclone))

static struct image *self;
static struct insn_decoder *decoder;
static uint64_t bias, returned;
static volatile int sink;

static int find_bias(struct dl_phdr_info *info, size_t len, void *ctx)
{
	(void)len;
	(void)ctx;
	bias = info->dlpi_addr;
	return 1;
}

static int setup(void **state)
{
	struct base_err err = { 0 };

	(void)state;
	dl_iterate_phdr(find_bias, NULL);
	if (image_open_path("/proc/self/exe", IMAGE_FILE, &self, &err) < 0)
		return -1;
	return insn_decoder_open(image_machine(self), &decoder, &err);
}

static int teardown(void **state)
{
	(void)state;
	insn_decoder_close(decoder);
	image_close(self);
	return 0;
}

/* ---- calls ----------------------------------------------------------------------------------- */

APART static void called_callee(void)
{
	returned = (uint64_t)(uintptr_t)__builtin_return_address(0);
	sink++;
}

APART __attribute__((used)) static void called_other(void)
{
	sink += 2;
	__asm__ volatile("");
}

/* The compiler makes it a jump. */
APART static void called_tail(int n)
{
	sink += n;
	called_callee();
}

APART static void called_tail_of_tail(int n)
{
	sink -= n;
	called_tail(n);
}

static void (*volatile pointer)(void) = called_callee;

APART static void called_indirect_tail(int n)
{
	sink += n;
	pointer();
}

APART static void by_name(void)
{
	called_callee();
	sink++;
}

APART static void by_pointer(void)
{
	pointer();
	sink++;
}

APART static void by_tail(int n)
{
	called_tail_of_tail(n);
	sink++;
}

APART static void by_indirect_tail(int n)
{
	called_indirect_tail(n);
	sink++;
}

static int compare(const void *a, const void *b)
{
	returned = (uint64_t)(uintptr_t)__builtin_return_address(0);
	return *(const int *)a - *(const int *)b;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static const struct image_symbol *procedure(const char *name)
{
	size_t pos = 0;
	const struct image_symbol *s = image_symbol_find(self, name, &pos);

	assert_non_null(s);
	return s;
}

/* The call that was returned to last, and @name as its callee (NULL: unknown). */
static enum called check(const char *name, bool patched)
{
	return analysis_called(decoder, self, returned - bias - 1, name ? procedure(name) : NULL,
			       true, patched);
}

static void test_direct(void **state)
{
	(void)state;
	by_name();
	assert_int_equal(check("called_callee", false), CALLED_AGREES);
	assert_int_equal(check("called_other", false), CALLED_CONTRADICTED);
	assert_int_equal(check("called_other", true), CALLED_UNCHECKED);
	assert_int_equal(check(NULL, false), CALLED_UNCHECKED);
}

static void test_indirect(void **state)
{
	(void)state;
	by_pointer();
	assert_int_equal(check("called_callee", false), CALLED_AGREES);
	assert_int_equal(check("called_other", false), CALLED_AGREES);
}

static void test_tail(void **state)
{
	(void)state;
	by_tail(3);
	assert_int_equal(check("called_callee", false), CALLED_AGREES);
	assert_int_equal(check("called_tail", false), CALLED_AGREES);
	assert_int_equal(check("called_other", false), CALLED_CONTRADICTED);
	by_indirect_tail(3);
	assert_int_equal(check("called_other", false), CALLED_UNCHECKED);
}

/* A stub leads to the procedure of its name, in whatever image that is. */
static void test_stub(void **state)
{
	int v[] = { 3, 1, 2 };
	const struct image_symbol callee = { .name = "qsort", .len = 1 };
	const struct image_symbol other = { .name = "bsearch", .len = 1 };
	const struct image_symbol *me = procedure("test_stub");
	size_t nr = 0;

	(void)state;
	qsort(v, 3, sizeof(v[0]), compare);
	assert_int_equal(v[0], 1);
	for (uint64_t at = me->vaddr; at < me->vaddr + me->len; at++)
		if (analysis_called(decoder, self, at, &callee, false, false) == CALLED_AGREES) {
			nr++;
			assert_int_equal(analysis_called(decoder, self, at, &other, false, false),
					 CALLED_UNCHECKED);
		}
	assert_true(nr > 0);
}

/* Where no call ends, and where no bytes are. */
static void test_no_call(void **state)
{
	const struct image_symbol *to = procedure("called_callee");
	const uint64_t begin = procedure("called_other")->vaddr;

	(void)state;
	assert_int_equal(analysis_called(decoder, self, begin, to, true, true),
			 CALLED_CONTRADICTED);
	assert_int_equal(analysis_called(decoder, self, UINT64_MAX, to, true, false),
			 CALLED_UNCHECKED);
}

#if defined(__x86_64__)
__asm__(".text\n\tnop\n\t.type called_restore, @function\ncalled_restore:\n\tmov $15, "
	"%rax\n\tsyscall\n"
	".size called_restore, .-called_restore\n");

static void test_signal(void **state)
{
	const uint64_t begin = procedure("called_restore")->vaddr;

	(void)state;
	assert_true(analysis_is_sigreturn(self, begin));
	assert_false(analysis_is_sigreturn(self, begin + 1));
	assert_false(analysis_is_sigreturn(self, UINT64_MAX - 3));
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_direct),
		cmocka_unit_test(test_indirect),
		cmocka_unit_test(test_tail),
		cmocka_unit_test(test_stub),
		cmocka_unit_test(test_no_call),
#if defined(__x86_64__)
		cmocka_unit_test(test_signal),
#endif
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
