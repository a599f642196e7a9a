/* SPDX-License-Identifier: BSD-2-Clause */
/* Batches as files: whole, cut, damaged, and of hostile machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "store_internal.h"

static void put_content(struct store_batch *b, const char *bytes)
{
	struct base_buf *row = &b->rows[STORE_CONTENT];
	struct store_key key;

	store_content_key(bytes, strlen(bytes), &key);
	assert_int_equal(base_buf_append(row, &key, sizeof(key)), 0);
	assert_int_equal(base_buf_append_le(row, 1, 8), 0);
	assert_int_equal(store_put_text(row, bytes), 0);
}

static void test_back(void **state)
{
	struct store_batch b = { 0 }, again = { 0 };
	struct base_buf file = { 0 };

	(void)state;
	put_content(&b, "one");
	put_content(&b, "two");
	assert_int_equal(store_batch_format(&b, &file), 0);
	assert_int_equal(store_batch_parse(file.data, file.len, &again, NULL), 0);
	for (size_t i = 0; i < STORE_NR_SENT; i++)
		assert_int_equal(again.rows[i].len, b.rows[i].len);
	assert_memory_equal(again.rows[STORE_CONTENT].data, b.rows[STORE_CONTENT].data,
			    b.rows[STORE_CONTENT].len);
	/* Batches add up. */
	assert_int_equal(store_batch_add(&again, &b), 0);
	assert_int_equal(store_batch_len(&again), 2 * store_batch_len(&b));
	store_batch_release(&b);
	store_batch_release(&again);
	base_buf_release(&file);
}

static void test_empty(void **state)
{
	struct store_batch b = { 0 }, again = { 0 };
	struct base_buf file = { 0 };

	(void)state;
	assert_int_equal(store_batch_format(&b, &file), 0);
	assert_int_equal(store_batch_parse(file.data, file.len, &again, NULL), 0);
	assert_int_equal(store_batch_len(&again), 0);
	store_batch_release(&again);
	base_buf_release(&file);
}

static void check_refused(const void *data, size_t len, int code)
{
	struct store_batch b;
	struct base_err err = { 0 };

	assert_int_equal(store_batch_parse(data, len, &b, &err), code);
	assert_int_equal(store_batch_len(&b), 0);
	assert_true(err.text[0] != 0);
}

static void test_bad(void **state)
{
	struct store_batch b = { 0 };
	struct base_buf file = { 0 };
	uint8_t *copy;

	(void)state;
	put_content(&b, "one");
	assert_int_equal(store_batch_format(&b, &file), 0);
	copy = malloc(file.len);
	assert_non_null(copy);
	memcpy(copy, file.data, file.len);
	for (size_t cut = 0; cut < file.len; cut++)
		check_refused(copy, cut, cut < 40 ? -DCPI_EFORMAT : -DCPI_ECHECKSUM);
	copy[7] = '3';
	check_refused(copy, file.len, -DCPI_EVERSION);
	copy[7] = '2';
	copy[file.len - 1] ^= 1;
	check_refused(copy, file.len, -DCPI_ECHECKSUM);
	copy[0] = 'X';
	check_refused(copy, file.len, -DCPI_EFORMAT);
	free(copy);
	base_buf_release(&file);
	store_batch_release(&b);
}

/* A batch with a right checksum whose rows are none: of a hostile machine. */
static void test_bad_rows(void **state)
{
	struct store_batch b = { 0 };
	struct base_buf file = { 0 };

	(void)state;
	put_content(&b, "one");
	b.rows[STORE_CONTENT].len--;
	assert_int_equal(store_batch_format(&b, &file), 0);
	check_refused(file.data, file.len, -DCPI_EFORMAT);
	store_batch_release(&b);
	base_buf_release(&file);
}

static void put_totals(struct store_batch *b, uint32_t epoch, const char *platform, uint64_t ver,
		       size_t nr, size_t counts)
{
	struct base_buf *row = &b->rows[STORE_TOTALS];

	store_put_text(row, "cycles");
	store_put_text(row, "");
	base_buf_append_le(row, epoch, 4);
	store_put_text(row, platform);
	base_buf_append_le(row, ver, 8);
	base_buf_append_le(row, 62000, 8);
	base_buf_append_le(row, 1000000, 4);
	base_buf_append_le(row, 0, 8);
	base_buf_append_leb128(row, nr);
	for (size_t i = 0; i < nr; i++)
		base_buf_append_le(row, i, 8);
	base_buf_append_leb128(row, counts);
	for (size_t i = 0; i < counts; i++)
		assert_int_equal(base_buf_append_le(row, 1, 8), 0);
}

