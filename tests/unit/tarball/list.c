/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "tarball.h"

#define SUM "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

/* The list with these lines, and a checksum that is right. */
static int parse(const char *lines, struct tarball_list *l, struct base_err *err)
{
	struct base_buf text = { 0 };
	int r;

	assert_int_equal(base_buf_printf(&text, "dcpi-archive 1\n%s", lines), 0);
	assert_int_equal(base_buf_printf(&text, "crc %08x\n", base_crc32c(0, text.data, text.len)),
			 0);
	*l = (struct tarball_list){ 0 };
	r = tarball_list_parse(l, (char *)text.data, text.len, err);
	base_buf_release(&text);
	return r;
}

static void refused(const char *lines)
{
	struct base_err err = { 0 };
	struct tarball_list l;

	if (parse(lines, &l, &err) != -DCPI_EFORMAT)
		fail_msg("taken: %s", lines);
	assert_true(err.text[0]);
	tarball_list_release(&l);
}

static void test_reads_itself(void **state)
{
	static const char lines[] = "file 644 1700000000 12 " SUM " a/b\n"
				    "file 640 0 8589934591 " SUM " a/c..d\n";
	struct base_buf text = { 0 };
	struct tarball_list l;

	(void)state;
	assert_int_equal(parse(lines, &l, NULL), 0);
	assert_int_equal(l.nr, 2);
	assert_int_equal(l.bytes, 12 + TARBALL_MEMBER_MAX);
	assert_string_equal(l.v[1].path, "a/c..d");
	assert_int_equal(l.v[1].mode, 0640);
	assert_int_equal(l.v[0].mtime, 1700000000);
	assert_int_equal(l.v[0].sum[31], 0x1f);
	assert_int_equal(tarball_list_format(&l, &text), 0);
	assert_memory_equal(text.data + strlen("dcpi-archive 1\n"), lines, strlen(lines));
	base_buf_release(&text);
	tarball_list_release(&l);
}

static void test_paths_that_lead_out(void **state)
{
	static const char *const paths[] = { "/etc/passwd", "../x", "a/../../x", "a/..",
					     "./a",	    "a//b", "a/",	 "",
					     ".",	    "a b",  "a\tb",	 "a\x7f",
					     "dcpi-archive" };
	char line[300], long_path[TARBALL_PATH_MAX + 200];

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		snprintf(line, sizeof(line), "file 644 0 1 " SUM " %s\n", paths[i]);
		refused(line);
	}
	memset(long_path, 'a', sizeof(long_path));
	snprintf(line, sizeof(line), "file 644 0 1 " SUM " %.160s", long_path);
	memcpy(long_path, "file 644 0 1 " SUM " ", 13 + 65);
	for (size_t i = 100; i < sizeof(long_path); i += 100)
		long_path[i] = '/';
	memcpy(long_path + sizeof(long_path) - 2, "\n", 2);
	refused(long_path);
}

static void test_same_path_twice(void **state)
{
	(void)state;
	refused("file 644 0 1 " SUM " a\nfile 644 0 1 " SUM " a\n");
	refused("file 644 0 1 " SUM " b\nfile 644 0 1 " SUM " a\n");
}

static void test_numbers_that_cannot_be(void **state)
{
	(void)state;
	refused("file 644 0 8589934592 " SUM " a\n");		/* more than a header can say */
	refused("file 644 0 99999999999999999999 " SUM " a\n"); /* more than 64 bits */
	refused("file 644 0 -1 " SUM " a\n");
	refused("file 644 0 01 " SUM " a\n");
	refused("file 4755 0 1 " SUM " a\n");
	refused("file 666 0 1 " SUM " a\n"); /* others may write */
	refused("file 648 0 1 " SUM " a\n");
	refused("file 644 4294967296 1 " SUM " a\n");
	refused("file 644 0 1 " SUM "00 a\n");
	refused("file 644 0 1 ABCD a\n");
	refused("link 644 0 1 " SUM " a\n");
	refused("file 644 0 1 " SUM " a");
}

static void test_damage(void **state)
{
	static const char lines[] = "file 644 0 12 " SUM " a\n", newer[] = "dcpi-archive 2\n";
	struct base_buf text = { 0 };
	struct base_err err = { 0 };
	struct tarball_list l;

	(void)state;
	assert_int_equal(parse(lines, &l, NULL), 0);
	assert_int_equal(tarball_list_format(&l, &text), 0);
	tarball_list_release(&l);
	for (size_t i = 0; i < text.len; i++) {
		int r;

		text.data[i] ^= 1;
		r = tarball_list_parse(&l, (char *)text.data, text.len, NULL);
		assert_true(r == -DCPI_ECHECKSUM || r == -DCPI_EVERSION);
		text.data[i] ^= 1;
		assert_true(tarball_list_parse(&l, (char *)text.data, i, NULL) < 0);
	}
	base_buf_release(&text);
	assert_int_equal(tarball_list_parse(&l, newer, sizeof(newer) - 1, &err), -DCPI_EVERSION);
	assert_string_equal(err.hint, "a newer DCPI wrote this archive");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_itself),
		cmocka_unit_test(test_paths_that_lead_out),
		cmocka_unit_test(test_same_path_twice),
		cmocka_unit_test(test_numbers_that_cannot_be),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
