/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of perf's that were cut, lie, or are too much: refused by name, place and cause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <zstd.h>

#include <cmocka.h>

#include "perfdata_file.h"

#define USER PERF_RECORD_MISC_USER

static struct base_buf f;
static struct replayed out;

static void forget(void)
{
	free(out.text);
	out = (struct replayed){ 0 };
}

static int setup(void **state)
{
	(void)state;
	base_buf_clear(&f);
	forget();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	base_buf_release(&f);
	forget();
	return 0;
}

static void expect(int code, const char *text)
{
	forget();
	replay_bytes(&f, &out);
	if (out.r != -code || !strstr(out.err.text, text))
		fail_msg("%d '%s' is not %d '%s'", out.r, out.err.text, -code, text);
}

/* ---- files in full form ---------------------------------------------------------------------- */

/* Where what stands in file_write's files. */
enum { HEAD = 104, ATTR = 144, IDS = HEAD, ATTRS = HEAD + 8, DATA = ATTRS + ATTR };

/* One event with one id, one sample, a feature with the host's name behind. */
static void file_write(void)
{
	struct perf_event_attr a = file_attr(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 100);
	size_t data_len = 8 + 5 * 8;

	base_buf_clear(&f);
	base_buf_append(&f, "PERFILE2", 8);
	put(&f, HEAD, 8);
	put(&f, ATTR, 8);
	put(&f, ATTRS, 8);
	put(&f, ATTR, 8);
	put(&f, DATA, 8);
	put(&f, data_len, 8);
	put(&f, 0, 8);
	put(&f, 0, 8);
	put(&f, 1u << PERFDATA_FEAT_HOSTNAME | 1u << PERFDATA_FEAT_EVENT_DESC, 8);
	for (int i = 0; i < 3; i++)
		put(&f, 0, 8);
	put(&f, 11, 8);
	a.size = ATTR - 16;
	base_buf_append(&f, &a, ATTR - 16);
	put(&f, IDS, 8);
	put(&f, 8, 8);
	put_sample(&f, USER, 0x401000, 7, 10, 11, 100);
	put(&f, DATA + data_len + 32, 8);
	put(&f, 8, 8);
	put(&f, DATA + data_len + 40, 8);
	put(&f, 8, 8);
	put(&f, 4, 4);
	base_buf_append(&f, "box", 4);
	put(&f, 0, 4);
	put(&f, 0, 4);
}

static void set(size_t at, uint64_t v, size_t len)
{
	memcpy(f.data + at, &v, len);
}

static void good_files_are_good(void **state)
{
	(void)state;
	file_write();
	replay_bytes(&f, &out);
	assert_string_equal(out.err.text, "");
	assert_string_equal(out.text, "count t=10 pid=7 addr=0x401000\n");
	assert_string_equal(out.describe, "replay: 'x', by perf unknown on box");
	assert_string_equal(out.events[0].name, "cycles");
}

