/* SPDX-License-Identifier: BSD-2-Clause */
#include <json.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "stand_ins.h"

static struct {
	bool quiet, gc;
	int64_t rate;
	double share;
	const char *database;
	struct base_opt_list events;
} opt;

static const struct base_opt options[] = {
	{ "quiet", BASE_OPT_FLAG, &opt.quiet, NULL, "", 0, 0 },
	{ "gc", BASE_OPT_FLAG, &opt.gc, NULL, "", 0, 0 },
	{ "rate", BASE_OPT_INT, &opt.rate, "HZ", "", 1, 100000 },
	{ "share", BASE_OPT_DOUBLE, &opt.share, "X", "", 0, 1 },
	{ "database", BASE_OPT_STRING, &opt.database, "DIR", "", 0, 0 },
	{ "event", BASE_OPT_LIST, &opt.events, "EVENT", "", 0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = { .name = "dcpid", .opts = options };

static struct json_object *root;
static struct base_err err;

static int parse_given(const char *text, uint64_t given)
{
	int r;

	free(opt.events.items);
	json_object_put(root);
	memset(&opt, 0, sizeof(opt));
	err = (struct base_err){ 0 };
	r = config_parse(text, strlen(text), "f.json", &cmd, given, &root, &err);
	assert_int_equal(r, err.code);
	return r;
}

static int teardown(void **state)
{
	(void)state;
	parse_given("{}", 0);
	json_object_put(root);
	return 0;
}

static void good(void **state)
{
	(void)state;
	assert_int_equal(parse_given("{\n\"quiet\": true, \"rate\":\t250,\"share\": 0.5,\n"
				     "\"database\": \"/a/\\u00e9\", \"event\": [\"x\", \"y\"]}\n",
				     0),
			 0);
	assert_true(opt.quiet);
	assert_int_equal(opt.rate, 250);
	assert_true(opt.share == 0.5);
	assert_string_equal(opt.database, "/a/\xc3\xa9");
	assert_int_equal(opt.events.nr, 2);
	assert_string_equal(opt.events.items[1], "y");
	assert_int_equal(parse_given("{\"event\":\"one\",\"quiet\":false,\"share\":1}", 0), 0);
	assert_int_equal(opt.events.nr, 1);
	assert_string_equal(opt.events.items[0], "one");
	assert_false(opt.quiet);
	assert_int_equal(parse_given("{}", 0), 0);
	/* A name within a value is none. */
	assert_int_equal(parse_given("{\"database\":\"\\\"rate\\\":\",\"event\":[\"quiet\"]}", 0),
			 0);
	assert_string_equal(opt.database, "\"rate\":");
}

static void command_line_first(void **state)
{
	(void)state;
	assert_int_equal(parse_given("{\"rate\":5,\"event\":\"x\",\"share\":1}", 1 << 2 | 1 << 5),
			 0);
	assert_int_equal(opt.rate, 0);
	assert_int_equal(opt.events.nr, 0);
	assert_true(opt.share == 1);
	assert_int_equal(parse_given("{\"rate\":0}", 1 << 2), -DCPI_EUSAGE);
}

static void bad(void **state)
{
	static const struct {
		const char *text, *says, *hint;
	} cases[] = {
		{ "", "malformed configuration 'f.json', line 1: the object has no end", "" },
		{ "[]", "line 1: not a JSON object", "" },
		{ "{\n\"rate\": 5,\n}", "line 3: ", "" },
		{ "{\n\"rate\": 5\n", "line 3: the object has no end", "" },
		{ "{} x", "line 1: ", "" },
		{ "{}\n{}", "line 2: ", "" },
		{ "{\n\n\"rat\": 5}", "line 3: unknown option 'rat'", "did you mean \"rate\"?" },
		{ "{\"zzzzzzzzzzzz\": 5}", "line 1: unknown option 'zzzzzzzzzzzz'",
		  "the names are those of dcpid's options, without the dash" },
		{ "{\"ra\\u0074e\": 5}", "unknown option 'ra\\u0074e'", NULL },
		{ "{\"rate\": 5,\n \"rate\": 6}", "line 2: an option stands there twice", "" },
		{ "{\"rate\": 0}", "value '0' of option '-rate' is out of limits",
		  "give a value from 1 to 100000" },
		{ "{\"rate\": \"5\"}", "'rate' takes an integer", "" },
		{ "{\"rate\": 5.5}", "'rate' takes an integer", "" },
		{ "{\"rate\": null}", "'rate' takes an integer", "" },
		{ "{\"share\": \"x\"}", "'share' takes a number", "" },
		{ "{\"quiet\": 1}", "'quiet' takes true or false", "" },
		{ "{\"database\": [\"x\"]}", "'database' takes a string", "" },
		{ "{\"event\": [1]}", "'event' takes a string or a list of strings", "" },
		{ "{\"event\": {}}", "'event' takes a string or a list of strings", "" },
		{ "{\"database\": \"a\\u0000b\"}", "a string holds a NUL", "" },
		{ "{\"gc\": true}", "'gc' is for the command line only", "" },
		{ "{\"rate\": [[[[[[5]]]]]]}", "line 1: ", "" },
		{ "{\"database\": \"\xff\"}", "line 1: ", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(parse_given(cases[i].text, 0), -DCPI_EUSAGE);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: %s", cases[i].text, err.text);
		if (cases[i].hint)
			assert_string_equal(err.hint, cases[i].hint);
	}
}

static void bounds(void **state)
{
	char *text = malloc(CONFIG_MAX + 2), name[300] = "{\"";
	struct json_object *none;
	struct base_err own = { 0 };

	(void)state;
	memset(text, ' ', CONFIG_MAX + 2);
	assert_int_equal(config_parse(text, CONFIG_MAX + 1, "f", &cmd, 0, &none, &own),
			 -DCPI_ELIMIT);
	assert_null(none);
	free(text);
	memset(name + 2, 'a', 200);
	strcat(name, "\":1}");
	assert_int_equal(parse_given(name, 0), -DCPI_EUSAGE);
	assert_true(strlen(err.text) < 150);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),
		cmocka_unit_test(command_line_first),
		cmocka_unit_test(bad),
		cmocka_unit_test(bounds),
	};

	return cmocka_run_group_tests(tests, NULL, teardown);
}
