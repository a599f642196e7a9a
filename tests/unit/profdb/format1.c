/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "scratch.h"

static struct profdb_profile *parse(const void *data, size_t len)
{
	struct profdb_profile *p = NULL;
	struct base_err err = { 0 };

	if (profdb_profile_parse(data, len, &p, &err) < 0)
		fail_msg("%s", err.text);
	return p;
}

static void print(const struct profdb_profile *p, struct base_buf *out)
{
	struct base_err err = { 0 };

	if (profdb_profile_format(p, PROFDB_FORMAT_1, 0, out, &err) < 0)
		fail_msg("%s", err.text);
}

static void assert_text(const struct base_buf *buf, const char *text)
{
	assert_non_null(memmem(buf->data, buf->len, text, strlen(text)));
}

static struct profdb_profile *sample(void)
{
	struct base_id image = { .len = 20, .bytes = { 0, 1, 0xfe, 0xff } };
	struct profdb_profile *p = profdb_profile_new(PROFDB_DYNAMIC, &image, "calc-1.dyn");

	profdb_profile_event_add(p, "cycles", 62000);
	profdb_profile_event_add(p, "a\\b", UINT64_MAX);
	profdb_profile_event_set_enabled(p, 1, 0.125);
	profdb_profile_set_word(p, "epoch", "202611200754");
	profdb_profile_set_word(p, "note", "one");
	profdb_profile_set_word(p, "platform", "box");
	profdb_profile_add(p, UINT64_MAX, 0, 1);
	profdb_profile_add(p, 0, 1, UINT64_C(1) << 61);
	profdb_profile_add(p, 127, 0, 127);
	profdb_profile_add(p, 300, 0, 128);
	profdb_profile_add(p, 300, 1, 3);
	return p;
}

static void test_what_is_written_is_read(void **state)
{
	struct profdb_profile *p = sample(), *q;
	struct base_buf buf = { 0 }, again = { 0 };
	const struct profdb_entry *e;

	(void)state;
	print(p, &buf);
	q = parse(buf.data, buf.len);
	assert_int_equal(profdb_profile_kind(q), PROFDB_DYNAMIC);
	assert_true(base_id_equal(profdb_profile_image(p), profdb_profile_image(q)));
	assert_string_equal(profdb_profile_path(q, 0), "calc-1.dyn");
	assert_string_equal(profdb_profile_word(q, "epoch"), "202611200754");
	assert_string_equal(profdb_profile_word(q, "note"), "one");
	assert_string_equal(profdb_profile_event(q, 1)->name, "a\\b");
	assert_true(profdb_profile_event(q, 1)->period == UINT64_MAX);
	assert_true(profdb_profile_event(q, 1)->enabled == 0.125);
	assert_int_equal(profdb_profile_event(q, 0)->sum, 256);
	assert_int_equal(profdb_profile_nr_entries(q), 4);
	e = profdb_profile_entry(q, 2);
	assert_int_equal(e->off, 300);
	assert_int_equal(e->count[0], 128);
	assert_int_equal(e->count[1], 3);
	assert_true(profdb_profile_entry(q, 3)->off == UINT64_MAX);
	print(q, &again);
	assert_int_equal(buf.len, again.len);
	assert_memory_equal(buf.data, again.data, buf.len);
	base_buf_release(&buf);
	base_buf_release(&again);
	profdb_profile_free(p);
	profdb_profile_free(q);
}

static void test_header_is_text_and_aligned(void **state)
{
	struct profdb_profile *p = sample();
	struct base_buf buf = { 0 };
	const uint8_t *end;

	(void)state;
	print(p, &buf);
	assert_memory_equal(buf.data, "version dcpi-dynamic 1\n", 23);
	assert_text(&buf, "\nkind dynamic\n");
	assert_text(&buf, "\npath calc-1.dyn\n");
	assert_text(&buf, "\nevent cycles period 62000 enabled 1.000000\n");
	assert_text(&buf, "\nevent a\\\\b period 18446744073709551615 enabled 0.125000\n");
	end = memmem(buf.data, buf.len, "\nsamples", 8);
	assert_non_null(end);
	end = memchr(end + 1, '\n', 16);
	assert_int_equal((end + 1 - buf.data) % 8, 0);
	assert_int_equal(buf.len % 8, 0);
	base_buf_release(&buf);
	profdb_profile_free(p);
}