static void bad_heads_are_refused(void **state)
{
	static const struct {
		size_t at;
		uint64_t value;
		size_t len;
		int code;
		const char *want;
	} bad[] = {
		{ 0, 'X', 1, DCPI_EFORMAT, "cannot replay 'x': not a recorded stream" },
		{ 8, 8, 8, DCPI_EFORMAT, "a head of 8 bytes" },
		{ 16, 0, 8, DCPI_EFORMAT, "144 bytes of events of 0 each" },
		{ 16, 79, 8, DCPI_EFORMAT, "144 bytes of events of 79 each" },
		{ 16, UINT64_MAX, 8, DCPI_EFORMAT, "of 18446744073709551615 each" },
		{ 24, UINT64_MAX - 7, 8, DCPI_EFORMAT, "144 bytes of events" },
		{ 24, 1 << 20, 8, DCPI_EFORMAT, "144 bytes of events" },
		{ 32, ATTR * 100, 8, DCPI_EFORMAT, "14400 bytes of events" },
		{ 32, 0, 8, DCPI_EFORMAT, "no events" },
		{ 40, 0, 8, DCPI_EFORMAT, "bytes of records do not fit" },
		{ 40, UINT64_MAX, 8, DCPI_EFORMAT, "bytes of records do not fit" },
		{ 48, UINT64_MAX, 8, DCPI_EFORMAT, "bytes of records do not fit" },
		{ 72, 1u << PERFDATA_FEAT_DIR_FORMAT, 8, DCPI_EUNSUPPORTED, "--threads" },
		{ DATA - 16, UINT64_MAX, 8, DCPI_EFORMAT, "ids lie outside the file" },
		{ DATA - 8, 9, 8, DCPI_EFORMAT, "ids lie outside the file" },
		{ DATA - 8, UINT64_MAX - 7, 8, DCPI_EFORMAT, "ids lie outside the file" },
		{ DATA + 48, UINT64_MAX, 8, DCPI_EFORMAT, "feature 3 lies outside the file" },
		{ DATA + 56, 1 << 30, 8, DCPI_EFORMAT, "feature 3 lies outside the file" },
		{ DATA + 80, 5, 4, DCPI_EFORMAT, "feature 3: malformed data" },
		{ DATA + 88, UINT32_MAX, 4, DCPI_EFORMAT, "feature 12: malformed data" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		file_write();
		set(bad[i].at, bad[i].value, bad[i].len);
		expect(bad[i].code, bad[i].want);
		assert_string_equal(out.text, "");
	}
	file_write();
	memcpy(f.data, "2ELIFREP", 8);
	expect(DCPI_EUNSUPPORTED, "of the other byte order");
	assert_non_null(strstr(out.err.hint, "that order"));
	memcpy(f.data, "PERFFILE", 8);
	expect(DCPI_EVERSION, "of the first version");
}

/* Wherever a file ends: an error, or all that stood before (its features do not matter then). */
static void cut_files_are_refused(void **state)
{
	(void)state;
	for (size_t len = 1; len < DATA + 48; len++) {
		file_write();
		f.len = len;
		forget();
		replay_bytes(&f, &out);
		if (out.r >= 0)
			fail_msg("%zu bytes are no error", len);
		assert_non_null(strstr(out.err.text, "cannot replay 'x': "));
	}
	file_write();
	f.len = DATA + 47;
	expect(DCPI_ETRUNCATED, "cannot replay 'x': offset 256: the file ends in the midst");
	f.len = DATA + 48;
	expect(DCPI_ETRUNCATED, "the file ends in the midst"); /* no table of features */
}

/* perf writes its head last. */
static void unfinished_files_are_read_to_their_end(void **state)
{
	(void)state;
	file_write();
	set(48, 0, 8);
	f.len = DATA;
	put_sample(&f, USER, 0x1, 7, 10, 11, 1);
	put_sample(&f, USER, 0x2, 7, 11, 11, 1);
	replay_bytes(&f, &out);
	assert_string_equal(out.err.text, "");
	assert_string_equal(out.text, "count t=10 pid=7 addr=0x1\ncount t=11 pid=7 addr=0x2\n");
	assert_non_null(strstr(out.describe, ", unfinished"));
	f.len -= 3;
	expect(DCPI_ETRUNCATED, "the file ends in the midst");
	assert_string_equal(out.text, "count t=10 pid=7 addr=0x1\n");
}

/* ---- records --------------------------------------------------------------------------------- */

static void bad_records_end_a_replay(void **state)
{
	static const struct {
		uint32_t type;
		uint16_t size;
		int code;
		const char *want;
	} bad[] = {
		{ PERF_RECORD_SAMPLE, 0, DCPI_EFORMAT, "a record of 0 bytes" },
		{ PERF_RECORD_SAMPLE, 7, DCPI_EFORMAT, "a record of 7 bytes" },
		{ PERF_RECORD_SAMPLE, 65535, DCPI_ETRUNCATED, "the file ends in the midst" },
		{ PERFDATA_ATTR, 72, DCPI_EFORMAT, "an event among the records" },
		{ PERFDATA_TRACING_DATA, 8, DCPI_EFORMAT, "too short for its kind" },
		{ PERFDATA_TRACING_DATA, 16, DCPI_ETRUNCATED, "the file ends in the midst" },
		{ PERFDATA_AUXTRACE, 12, DCPI_EFORMAT, "too short for its kind" },
		{ PERFDATA_AUXTRACE, 16, DCPI_EFORMAT, "bytes that follow it do not fit" },
		{ PERFDATA_FEATURE, 8, DCPI_EFORMAT, "a record of kind 80: malformed data" },
		{ PERFDATA_EVENT_UPDATE, 16, DCPI_EFORMAT, "a record of kind 78" },
		{ PERFDATA_BUILD_ID, 16, DCPI_EFORMAT, "a record of kind 67" },
		{ PERFDATA_COMPRESSED, 16, DCPI_EFORMAT, "cannot be unpacked" },
		{ PERFDATA_COMPRESSED2, 12, DCPI_EFORMAT, "packed bytes do not fit" },
		{ PERFDATA_COMPRESSED2, 16, DCPI_EFORMAT, "packed bytes do not fit" },
	};
	char want[200];
	size_t at;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		base_buf_clear(&f);
		put_two_events(&f);
		put_sample(&f, USER, 0x1, 7, 10, 11, 1);
		at = f.len;
		put(&f, bad[i].type, 4);
		put(&f, 0, 2);
		put(&f, bad[i].size, 2);
		for (int k = 0; k < 8; k++)
			put(&f, 0xffffffffffffffff, 8);
		snprintf(want, sizeof(want), "cannot replay 'x': offset %zu: ", at);
		expect(bad[i].code, want);
		expect(bad[i].code, bad[i].want);
		assert_string_equal(out.text, "count t=10 pid=7 addr=0x1\n");
	}
}

