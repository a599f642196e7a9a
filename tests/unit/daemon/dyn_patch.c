/* SPDX-License-Identifier: BSD-2-Clause */
/* Code in an owned range that was changed after it was read: a new generation. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "jit_internal.h"
#include "fake_registry.h"
#include "pseudoimg.h"

#define BASE 0x10080ull
#define LEN  0x4000ull

static struct trial {
	struct dyn *dyn;
	struct images *images;
	struct process p;
	struct base_buf b;
	uint8_t text[LEN];
	size_t len;
} t;

static int open_trial(void **state)
{
	struct dyn_config config = { .host = "host" };

	(void)state;
	memset(&t, 0, sizeof(t));
	t.p = (struct process){ .pid = 42, .comm = "prog", .start_time_ns = 5000 };
	config.images = t.images = images_new();
	assert_int_equal(dyn_open(&config, &t.dyn, NULL), 0);
	fake_facility_rec(&t.b, 0, "owner");
	fake_range_rec(&t.b, 0, 0, WIRE_RANGE_CODE, BASE, LEN);
	memset(t.text, 0x90, 0x2000);
	t.len = 0x2000;
	return 0;
}

static int close_trial(void **state)
{
	(void)state;
	dyn_end(t.dyn, &t.p);
	dyn_close(t.dyn);
	images_free(t.images);
	base_buf_release(&t.b);
	return 0;
}

/* The range is read at @time_ns. */
static void reading(uint64_t time_ns)
{
	fake_bytes_rec(&t.b, 0, WIRE_RANGE_CODE, BASE, LEN, t.text, t.len);
	assert_int_equal(dyn_records(t.dyn, &t.p, time_ns, t.b.data, t.b.len), 0);
	base_buf_clear(&t.b);
}

static enum dyn_where span(uint64_t addr, uint64_t first_ns, uint64_t time_ns, uint64_t *off)
{
	const struct dyn_query q = {
		.addr = addr, .first_ns = first_ns, .time_ns = time_ns, .count = 1
	};
	struct image *img = NULL;

	return dyn_lookup(t.dyn, &t.p, &q, &img, off);
}

static uint64_t offset(uint64_t addr, uint64_t time_ns)
{
	uint64_t off = UINT64_MAX;

	assert_int_equal(span(addr, time_ns, time_ns, &off), DYN_FOUND);
	return off;
}

static const struct dyn_registry *registry(void)
{
	return t.p.dyn->own;
}

static void test_change_is_a_generation(void **state)
{
	uint64_t off, first, second;

	(void)state;
	reading(100);
	first = offset(BASE + 5, 100);
	assert_int_equal(first, BASE % WIRE_PAGE + 5);
	t.text[5] = 0xcc;
	reading(200);
	second = offset(BASE + 5, 200);
	assert_int_not_equal(second, first);
	assert_int_equal(second % 16, (BASE + 5) % 16);
	/* Until 100 it was the first one; between nobody knows; the page beside it did not change.
	 */
	assert_int_equal(offset(BASE + 5, 100), first);
	assert_int_equal(span(BASE + 5, 150, 150, &off), DYN_REUSED);
	assert_int_equal(span(BASE + 5, 90, 200, &off), DYN_REUSED);
	assert_int_equal(span(BASE + 5, 200, 300, &off), DYN_FOUND);
	assert_int_equal(offset(BASE + 0x1000, 150), 0x1080);
	assert_int_equal(registry()->nr_bad, 1);
	/* The whole page, as far as the range goes, changed with it. */
	assert_int_equal(offset(0x10fff, 200), second + (0x10fff - BASE - 5));
	assert_int_equal(offset(0x11000, 200), 0x1000);
	/* What was read first stays. */
	assert_int_equal(registry()->ranges[0].contents.data[5], 0x90);
	/* Another change, and back to the first. */
	t.text[6] = 0xcc;
	reading(300);
	assert_int_not_equal(offset(BASE + 5, 300), second);
	t.text[5] = t.text[6] = 0x90;
	reading(400);
	assert_int_equal(offset(BASE + 5, 400), first);
	t.text[5] = 0xcc;
	reading(500);
	assert_int_equal(offset(BASE + 5, 500), second);
	assert_int_equal(offset(BASE + 5, 200), second);
	assert_int_equal(registry()->nr_bad, 4);
}

/* Zeros that are filled are growth, in what was changed too. */
static void test_growth_of_changed_code(void **state)
{
	uint64_t second;

	(void)state;
	t.len = 0x100;
	reading(100);
	t.text[5] = 0xcc;
	reading(200);
	second = offset(BASE, 200);
	t.len = 0x300;
	reading(300);
	assert_int_equal(offset(BASE, 300), second);
	assert_int_equal(offset(BASE + 0x2ff, 300), second + 0x2ff);
	assert_int_equal(registry()->nr_bad, 1);
}

