/* SPDX-License-Identifier: BSD-2-Clause */
/* How far work is, as text; and on no terminal nothing. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base.h"
#include "progress.h"

#define S 1000000000ull

static void expect(uint64_t done, uint64_t total, uint64_t elapsed, const char *text)
{
	char buf[120];

	progress_text("reading", done, total, elapsed, buf, sizeof(buf));
	assert_string_equal(buf, text);
}

static void test_text(void **state)
{
	(void)state;
	expect(0, 10, 2 * S, "reading [------------------------------] 0 %, 0 s left");
	expect(5, 10, 3 * S, "reading [###############---------------] 50 %, 3 s left");
	expect(1, 100, 2 * S, "reading [------------------------------] 1 %, 3 min left");
	expect(12, 10, 2 * S, "reading [##############################] 100 %, 0 s left");
	expect(0, 0, 2 * S, "reading [##############################] 100 %, 0 s left");
}

/* A terminal of its own: nothing is drawn before a second has passed, and without one never. */
static void test_silent(void **state)
{
	int fds[2];
	char c;

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	progress_begin(fds[1]);
	progress_show("reading", 0, 2);
	progress_show("reading", 1, 2);
	progress_show("reading", 2, 2);
	assert_int_equal(read(fds[0], &c, 1), -1);
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_text),
					    cmocka_unit_test(test_silent) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