static void too_much_is_refused(void **state)
{
	struct perf_event_attr a = file_attr(PERF_TYPE_RAW, 1, 100);
	char want[80], path[16];

	(void)state;
	put_pipe_head(&f);
	for (uint64_t id = 1; id <= DRIVER_NR_EVENTS; id++)
		put_attr(&f, &a, id);
	replay_bytes(&f, &out);
	assert_int_equal(out.r, 0);
	/* At once: the rest of the file is not looked at. */
	snprintf(want, sizeof(want), "cannot replay 'x': offset %zu: more than 16 events", f.len);
	put_attr(&f, &a, 99);
	put_mark(&f, PERFDATA_ATTR);
	expect(DCPI_ELIMIT, want);

	base_buf_clear(&f);
	put_two_events(&f);
	put_numbers(&f, PERF_RECORD_LOST, 0, 11, UINT64_MAX, 2, 11, 11);
	put_numbers(&f, PERF_RECORD_LOST, 0, 11, 1, 2, 11, 11);
	expect(DCPI_EOVERFLOW, "lost records: value does not fit");

	base_buf_clear(&f);
	put_pipe_head(&f);
	put_attr(&f, &a, 1);
	a.sample_type &= ~(uint64_t)PERF_SAMPLE_ID;
	put_attr(&f, &a, 2);
	expect(DCPI_EFORMAT, "samples do not tell of which event they are");

	base_buf_clear(&f);
	put_two_events(&f);
	for (unsigned int i = 0; i <= PERFDATA_NR_BUILD_IDS; i++) {
		snprintf(path, sizeof(path), "/%u", i % PERFDATA_NR_BUILD_IDS);
		put_build_id(&f, USER, path, 20);
	}
	forget();
	replay_bytes(&f, &out);
	assert_int_equal(out.r, 0);
	put_build_id(&f, USER, "/one more", 20);
	expect(DCPI_ELIMIT, "a record of kind 67: limit exceeded");
}

