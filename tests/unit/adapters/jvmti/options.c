/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "jvmti_internal.h"

static struct jvmti_options options;
static char err[200];

static int parse(const char *text)
{
	memset(&options, 0xee, sizeof(options));
	memset(err, 0, sizeof(err));
	return jvmti_options_parse(text, &options, err, sizeof(err));
}

static void refused(const char *text, const char *message)
{
	assert_int_equal(parse(text), -22);
	assert_string_equal(err, message);
}

static void test_defaults(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(parse(i ? "" : NULL), 0);
		assert_string_equal(options.facility, "java");
		assert_false(options.signatures);
	}
}

static void test_values(void **state)
{
	(void)state;
	assert_int_equal(parse("facility=app server,signatures=yes"), 0);
	assert_string_equal(options.facility, "app server");
	assert_true(options.signatures);
	assert_int_equal(parse("signatures=yes,signatures=no,facility=a=b"), 0);
	assert_string_equal(options.facility, "a=b");
	assert_false(options.signatures);
	assert_int_equal(parse("signatures=yes,"), 0);
	assert_true(options.signatures);
}

static void test_errors(void **state)
{
	char text[200] = "facility=";

	(void)state;
	refused("verbose", "unknown option 'verbose'");
	refused("facility=x,verbose=1", "unknown option 'verbose'");
	refused(",", "unknown option ''");
	refused("facilit=x", "unknown option 'facilit'");
	refused("facility", "option 'facility' wants a value");
	refused("facility=", "bad value for 'facility': empty");
	refused("signatures=maybe,x", "bad value for 'signatures': 'maybe' is neither yes nor no");
	refused("signatures=", "bad value for 'signatures': '' is neither yes nor no");
	memset(text + 9, 'f', JVMTI_FACILITY_MAX);
	assert_int_equal(parse(text), 0);
	assert_int_equal(strlen(options.facility), JVMTI_FACILITY_MAX);
	text[9 + JVMTI_FACILITY_MAX] = 'f';
	refused(text, "bad value for 'facility': longer than 104 bytes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