static void test_any_path_survives(void **state)
{
	static const char *const paths[] = {
		"/a b",		" /lead", "/trail ",	       "/new\nline", "/tab\t",
		"/back\\slash", "/\\x41", "/\x7f\x01\x1b[31m", "samples",    "/\xc3\xa9\xff"
	};
	enum { N = sizeof(paths) / sizeof(paths[0]) };
	struct profdb_profile *p = sample(), *q;
	struct base_buf buf = { 0 };

	(void)state;
	for (size_t i = 0; i < N; i++)
		profdb_profile_add_path(p, paths[i]);
	profdb_profile_set_word(p, "label", " two\nlines ");
	print(p, &buf);
	q = parse(buf.data, buf.len);
	for (size_t i = 0; i < N; i++)
		assert_string_equal(profdb_profile_path(q, i + 1), paths[i]);
	assert_string_equal(profdb_profile_word(q, "label"), " two\nlines ");
	base_buf_release(&buf);
	profdb_profile_free(p);
	profdb_profile_free(q);
}

/* Changes anything but the checksum, which is put right again. */
static void reseal(struct base_buf *buf)
{
	uint32_t crc = base_crc32c(0, buf->data, buf->len - 4);

	for (int i = 0; i < 4; i++)
		buf->data[buf->len - 4 + (size_t)i] = (uint8_t)(crc >> 8 * i);
}

static void test_no_truncation_and_no_changed_byte_passes(void **state)
{
	struct profdb_profile *p = scratch_profile("/x", 1, 2, 5), *q;
	struct base_buf buf = { 0 };

	(void)state;
	/* All that the old format asks for, so that a damaged first line might seem to be one. */
	profdb_profile_set_word(p, "epoch", "202611200754");
	profdb_profile_set_word(p, "platform", "box");
	profdb_profile_set_word(p, "tsize", "1");
	profdb_profile_set_word(p, "cpuspeed", "1");
	print(p, &buf);
	for (size_t len = 0; len < buf.len; len++)
		assert_true(profdb_profile_parse(buf.data, len, &q, NULL) < 0);
	for (size_t at = 0; at < buf.len; at++) {
		for (int x = 1; x < 256; x++) {
			buf.data[at] ^= (uint8_t)x;
			assert_true(profdb_profile_parse(buf.data, buf.len, &q, NULL) < 0);
			assert_null(q);
			buf.data[at] ^= (uint8_t)x;
		}
	}
	base_buf_append(&buf, "", 1);
	assert_true(profdb_profile_parse(buf.data, buf.len, &q, NULL) < 0);
	base_buf_release(&buf);
	profdb_profile_free(p);
}

static void test_errors_tell_what_is_wrong(void **state)
{
	struct profdb_profile *p = sample(), *q;
	struct base_buf buf = { 0 };
	struct base_err err = { 0 };

	(void)state;
	print(p, &buf);
	assert_int_equal(profdb_profile_parse(buf.data, buf.len - 8, &q, &err), -DCPI_ETRUNCATED);
	assert_int_equal(profdb_profile_parse(buf.data, 40, &q, NULL), -DCPI_ETRUNCATED);
	assert_int_equal(profdb_profile_parse("", 0, &q, NULL), -DCPI_ETRUNCATED);
	buf.data[30] ^= 1;
	assert_int_equal(profdb_profile_parse(buf.data, buf.len, &q, NULL), -DCPI_ECHECKSUM);
	buf.data[30] ^= 1;
	buf.data[21] = '2';
	reseal(&buf);
	memset(&err, 0, sizeof(err));
	assert_int_equal(profdb_profile_parse(buf.data, buf.len, &q, &err), -DCPI_EVERSION);
	assert_non_null(strstr(err.text, "dcpi-dynamic 2"));
	assert_string_equal(err.hint, "a newer DCPI wrote this profile");
	base_buf_release(&buf);
	profdb_profile_free(p);
}

