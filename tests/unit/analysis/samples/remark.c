/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said of images: switches of runtimes, lost ones, those of one build-id. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "samples.h"

static uint64_t count[1] = { 50 };
static struct analysis_event event = { .name = "cpu-clock", .sum = 100 };
static struct analysis a = { .events = &event, .nr_events = 1 };

/* The hint for unnamed code of that facility, or NULL. */
static const char *hint_of(const char *facility)
{
	static struct base_err why;
	struct analysis_image ai = { .name = (char *)"x",
				     .facility = (char *)facility,
				     .count = count,
				     .state = ANALYSIS_OPEN };

	return analysis_image_remark(&a, &ai, &why) ? why.hint : NULL;
}

static void test_runtimes(void **state)
{
	(void)state;
	assert_non_null(strstr(hint_of("node: dynamic, unnamed"), "--perf-prof"));
	assert_non_null(strstr(hint_of("java: dynamic, unnamed"), "libdcpi-jvmti.so"));
	assert_non_null(strstr(hint_of("php8.2: dynamic, unnamed"), "jit_debug"));
	assert_non_null(strstr(hint_of("pypy3: dynamic, unnamed"), "nothing is known"));
	assert_non_null(strstr(hint_of("own-jit: dynamic, unnamed"), "RUNTIMES.md"));
	assert_null(hint_of("node"));
	assert_null(hint_of("node: dynamic"));
	assert_null(hint_of(NULL));
	count[0] = 1;
	assert_null(hint_of("node: dynamic, unnamed"));
	count[0] = 50;
}

static void test_others(void **state)
{
	struct analysis_image other = { .name = (char *)"y" };
	struct analysis_image ai = { .name = (char *)"x", .count = count, .twin = &other };
	struct base_err why;

	(void)state;
	assert_true(analysis_image_remark(&a, &ai, &why));
	assert_int_equal(why.code, -ESTALE);
	/* One with few symbols is told with both. */
	ai.guessed = true;
	assert_true(analysis_image_remark(&a, &ai, &why));
	assert_int_equal(why.code, -ESTALE);
	assert_non_null(strstr(why.text, "is kept apart from 'y'"));
	assert_non_null(strstr(why.text, "are guessed from its code"));
	ai.state = ANALYSIS_MISSING;
	base_fail(&ai.why, -DCPI_ENOIMAGE, "it is not here");
	assert_true(analysis_image_is_lost(&ai));
	assert_true(analysis_image_remark(&a, &ai, &why));
	assert_string_equal(why.text, "it is not here");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_runtimes),
					    cmocka_unit_test(test_others) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