static void check_whole(struct store_batch *b, int code)
{
	struct store_batch again;
	struct base_buf file = { 0 };

	assert_int_equal(store_batch_format(b, &file), 0);
	assert_int_equal(store_batch_parse(file.data, file.len, &again, NULL), code);
	store_batch_release(&again);
	store_batch_release(b);
	base_buf_release(&file);
}

/* Rows that would make questions fail, or rows of other machines disappear, are refused. */
static void test_hostile_rows(void **state)
{
	struct store_batch b = { 0 };

	(void)state;
	put_totals(&b, 1000, "box", 1, 2, 2);
	put_totals(&b, 1000, "box", 1, 0, 0);
	check_whole(&b, 0);
	put_totals(&b, 1000, "box", 1, 2, 1); /* counts that fit no routines */
	check_whole(&b, -DCPI_EFORMAT);
	put_totals(&b, 1000, "box", 1, 1, 1);
	put_totals(&b, 1000, "other", 1, 1, 1);
	check_whole(&b, -DCPI_EFORMAT);
	put_totals(&b, 1000, "box", 1, 1, 1);
	put_totals(&b, 1060, "box", 1, 1, 1);
	check_whole(&b, -DCPI_EFORMAT);
	put_totals(&b, 1000, "box", UINT64_MAX, 1, 1); /* the newest for ever */
	check_whole(&b, -DCPI_EFORMAT);
	put_content(&b, "one");
	b.rows[STORE_CONTENT].data[0] ^= 1; /* another's key */
	check_whole(&b, -DCPI_EFORMAT);
}

/* An image's row with so many symbols; @wrong is added to its key. */
static void put_image(struct store_batch *b, const char *kind, uint64_t ver, size_t nr,
		      uint8_t wrong)
{
	struct base_buf *row = &b->rows[STORE_IMAGE];
	const struct base_id id = { .len = 2, .bytes = { 0xab, 0xcd } };
	struct store_key key;
	void *zeros;

	store_file_key(kind, &id, "", "/bin/true", &key);
	key.bytes[0] = (uint8_t)(key.bytes[0] + wrong);
	base_buf_append(row, &key, sizeof(key));
	base_buf_append_le(row, ver, 8);
	store_put_text(row, kind);
	store_put_text(row, "abcd");
	store_put_text(row, "/bin/true");
	store_put_text(row, "");
	store_put_text(row, "true");
	store_put_text(row, "");
	base_buf_extend(row, STORE_KEY + 4, &zeros);
	for (size_t i = 0; i < 3; i++) {
		base_buf_append_leb128(row, nr);
		assert_int_equal(base_buf_extend(row, nr * (i ? 8 : 1), &zeros), 0);
	}
}

/* Rows of another machine's images, for ever newer or too large to be read, are refused. */
static void test_hostile_images(void **state)
{
	const uint64_t now = (uint64_t)time(NULL) * 1000000000;
	struct store_batch b = { 0 };

	(void)state;
	put_image(&b, "file", 4, 3, 0);
	put_image(&b, "kernel", STORE_CONTENT_MAX, 0, 0);
	put_image(&b, profdb_kind_name(PROFDB_DYNAMIC), now, 3,
		  1); /* its key is of its machine's name too */
	check_whole(&b, 0);
	put_image(&b, "file", 4, 3, 1);
	check_whole(&b, -DCPI_EFORMAT);
	put_image(&b, "file", now, 3, 0);
	check_whole(&b, -DCPI_EFORMAT);
	put_image(&b, "file", 4, STORE_SYMBOLS_MAX, 0);
	check_whole(&b, 0);
	put_image(&b, "file", 4, STORE_SYMBOLS_MAX + 1, 0);
	check_whole(&b, -DCPI_EFORMAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_back),	     cmocka_unit_test(test_empty),
		cmocka_unit_test(test_bad),	     cmocka_unit_test(test_bad_rows),
		cmocka_unit_test(test_hostile_rows), cmocka_unit_test(test_hostile_images),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