/* A right checksum makes nothing right: totals and the form of numbers are checked too. */
static void test_sealed_nonsense_is_refused(void **state)
{
	struct profdb_profile *p = scratch_profile("/x", 1, 2, 5), *q;
	struct base_buf buf = { 0 };
	size_t binary;

	(void)state;
	print(p, &buf);
	binary = (size_t)((uint8_t *)memmem(buf.data, buf.len, "CNTS", 4) - buf.data);
	for (size_t at = binary; at < buf.len - 4; at++) {
		for (int x = 1; x < 256; x++) {
			buf.data[at] ^= (uint8_t)x;
			reseal(&buf);
			/* Another offset is as good as the true one; all else is bound. */
			if (profdb_profile_parse(buf.data, buf.len, &q, NULL) >= 0) {
				assert_int_equal(profdb_profile_event(q, 0)->sum, 10);
				assert_true(at == binary + 16 || at == binary + 18);
				profdb_profile_free(q);
			}
			buf.data[at] ^= (uint8_t)x;
		}
	}
	base_buf_release(&buf);
	profdb_profile_free(p);
}

/* Put a section @tag of 3 bytes before the footer. */
static void insert_section(struct base_buf *buf, const char *tag)
{
	uint8_t section[24] = { 0 };
	size_t at = (size_t)((uint8_t *)memmem(buf->data, buf->len, "FOOT", 4) - buf->data);

	memcpy(section, tag, 4);
	section[8] = 3;
	memcpy(section + 16, "abc", 3);
	base_buf_extend(buf, sizeof(section), NULL);
	memmove(buf->data + at + sizeof(section), buf->data + at, buf->len - at - sizeof(section));
	memcpy(buf->data + at, section, sizeof(section));
	reseal(buf);
}

static void test_unknown_sections(void **state)
{
	struct profdb_profile *p = sample(), *q, *copy;
	struct base_buf buf = { 0 }, again = { 0 };

	(void)state;
	print(p, &buf);
	insert_section(&buf, "path");
	insert_section(&buf, "vals");
	q = parse(buf.data, buf.len);
	print(q, &again);
	assert_int_equal(again.len, buf.len);
	assert_memory_equal(again.data, buf.data, buf.len);
	/* A merge takes them over, but cannot add up what it does not know. */
	copy = sample();
	assert_int_equal(profdb_profile_merge(copy, q), 0);
	base_buf_clear(&again);
	print(copy, &again);
	assert_text(&again, "vals");
	assert_int_equal(profdb_profile_merge(copy, q), 0);
	*(uint8_t *)memmem(buf.data, buf.len, "abc", 3) = 'x';
	reseal(&buf);
	profdb_profile_free(q);
	q = parse(buf.data, buf.len);
	assert_int_equal(profdb_profile_merge(copy, q), -DCPI_EVERSION);
	profdb_profile_free(q);
	insert_section(&buf, "path");
	assert_int_equal(profdb_profile_parse(buf.data, buf.len, &q, NULL), -DCPI_EFORMAT);
	base_buf_clear(&buf);
	print(p, &buf);
	insert_section(&buf, "PATH");
	assert_int_equal(profdb_profile_parse(buf.data, buf.len, &q, NULL), -DCPI_EVERSION);
	base_buf_release(&buf);
	base_buf_release(&again);
	profdb_profile_free(p);
	profdb_profile_free(copy);
}

