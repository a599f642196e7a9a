/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

static struct {
	bool quiet;
	const char *db;
	struct base_opt_list images;
	int64_t pid, any;
	double share;
} got;

static const struct base_opt opts[] = {
	{ "quiet", BASE_OPT_FLAG, &got.quiet, NULL, "Say less.", 0, 0 },
	{ "db", BASE_OPT_STRING, &got.db, "DIR", "Where.", 0, 0 },
	{ "image", BASE_OPT_LIST, &got.images, "FILE", "Which.", 0, 0 },
	{ "pid", BASE_OPT_INT, &got.pid, "N", "Who.", 1, 100 },
	{ "any", BASE_OPT_INT, &got.any, "N", "Any.", 0, 0 },
	{ "share", BASE_OPT_DOUBLE, &got.share, "X", "How much.", -1, 1.5 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpitest",
	.summary = "test",
	.operands = "[X]",
	.opts = opts,
	.max_operands = 3,
};

static struct base_err err;
static char *words[16];
static char **rest;
static int nr_rest;

/* Parse one line of words. */
static int parse_for(const struct base_cmd *c, const char *line)
{
	static char text[4096], prog[] = "prog";
	char *save = NULL;
	int argc = 0;

	free(got.images.items);
	memset(&got, 0, sizeof(got));
	memset(&err, 0, sizeof(err));
	snprintf(text, sizeof(text), "%s", line);
	words[argc++] = prog;
	for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
		words[argc++] = w;
	words[argc] = NULL;
	nr_rest = argc;
	rest = words;
	return base_opt_parse(c, &nr_rest, &rest, &err);
}

static int parse(const char *line)
{
	return parse_for(&cmd, line);
}

static void refused(const char *line, const char *text, const char *hint)
{
	assert_int_equal(parse(line), -DCPI_EUSAGE);
	assert_int_equal(err.code, -DCPI_EUSAGE);
	assert_string_equal(err.text, text);
	if (hint)
		assert_string_equal(err.hint, hint);
}

static void every_kind(void **state)
{
	(void)state;
	assert_int_equal(parse("-quiet -db /d -image a -pid 7 -share 0.5 -image b"), BASE_OPT_RUN);
	assert_true(got.quiet);
	assert_string_equal(got.db, "/d");
	assert_int_equal(got.images.nr, 2);
	assert_string_equal(got.images.items[0], "a");
	assert_string_equal(got.images.items[1], "b");
	assert_int_equal(got.pid, 7);
	assert_true(got.share == 0.5);
	assert_int_equal(nr_rest, 0);
	assert_int_equal(err.code, 0);
}

static void other_spellings(void **state)
{
	(void)state;
	assert_int_equal(parse("--quiet --db=/d=e -pid=8 -db -x"), BASE_OPT_RUN);
	assert_true(got.quiet);
	assert_string_equal(got.db, "-x");
	assert_int_equal(got.pid, 8);
	assert_int_equal(parse("--db=/d=e"), BASE_OPT_RUN);
	assert_string_equal(got.db, "/d=e");
	assert_int_equal(parse("-db="), BASE_OPT_RUN);
	assert_string_equal(got.db, "");
}

static void operands(void **state)
{
	(void)state;
	assert_int_equal(parse("one -quiet - -db d two"), BASE_OPT_RUN);
	assert_int_equal(nr_rest, 3);
	assert_string_equal(rest[0], "one");
	assert_string_equal(rest[1], "-");
	assert_string_equal(rest[2], "two");
	assert_null(rest[3]);
	assert_true(got.quiet);
	assert_string_equal(got.db, "d");
	assert_int_equal(parse("-- -quiet --"), BASE_OPT_RUN);
	assert_int_equal(nr_rest, 2);
	assert_string_equal(rest[0], "-quiet");
	assert_string_equal(rest[1], "--");
	assert_false(got.quiet);
	assert_int_equal(parse(""), BASE_OPT_RUN);
	assert_int_equal(nr_rest, 0);
}

/* "dcpirun -quiet ls -l -- x": what stands behind the program is the program's. */
static void another_command(void **state)
{
	struct base_cmd runs = cmd;

	(void)state;
	runs.first_ends = true;
	assert_int_equal(parse_for(&runs, "-db d one -quiet --"), BASE_OPT_RUN);
	assert_int_equal(nr_rest, 3);
	assert_string_equal(rest[0], "one");
	assert_string_equal(rest[1], "-quiet");
	assert_string_equal(rest[2], "--");
	assert_false(got.quiet);
	assert_string_equal(got.db, "d");
	assert_int_equal(parse_for(&runs, "-- -one -quiet"), BASE_OPT_RUN);
	assert_int_equal(nr_rest, 2);
	assert_string_equal(rest[0], "-one");
	assert_int_equal(parse_for(&runs, "-unknown one"), -DCPI_EUSAGE);
}

static void no_words_at_all(void **state)
{
	char *none[] = { NULL }, **argv = none;
	int argc = 0;

	(void)state;
	assert_int_equal(base_opt_parse(&cmd, &argc, &argv, &err), BASE_OPT_RUN);
	assert_int_equal(argc, 0);
	assert_null(argv[0]);
}

static void operand_counts(void **state)
{
	struct base_cmd two = cmd;

	(void)state;
	refused("a b c d", "unexpected operand 'd'", "usage: dcpitest [options] [X]");
	two.min_operands = 2;
	two.max_operands = -1;
	assert_int_equal(parse_for(&two, "a"), -DCPI_EUSAGE);
	assert_string_equal(err.text, "missing operand");
	assert_int_equal(parse_for(&two, "a b c d e f g"), BASE_OPT_RUN);
	assert_int_equal(nr_rest, 7);
}

static void integers(void **state)
{
	(void)state;
	assert_int_equal(parse("-any -5"), BASE_OPT_RUN);
	assert_int_equal(got.any, -5);
	assert_int_equal(parse("-any=0x1F"), BASE_OPT_RUN);
	assert_int_equal(got.any, 31);
	assert_int_equal(parse("-any 010"), BASE_OPT_RUN);
	assert_int_equal(got.any, 10);
	assert_int_equal(parse("-any -9223372036854775808"), BASE_OPT_RUN);
	assert_true(got.any == INT64_MIN);
	assert_int_equal(parse("-any 9223372036854775807"), BASE_OPT_RUN);
	assert_true(got.any == INT64_MAX);
	refused("-any 9223372036854775808",
		"value '9223372036854775808' of option '-any' is out of limits", NULL);
	refused("-any x", "value 'x' of option '-any' is not an integer", NULL);
	refused("-any 1x", "value '1x' of option '-any' is not an integer", NULL);
	refused("-any 1.5", "value '1.5' of option '-any' is not an integer", NULL);
	refused("-any=", "value '' of option '-any' is not an integer", NULL);
	refused("-any 0x", "value '0x' of option '-any' is not an integer", NULL);
	refused("-any --5", "value '--5' of option '-any' is not an integer", NULL);
	refused("-any=\t5", "value '?5' of option '-any' is not an integer", NULL);
}

static void limits(void **state)
{
	(void)state;
	assert_int_equal(parse("-pid 1"), BASE_OPT_RUN);
	assert_int_equal(parse("-pid 100"), BASE_OPT_RUN);
	refused("-pid 0", "value '0' of option '-pid' is out of limits",
		"give a value from 1 to 100");
	refused("-pid 101", "value '101' of option '-pid' is out of limits", NULL);
	refused("-pid 99999999999999999999",
		"value '99999999999999999999' of option '-pid' is out of limits",
		"give a value from 1 to 100");
	assert_int_equal(got.pid, 0);
	assert_int_equal(parse("-share -1"), BASE_OPT_RUN);
	assert_true(got.share == -1);
	assert_int_equal(parse("-share .5e0"), BASE_OPT_RUN);
	assert_true(got.share == .5);
	refused("-share 1.51", "value '1.51' of option '-share' is out of limits",
		"give a value from -1 to 1.5");
	refused("-share nan", "value 'nan' of option '-share' is not a number", NULL);
	refused("-share -inf", "value '-inf' of option '-share' is not a number", NULL);
	refused("-share 1e999", "value '1e999' of option '-share' is not a number", NULL);
	refused("-share 1,5", "value '1,5' of option '-share' is not a number", NULL);
	refused("-share .", "value '.' of option '-share' is not a number", NULL);
}

static void wrong_usage(void **state)
{
	(void)state;
	refused("-pdi 3", "unknown option '-pdi'", "did you mean '-pid'?");
	refused("--qiet", "unknown option '-qiet'", "did you mean '-quiet'?");
	refused("-versoin", "unknown option '-versoin'", "did you mean '-version'?");
	refused("-imag=x", "unknown option '-imag'", "did you mean '-image'?");
	refused("-zzzzzzzz", "unknown option '-zzzzzzzz'", "'dcpitest -help' lists the options");
	refused("-=x", "unknown option '-'", NULL);
	refused("---quiet", "unknown option '--quiet'", NULL);
	refused("-7", "unknown option '-7'", "'dcpitest -help' lists the options");
	refused("a -db", "missing value of option '-db'", "give it as '-db DIR'");
	refused("-quiet=yes", "option '-quiet' takes no value", NULL);
	refused("-help=yes", "option '-help' takes no value", NULL);
}

static void a_huge_option(void **state)
{
	char line[3000];

	(void)state;
	memset(line, 'q', sizeof(line) - 1);
	line[0] = '-';
	line[sizeof(line) - 1] = '\0';
	assert_int_equal(parse(line), -DCPI_EUSAGE);
	assert_memory_equal(err.text, "unknown option '-qqq", 20);
}

static void distances(void **state)
{
	char a[400], b[400];

	(void)state;
	assert_int_equal(base_name_distance("", ""), 0);
	assert_int_equal(base_name_distance("", "abc"), 3);
	assert_int_equal(base_name_distance("abc", ""), 3);
	assert_int_equal(base_name_distance("kitten", "sitting"), 3);
	assert_int_equal(base_name_distance("sitting", "kitten"), 3);
	assert_int_equal(base_name_distance("flaw", "lawn"), 2);
	assert_int_equal(base_name_distance("same", "same"), 0);
	memset(a, 'a', sizeof(a));
	memset(b, 'b', sizeof(b));
	a[399] = b[399] = '\0';
	assert_int_equal(base_name_distance(a, b), 255);
	assert_int_equal(base_name_distance(a, ""), 255);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind),	   cmocka_unit_test(other_spellings),
		cmocka_unit_test(operands),	   cmocka_unit_test(no_words_at_all),
		cmocka_unit_test(operand_counts),  cmocka_unit_test(integers),
		cmocka_unit_test(limits),	   cmocka_unit_test(wrong_usage),
		cmocka_unit_test(another_command), cmocka_unit_test(a_huge_option),
		cmocka_unit_test(distances),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	free(got.images.items);
	return r;
}
