/* SPDX-License-Identifier: BSD-2-Clause */
/* Every row of the tables in HP-UX's page, the limits of a region, and what makes a call wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scales.h"
#include "sprofil_internal.h"

enum { START = 0x400000, BASE = 0x10000000, OVERFLOW = 0x20000000 };

static struct sprofil_table *table;

static int setup(void **state)
{
	(void)state;
	table = calloc(1, sizeof(*table) + 8 * sizeof(table->regions[0]));
	return !table;
}

static int teardown(void **state)
{
	(void)state;
	free(table);
	return 0;
}

static struct prof entry(uint64_t base, unsigned int size, uint64_t start, unsigned int scale)
{
	return (struct prof){ (void *)(uintptr_t)base, size, (void *)(uintptr_t)start, scale };
}

static int fill(const struct prof *entries, size_t nr, unsigned int flags)
{
	return sprofil_table_fill(table, entries, nr, flags);
}

static uint64_t find(uint64_t pc)
{
	uint64_t element;

	return sprofil_table_find(table, pc, &element) ? element : 0;
}

/* ---- the tables ------------------------------------------------------------------------------ */

enum { NR_ELEMENTS = 9 };

static void check_row(const struct scales_row *row, int column, unsigned int instruction_len)
{
	unsigned int element = 2u << column;
	const struct prof one = entry(BASE, NR_ELEMENTS * element, START, row->scale);
	double ratio = row->ratio[column];
	uint64_t nr = (uint64_t)(NR_ELEMENTS * ratio); /* instructions in the region */

	assert_int_equal(fill(&one, 1, scales_flags[column]), 0);
	for (uint64_t i = 0; i <= nr; i++) {
		uint64_t pc = START + i * instruction_len;
		/* Ratios are powers of two: exact in a double. */
		uint64_t index = (uint64_t)((double)i / ratio);
		uint64_t want = index < NR_ELEMENTS ? BASE + index * element : 0;

		if (ratio > 64 && i % (uint64_t)ratio > 1 && i % (uint64_t)ratio < ratio - 2)
			continue; /* in the middle of a large element */
		if (find(pc) != want)
			fail_msg("scale %u, %u-byte elements, instruction %llu: element at %#llx",
				 row->scale, element, (unsigned long long)i,
				 (unsigned long long)find(pc));
	}
	if (ratio >= 1 &&
	    instruction_len > 1) /* a pc inside the instruction, which no machine has */
		assert_int_equal(find(START + 1), find(START));
	assert_int_equal(find(START - 1), 0);
}

static void test_instructions_of_4_bytes(void **state)
{
	(void)state;
	assert_int_equal(scales_nr4, 17);
	for (size_t i = 0; i < scales_nr4; i++)
		for (int column = 0; column < 3; column++)
			check_row(&scales4[i], column, 4);
}

static void test_bundles_of_16_bytes(void **state)
{
	(void)state;
	assert_int_equal(scales_nr16, 15);
	for (size_t i = 0; i < scales_nr16; i++)
		for (int column = 0; column < 3; column++)
			check_row(&scales16[i], column, 16);
}

/* x86-64: the same rows with single-byte instructions, four times as many for an element. */
static void test_instructions_of_1_byte(void **state)
{
	(void)state;
	for (size_t i = 0; i < scales_nr4; i++) {
		struct scales_row row = scales4[i];

		for (int column = 0; column < 3; column++) {
			row.ratio[column] *= 4;
			if (row.ratio[column] * NR_ELEMENTS < 100000)
				check_row(&row, column, 1);
		}
	}
}

/* ---- scales that are no power of two, and far addresses -------------------------------------- */

/* offset = ((pc - pr_offset) * pr_scale) / 65536, by 128 bits, as the page has it. */
static uint64_t by_formula(const struct prof *p, uint64_t pc, unsigned int element)
{
	unsigned __int128 offset = pc - (uintptr_t)p->pr_offset;

	if (pc < (uintptr_t)p->pr_offset)
		return 0;
	offset = offset * p->pr_scale / 65536;
	if (offset >= p->pr_size)
		return 0;
	return (uintptr_t)p->pr_base + (uint64_t)offset / element * element;
}

