/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

static bool flag;
static const char *dir;

static const struct base_opt opts[] = {
	{ "quiet", BASE_OPT_FLAG, &flag, NULL, "Say less - a path is '\\a'.\n.Even here.", 0, 0 },
	{ "data-base", BASE_OPT_STRING, &dir, "DIR…",
	  "Take the profile database from DIR rather than from where the environment or the "
	  "configuration of the daemon say that it is.",
	  0, 0 },
	{ "a-very-long-name-for-an-option", BASE_OPT_FLAG, &flag, NULL, "Long.", 0, 0 },
	{ 0 },
};

static const struct base_example examples[] = {
	{ "dcpitest -quiet 'x y'", "Be quiet." },
	{ ".hidden", "Odd." },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpitest",
	.summary = "test the help",
	.operands = "[IMAGE …]",
	.opts = opts,
	.examples = examples,
};

static const char help[] =
	"usage: dcpitest [options] [IMAGE …]\n"
	"test the help\n"
	"\n"
	"options:\n"
	"  -quiet           Say less - a path is '\\a'. .Even here.\n"
	"  -data-base DIR…  Take the profile database from DIR rather than from where the\n"
	"                   environment or the configuration of the daemon say that it\n"
	"                   is.\n"
	"  -a-very-long-name-for-an-option\n"
	"                   Long.\n"
	"  -help            Print this help and exit.\n"
	"  -version         Print the version and exit.\n"
	"\n"
	"examples:\n"
	"  dcpitest -quiet 'x y'\n"
	"      Be quiet.\n"
	"  .hidden\n"
	"      Odd.\n";

static const char man[] =
	".SH OPTIONS\n"
	".TP\n\\fB\\-quiet\\fR\n"
	"Say less \\- a path is \\(aq\\ea\\(aq.\n\\&.Even here.\n"
	".TP\n\\fB\\-data\\-base\\fR \\fIDIR…\\fR\n"
	"Take the profile database from DIR rather than from where the environment or the "
	"configuration of the daemon say that it is.\n"
	".TP\n\\fB\\-a\\-very\\-long\\-name\\-for\\-an\\-option\\fR\nLong.\n"
	".TP\n\\fB\\-help\\fR\nPrint this help and exit.\n"
	".TP\n\\fB\\-version\\fR\nPrint the version and exit.\n"
	".SH EXAMPLES\n"
	".TP\n\\fBdcpitest \\-quiet \\(aqx y\\(aq\\fR\nBe quiet.\n"
	".TP\n\\fB\\&.hidden\\fR\nOdd.\n";

/* What @option makes the parser print to stdout. */
static void check_request(const struct base_cmd *c, const char *option, const char *expected)
{
	char *words[] = { strdup("prog"), strdup(option), strdup("-nonsense"), NULL };
	char **argv = words, text[4096];
	int argc = 3, saved, r;
	FILE *f = tmpfile();
	size_t n;

	assert_non_null(f);
	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	assert_true(saved >= 0 && dup2(fileno(f), STDOUT_FILENO) >= 0);
	r = base_opt_parse(c, &argc, &argv, NULL);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	rewind(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	for (int i = 0; i < 3; i++)
		free(words[i]);
	assert_int_equal(r, BASE_OPT_DONE);
	assert_string_equal(text, expected);
}

static void help_text(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	base_opt_help(&cmd, f);
	fclose(f);
	assert_string_equal(text, help);
	free(text);
}

static void requests(void **state)
{
	(void)state;
	check_request(&cmd, "-help", help);
	check_request(&cmd, "--help", help);
	check_request(&cmd, "-version", "dcpitest (DCPI) " DCPI_VERSION "\n");
	check_request(&cmd, "-V", "dcpitest (DCPI) " DCPI_VERSION "\n");
	check_request(&cmd, "-help-man", man);
	check_request(&cmd, "-help-options",
		      "-quiet\n-data-base\n-a-very-long-name-for-an-option\n-help\n-version\n");
}

static void bare_command(void **state)
{
	static const struct base_cmd bare = { .name = "b", .summary = "s", .operands = "" };

	(void)state;
	check_request(&bare, "-help",
		      "usage: b [options]\ns\n\noptions:\n"
		      "  -help     Print this help and exit.\n"
		      "  -version  Print the version and exit.\n");
	check_request(&bare, "-help-man",
		      ".SH OPTIONS\n.TP\n\\fB\\-help\\fR\nPrint this help and exit.\n"
		      ".TP\n\\fB\\-version\\fR\nPrint the version and exit.\n");
}

/* No line is longer than a terminal, unless one word is. */
static void wrapping(void **state)
{
	char words[600] = "", *text = NULL;
	struct base_opt o[] = { { .name = "o", .help = words }, { 0 } };
	struct base_cmd c = { .name = "c", .summary = "s", .operands = "", .opts = o };
	size_t len;
	FILE *f;

	(void)state;
	for (int n = 1; n < 30; n++)
		snprintf(words + strlen(words), sizeof(words) - strlen(words), "%0*d ", n, n);
	f = open_memstream(&text, &len);
	assert_non_null(f);
	base_opt_help(&c, f);
	fclose(f);
	for (char *line = text; *line; line += strcspn(line, "\n") + 1)
		assert_in_range(strcspn(line, "\n"), 0, 80);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(help_text),
		cmocka_unit_test(requests),
		cmocka_unit_test(bare_command),
		cmocka_unit_test(wrapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
