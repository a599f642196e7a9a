/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hotlists.h"

static struct profdb_values *new_values(void)
{
	struct profdb_values *v = profdb_values_new(PROFDB_FILE, &(struct base_id){ 0 }, "/a", "p");

	assert_non_null(v);
	profdb_values_seed(v, 1);
	return v;
}

static void add(struct profdb_values *v, uint64_t off, uint64_t caller, uint64_t value,
		unsigned int times)
{
	struct profdb_context context[2] = { { caller ? 1 : 0, caller }, { 0, 0 } };

	for (unsigned int i = 0; i < times; i++)
		assert_int_equal(profdb_values_add(v, off, context, value), 0);
}

/* All callers' values at one place are one; the most frequent stands first. */
static void test_callers(void **state)
{
	struct profdb_values *v = new_values();
	struct hotlist_spot s = { 0 };

	(void)state;
	assert_int_equal(profdb_values_image_add(v, &(struct base_id){ 0 }, "/caller"), 1);
	add(v, 0x10, 0x100, 5, 30);
	add(v, 0x10, 0x200, 5, 10);
	add(v, 0x10, 0x200, 7, 60);
	add(v, 0x20, 0x100, 9, 1);
	assert_int_equal(profdb_values_nr(v), 3);
	assert_int_equal(hotlist_spot_at(v, 0, false, &s), 2);
	assert_int_equal(s.vtot, 100);
	assert_int_equal(s.thld, 1);
	assert_int_equal(s.nv, 2);
	assert_int_equal(s.v[0].value, 7);
	assert_int_equal((int)(100 * hotlist_share(&s, 0) + 0.5), 60);
	assert_int_equal(s.v[1].value, 5);
	assert_int_equal((int)(100 * hotlist_share(&s, 1) + 0.5), 40);
	hotlist_spot_release(&s);
	assert_int_equal(hotlist_spot_at(v, 2, true, &s), 3);
	assert_int_equal(s.vtot, 1);
	assert_int_equal(s.v[0].value, 9);
	hotlist_spot_release(&s);
	profdb_values_free(v);
}

/* More values than are kept: no part is above the whole, whatever the estimates say. */
static void test_bounds(void **state)
{
	struct profdb_values *v = new_values();
	struct hotlist_spot s = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 500; i++)
		add(v, 0, 0, i, 1);
	assert_int_equal(hotlist_spot_at(v, 0, false, &s), 1);
	assert_int_equal(s.vtot, 500);
	assert_true(s.thld > 1);
	for (size_t i = 0; i < s.nv; i++) {
		assert_true(hotlist_share(&s, i) >= 0 && hotlist_share(&s, i) <= 1);
		assert_true(!i || s.v[i - 1].count >= s.v[i].count);
	}
	hotlist_spot_release(&s);
	assert_true(hotlist_spot_at(v, 0, true, &s) == 1 && s.vtot == 500);
	hotlist_spot_release(&s);
	profdb_values_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_callers),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