/* They are searched one by one: a file of a few megabytes must not take minutes. */
static void test_not_too_many(void **state)
{
	struct profdb_profile *p = sample(), *q;
	struct base_buf buf = { 0 }, lines = { 0 };
	char tag[5] = "aaa";

	(void)state;
	print(p, &buf);
	for (int i = 0; i < 64; i++) {
		tag[0] = (char)('a' + i % 26);
		tag[3] = (char)('a' + i / 26);
		insert_section(&buf, tag);
	}
	profdb_profile_free(parse(buf.data, buf.len));
	insert_section(&buf, "zzzz");
	assert_int_equal(profdb_profile_parse(buf.data, buf.len, &q, NULL), -DCPI_ELIMIT);
	base_buf_printf(&lines, "version 0.07\n");
	for (int i = 0; i < 16385; i++)
		base_buf_printf(&lines, "a b\n");
	assert_int_equal(profdb_profile_parse(lines.data, lines.len, &q, NULL), -DCPI_ELIMIT);
	base_buf_release(&buf);
	base_buf_release(&lines);
	profdb_profile_free(p);
}

static void test_empty_profile(void **state)
{
	struct profdb_profile *p = profdb_profile_new(PROFDB_NAMED, NULL, NULL), *q;
	struct base_buf buf = { 0 };

	(void)state;
	print(p, &buf);
	assert_text(&buf, "\nimage 0\n");
	q = parse(buf.data, buf.len);
	assert_int_equal(profdb_profile_image(q)->len, 0);
	assert_int_equal(profdb_profile_nr_events(q), 0);
	assert_null(profdb_profile_path(q, 0));
	base_buf_release(&buf);
	profdb_profile_free(p);
	profdb_profile_free(q);
}

/* The example of docs/format/dcpiformat.md. */
static void test_the_page_tells_the_truth(void **state)
{
	static const uint8_t want[] = { "CNTS\0\0\0\0\5\0\0\0\0\0\0\0\x10\x02\x0f\xac\x02\0\0\0"
					"FOOT\0\0\0\0\x18\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
					"\x2e\1\0\0\0\0\0\0\1\0\0\0" };
	struct profdb_profile *p = scratch_profile("/x", 1, 0, 0);
	struct base_buf buf = { 0 };
	const uint8_t *at;

	(void)state;
	profdb_profile_add(p, 0x20, 0, 300);
	profdb_profile_add(p, 0x10, 0, 2);
	print(p, &buf);
	at = memmem(buf.data, buf.len, "CNTS", 4);
	assert_int_equal(buf.data + buf.len - at, sizeof(want) - 1 + 4);
	assert_memory_equal(at, want, sizeof(want) - 1);
	base_buf_release(&buf);
	profdb_profile_free(p);
}

/* ---- many counts ----------------------------------------------------------------------------- */

/* Like those of code: gaps and counts of any size, small ones mostly; an own sequence of numbers.
 */
static uint64_t any_number(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return *seed >> 33 & 15 ? *seed >> 60 : *seed >> (14 + (*seed >> 50) % 46);
}

static struct profdb_profile *many_counts(size_t nr, bool last)
{
	struct base_id image = { .len = 20, .bytes = { 7 } };
	struct profdb_profile *p = profdb_profile_new(PROFDB_FILE, &image, "/many");
	uint64_t seed = nr, off = 0;

	profdb_profile_event_add(p, "cycles", 62000);
	profdb_profile_event_add(p, "misses", 1000);
	for (size_t i = 0; i < nr; i++) {
		off += 1 + any_number(&seed) % (UINT64_C(1) << 40);
		profdb_profile_add(p, off, i & 1, 1 + any_number(&seed) % (UINT64_C(1) << 45));
		profdb_profile_add(p, off, 0, any_number(&seed) % 8);
	}
	if (last)
		profdb_profile_add(p, UINT64_MAX, 1, UINT64_C(1) << 62);
	return p;
}