/* Else each look-up could have all ids sorted again. */
static void events_stand_before_what_names_them(void **state)
{
	struct perf_event_attr a = file_attr(PERF_TYPE_RAW, 1, 100);

	(void)state;
	put_two_events(&f);
	rec_begin(&f, PERFDATA_EVENT_UPDATE, 0);
	put(&f, 2, 8);
	put(&f, 11, 8);
	put_text(&f, "faults");
	rec_end(&f);
	put_attr(&f, &a, 13);
	expect(DCPI_EFORMAT, "an event among the records");
}

/* ---- packed records -------------------------------------------------------------------------- */

/* @from, packed so that the reader has all of it at once, in records of at most @piece bytes. */
static void put_packed(ZSTD_CStream *z, const struct base_buf *from, size_t piece)
{
	static uint8_t packed[1 << 20];
	ZSTD_inBuffer in = { from->data, from->len, 0 };
	ZSTD_outBuffer to = { packed, sizeof(packed), 0 };

	while (ZSTD_compressStream2(z, &to, &in, ZSTD_e_flush))
		;
	for (size_t at = 0; at < to.pos; at += piece) {
		rec_begin(&f, PERFDATA_COMPRESSED, 0);
		base_buf_append(&f, packed + at, to.pos - at < piece ? to.pos - at : piece);
		rec_end(&f);
	}
}

static void packed_records_may_be_cut_anywhere(void **state)
{
	struct base_buf rows = { 0 };
	ZSTD_CStream *z = ZSTD_createCStream();

	(void)state;
	for (size_t piece = 1; piece < 60; piece += 7) {
		base_buf_clear(&f);
		put_two_events(&f);
		ZSTD_CCtx_reset(z, ZSTD_reset_session_only);
		for (uint64_t round = 0; round < 3; round++) {
			base_buf_clear(&rows);
			put_sample(&rows, USER, round, 7, 10 + round, 11, 1);
			put_sample(&rows, USER, round + 16, 7, 20 + round, 11, 1);
			put_packed(z, &rows, piece);
			put_mark(&f, PERFDATA_FINISHED_ROUND);
		}
		forget();
		replay_bytes(&f, &out);
		assert_string_equal(out.err.text, "");
		assert_int_equal(out.stats.received[0], 6);
		assert_non_null(strstr(out.text, "count t=22 pid=7 addr=0x12\n"));
	}
	/* The last one is cut. */
	rows.len -= 8;
	put_packed(z, &rows, 100);
	expect(DCPI_ETRUNCATED, "packed records end in the midst");
	ZSTD_freeCStream(z);
	base_buf_release(&rows);
}

static void packs_within_packs_are_refused(void **state)
{
	struct base_buf rows = { 0 };
	ZSTD_CStream *z = ZSTD_createCStream();

	(void)state;
	put_two_events(&f);
	put_mark(&rows, PERFDATA_COMPRESSED);
	put_packed(z, &rows, 1000);
	expect(DCPI_EFORMAT, "a record of kind 81 within packed ones");
	ZSTD_freeCStream(z);
	base_buf_release(&rows);
}

/* A few bytes that become very many records. */
static void bombs_are_bounded(void **state)
{
	struct base_buf rows = { 0 };
	ZSTD_CStream *z = ZSTD_createCStream();

	(void)state;
	put_two_events(&f);
	while (rows.len <= PERFDATA_UNPACKED_MAX) {
		rec_begin(&rows, 63, 0);
		base_buf_extend(&rows, 65528 - 8, &(void *){ NULL });
		rec_end(&rows);
	}
	put_packed(z, &rows, 65000);
	assert_true(f.len < 65536);
	expect(DCPI_ELIMIT, "unpacks to more than 128 MiB");
	ZSTD_freeCStream(z);
	base_buf_release(&rows);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(good_files_are_good),
		TEST(bad_heads_are_refused),
		TEST(cut_files_are_refused),
		TEST(unfinished_files_are_read_to_their_end),
		TEST(bad_records_end_a_replay),
		TEST(too_much_is_refused),
		TEST(events_stand_before_what_names_them),
		TEST(packed_records_may_be_cut_anywhere),
		TEST(packs_within_packs_are_refused),
		TEST(bombs_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
