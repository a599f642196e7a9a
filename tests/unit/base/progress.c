/* SPDX-License-Identifier: BSD-2-Clause */
/* How far work is, as text; on a terminal from the second second on; elsewhere nothing. */
#include <fcntl.h>
#include <pty.h>
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

/* The clock of progress.c. */
static uint64_t now_ns;
uint64_t __wrap_base_now_ns(void);

uint64_t __wrap_base_now_ns(void)
{
	return now_ns;
}

static void show_at(uint64_t time_ns, uint64_t done)
{
	now_ns = time_ns;
	progress_show("reading", done, 4);
}

static void test_no_terminal(void **state)
{
	int fds[2];
	char c;

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	progress_begin(fds[1]);
	show_at(1 * S, 0);
	show_at(3 * S, 1);
	assert_int_equal(read(fds[0], &c, 1), -1);
	close(fds[0]);
	close(fds[1]);
}

/* The text that was drawn since last time, "" for none. */
static const char *drawn(int fd)
{
	static char text[400];
	ssize_t n = read(fd, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void test_terminal(void **state)
{
	int ours, theirs;

	(void)state;
	assert_int_equal(openpty(&ours, &theirs, NULL, NULL, NULL), 0);
	assert_int_equal(fcntl(ours, F_SETFL, O_NONBLOCK), 0);
	progress_begin(theirs);
	show_at(10 * S, 0);
	show_at(11 * S - 1, 1);
	assert_string_equal(drawn(ours), "");
	show_at(11 * S, 1);
	assert_non_null(strstr(drawn(ours), "\r\033[Kreading [#######"));
	show_at(11 * S + S / 20, 2); /* ten times a second */
	assert_string_equal(drawn(ours), "");
	show_at(12 * S, 4);
	assert_string_equal(drawn(ours), "\r\033[K");
	/* The next work has a second of its own. */
	show_at(12 * S, 0);
	show_at(12 * S + S / 2, 4);
	assert_string_equal(drawn(ours), "");
	close(ours);
	close(theirs);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_text),
					    cmocka_unit_test(test_no_terminal),
					    cmocka_unit_test(test_terminal) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
