/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "stand_ins.h"

static void names(void **state)
{
	(void)state;
	assert_string_equal(account_loss_name(ACCOUNT_LOST_RING), "ring-full");
	assert_string_equal(account_bucket_name(ACCOUNT_BUCKET_IDLE), "idle");
	assert_string_equal(account_loss_name(ACCOUNT_NR_LOSSES), "?");
	assert_string_equal(account_bucket_name((enum account_bucket) - 1), "?");
	for (int i = 0; i < ACCOUNT_NR_BUCKETS; i++)
		for (int j = 0; j < i; j++)
			assert_string_not_equal(account_bucket_name((enum account_bucket)i),
						account_bucket_name((enum account_bucket)j));
}

static void total_balances(void **state)
{
	const struct account own = { .stored = 70,
				     .pending = 5,
				     .lost = {
					     [ACCOUNT_LOST_MEMORY] = 1, [ACCOUNT_LOST_BAD] = 2 } };
	struct driver_stats stats = {
		.received = { 60, 40 }, .held = 10, .lost_ring = 9, .lost_bad = 3
	};
	struct account total;

	(void)state;
	account_total(&own, &stats, &total);
	assert_int_equal(total.received, 100);
	assert_int_equal(total.pending, 15);
	assert_int_equal(total.lost[ACCOUNT_LOST_BAD], 5);
	assert_int_equal(account_lost(&total), 15);
	assert_true(account_balanced(&total));
}

static void one_sample_missing(void **state)
{
	const struct account own = { .stored = 99 };
	const struct driver_stats stats = { .received = { 100 } };
	struct account total;

	(void)state;
	account_total(&own, &stats, &total);
	assert_false(account_balanced(&total));
}

/* Nanoseconds are no samples: they have an account of their own. */
static void times_balance(void **state)
{
	const struct account own = { .stored = 70, .lost = { [ACCOUNT_LOST_EXCLUDED] = 2 } };
	const struct driver_wait_stats stats = {
		.received = 100, .held = 10, .lost_full = 15, .lost_read = 3
	};
	struct account total;

	(void)state;
	account_times_total(&own, &stats, &total);
	assert_int_equal(total.received, 100);
	assert_int_equal(total.lost[ACCOUNT_LOST_TABLE], 15);
	assert_int_equal(account_lost(&total), 20);
	assert_true(account_balanced(&total));
}

static void each_wait_has_a_bucket(void **state)
{
	(void)state;
	assert_int_equal(account_bucket_of(DRIVER_WAIT_RUNS), ACCOUNT_BUCKET_RUNS);
	assert_string_equal(account_bucket_name(account_bucket_of(DRIVER_WAIT_SLEEP)),
			    "waiting, sleep");
	assert_string_equal(account_bucket_name(account_bucket_of(DRIVER_WAIT_RUNNABLE)),
			    "waiting, run queue");
	assert_int_equal(account_bucket_of(DRIVER_WAIT_UNKNOWN), ACCOUNT_NR_BUCKETS - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(total_balances),
		cmocka_unit_test(one_sample_missing),
		cmocka_unit_test(times_balance),
		cmocka_unit_test(each_wait_has_a_bucket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