/* Memory that was unmapped, or wiped, cannot run: what was read stays, nothing is counted. */
static void test_gone(void **state)
{
	uint64_t first;

	(void)state;
	reading(100);
	first = offset(BASE, 100);
	t.len = 0;
	reading(200);
	assert_int_equal(offset(BASE, 200), first);
	assert_int_equal(registry()->nr_bad, 0);
	assert_int_equal(registry()->ranges[0].contents.len, 0x2000);
	assert_int_equal(registry()->ranges[0].contents.data[0x1fff], 0x90);
}

/* Who changes code without end gets so many generations, then none is known. */
static void test_versions_are_bounded(void **state)
{
	uint64_t off;
	uint32_t i;

	(void)state;
	for (i = 0; i < DYN_PATCHES_MAX + 10; i++) {
		t.text[5] = (uint8_t)(1 + i % 251);
		t.text[6] = (uint8_t)(1 + i / 251);
		reading(100 + i);
		if (i == DYN_PATCHES_MAX)
			assert_int_equal(span(BASE, 100 + i, 100 + i, &off), DYN_FOUND);
	}
	assert_int_equal(span(BASE, 100 + i, 100 + i, &off), DYN_REUSED);
	assert_int_equal(span(BASE + 0x1000, 100 + i, 100 + i, &off), DYN_FOUND);
	assert_int_equal(registry()->nr_patches, DYN_PATCHES_MAX);
}

/* Both stand in the image, the routine of DST in each; the identity tells them apart. */
static void test_image(void **state)
{
	/* Module m, routine r: 64 bytes from the range's base on. */
	static const uint8_t dst[] = { 0x10, 0,	  188, 0, 0,   0, 7, 0,	 0, 0, 1, 0, 13, 0,   1,
				       'm',  0,	  14,  0, 190, 0, 0, 0,	 0, 0, 0, 0, 0,	 0,   0,
				       1,    'r', 8,   0, 191, 0, 0, 64, 0, 0, 0, 3, 0,	 189, 0 };
	struct pseudoimg_result result[2] = { 0 };
	struct base_err err = { 0 };

	(void)state;
	fake_range_rec(&t.b, 1, 0, WIRE_RANGE_DST, 0x90000, 0x1000);
	fake_bytes_rec(&t.b, 0, WIRE_RANGE_DST, 0x90000, 0x1000, dst, sizeof(dst));
	reading(100);
	for (int i = 0; i < 2; i++) {
		int job = memfd_create("job", MFD_CLOEXEC),
		    out = memfd_create("image", MFD_CLOEXEC);

		assert_int_equal(dyn_facility_job(registry()->facilities[0], true, job), 0);
		assert_int_equal(lseek(job, 0, SEEK_SET), 0);
		assert_int_equal(pseudoimg_write_file(job, out, &result[i], &err), 0);
		assert_int_equal(result[i].nr_bad, 0);
		assert_int_equal(result[i].nr_routines, 1 + i);
		close(job);
		close(out);
		t.text[5] = 0xcc;
		registry()->facilities[0]->owned_changed = false;
		reading(200);
		assert_int_equal(registry()->facilities[0]->owned_changed, !i);
	}
	assert_memory_not_equal(result[0].build_id, result[1].build_id, 20);
}

/* Changed DST is refused, growth is not; it is counted once, not at each reading. */
static void test_changed_dst(void **state)
{
	const struct dyn_range *range;

	(void)state;
	fake_range_rec(&t.b, 1, 0, WIRE_RANGE_DST, 0x90000, 0x1000);
	fake_bytes_rec(&t.b, 0, WIRE_RANGE_DST, 0x90000, 0x1000, "\4\2\3\7\0", 4);
	reading(100);
	for (uint64_t time = 200; time < 500; time += 100) {
		fake_bytes_rec(&t.b, 0, WIRE_RANGE_DST, 0x90000, 0x1000, "\4\2\2\7\7", 5);
		reading(time);
	}
	range = &registry()->ranges[1];
	assert_int_equal(registry()->nr_bad, 1);
	assert_int_equal(range->contents.len, 5);
	assert_memory_equal(range->contents.data, "\4\2\3\7\7", 5);
	fake_bytes_rec(&t.b, 0, WIRE_RANGE_DST, 0x90000, 0x1000, "", 0);
	reading(600);
	assert_int_equal(registry()->nr_bad, 1);
	assert_int_equal(range->contents.len, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_change_is_a_generation, open_trial,
						close_trial),
		cmocka_unit_test_setup_teardown(test_growth_of_changed_code, open_trial,
						close_trial),
		cmocka_unit_test_setup_teardown(test_gone, open_trial, close_trial),
		cmocka_unit_test_setup_teardown(test_versions_are_bounded, open_trial, close_trial),
		cmocka_unit_test_setup_teardown(test_image, open_trial, close_trial),
		cmocka_unit_test_setup_teardown(test_changed_dst, open_trial, close_trial),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