static void assert_equal_counts(const struct profdb_profile *a, const struct profdb_profile *b)
{
	assert_int_equal(profdb_profile_nr_entries(a), profdb_profile_nr_entries(b));
	for (size_t i = 0; i < profdb_profile_nr_entries(a); i++)
		assert_memory_equal(profdb_profile_entry(a, i), profdb_profile_entry(b, i), 24);
	for (size_t i = 0; i < 2; i++)
		assert_true(profdb_profile_event(a, i)->sum == profdb_profile_event(b, i)->sum);
}

static void test_many_counts_are_dense(void **state)
{
	(void)state;
	for (size_t nr = 1500; nr < 6000; nr += 357) {
		struct profdb_profile *p = many_counts(nr, nr & 1), *q;
		struct base_buf buf = { 0 };

		print(p, &buf);
		assert_non_null(memmem(buf.data, buf.len, "CNTD", 4));
		assert_null(memmem(buf.data, buf.len, "CNTS", 4));
		q = parse(buf.data, buf.len);
		assert_equal_counts(p, q);
		base_buf_release(&buf);
		profdb_profile_free(p);
		profdb_profile_free(q);
	}
}

/* Every 16 bytes the same count: that would take less room than a reader grants. */
static void test_what_is_too_dense_stays_plain(void **state)
{
	struct profdb_profile *p = scratch_profile("/x", 1, 0, 0), *q;
	struct base_buf buf = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 20000; i++)
		profdb_profile_add(p, 16 * i, 0, 3);
	print(p, &buf);
	assert_non_null(memmem(buf.data, buf.len, "CNTS", 4));
	q = parse(buf.data, buf.len);
	assert_int_equal(profdb_profile_nr_entries(q), 20000);
	base_buf_release(&buf);
	profdb_profile_free(p);
	profdb_profile_free(q);
}

static void test_no_dense_nonsense_passes(void **state)
{
	struct profdb_profile *p = many_counts(1500, false), *q;
	struct base_buf buf = { 0 };
	uint64_t sums[2];
	size_t at;

	(void)state;
	print(p, &buf);
	for (size_t i = 0; i < 2; i++)
		sums[i] = profdb_profile_event(p, i)->sum;
	for (size_t len = 0; len < buf.len; len += 53)
		assert_true(profdb_profile_parse(buf.data, len, &q, NULL) < 0);
	at = (size_t)((uint8_t *)memmem(buf.data, buf.len, "CNTD", 4) - buf.data) + 16;
	for (; at < buf.len - 4; at += at % 16 ? 1 : 17) {
		buf.data[at] ^= (uint8_t)(1 + at % 255);
		assert_true(profdb_profile_parse(buf.data, buf.len, &q, NULL) < 0);
		reseal(&buf);
		/* Only what has the same sums is taken. */
		if (profdb_profile_parse(buf.data, buf.len, &q, NULL) >= 0) {
			for (size_t i = 0; i < 2; i++)
				assert_true(profdb_profile_event(q, i)->sum == sums[i]);
			profdb_profile_free(q);
		}
		buf.data[at] ^= (uint8_t)(1 + at % 255);
	}
	base_buf_release(&buf);
	profdb_profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_header_is_text_and_aligned),
		cmocka_unit_test(test_any_path_survives),
		cmocka_unit_test(test_no_truncation_and_no_changed_byte_passes),
		cmocka_unit_test(test_errors_tell_what_is_wrong),
		cmocka_unit_test(test_sealed_nonsense_is_refused),
		cmocka_unit_test(test_unknown_sections),
		cmocka_unit_test(test_not_too_many),
		cmocka_unit_test(test_empty_profile),
		cmocka_unit_test(test_the_page_tells_the_truth),
		cmocka_unit_test(test_many_counts_are_dense),
		cmocka_unit_test(test_what_is_too_dense_stays_plain),
		cmocka_unit_test(test_no_dense_nonsense_passes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
