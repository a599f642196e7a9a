/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base.h"

struct capture {
	FILE *f;
	char *text;
	size_t len;
};

static void begin(struct capture *c, enum base_log_level max, enum base_log_form form)
{
	*c = (struct capture){ 0 };
	c->f = open_memstream(&c->text, &c->len);
	assert_non_null(c->f);
	base_log_init(c->f, max, form);
}

static void end(struct capture *c)
{
	base_log_init(NULL, BASE_LOG_INFO, BASE_LOG_BARE);
	fclose(c->f);
	free(c->text);
}

static void levels(void **state)
{
	struct capture c;

	(void)state;
	begin(&c, BASE_LOG_WARN, BASE_LOG_BARE);
	base_log(BASE_LOG_ERROR, "e%d", 1);
	base_log(BASE_LOG_WARN, "w");
	base_log(BASE_LOG_INFO, "i");
	base_log(BASE_LOG_DEBUG, "d");
	assert_string_equal(c.text, "error: e1\nwarning: w\n");
	end(&c);
	begin(&c, BASE_LOG_DEBUG, BASE_LOG_BARE);
	base_log(BASE_LOG_INFO, "i");
	base_log(BASE_LOG_DEBUG, "d");
	assert_string_equal(c.text, "info: i\ndebug: d\n");
	end(&c);
}

static void stamps(void **state)
{
	int y, mo, d, h, mi, s, n = 0;
	struct capture c;

	(void)state;
	begin(&c, BASE_LOG_INFO, BASE_LOG_STAMPS);
	base_log(BASE_LOG_INFO, "x");
	assert_int_equal(
		sscanf(c.text, "%4d-%2d-%2dT%2d:%2d:%2dZ %n", &y, &mo, &d, &h, &mi, &s, &n), 6);
	assert_in_range(y, 2024, 9999);
	assert_string_equal(c.text + n, "info: x\n");
	end(&c);
}

static void journal(void **state)
{
	struct capture c;

	(void)state;
	begin(&c, BASE_LOG_DEBUG, BASE_LOG_JOURNAL);
	base_log(BASE_LOG_ERROR, "e");
	base_log(BASE_LOG_WARN, "w");
	base_log(BASE_LOG_INFO, "i\n<0>forged");
	base_log(BASE_LOG_DEBUG, "d");
	assert_string_equal(c.text, "<3>e\n<4>w\n<6>i?<0>forged\n<7>d\n");
	end(&c);
}

static void one_line_whatever_the_text(void **state)
{
	struct capture c;
	char big[10000];

	(void)state;
	memset(big, 'b', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	begin(&c, BASE_LOG_INFO, BASE_LOG_BARE);
	base_log(BASE_LOG_INFO, "a\nerror: forged\033");
	assert_string_equal(c.text, "info: a?error: forged?\n");
	base_log(BASE_LOG_INFO, "%s", big);
	assert_int_equal(c.text[c.len - 1], '\n');
	assert_int_equal(c.text[c.len - 2], 'b');
	end(&c);
}

/* Times and levels whatever the form; what is too long, or not written at all, is cut or left out.
 */
static void the_last_are_kept(void **state)
{
	struct capture c;
	char big[10000], last[16];

	(void)state;
	memset(big, 'b', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	begin(&c, BASE_LOG_INFO, BASE_LOG_BARE);
	base_log(BASE_LOG_INFO, "not yet");
	base_log_keep();
	assert_null(base_log_kept(0));
	base_log(BASE_LOG_WARN, "first");
	base_log(BASE_LOG_DEBUG, "not wanted");
	base_log(BASE_LOG_ERROR, "%s", big);
	assert_string_equal(strchr(base_log_kept(0), 'Z'), "Z warning: first");
	assert_int_equal(strlen(base_log_kept(1)), BASE_LOG_KEPT_LEN);
	assert_null(base_log_kept(2));
	for (int i = 0; i < BASE_LOG_KEPT + 5; i++)
		base_log(BASE_LOG_INFO, "n%d", i);
	assert_string_equal(strchr(base_log_kept(0), 'Z'), "Z info: n5");
	snprintf(last, sizeof(last), "n%d", BASE_LOG_KEPT + 4);
	assert_string_equal(strrchr(base_log_kept(BASE_LOG_KEPT - 1), ' ') + 1, last);
	assert_null(base_log_kept(BASE_LOG_KEPT));
	end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels),
		cmocka_unit_test(stamps),
		cmocka_unit_test(journal),
		cmocka_unit_test(one_line_whatever_the_text),
		cmocka_unit_test(the_last_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
