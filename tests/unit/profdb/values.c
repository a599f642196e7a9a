/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "scratch.h"

static const struct base_id libc = { .len = 2, .bytes = { 0xcd, 7 } };

static void print(const struct profdb_values *v, struct base_buf *out)
{
	struct base_err err = { 0 };

	base_buf_clear(out);
	if (profdb_values_format(v, out, &err) < 0)
		fail_msg("%s", err.text);
}

static struct profdb_values *sample(void)
{
	const struct base_id image = { .len = 2, .bytes = { 0xab, 1 } };
	struct profdb_values *v = profdb_values_new(PROFDB_FILE, &image, "/bin/pro\ng", "vp-addr");
	struct profdb_context c[2] = { { 0 } };

	assert_non_null(v);
	profdb_values_seed(v, 1);
	assert_int_equal(profdb_values_image_add(v, &libc, "/lib/libc so.6"), 1);
	assert_int_equal(profdb_values_image_add(v, NULL, "unknown"), 2);
	assert_int_equal(profdb_values_image_add(v, &libc, "/other/name"), 1);
	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(profdb_values_add(v, 64, NULL, i % 3 ? UINT64_MAX : i), 0);
	c[0] = (struct profdb_context){ 2, 0x20 };
	c[1] = (struct profdb_context){ 1, UINT64_MAX };
	assert_int_equal(profdb_values_add(v, 64, c, 5), 0);
	c[0].off = 0x10;
	assert_int_equal(profdb_values_add(v, 64, c, 0), 0);
	assert_int_equal(profdb_values_add(v, 8, NULL, 1), 0);
	c[0].image = 3;
	assert_int_equal(profdb_values_add(v, 8, c, 1), -EINVAL);
	c[0] = (struct profdb_context){ 0, 1 };
	assert_int_equal(profdb_values_add(v, 8, c, 1), -EINVAL);
	return v;
}

