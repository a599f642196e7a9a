/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows in RowBinary, the check of tables, quoting, and the statements of the schema. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "store.h"

/* The bytes that ClickHouse's RowBinary has for these values, by its documentation. */
static void test_bytes(void **state)
{
	static const uint8_t want[] = { 0x39, 0x30, 0,	  0,	0xac, 0x02, 3,	  'a',	'b', 'c',
					0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct base_buf b = { 0 };

	(void)state;
	assert_int_equal(base_buf_append_le(&b, 12345, 4), 0);
	assert_int_equal(base_buf_append_leb128(&b, 300), 0);
	assert_int_equal(store_put_text(&b, "abc"), 0);
	assert_int_equal(store_put_text(&b, NULL), 0);
	assert_int_equal(base_buf_append_le(&b, UINT64_MAX, 8), 0);
	assert_int_equal(b.len, sizeof(want));
	assert_memory_equal(b.data, want, sizeof(want));
	base_buf_release(&b);
}

static void test_back(void **state)
{
	static const uint64_t counts[] = { 0, 127, 128, 16383, 16384, 1000000 };
	struct base_buf b = { 0 };
	struct store_reader r;
	void *filler;
	size_t len;

	(void)state;
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(base_buf_append_leb128(&b, counts[i]), 0);
	/* A count is believed only where so many elements could follow. */
	assert_int_equal(base_buf_extend(&b, 1000000, &filler), 0);
	r = (struct store_reader){ b.data, b.data + b.len, false };
	for (size_t i = 0; i < 6; i++) {
		size_t got = store_get_count(&r, 1);

		assert_false(r.bad);
		assert_int_equal(got, counts[i]);
	}
	r = (struct store_reader){ b.data, b.data + b.len - 1, false };
	for (size_t i = 0; i < 5; i++)
		store_get_count(&r, 1);
	assert_false(r.bad);
	assert_int_equal(store_get_count(&r, 1), 0);
	assert_true(r.bad);
	assert_int_equal(store_get_number(&r, 8), 0);
	assert_null(store_get_string(&r, &len));
	base_buf_release(&b);
}

static void test_strings(void **state)
{
	struct base_buf b = { 0 };
	struct store_reader r;
	const char *text;
	size_t len;

	(void)state;
	assert_int_equal(store_put_string(&b, "x\0y", 3), 0);
	r = (struct store_reader){ b.data, b.data + b.len, false };
	text = store_get_string(&r, &len);
	assert_int_equal(len, 3);
	assert_memory_equal(text, "x\0y", 3);
	assert_true(r.at == r.end && !r.bad);
	/* Cut anywhere, it is bad. */
	for (size_t cut = 0; cut < b.len; cut++) {
		r = (struct store_reader){ b.data, b.data + cut, false };
		store_get_string(&r, &len);
		assert_true(r.bad);
	}
	base_buf_release(&b);
}

/* A varint of more than 64 bits. */
static void test_long_count(void **state)
{
	static const uint8_t bytes[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					 0xff, 0xff, 0xff, 0x02, 0 };
	struct store_reader r = { bytes, bytes + sizeof(bytes), false };

	(void)state;
	assert_int_equal(store_get_count(&r, 1), 0);
	assert_true(r.bad);
}

static void put_routine(struct base_buf *b, const char *symbol)
{
	static const uint8_t key[STORE_KEY];

	assert_int_equal(base_buf_append_le(b, 77, 8), 0);
	assert_int_equal(base_buf_append(b, key, sizeof(key)), 0);
	assert_int_equal(store_put_text(b, symbol), 0);
	assert_int_equal(base_buf_append_le(b, 16, 8), 0);
	assert_int_equal(base_buf_append_le(b, 8, 8), 0);
	assert_int_equal(base_buf_append_le(b, 1, 8), 0);
}

static void test_check(void **state)
{
	const struct store_table *t = &store_tables[STORE_ROUTINE];
	struct base_buf b = { 0 };

	(void)state;
	assert_int_equal(store_rows_check(t, "", 0, NULL), 0);
	put_routine(&b, "main");
	put_routine(&b, "'; DROP TABLE prof; --");
	assert_int_equal(store_rows_check(t, b.data, b.len, NULL), 2);
	for (size_t cut = 1; cut < b.len; cut++) {
		struct base_buf one = { 0 };

		put_routine(&one, "main");
		assert_int_equal(store_rows_check(t, b.data, cut, NULL),
				 cut == one.len ? 1 : -DCPI_EFORMAT);
		base_buf_release(&one);
	}
	base_buf_release(&b);
}

/* Every type of every column is one that the check knows: rows of nothing but zeros pass. */
static void test_types(void **state)
{
	static const uint8_t zeros[512];

	(void)state;
	for (size_t i = 0; i < STORE_NR_TABLES; i++) {
		size_t len = 0;

		for (const struct store_column *c = store_tables[i].columns; c->name; c++)
			len += strcmp(c->type, "UInt64") == 0 ? 8
			       : strcmp(c->type, "UInt32") == 0 || strcmp(c->type, "DateTime") == 0
				       ? 4
			       : strcmp(c->type, "FixedString(16)") == 0 ? 16
			       : strcmp(c->type, "String") == 0 ||
					       strncmp(c->type, "Array(", 6) == 0
				       ? 1
				       : 1000;
		assert_true(len < sizeof(zeros));
		assert_int_equal(store_rows_check(&store_tables[i], zeros, len, NULL), 1);
		assert_int_equal(store_rows_check(&store_tables[i], zeros, len + 1, NULL),
				 -DCPI_EFORMAT);
	}
}

static void test_quote(void **state)
{
	static const char hostile[] = "a'b\\c\n\xff`\"; DROP";
	struct base_buf b = { 0 };

	(void)state;
	assert_int_equal(store_quote(&b, hostile, sizeof(hostile) - 1), 0);
	assert_string_equal((char *)b.data, "'a\\x27b\\x5cc\\x0a\\xff`\"; DROP'");
	base_buf_release(&b);
}

static void test_schema(void **state)
{
	struct base_buf plain = { 0 }, cluster = { 0 };
	const struct store_schema_how how = { .cluster = "dcpi",
					      .replicas = "/clickhouse/tables",
					      .ttl = true };
	size_t nr = 0;

	(void)state;
	assert_int_equal(store_schema("d", &(const struct store_schema_how){ 0 }, &plain), 0);
	for (size_t at = 0; at < plain.len; at += strlen((char *)plain.data + at) + 1, nr++)
		assert_null(strstr((char *)plain.data + at, "_here"));
	assert_int_equal(nr, STORE_NR_TABLES + 2);
	assert_int_equal(store_schema("d", &how, &cluster), 0);
	assert_string_equal(
		(char *)cluster.data,
		"CREATE TABLE IF NOT EXISTS prof_here (event String, image FixedString(16), "
		"epoch DateTime, platform String, file String, ver UInt64, period UInt64, "
		"enabled UInt32, label String, samples UInt64, off Array(UInt32), "
		"n Array(UInt16), lo Array(UInt16), hi Array(UInt16), nlo Array(UInt8), "
		"nhi Array(UInt8), far Array(UInt64), nfar Array(UInt64)) ENGINE = "
		"ReplicatedReplacingMergeTree("
		"'/clickhouse/tables/{shard}/d/prof', '{replica}', ver) PARTITION BY toDate(epoch) "
		"ORDER BY (event, image, platform, epoch, file) TTL toDate(epoch) + 30 "
		"SETTINGS index_granularity = 1024");
	base_buf_release(&plain);
	base_buf_release(&cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),	cmocka_unit_test(test_back),
		cmocka_unit_test(test_strings), cmocka_unit_test(test_long_count),
		cmocka_unit_test(test_check),	cmocka_unit_test(test_types),
		cmocka_unit_test(test_quote),	cmocka_unit_test(test_schema),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
