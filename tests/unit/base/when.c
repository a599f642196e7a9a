/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests the times that users may write: each form, time zones whose clocks are set, and nonsense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "when.h"

/* Thursday 2026-11-26 12:34:56 UTC, 13:34:56 in Berlin. */
enum { NOW = 1795696496 };

static void zone(const char *tz)
{
	setenv("TZ", tz, 1);
	tzset();
}

static void means(const char *text, int64_t want)
{
	struct base_err err = { 0 };
	int64_t got = -1;

	if (when_parse(text, NOW, false, &got, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	if (got != want)
		fail_msg("%s: %lld, not %lld", text, (long long)got, (long long)want);
}

static void refused(const char *text, const char *why)
{
	struct base_err err = { 0 };
	int64_t got = -1;

	if (when_parse(text, NOW, false, &got, &err) != -DCPI_EUSAGE)
		fail_msg("'%s' is taken, as %lld", text, (long long)got);
	if (!strstr(err.text, why))
		fail_msg("'%s': %s", text, err.text);
	assert_true(err.hint[0]);
	assert_int_equal(got, -1);
}

static void test_each_form(void **state)
{
	(void)state;
	zone("UTC");
	means("now", NOW);
	means("10:00", 1795687200);
	means("9:05", 1795687200 - 55 * 60);
	means("10:00:30", 1795687230);
	means("today", 1795651200);
	means("today 10:00", 1795687200);
	means("yesterday", 1795651200 - 86400);
	means("yesterday 10:00", 1795687200 - 86400);
	means("yesterday 23:59:59", 1795651199);
	means("2026-11-26", 1795651200);
	means("2026-11-26 10:00", 1795687200);
	means("2026-11-26T10:00:00Z", 1795687200);
	means("2026-11-26 10:00Z", 1795687200);
	means("2024-02-29", 1709164800);
	means("1970-01-01", 0);
	means("-15m", NOW - 900);
	means("-90s", NOW - 90);
	means("-2h", NOW - 7200);
	means("-3d", NOW - 3 * 86400);
	means("-1w", NOW - 7 * 86400);
	means("@1732600000", 1732600000);
	means("@0", 0);
}

/* POSIX rules, so that no file of zones is needed: last Sundays of March and October. */
static void test_local_time(void **state)
{
	int64_t at;

	(void)state;
	zone("CET-1CEST,M3.5.0,M10.5.0/3");
	means("10:00", 1795687200 - 3600);
	means("2026-11-26T10:00:00Z", 1795687200);
	means("today", 1795651200 - 3600);
	means("2026-07-01 10:00", 1782892800);
	/* The clock goes from 02:00 to 03:00. */
	means("2026-03-29 01:59:59", 1774745999);
	means("2026-03-29 03:00", 1774746000);
	refused("2026-03-29 02:00", "set ahead over it");
	refused("2026-03-29 02:59:59", "set ahead over it");
	/* The clock shows 02:00 to 03:00 twice. */
	means("2026-10-25 02:30", 1792888200);
	assert_int_equal(when_parse("2026-10-25 02:30", NOW, true, &at, NULL), 0);
	assert_int_equal(at, 1792888200 + 3600);
	means("2026-10-25 03:00", 1792893600);
	/* A day without a midnight begins at 01:00. */
	zone("XST3XDT,M10.3.0/0,M2.3.0/0");
	means("2026-10-18", 1792292400);
	refused("2026-10-18 00:30", "set ahead over it");
	/* Yesterday is a calendar's day, also where it has 23 hours. */
	zone("UTC-14");
	means("today", 1795651200 + 86400 - 14 * 3600);
	zone("UTC");
}

static void test_nonsense(void **state)
{
	static const char *const none[] = {
		"",
		" ",
		"10",
		"10:",
		"10:0",
		"10:000",
		"100:00",
		"10:00:",
		"10:00:0",
		"10:00 ",
		" 10:00",
		"10:00Z",
		"noon",
		"nowt",
		"tomorrow",
		"yesterdayx",
		"yesterday ",
		"today 10",
		"2026",
		"2026-11",
		"2026-1-1",
		"26-11-26",
		"2026-11-26 ",
		"2026-11-26T",
		"2026-11-26x",
		"-",
		"-m",
		"-15",
		"-15x",
		"-15mm",
		"--15m",
		"-0m",
		"-1.5h",
		"-9999999999d",
		"@",
		"@x",
		"@-1",
		"@12 ",
		"@9999999999999",
		"+15m",
		"1e9",
		"\xff\xfe",
		"2026-11-26 10:00:00+01:00",
	};

	(void)state;
	zone("UTC");
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		refused(none[i], "is no time");
	refused("2026-02-30", "no such day");
	refused("2025-02-29", "no such day");
	refused("2026-00-10", "no such day");
	refused("2026-13-10", "no such day");
	refused("2026-11-31", "no such day");
	refused("0000-01-01", "no such day");
	refused("24:00", "no clock");
	refused("10:60", "no clock");
	refused("10:00:60", "no clock");
	refused("-99999d", "before 1970");
}

static void test_the_future(void **state)
{
	(void)state;
	zone("UTC");
	means("12:34:56", NOW);
	refused("12:34:57", "in the future");
	refused("2026-11-27", "in the future");
	refused("@1795696497", "in the future");
	refused("9999-12-31", "in the future");
}

static void window(const char *since, const char *until, int64_t from, int64_t to)
{
	struct base_err err = { 0 };
	struct when_window w;

	if (when_window(since, until, NOW, &w, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(w.since, from);
	assert_int_equal(w.until, to);
}

static void no_window(const char *since, const char *until, const char *why)
{
	struct base_err err = { 0 };
	struct when_window w;

	assert_int_equal(when_window(since, until, NOW, &w, &err), -DCPI_EUSAGE);
	if (!strstr(err.text, why))
		fail_msg("%s", err.text);
	assert_true(err.hint[0]);
}

static void test_windows(void **state)
{
	(void)state;
	zone("UTC");
	window(NULL, NULL, INT64_MIN, INT64_MAX);
	window("10:00", NULL, 1795687200, INT64_MAX);
	window(NULL, "10:00", INT64_MIN, 1795687200);
	window("yesterday", "today", 1795651200 - 86400, 1795651200);
	no_window("10:15", "10:00", "not later than -since");
	no_window("today", "today", "not later than -since");
	no_window("x", "10:00", "is no time");
	no_window("10:00", "y", "is no time");
	no_window(NULL, "23:00", "in the future");
}

static void test_text(void **state)
{
	char text[WHEN_TEXT];

	(void)state;
	zone("CET-1CEST,M3.5.0,M10.5.0/3");
	assert_string_equal(when_text(NOW, text), "2026-11-26 13:34:56 CET");
	assert_string_equal(when_text(1782892800, text), "2026-07-01 10:00:00 CEST");
	assert_string_equal(when_text(INT64_MAX, text), "@9223372036854775807");
	zone("UTC");
}

static void test_spans(void **state)
{
	int64_t span = -1;

	(void)state;
	assert_int_equal(when_span("1h", &span), 0);
	assert_int_equal(span, 3600);
	assert_int_equal(when_span("30m", &span), 0);
	assert_int_equal(span, 1800);
	assert_true(when_span("", &span) < 0 && when_span("h", &span) < 0);
	assert_true(when_span("0h", &span) < 0 && when_span("1", &span) < 0);
	assert_true(when_span("1hh", &span) < 0 && when_span("-1h", &span) < 0);
	assert_true(when_span("1h ", &span) < 0 && when_span("1234567890s", &span) < 0);
	assert_int_equal(span, 1800);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_form), cmocka_unit_test(test_local_time),
		cmocka_unit_test(test_nonsense),  cmocka_unit_test(test_the_future),
		cmocka_unit_test(test_windows),	  cmocka_unit_test(test_text),
		cmocka_unit_test(test_spans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
