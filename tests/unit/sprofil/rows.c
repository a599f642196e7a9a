/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every row of the table for 4-byte instructions, by execution: a loop of two such instructions
 * runs at a known distance from the region's start, and its time must come to lie in the elements
 * that the table says. Twice: at an element's first instruction and at its last.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "loop.h"
#include "scales.h"
#include "sprofil.h"

/* The room is as long as what the array counts at most, so that no other code lies in it. */
enum { NR_ELEMENTS = 32, ROOM_LEN = NR_ELEMENTS * 65536 * 4 };

static unsigned char *space;
static union {
	uint16_t shorts[NR_ELEMENTS];
	uint32_t words[NR_ELEMENTS];
	uint64_t longs[NR_ELEMENTS];
} array;
static uint64_t elsewhere; /* the overflow bin is one element of whatever size */

static uint64_t element(int column, size_t i)
{
	return column == 0 ? array.shorts[i] : column == 1 ? array.words[i] : array.longs[i];
}

static uint64_t sum(int column)
{
	uint64_t n = 0;

	for (size_t i = 0; i < NR_ELEMENTS; i++)
		n += element(column, i);
	return n;
}

static void run(unsigned int scale, int column, const unsigned char *at)
{
	struct prof entries[] = {
		{ &array, NR_ELEMENTS * (2u << column), space, scale },
		{ &elsewhere, 2u << column, NULL, 2 },
	};

	memset(&array, 0, sizeof(array));
	assert_int_equal(sprofil(entries, 2, NULL, scales_flags[column]), 0);
	for (int i = 0; i < 20000 && !sum(column); i++)
		loop_run(at);
	assert_int_equal(sprofil(NULL, 0, NULL, 0), 0);
	assert_true(sum(column) > 0);
}

/* A tick may come when the loop is done, at the return behind it: by chance, not each time. */
enum { CHANCES = 4 };

static uint64_t ticks_at(const struct scales_row *row, int column, size_t instruction)
{
	return element(column, (size_t)((double)instruction / row->ratio[column]));
}

/* Whether all ticks lie where the loop's do; false: the others lie where the return's do. */
static bool are_inside(const struct scales_row *row, int column, size_t first)
{
	uint64_t sampled = 0, outside;

	loop_write(space + 4 * first);
	run(row->scale, column, space + 4 * first);
	for (size_t i = first; i < first + LOOP_INSTRUCTIONS; i++) {
		sampled += ticks_at(row, column, i);
		if (i == first && row->ratio[column] >= LOOP_INSTRUCTIONS)
			break; /* both lie in this element */
	}
	outside = sum(column) - sampled;
	if (outside && outside != ticks_at(row, column, first + LOOP_INSTRUCTIONS))
		fail_msg("scale %u, %d-byte elements, instruction %zu: %d ticks outside",
			 row->scale, 2 << column, first, (int)outside);
	return !outside;
}

static void check(const struct scales_row *row, int column, size_t first)
{
	for (int i = 0; i < CHANCES; i++)
		if (are_inside(row, column, first))
			return;
	fail_msg("scale %u, %d-byte elements, instruction %zu: ticks behind it each time",
		 row->scale, 2 << column, first);
}

static void check_column(int column)
{
	for (size_t i = 0; i < scales_nr4; i++) {
		double ratio = scales4[i].ratio[column];
		size_t begins = (size_t)(2 * ratio) & ~(size_t)1; /* element 2 */
		size_t ends = (size_t)(3 * ratio);

		check(&scales4[i], column, begins);
		if (ratio > LOOP_INSTRUCTIONS)
			check(&scales4[i], column, ends - LOOP_INSTRUCTIONS);
	}
}

static void test_ushort(void **state)
{
	(void)state;
	check_column(0);
}

static void test_uint(void **state)
{
	(void)state;
	check_column(1);
}

static void test_uint64(void **state)
{
	(void)state;
	check_column(2);
}

static int setup(void **state)
{
	(void)state;
	space = loop_room(ROOM_LEN);
	return !space;
}

static int teardown(void **state)
{
	(void)state;
	loop_room_free(space, ROOM_LEN);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ushort),
		cmocka_unit_test(test_uint),
		cmocka_unit_test(test_uint64),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
