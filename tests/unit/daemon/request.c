/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stand_ins.h"

static int parse(const char *line, enum control_command *out)
{
	struct base_err err = { 0 };
	int r = control_request_parse(line, strlen(line), out, &err);

	assert_int_equal(r < 0, err.code < 0);
	assert_int_equal(r < 0, err.text[0] != '\0');
	return r;
}

static void commands(void **state)
{
	enum control_command c;

	(void)state;
	assert_int_equal(parse("{\"cmd\":\"status\"}", &c), 0);
	assert_int_equal(c, CONTROL_STATUS);
	assert_int_equal(parse(" { \"x\" : [1,{}], \"cmd\" : \"flush\" } ", &c), 0);
	assert_int_equal(c, CONTROL_FLUSH);
	assert_int_equal(parse("{\"cmd\":\"epoch\"}", &c), 0);
	assert_int_equal(c, CONTROL_EPOCH);
	assert_int_equal(parse("{\"cmd\":\"qu\\u0069t\"}\r", &c), 0);
	assert_int_equal(c, CONTROL_QUIT);
}

static void malformed(void **state)
{
	static const char *const lines[] = {
		"",
		"{",
		"null",
		"[]",
		"\"flush\"",
		"{}",
		"{\"cmd\":1}",
		"{\"cmd\":null}",
		"{\"cmd\":",
		"{\"cmd\":\"flush\"} x",
		"{\"cmd\":\"flush\"}{}",
		"\xff\xfe",
		"{\"cmd\":\"\xff\"}",
		"[[[[[[[[[[[[[[[[[[[[",
	};
	enum control_command c;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_int_equal(parse(lines[i], &c), -DCPI_EFORMAT);
}

static void unknown(void **state)
{
	struct base_err err = { 0 };
	enum control_command c;
	char line[600] = "{\"cmd\":\"";

	(void)state;
	assert_int_equal(parse("{\"cmd\":\"flush\\u0000\"}", &c), -DCPI_EUNSUPPORTED);
	assert_int_equal(parse("{\"cmd\":\"\\u001b[31m\"}", &c), -DCPI_EUNSUPPORTED);
	memset(line + strlen(line), 'a', 500);
	strcat(line, "\"}");
	assert_int_equal(control_request_parse(line, strlen(line), &c, &err), -DCPI_EUNSUPPORTED);
	assert_true(strlen(err.text) < 100);
	assert_non_null(strstr(err.hint, "epoch"));
}

static void embedded_zero(void **state)
{
	static const char line[] = "{\"cmd\":\"flush\"}\0{\"cmd\":\"quit\"}";
	enum control_command c = CONTROL_STATUS;
	struct base_err err = { 0 };

	(void)state;
	assert_true(control_request_parse(line, sizeof(line) - 1, &c, &err) < 0);
	assert_int_equal(c, CONTROL_STATUS);
}

static void too_long(void **state)
{
	char *line = calloc(1, CONTROL_LINE_MAX + 2);
	enum control_command c;
	struct base_err err = { 0 };

	(void)state;
	memset(line, ' ', CONTROL_LINE_MAX + 1);
	assert_int_equal(control_request_parse(line, CONTROL_LINE_MAX + 1, &c, &err), -DCPI_ELIMIT);
	free(line);
}

static void error_is_quoted(void **state)
{
	struct base_err err = { 0 };
	struct base_buf out = { 0 };

	(void)state;
	base_fail(&err, -EIO, "cannot write 'a\"b': broken");
	base_hint(&err, "repair it");
	assert_int_equal(control_reply_error(&out, &err), 0);
	assert_int_equal(base_buf_append(&out, "", 1), 0);
	assert_string_equal((char *)out.data, "{\"ok\":false,\"error\":\"cannot write 'a\\\"b': "
					      "broken\",\"hint\":\"repair it\"}\n");
	base_buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands), cmocka_unit_test(malformed),
		cmocka_unit_test(unknown),  cmocka_unit_test(embedded_zero),
		cmocka_unit_test(too_long), cmocka_unit_test(error_is_quoted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
