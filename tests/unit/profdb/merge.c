/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "scratch.h"

static void test_counts_add_up(void **state)
{
	struct profdb_profile *a = scratch_profile("/a", 1, 3, 1),
			      *b = scratch_profile("/b", 1, 0, 0);
	const struct profdb_entry *e;

	(void)state;
	/* In b the events stand the other way round, and the offsets too. */
	profdb_profile_free(b);
	b = profdb_profile_new(PROFDB_FILE, NULL, "/b");
	profdb_profile_event_add(b, "imiss", 4096);
	profdb_profile_event_add(b, "cycles", 62000);
	profdb_profile_add(b, 40, 1, 7);
	profdb_profile_add(b, 16, 0, 5);
	profdb_profile_add(b, 16, 1, 6);
	assert_int_equal(profdb_profile_merge(a, b), 0);
	assert_int_equal(profdb_profile_nr_events(a), 2);
	assert_int_equal(profdb_profile_event(a, 0)->sum, 16);
	assert_int_equal(profdb_profile_event(a, 1)->sum, 5);
	assert_int_equal(profdb_profile_event(a, 1)->period, 4096);
	assert_int_equal(profdb_profile_nr_entries(a), 4);
	e = profdb_profile_entry(a, 1);
	assert_int_equal(e->off, 16);
	assert_int_equal(e->count[0], 7);
	assert_int_equal(e->count[1], 5);
	assert_int_equal(profdb_profile_entry(a, 3)->off, 40);
	assert_string_equal(profdb_profile_path(a, 1), "/b");
	assert_int_equal(profdb_profile_event(b, 1)->sum, 13);
	profdb_profile_free(a);
	profdb_profile_free(b);
}

static void test_words_of_the_target_stay(void **state)
{
	struct profdb_profile *a = scratch_profile("/a", 1, 0, 0),
			      *b = scratch_profile("/a", 1, 0, 0);

	(void)state;
	profdb_profile_set_word(a, "label", "one");
	profdb_profile_set_word(b, "label", "two");
	profdb_profile_set_word(b, "tsize", "9");
	assert_int_equal(profdb_profile_merge(a, b), 0);
	assert_string_equal(profdb_profile_word(a, "label"), "one");
	assert_string_equal(profdb_profile_word(a, "tsize"), "9");
	assert_null(profdb_profile_path(a, 1));
	profdb_profile_free(a);
	profdb_profile_free(b);
}

/* Samples times period is what really happened: it stays. */
static void test_other_periods_give_the_mean(void **state)
{
	struct profdb_profile *a = scratch_profile("/a", 1, 1, 30),
			      *b = scratch_profile("/a", 1, 0, 0);

	(void)state;
	profdb_profile_free(b);
	b = profdb_profile_new(PROFDB_FILE, NULL, NULL);
	profdb_profile_event_add(b, "cycles", 2000);
	profdb_profile_event_set_enabled(b, 0, 0.5);
	profdb_profile_add(b, 0, 0, 10);
	assert_int_equal(profdb_profile_merge(a, b), 0);
	assert_int_equal(profdb_profile_event(a, 0)->period, (30 * 62000 + 10 * 2000) / 40);
	/* 30 samples at 62000 and 10 at 2000, of which half were counted. */
	assert_true(profdb_profile_event(a, 0)->enabled > 1880000.0 / 1900000 - 1e-9);
	assert_true(profdb_profile_event(a, 0)->enabled < 1880000.0 / 1900000 + 1e-9);
	profdb_profile_free(a);
	profdb_profile_free(b);
}

/* 100 samples in a quarter of the time and 300 in all of it: 700 in all, 400 of them counted. */
static void test_samples_by_fraction_stay(void **state)
{
	struct profdb_profile *a = scratch_profile("/a", 1, 1, 100),
			      *b = scratch_profile("/a", 1, 1, 300), *none;
	double enabled;

	(void)state;
	profdb_profile_event_set_enabled(a, 0, 0.25);
	assert_int_equal(profdb_profile_merge(a, b), 0);
	enabled = profdb_profile_event(a, 0)->enabled;
	assert_true(enabled > 4.0 / 7 - 1e-9 && enabled < 4.0 / 7 + 1e-9);
	/* What has no samples says nothing. */
	none = profdb_profile_new(PROFDB_FILE, NULL, NULL);
	profdb_profile_event_add(none, "cycles", 62000);
	profdb_profile_event_set_enabled(none, 0, 0);
	assert_int_equal(profdb_profile_merge(a, none), 0);
	assert_true(profdb_profile_event(a, 0)->enabled == enabled);
	assert_int_equal(profdb_profile_merge(none, a), 0);
	assert_true(profdb_profile_event(none, 0)->enabled == enabled);
	profdb_profile_free(a);
	profdb_profile_free(b);
	profdb_profile_free(none);
}

static void test_overflow_changes_nothing(void **state)
{
	struct profdb_profile *a = scratch_profile("/a", 1, 2, 5),
			      *b = scratch_profile("/b", 1, 0, 0);

	(void)state;
	profdb_profile_event_add(b, "imiss", 1);
	profdb_profile_add(b, 99, 1, 1);
	profdb_profile_add(b, 98, 0, UINT64_MAX - 9);
	assert_int_equal(profdb_profile_merge(a, b), -DCPI_EOVERFLOW);
	assert_int_equal(profdb_profile_nr_entries(a), 2);
	assert_int_equal(profdb_profile_nr_events(a), 1);
	assert_null(profdb_profile_path(a, 1));
	profdb_profile_clear(b);
	profdb_profile_add(b, 98, 0, UINT64_MAX - 10);
	assert_int_equal(profdb_profile_merge(a, b), 0);
	assert_true(profdb_profile_event(a, 0)->sum == UINT64_MAX);
	profdb_profile_free(a);
	profdb_profile_free(b);
}

static void test_too_many_events(void **state)
{
	struct profdb_profile *a = scratch_profile("/a", 1, 1, 1),
			      *b = scratch_profile("/a", 1, 0, 0);
	char name[16];

	(void)state;
	for (int i = 1; i < PROFDB_NR_EVENTS; i++) {
		snprintf(name, sizeof(name), "e%d", i);
		profdb_profile_event_add(a, name, 1);
	}
	profdb_profile_event_add(b, "one-more", 1);
	profdb_profile_add(b, 0, 0, 1);
	assert_int_equal(profdb_profile_merge(a, b), -DCPI_ELIMIT);
	assert_int_equal(profdb_profile_event(a, 0)->sum, 1);
	profdb_profile_free(a);
	profdb_profile_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts_add_up),
		cmocka_unit_test(test_words_of_the_target_stay),
		cmocka_unit_test(test_other_periods_give_the_mean),
		cmocka_unit_test(test_samples_by_fraction_stay),
		cmocka_unit_test(test_overflow_changes_nothing),
		cmocka_unit_test(test_too_many_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
