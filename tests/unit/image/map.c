/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "image.h"

static struct base_id id_of(const char *hex)
{
	struct base_id id;

	assert_int_equal(base_id_parse(&id, hex, strlen(hex)), 0);
	return id;
}

static void add(struct image_map *m, const char *hex, const char *path)
{
	struct base_id id = id_of(hex);

	assert_int_equal(image_map_add(m, &id, path), 0);
}

static void test_sorted_and_found(void **state)
{
	struct image_map m = { 0 }, again = { 0 };
	const struct image_map_entry *e;
	struct base_buf text = { 0 };
	struct base_id id = id_of("0102");

	(void)state;
	add(&m, "0102", "/z");
	add(&m, "ff", "/c");
	add(&m, "0102", "/a b");
	add(&m, "0102", "/z");
	add(&m, "01", "/short");
	assert_int_equal(image_map_format(&m, &text), 0);
	assert_int_equal(base_buf_append(&text, "", 1), 0);
	assert_string_equal((char *)text.data,
			    "dcpi-map 1\n01 /short\n0102 /a b\n0102 /z\nff /c\n");
	assert_int_equal(image_map_parse(&again, (char *)text.data, text.len - 1, NULL), 0);
	e = image_map_find(&again, &id);
	assert_non_null(e);
	assert_string_equal(e[0].path, "/a b");
	assert_string_equal(e[1].path, "/z");
	id = id_of("0103");
	assert_null(image_map_find(&again, &id));
	id = id_of("010203");
	assert_null(image_map_find(&again, &id));
	image_map_release(&m);
	image_map_release(&again);
	base_buf_release(&text);
}

static void test_what_does_not_fit(void **state)
{
	struct image_map m = { 0 };
	struct base_id id = id_of("01"), none = { 0 };

	(void)state;
	assert_int_equal(image_map_add(&m, &id, "/a\nb"), -EINVAL);
	assert_int_equal(image_map_add(&m, &id, ""), -EINVAL);
	assert_int_equal(image_map_add(&m, &none, "/a"), -EINVAL);
	assert_null(image_map_find(&m, &id));
	image_map_release(&m);
}

static void refused(const char *text, int code, const char *says)
{
	struct image_map m = { 0 };
	struct base_err err = { 0 };

	assert_int_equal(image_map_parse(&m, text, strlen(text), &err), code);
	assert_string_equal(err.text, says);
	image_map_release(&m);
}

static void test_bad_maps(void **state)
{
	(void)state;
	refused("", -DCPI_EFORMAT, "line 1: this is no map");
	refused("no map\n", -DCPI_EFORMAT, "line 1: this is no map");
	refused("dcpi-map 12\n", -DCPI_EVERSION, "line 1: another version of maps");
	refused("dcpi-map 1\n01 /a\n02\n", -DCPI_EFORMAT, "line 3: no 'IDENTITY PATH'");
	refused("dcpi-map 1\n0 /a\n", -DCPI_EFORMAT, "line 2: no 'IDENTITY PATH'");
	refused("dcpi-map 1\n01 \n", -DCPI_EFORMAT, "line 2: no 'IDENTITY PATH'");
	refused("dcpi-map 1\n01 /a", -DCPI_EFORMAT, "line 2: it was cut");
}

static struct base_id identity(const char *path)
{
	struct base_id id = { 0 };
	struct base_err err = { 0 };

	if (image_identify(AT_FDCWD, path, &id, &err) < 0)
		fail_msg("%s", err.text);
	return id;
}

static void test_identities(void **state)
{
	struct base_id whole = identity(FIXTURES "/fixture.so");
	struct base_id stripped = identity(FIXTURES "/bare.so");
	struct base_id headless = identity(FIXTURES "/no_id.so"), id;

	(void)state;
	assert_int_equal(whole.len, 20);
	assert_true(base_id_equal(&whole, &stripped));
	assert_true(headless.len > 0);
	assert_false(base_id_equal(&whole, &headless));
	/* It has the program's build-id, but not its code. */
	assert_int_equal(image_identify(AT_FDCWD, FIXTURES "/.debug/stripped.debug", &id, NULL),
			 -ENOEXEC);
	assert_int_equal(image_identify(AT_FDCWD, FIXTURES "/none", &id, NULL), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sorted_and_found),
		cmocka_unit_test(test_what_does_not_fit),
		cmocka_unit_test(test_bad_maps),
		cmocka_unit_test(test_identities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