static uint64_t draw(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void check_random(uint64_t *seed)
{
	int column = (int)(draw(seed) % 3);
	unsigned int element = 2u << column;
	unsigned int scale = 2 + (unsigned int)(draw(seed) >> (32 + draw(seed) % 31));
	uint64_t limit = ((uint64_t)1 << 30) * scale;
	unsigned int size =
		(unsigned int)(draw(seed) >> (32 + draw(seed) % 30)) / element * element;
	uint64_t start = draw(seed) >> (draw(seed) % 40);
	const struct prof one = entry(BASE, size ? size : element, start, scale);
	uint64_t end;

	if (one.pr_size > limit)
		return;
	assert_int_equal(fill(&one, 1, scales_flags[column]), 0);
	end = start + (((uint64_t)one.pr_size << 16) + scale - 1) / scale;
	for (int64_t i = -3; i <= 3; i++) {
		assert_int_equal(find(end + (uint64_t)i),
				 by_formula(&one, end + (uint64_t)i, element));
		assert_int_equal(find(start + (uint64_t)i),
				 by_formula(&one, start + (uint64_t)i, element));
	}
	for (int i = 0; i < 20; i++) {
		uint64_t pc = start + draw(seed) % (2 * (end - start) + 1);

		assert_int_equal(find(pc), by_formula(&one, pc, element));
	}
}

static void test_formula(void **state)
{
	uint64_t seed = 88172645463325252u;

	(void)state;
	for (int i = 0; i < 20000; i++)
		check_random(&seed);
}

static void test_top_of_memory(void **state)
{
	const struct prof one = entry(BASE, 64, UINT64_MAX - 15, 65536);

	(void)state;
	assert_int_equal(fill(&one, 1, PROF_USHORT), 0);
	assert_int_equal(find(UINT64_MAX), BASE + 14);
	assert_int_equal(find(0), 0); /* it does not wrap around */
}

/* ---- several regions ------------------------------------------------------------------------- */

static void test_disjoint(void **state)
{
	const struct prof entries[] = {
		entry(BASE, 16, 0x1000, 65536),
		entry(BASE + 0x100, 16, 0x1010, 65536), /* begins where the first ends */
		entry(1, 1, 0, 1),			/* ignored, so not checked */
		entry(BASE + 0x200, 4, 0x9000, 16384),
		entry(3, 0, 5, 0),
		entry(OVERFLOW, 4, 0, 2),
		entry(7, 9, 0x10, 1), /* ignored: the overflow descriptor is still last */
	};

	(void)state;
	assert_int_equal(fill(entries, 7, PROF_UINT), 0);
	assert_int_equal(table->nr, 3);
	assert_int_equal(find(0x0fff), OVERFLOW);
	assert_int_equal(find(0x1000), BASE);
	assert_int_equal(find(0x100f), BASE + 12);
	assert_int_equal(find(0x1010), BASE + 0x100);
	assert_int_equal(find(0x1020), OVERFLOW);
	assert_int_equal(find(0x8fff), OVERFLOW);
	assert_int_equal(find(0x9000), BASE + 0x200);
	assert_int_equal(find(0x900f), BASE + 0x200);
	assert_int_equal(find(0x9010), OVERFLOW);
	assert_int_equal(find(UINT64_MAX), OVERFLOW);
	assert_int_equal(fill(entries, 5, PROF_UINT), 0);
	assert_int_equal(find(0x0fff), 0);
	assert_int_equal(find(0), 0);
}

/* ---- what is wrong --------------------------------------------------------------------------- */

static void check_two(struct prof a, struct prof b, int want)
{
	const struct prof entries[] = { a, b };

	assert_int_equal(fill(entries, 2, PROF_UINT), want);
}

static void test_order(void **state)
{
	struct prof a = entry(BASE, 16, 0x1000, 65536), ignored = entry(BASE, 3, 0x1000, 1);

	(void)state;
	check_two(a, entry(BASE, 16, 0x1010, 65536), 0);
	check_two(a, entry(BASE, 16, 0x100f, 65536), -EINVAL); /* overlaps */
	check_two(a, a, -EINVAL);			       /* the same */
	check_two(a, entry(BASE, 16, 0x0fff, 65536), -EINVAL); /* descends */
	check_two(a, entry(BASE, 16, 0x0800, 65536), -EINVAL); /* descends, disjoint */
	check_two(a, ignored, 0);
	check_two(ignored, a, 0);
	/* It ends inside an instruction: 16 * 65536 / 3 is not whole. */
	check_two(entry(BASE, 16, 0x1000, 3), entry(BASE, 16, 0x1000 + 349525, 65536), -EINVAL);
	check_two(entry(BASE, 16, 0x1000, 3), entry(BASE, 16, 0x1000 + 349526, 65536), 0);
	check_two(entry(BASE, 64, UINT64_MAX - 7, 65536), entry(BASE, 4, UINT64_MAX - 3, 65536),
		  -EINVAL);
}

static void test_overflow_rules(void **state)
{
	struct prof bin = entry(OVERFLOW, 4, 0, 2), a = entry(BASE, 16, 0x1000, 65536);

	(void)state;
	check_two(a, bin, 0); /* lower than the one before, and everything overlaps it */
	check_two(bin, a, -EINVAL);
	check_two(bin, bin, -EINVAL);
	bin.pr_size = 8;
	check_two(a, bin, -EINVAL);
	bin.pr_size = 2;
	check_two(a, bin, -EINVAL);
	bin.pr_size = 0;
	check_two(a, bin, -EINVAL);
	bin = entry(OVERFLOW, 8, 0, 3); /* another scale: a region like any other */
	check_two(bin, entry(BASE, 16, 0x40000, 65536), 0);
	assert_false(table->has_overflow);
}

static void check_size(unsigned int size, unsigned int scale, unsigned int flags, int want)
{
	const struct prof one = entry(BASE, size, 0x1000, scale);

	assert_int_equal(fill(&one, 1, flags), want);
}

static void test_sizes(void **state)
{
	(void)state;
	check_size(0, 65536, PROF_USHORT, -EINVAL);
	check_size(2, 65536, PROF_USHORT, 0);
	check_size(3, 65536, PROF_USHORT, -EINVAL);
	check_size(2, 65536, PROF_UINT, -EINVAL);
	check_size(6, 65536, PROF_UINT, -EINVAL);
	check_size(4, 65536, PROF_UINT64, -EINVAL);
	check_size(12, 65536, PROF_UINT64, -EINVAL);
	check_size(8, 65536, PROF_UINT64, 0);
	/* (2^46 * pr_scale) / 65536 */
	check_size(1u << 31, 2, PROF_USHORT, 0);
	check_size((1u << 31) + 2, 2, PROF_USHORT, -EINVAL);
	check_size(3u << 30, 3, PROF_USHORT, 0);
	check_size((3u << 30) + 2, 3, PROF_USHORT, -EINVAL);
	check_size(0xfffffff8, 4, PROF_UINT64, 0);
	check_size(0xfffffff8, UINT32_MAX, PROF_UINT64, 0);
}

static void test_flags(void **state)
{
	static const unsigned int bad[] = { 0, 3, 5, 6, 7, 8, 1u << 31, UINT32_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		check_size(8, 65536, bad[i], -EINVAL);
}

static void test_saturation(void **state)
{
	(void)state;
	assert_int_equal(sprofil_add(0, 1, 2), 1);
	assert_int_equal(sprofil_add(0xfffe, 1, 2), 0xffff);
	assert_int_equal(sprofil_add(0xffff, 1, 2), 0xffff);
	assert_int_equal(sprofil_add(0xfff0, 100, 2), 0xffff);
	assert_int_equal(sprofil_add(0xffffffff, 1, 4), 0xffffffff);
	assert_int_equal(sprofil_add(0xfffffffe, 1, 4), 0xffffffff);
	assert_int_equal(sprofil_add(0xffff, 1, 4), 0x10000);
	assert_true(sprofil_add(UINT64_MAX, 1, 8) == UINT64_MAX);
	assert_true(sprofil_add(UINT64_MAX - 1, 2, 8) == UINT64_MAX);
	assert_true(sprofil_add(0xffffffff, 1, 8) == 0x100000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_instructions_of_4_bytes),
		cmocka_unit_test(test_bundles_of_16_bytes),
		cmocka_unit_test(test_instructions_of_1_byte),
		cmocka_unit_test(test_formula),
		cmocka_unit_test(test_top_of_memory),
		cmocka_unit_test(test_disjoint),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_overflow_rules),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_saturation),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
