/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* A copy of a file with a build-id, whose program headers tell of no notes. */
static void hide_notes(const char *from, const char *to)
{
	struct base_buf whole = { 0 };
	struct base_err err = { 0 };
	Elf64_Ehdr *h;

	assert_true(base_file_read(AT_FDCWD, from, 1 << 20, &whole, &err) >= 0);
	h = (Elf64_Ehdr *)whole.data;
	for (unsigned int i = 0; i < h->e_phnum; i++) {
		Elf64_Phdr *ph = (Elf64_Phdr *)(whole.data + h->e_phoff) + i;

		if (ph->p_type == PT_NOTE)
			ph->p_type = PT_NULL;
	}
	assert_true(base_file_write(AT_FDCWD, to, 0600, whole.data, whole.len, &err) >= 0);
	base_buf_release(&whole);
}

static void test_second_identity(void **state)
{
	char path[] = "/tmp/dcpi-map-XXXXXX";
	struct base_id first, second, known = identity(FIXTURES "/fixture.so");
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(image_identify_second(FIXTURES "/fixture.so", &second), -ENOENT);
	assert_int_equal(image_identify_second(FIXTURES "/no_id.so", &second), -ENOENT);
	hide_notes(FIXTURES "/fixture.so", path);
	first = identity(path);
	assert_true(base_id_equal(&first, &known));
	assert_int_equal(image_identify_second(path, &second), 0);
	assert_false(base_id_equal(&first, &second));
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sorted_and_found), cmocka_unit_test(test_what_does_not_fit),
		cmocka_unit_test(test_bad_maps),	 cmocka_unit_test(test_identities),
		cmocka_unit_test(test_second_identity),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
