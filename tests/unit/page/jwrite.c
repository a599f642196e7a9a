/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests that what jwrite writes is JSON, and that no text in it acts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jwrite.h"

static void assert_json(struct base_buf *b, const char *want)
{
	assert_int_equal(base_buf_append(b, "", 1), 0);
	assert_string_equal((const char *)b->data, want);
	base_buf_clear(b);
}

static void assert_text(const char *text, const char *want)
{
	struct base_buf b = { 0 };
	struct jwrite j = { .to = &b };

	jwrite_text(&j, NULL, text);
	assert_int_equal(j.r, 0);
	assert_json(&b, want);
	base_buf_release(&b);
}

static void test_values(void **state)
{
	struct base_buf b = { 0 }, raw = { 0 };
	struct jwrite j = { .to = &b };

	(void)state;
	assert_int_equal(base_buf_printf(&raw, "[7]"), 0);
	jwrite_open(&j, NULL, '{');
	jwrite_count(&j, "a", UINT64_MAX);
	jwrite_open(&j, "b", '[');
	jwrite_close(&j, ']');
	jwrite_open(&j, "c", '[');
	jwrite_int(&j, NULL, -1);
	jwrite_real(&j, NULL, 0.123456);
	jwrite_real(&j, NULL, NAN);
	jwrite_real(&j, NULL, INFINITY);
	jwrite_real(&j, NULL, 1e300);
	jwrite_text(&j, NULL, NULL);
	jwrite_hex(&j, NULL, 0xffffffff81000000);
	jwrite_raw(&j, NULL, &raw);
	jwrite_close(&j, ']');
	jwrite_line(&j);
	jwrite_open(&j, "d", '{');
	jwrite_close(&j, '}');
	jwrite_close(&j, '}');
	assert_int_equal(j.r, 0);
	assert_json(&b,
		    "{\"a\":18446744073709551615,\"b\":[],"
		    "\"c\":[-1,0.1235,null,null,1e+300,null,\"ffffffff81000000\",[7]]\n,\"d\":{}}");
	base_buf_release(&b);
	base_buf_release(&raw);
}

static void test_texts_are_inert(void **state)
{
	(void)state;
	assert_text("std::vector<int>", "\"std::vector\\u003cint>\"");
	assert_text("</script><!--<script>", "\"\\u003c/script>\\u003c!--\\u003cscript>\"");
	assert_text("\"\\", "\"\\\"\\\\\"");
	assert_text("a\nb\tc\033[31m\177",
		    "\"a\\u003cU+000A>b\\u003cU+0009>c\\u003cU+001B>[31m\\u003cU+007F>\"");
	/* Marks that turn text, that separate lines, that cannot be seen. */
	assert_text("a\u202eb\u2066c", "\"a\\u003cU+202E>b\\u003cU+2066>c\"");
	assert_text("\u2028\u2029\ufeff\u200b\u00ad",
		    "\"\\u003cU+2028>\\u003cU+2029>\\u003cU+FEFF>\\u003cU+200B>\\u003cU+00AD>\"");
	assert_text("\xc2\x85\U000e0041", "\"\\u003cU+0085>\\u003cU+E0041>\"");
	/* Letters of all kinds stay. */
	assert_text("größe λ 例 \U0001f600", "\"größe λ 例 \U0001f600\"");
}

static void test_no_utf8(void **state)
{
	(void)state;
	assert_text("\xff", "\"\\u003cFF>\"");
	assert_text("a\xc3", "\"a\\u003cC3>\"");
	assert_text("\xc3(", "\"\\u003cC3>(\"");
	assert_text("\xc0\xaf", "\"\\u003cC0>\\u003cAF>\""); /* overlong */
	assert_text("\xe0\x80\xaf", "\"\\u003cE0>\\u003c80>\\u003cAF>\"");
	assert_text("\xed\xa0\x80", "\"\\u003cED>\\u003cA0>\\u003c80>\""); /* a surrogate */
	assert_text("\xf4\x90\x80\x80", "\"\\u003cF4>\\u003c90>\\u003c80>\\u003c80>\"");
	assert_text("\xf8\x88\x80\x80\x80",
		    "\"\\u003cF8>\\u003c88>\\u003c80>\\u003c80>\\u003c80>\"");
}

static void test_parts(void **state)
{
	struct base_buf b = { 0 };
	struct jwrite j = { .to = &b };

	(void)state;
	jwrite_part(&j, NULL, "abcdef", 6, 6);
	assert_json(&b, "\"abcdef\"");
	j.comma = false;
	jwrite_part(&j, NULL, "abcdef", 6, 3);
	assert_json(&b, "\"abc\u2026\"");
	/* A character is not cut. */
	j.comma = false;
	jwrite_part(&j, NULL, "abcäd", 6, 4);
	assert_json(&b, "\"abcä\u2026\"");
	j.comma = false;
	jwrite_part(&j, "k", "a\0b", 3, 10);
	assert_json(&b, "\"k\":\"a\\u003cU+0000>b\"");
	base_buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_texts_are_inert),
		cmocka_unit_test(test_no_utf8),
		cmocka_unit_test(test_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