static void test_what_is_written_is_read(void **state)
{
	struct profdb_values *v = sample(), *w = NULL;
	struct base_buf buf = { 0 }, again = { 0 };
	struct base_err err = { 0 };
	struct base_id id;

	(void)state;
	print(v, &buf);
	if (profdb_values_parse(buf.data, buf.len, &w, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(profdb_values_profiler(w), "vp-addr");
	assert_string_equal(profdb_profile_path(profdb_values_header(w), 0), "/bin/pro\ng");
	assert_null(profdb_profile_word(profdb_values_header(w), "profiler"));
	assert_string_equal(profdb_values_image(w, 1, &id), "/lib/libc so.6");
	assert_true(base_id_equal(&id, &libc));
	assert_string_equal(profdb_values_image(w, 2, &id), "unknown");
	assert_int_equal(id.len, 0);
	assert_null(profdb_values_image(w, 3, &id));
	assert_null(profdb_values_image(w, 0, &id));
	assert_int_equal(profdb_values_nr(w), 4);
	assert_null(profdb_values_at(w, 4));
	for (size_t i = 0; i < 4; i++)
		assert_memory_equal(profdb_values_at(v, i), profdb_values_at(w, i),
				    sizeof(struct profdb_hotlist));
	assert_true(profdb_values_at(w, 1)->thld > 1);
	assert_true(profdb_values_at(w, 1)->v[0].value == UINT64_MAX);
	assert_int_equal(profdb_values_at(w, 2)->context[0].off, 0x10);
	assert_int_equal(profdb_values_at(w, 3)->context[0].off, 0x20);
	assert_true(profdb_values_at(w, 3)->context[1].off == UINT64_MAX);
	print(w, &again);
	assert_int_equal(again.len, buf.len);
	assert_memory_equal(again.data, buf.data, buf.len);
	base_buf_release(&buf);
	base_buf_release(&again);
	profdb_values_free(v);
	profdb_values_free(w);
}

/* Callers keep their images, under whatever numbers. */
static void test_merge_finds_the_callers(void **state)
{
	struct profdb_values *v = sample(), *w = sample(), *other;
	struct profdb_context c = { 0 };
	const struct profdb_hotlist *l;
	struct base_id id;

	(void)state;
	profdb_values_free(w);
	w = profdb_values_new(PROFDB_FILE, NULL, "/a", "vp-addr");
	assert_int_equal(profdb_values_image_add(w, NULL, "unknown"), 1);
	assert_int_equal(profdb_values_image_add(w, &libc, "/lib/libc so.6"), 2);
	c = (struct profdb_context){ 1, 0x20 };
	profdb_values_add(w, 64, (struct profdb_context[2]){ c, { 2, UINT64_MAX } }, 5);
	assert_int_equal(profdb_values_merge(v, w), 0);
	assert_int_equal(profdb_values_nr(v), 4);
	l = profdb_values_at(v, 3);
	assert_int_equal(l->v[0].counting, 2);
	assert_string_equal(profdb_values_image(v, l->context[1].image, &id), "/lib/libc so.6");
	assert_int_equal(profdb_values_merge(w, w), 0);
	assert_int_equal(profdb_values_at(w, 0)->vtot, 2);
	other = profdb_values_new(PROFDB_FILE, NULL, "/a", "vp-other");
	assert_int_equal(profdb_values_merge(v, other), -EINVAL);
	profdb_values_free(other);
	profdb_values_free(v);
	profdb_values_free(w);
}

static uint64_t total(const struct profdb_values *v)
{
	uint64_t sum = profdb_values_lost(v);

	for (size_t i = 0; i < profdb_values_nr(v); i++)
		sum += profdb_values_at(v, i)->vtot;
	return sum;
}

/* What is read and merged is so by chance, but by the same one each time. */
static void test_reports_can_be_made_again(void **state)
{
	struct base_buf file[2] = { { 0 } }, merged[2] = { { 0 } };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct profdb_values *v = profdb_values_new(PROFDB_FILE, NULL, "/a", PROFDB_VALUES);

		for (uint64_t k = 0; k < 500; k++)
			assert_int_equal(profdb_values_add(v, 0, NULL, k * 2 + i), 0);
		print(v, &file[i]);
		profdb_values_free(v);
	}
	for (int i = 0; i < 2; i++) {
		struct profdb_values *v, *w;

		assert_int_equal(profdb_values_parse(file[0].data, file[0].len, &v, NULL), 0);
		assert_int_equal(profdb_values_parse(file[1].data, file[1].len, &w, NULL), 0);
		assert_int_equal(profdb_values_merge(v, w), 0);
		print(v, &merged[i]);
		profdb_values_free(v);
		profdb_values_free(w);
	}
	assert_int_equal(merged[0].len, merged[1].len);
	assert_memory_equal(merged[0].data, merged[1].data, merged[0].len);
	for (int i = 0; i < 2; i++) {
		base_buf_release(&file[i]);
		base_buf_release(&merged[i]);
	}
}

/* Values that no list has room for are lost, and counted. */
static void test_too_many_lists(void **state)
{
	struct profdb_values *v = profdb_values_new(PROFDB_FILE, NULL, "/a", PROFDB_VALUES);
	struct profdb_values *w = profdb_values_new(PROFDB_FILE, NULL, "/a", PROFDB_VALUES);
	struct profdb_values *read = NULL;
	struct base_buf buf = { 0 };

	(void)state;
	for (uint64_t i = 0; i < PROFDB_NR_HOTLISTS + 5; i++)
		assert_int_equal(profdb_values_add(v, i, NULL, 1), 0);
	assert_int_equal(profdb_values_nr(v), PROFDB_NR_HOTLISTS);
	assert_int_equal(profdb_values_lost(v), 5);
	for (uint64_t i = 0; i < 4; i++)
		profdb_values_add(w, i + PROFDB_NR_HOTLISTS - 2, NULL, 1);
	assert_int_equal(profdb_values_merge(v, w), 0);
	assert_int_equal(profdb_values_lost(v), 7);
	print(v, &buf);
	assert_int_equal(profdb_values_parse(buf.data, buf.len, &read, NULL), 0);
	assert_int_equal(total(read), PROFDB_NR_HOTLISTS + 5 + 4);
	assert_int_equal(profdb_values_merge(w, read), 0);
	assert_int_equal(total(w), PROFDB_NR_HOTLISTS + 5 + 4 + 4);
	base_buf_release(&buf);
	profdb_values_free(v);
	profdb_values_free(w);
	profdb_values_free(read);
}

static void test_images_for_callers_are_bounded(void **state)
{
	struct profdb_values *v = profdb_values_new(PROFDB_FILE, NULL, "/a", PROFDB_VALUES);
	struct base_buf buf = { 0 };
	char path[4000];
	int nr = 0;

	(void)state;
	memset(path, 1, sizeof(path)); /* each takes four bytes in a header */
	for (int i = 0; i < 100; i++) {
		int r;

		snprintf(path + sizeof(path) - 8, 8, "%d", i);
		r = profdb_values_image_add(v, NULL, path);
		assert_true(r == nr + 1 || r == 0);
		nr = r ? r : nr;
	}
	assert_in_range(nr, 10, 90);
	print(v, &buf);
	base_buf_release(&buf);
	profdb_values_free(v);
}

static void reseal(struct base_buf *buf)
{
	uint32_t crc = base_crc32c(0, buf->data, buf->len - 4);

	for (int i = 0; i < 4; i++)
		buf->data[buf->len - 4 + (size_t)i] = (uint8_t)(crc >> 8 * i);
}

static void test_no_changed_byte_passes(void **state)
{
	struct profdb_values *v = sample(), *w = NULL;
	struct base_buf buf = { 0 };

	(void)state;
	print(v, &buf);
	for (size_t i = 0; i < buf.len; i++) {
		assert_true(profdb_values_parse(buf.data, i, &w, NULL) < 0);
		buf.data[i] ^= 0x41;
		assert_true(profdb_values_parse(buf.data, buf.len, &w, NULL) < 0);
		assert_null(w);
		buf.data[i] ^= 0x41;
	}
	base_buf_release(&buf);
	profdb_values_free(v);
}

/* The section VALS of a file of two images with that payload. */
static int parse_payload(const char *payload, size_t len)
{
	struct profdb_values *v = profdb_values_new(PROFDB_FILE, NULL, "/a", "x"), *w = NULL;
	struct base_buf buf = { 0 };
	size_t at, all = (len + 7) / 8 * 8;
	int r;

	profdb_values_image_add(v, NULL, "b");
	profdb_values_image_add(v, NULL, "c");
	print(v, &buf);
	at = (size_t)((uint8_t *)memmem(buf.data, buf.len, "VALS", 4) - buf.data) + 16;
	assert_true(base_buf_extend(&buf, all, NULL) >= 0);
	memmove(buf.data + at + all, buf.data + at, buf.len - at - all);
	memset(buf.data + at, 0, all);
	memcpy(buf.data + at, payload, len);
	buf.data[at - 8] = (uint8_t)len;
	/* As many lists as the first byte says. */
	buf.data[at + all + 16] = (uint8_t)payload[-1];
	reseal(&buf);
	r = profdb_values_parse(buf.data, buf.len, &w, NULL);
	base_buf_release(&buf);
	profdb_values_free(v);
	profdb_values_free(w);
	return r;
}

static void test_sealed_nonsense_is_refused(void **state)
{
	/* How many lists, and the lists: offset, two contexts, vtot, thld, nv, values. */
	static const struct {
		const char *bytes;
		size_t len;
		int want;
	} cases[] = {
		{ "\0", 1, 0 },
		{ "\1\x10\0\0\5\1\1\7\5\0", 10, 0 },
		{ "\2\x10\0\0\5\1\0\0\0\2\4\5\2\1\7\1\0", 17, 0 },
		{ "\2\x10\0\0\5\1\0\0\0\3\4\5\2\1\7\1\0", 17, -DCPI_EFORMAT }, /* no image 3 */
		{ "\2\x10\0\0\5\1\0\0\0\0\5\2\0", 13, -DCPI_EFORMAT },	       /* twice */
		{ "\1\x10\0\0\0\1\0", 7, -DCPI_EFORMAT },		       /* of no value */
		{ "\1\x10\0\0\5\0\0", 7, -DCPI_EFORMAT },		       /* no threshold */
		{ "\1\x10\0\0\5\1\x11", 7, -DCPI_EFORMAT },		       /* 17 values */
		{ "\1\x10\0\0\5\1\1\7\0\1", 10, -DCPI_EFORMAT },	       /* never chosen */
		{ "\1\x10\0\0\5\1\1\7\5\1", 10, -DCPI_EFORMAT },	       /* six of five */
		{ "\1\x10\0\0\5\1\1\7\5", 9, -DCPI_EFORMAT },		       /* cut */
		{ "\1\x10\0\0\5\1\2\xff\xff\xff\xff\xff\xff\xff\xff\xff\1\1\0\0\1\0", 22,
		  -DCPI_EFORMAT },				 /* behind the last value */
		{ "\2\x10\0\0\5\1\1\7\5\0", 10, -DCPI_EFORMAT }, /* one of two lists */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (parse_payload(cases[i].bytes + 1, cases[i].len - 1) != cases[i].want)
			fail_msg("case %zu", i);
}

/* Neither is taken for the other, and each error says so. */
static void test_profiles_are_other_files(void **state)
{
	struct profdb_profile *p = scratch_profile("/a", 1, 3, 1), *q = NULL;
	struct profdb_values *v = sample(), *w = NULL;
	struct base_err err = { 0 };
	struct base_buf buf = { 0 };

	(void)state;
	print(v, &buf);
	assert_int_equal(profdb_profile_parse(buf.data, buf.len, &q, &err), -DCPI_EVERSION);
	assert_non_null(strstr(err.text, "values, not samples"));
	base_buf_clear(&buf);
	assert_int_equal(profdb_profile_format(p, PROFDB_FORMAT_1, 0, &buf, NULL), 0);
	err = (struct base_err){ 0 };
	assert_int_equal(profdb_values_parse(buf.data, buf.len, &w, &err), -DCPI_EFORMAT);
	assert_non_null(strstr(err.text, "samples, not values"));
	base_buf_release(&buf);
	profdb_profile_free(p);
	profdb_values_free(v);
}

/* The example of docs/format/values.md. */
static void test_the_page_tells_the_truth(void **state)
{
	static const uint8_t want[] = "VALS\0\0\0\0\x16\0\0\0\0\0\0\0"
				      "\x10\0\0\3\1\2\5\1\0\2\2\0"
				      "\x10\1\x20\0\1\1\1\x09\1\0\0\0";
	struct profdb_values *v = profdb_values_new(PROFDB_FILE, NULL, "/x", PROFDB_VALUES);
	const struct profdb_context c[2] = { { 1, 0x20 } };
	struct base_buf buf = { 0 };
	const uint8_t *at;

	(void)state;
	assert_int_equal(profdb_values_image_add(v, NULL, "/y"), 1);
	profdb_values_add(v, 0x10, NULL, 8);
	profdb_values_add(v, 0x10, NULL, 5);
	profdb_values_add(v, 0x10, NULL, 8);
	profdb_values_add(v, 0x20, c, 9);
	print(v, &buf);
	at = memmem(buf.data, buf.len, "VALS", 4);
	assert_non_null(at);
	assert_memory_equal(at, want, sizeof(want) - 1);
	base_buf_release(&buf);
	profdb_values_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_written_is_read),
		cmocka_unit_test(test_merge_finds_the_callers),
		cmocka_unit_test(test_reports_can_be_made_again),
		cmocka_unit_test(test_too_many_lists),
		cmocka_unit_test(test_images_for_callers_are_bounded),
		cmocka_unit_test(test_no_changed_byte_passes),
		cmocka_unit_test(test_sealed_nonsense_is_refused),
		cmocka_unit_test(test_profiles_are_other_files),
		cmocka_unit_test(test_the_page_tells_the_truth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
