/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stand_ins.h"

static int parse(const char *line, struct control_request *out)
{
	struct base_err err = { 0 };
	int r = control_request_parse(line, strlen(line), out, &err);

	assert_int_equal(r < 0, err.code < 0);
	assert_int_equal(r < 0, err.text[0] != '\0');
	return r;
}

static void commands(void **state)
{
	struct control_request c;

	(void)state;
	assert_int_equal(parse("{\"cmd\":\"status\"}", &c), 0);
	assert_int_equal(c.command, CONTROL_STATUS);
	assert_int_equal(parse(" { \"x\" : [1,{}], \"cmd\" : \"flush\" } ", &c), 0);
	assert_int_equal(c.command, CONTROL_FLUSH);
	assert_int_equal(parse("{\"cmd\":\"epoch\"}", &c), 0);
	assert_int_equal(c.command, CONTROL_EPOCH);
	assert_int_equal(parse("{\"cmd\":\"qu\\u0069t\"}\r", &c), 0);
	assert_int_equal(c.command, CONTROL_QUIT);
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
	struct control_request c;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		assert_int_equal(parse(lines[i], &c), -DCPI_EFORMAT);
}

static void unknown(void **state)
{
	struct base_err err = { 0 };
	struct control_request c;
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
	struct control_request c;
	struct base_err err = { 0 };

	(void)state;
	assert_true(control_request_parse(line, sizeof(line) - 1, &c, &err) < 0);
	assert_int_equal(c.command, CONTROL_STATUS);
}

static void too_long(void **state)
{
	char *line = calloc(1, CONTROL_LINE_MAX + 2);
	struct control_request c;
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

static void labels(void **state)
{
	static const char *const bad[] = {
		"{\"cmd\":\"label\"}",
		"{\"cmd\":\"label\",\"label\":1}",
		"{\"cmd\":\"label\",\"label\":\"a\",\"pid\":-1}",
		"{\"cmd\":\"label\",\"label\":\"a\",\"pid\":2147483648}",
		"{\"cmd\":\"label\",\"label\":\"a\",\"pid\":\"7\"}",
	};
	struct control_request c;

	(void)state;
	assert_int_equal(parse("{\"cmd\":\"label\",\"label\":\"run/1\"}", &c), 0);
	assert_int_equal(c.command, CONTROL_LABEL);
	assert_string_equal(c.label, "run/1");
	assert_int_equal(c.pid, 0);
	assert_int_equal(parse("{\"pid\":7,\"cmd\":\"label\",\"label\":\"x\"}", &c), 0);
	assert_int_equal(c.pid, 7);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(parse(bad[i], &c), -DCPI_EFORMAT);
	assert_int_equal(parse("{\"cmd\":\"label\",\"label\":\"\"}", &c), -EINVAL);
	assert_int_equal(parse("{\"cmd\":\"label\",\"label\":\"a\\u0000\"}", &c), -EINVAL);
	assert_int_equal(parse("{\"cmd\":\"label\",\"label\":\"a b\"}", &c), -EINVAL);
}

static void log_lines(void **state)
{
	struct control_request c;

	(void)state;
	assert_int_equal(parse("{\"cmd\":\"log\"}", &c), 0);
	assert_int_equal(c.lines, BASE_LOG_KEPT);
	assert_int_equal(parse("{\"cmd\":\"log\",\"lines\":3}", &c), 0);
	assert_int_equal(c.lines, 3);
	assert_int_equal(parse("{\"cmd\":\"log\",\"lines\":1.5}", &c), -DCPI_EFORMAT);
}

#define REGISTER "{\"cmd\":\"register\",\"pid\":7,\"start\":4198400,"

static void registrations(void **state)
{
	static const char *const bad[] = {
		"{\"cmd\":\"register\",\"size\":1,\"image\":\"/a\"}",
		REGISTER "\"image\":\"/a\"}",
		REGISTER "\"size\":0,\"image\":\"/a\"}",
		REGISTER "\"size\":1}",
		REGISTER "\"size\":1,\"image\":\"a\"}",
		REGISTER "\"size\":1,\"image\":\"\"}",
		REGISTER "\"size\":1,\"image\":\"/a\\u0000b\"}",
		REGISTER "\"size\":1,\"image\":\"/a\\nb\"}",
		REGISTER "\"size\":1,\"image\":\"/a\",\"name\":7}",
		REGISTER "\"size\":1,\"image\":\"/a\",\"id\":\"abc\"}",
		REGISTER "\"size\":9223372036854775808,\"image\":\"/a\"}",
		REGISTER "\"size\":1,\"image\":\"/a\",\"offset\":-1}",
	};
	struct control_request c;

	(void)state;
	assert_int_equal(parse(REGISTER "\"size\":8192,\"offset\":4096,\"image\":\"/b/a\","
					"\"name\":\"a 1\",\"id\":\"0aff\"}",
			       &c),
			 0);
	assert_int_equal(c.command, CONTROL_REGISTER);
	assert_int_equal(c.pid, 7);
	assert_int_equal(c.start, 4198400);
	assert_int_equal(c.len, 8192);
	assert_int_equal(c.file_off, 4096);
	assert_string_equal(c.path, "/b/a");
	assert_string_equal(c.name, "a 1");
	assert_int_equal(c.id.len, 2);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		if (parse(bad[i], &c) != -DCPI_EFORMAT)
			fail_msg("not refused: %s", bad[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands),	 cmocka_unit_test(malformed),
		cmocka_unit_test(unknown),	 cmocka_unit_test(embedded_zero),
		cmocka_unit_test(too_long),	 cmocka_unit_test(error_is_quoted),
		cmocka_unit_test(labels),	 cmocka_unit_test(log_lines),
		cmocka_unit_test(registrations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
