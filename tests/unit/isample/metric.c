/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics are parsed, and computed of samples that tell what they ask. */
#include <math.h>

#include "told.h"

static struct isample_columns parse(const char *text)
{
	struct isample_columns c = { 0 };
	struct base_err err = { 0 };

	if (isample_columns_parse(&c, text, &err) < 0)
		fail_msg("%s", err.text);
	return c;
}

static double value(const char *text, const struct isample *s, size_t nr)
{
	struct isample_columns c = parse(text);
	struct isample_value of = { 0 }, by = { 0 };
	uint64_t sum[ISAMPLE_NR_COUNTERS];

	for (size_t i = 0; i < nr; i++) {
		for (int k = 0; k < ISAMPLE_NR_COUNTERS; k++)
			sum[k] = s[i].counter[k];
		isample_value_add(&of, &c.v[0].of, s[i].known, s[i].bits, 1, sum);
		isample_value_add(&by, &c.v[0].by, s[i].known, s[i].bits, 1, sum);
	}
	return isample_column_value(&c.v[0], &of, &by);
}

static void test_values(void **state)
{
	struct isample s[3] = { 0 };

	(void)state;
	isample_tell(&s[0], ISAMPLE_LOAD, true);
	isample_tell(&s[0], ISAMPLE_DCMISS, true);
	isample_count(&s[0], ISAMPLE_LATENCY, 30);
	isample_tell(&s[1], ISAMPLE_LOAD, true);
	isample_tell(&s[1], ISAMPLE_DCMISS, false);
	isample_count(&s[1], ISAMPLE_LATENCY, 10);
	isample_tell(&s[2], ISAMPLE_LOAD, true);
	assert_true(value("count", s, 3) == 3);
	assert_true(value("load", s, 3) == 3);
	assert_true(value("!load", s, 3) == 0);
	assert_true(value("load^!dcmiss", s, 3) == 1);
	assert_true(value("load^dcmiss:latency", s, 3) == 30);
	assert_true(value(":latency", s, 3) == 40);
	/* The third one tells neither, and so is in neither part of the ratios. */
	assert_true(value("load^dcmiss/load", s, 3) == 0.5);
	assert_true(value("load:latency/load", s, 3) == 20);
	assert_true(isnan(value("mispredict", s, 3)));
	assert_true(isnan(value("load/!load", s, 3)));
}

static void test_aliases(void **state)
{
	struct isample_columns c = parse("notrap,!notrap,trap:count,!!trap");

	(void)state;
	assert_int_equal(c.nr, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(c.v[i].of.want, B(TRAP));
		assert_int_equal(c.v[i].of.set, i ? B(TRAP) : 0);
		assert_int_equal(c.v[i].of.counter, -1);
	}
}

static void test_what_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		",",
		"count,",
		"retired^",
		"^retired",
		"retired:",
		"retired:",
		"x",
		"nyp",
		"retired/",
		"/retired",
		"count/count/count",
		"!",
		"count^",
		"taken^!taken",
		"a:b:c",
		"retired:count:count",
		"count^retired",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct isample_columns c = { 0 };

		if (isample_columns_parse(&c, bad[i], NULL) != -DCPI_EUSAGE)
			fail_msg("'%s' is taken", bad[i]);
	}
}

static void test_as_many_as_there_may_be(void **state)
{
	struct isample_columns c = { 0 };

	(void)state;
	for (int i = 0; i < ISAMPLE_NR_COLUMNS; i++)
		assert_int_equal(isample_columns_parse(&c, "count", NULL), 0);
	assert_int_equal(isample_columns_parse(&c, "count", NULL), -DCPI_EUSAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_as_many_as_there_may_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
