/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests that samples are divided among rows and slices so that all sums hold, and which slices
 * there are. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "slices.h"

/* 2023-11-14 23:00 UTC, in minutes. */
enum { NOW = 1700002800 / 60, BLOCK = PROFDB_MINUTE_BLOCK, HOUR = 3600, DAY = 86400 };

static struct analysis_event event = { .name = "cpu-clock", .period = 1000000 };
static struct analysis a = { .events = &event, .nr_events = 1 };
static struct profdb_workloads *w;

static uint32_t workload(const char *comm)
{
	const struct profdb_workload k = {
		.comm = comm, .exe = "", .cgroup = "", .label = "", .thread = "", .processes = 1
	};

	return (uint32_t)profdb_workloads_workload_add(w, &k);
}

static uint32_t image(const char *path)
{
	const struct profdb_image_ref i = { .kind = PROFDB_NAMED, .path = path };

	return (uint32_t)profdb_workloads_image_add(w, &i);
}

static void add(uint32_t who, uint32_t where, uint64_t off, int64_t minute, uint64_t n)
{
	assert_int_equal(profdb_workloads_add(w, who, where, off, 0, NOW + minute, n), 0);
}

static int setup(void **state)
{
	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	w = profdb_workloads_new();
	assert_non_null(w);
	assert_int_equal(profdb_workloads_event_add(w, event.name, event.period), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	profdb_workloads_free(w);
	return 0;
}

/* A row for each 300 bytes of an image; those of image 1 are not wanted. */
static int by_offset(void *ctx, uint32_t who, uint32_t where, uint64_t off, size_t *row)
{
	(void)ctx;
	(void)who;
	*row = where == 1 ? SLICES_NO_ROW : (size_t)(off / 300 + where * 100u);
	return 0;
}

static int by_workload(void *ctx, uint32_t who, uint32_t where, uint64_t off, size_t *row)
{
	(void)ctx;
	(void)where;
	(void)off;
	*row = who;
	return 0;
}

static int no_memory(void *ctx, uint32_t who, uint32_t where, uint64_t off, size_t *row)
{
	(void)by_workload(ctx, who, where, off, row);
	return -ENOMEM;
}

static void make(struct slices *s, const struct workload_filter *f,
		 int (*row_of)(void *, uint32_t, uint32_t, uint64_t, size_t *))
{
	assert_int_equal(slices_make(&a, w, f, 0, row_of, NULL, s), 0);
}

static void sums_hold(const struct slices *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->nr; i++) {
		uint64_t in_slice = 0;

		for (size_t r = 0; r < s->nr_rows; r++)
			in_slice += s->rows[r].count[i];
		assert_int_equal(in_slice, s->total[i]);
		sum += in_slice;
	}
	assert_int_equal(sum, s->sum);
}

static void rows_over_time(void **state)
{
	struct slices s = { .begin = NOW * 60ll, .span = 120, .nr = 4 };
	uint32_t alpha = workload("alpha"), beta = workload("beta"), lib = image("lib");
	struct workload_filter f;

	(void)state;
	workload_filter_init(&f);
	add(alpha, lib, 5, 0, 10);
	add(alpha, lib, 5, 1, 20);
	add(beta, lib, 5, 1, 7);
	add(beta, lib, 9, 5, 3);
	add(beta, lib, 9, 8, 100); /* behind the last slice */
	make(&s, &f, by_workload);
	assert_int_equal(s.nr_rows, 2);
	assert_int_equal(s.rows[alpha].count[0], 30);
	assert_int_equal(s.rows[beta].count[0], 7);
	assert_int_equal(s.rows[beta].count[2], 3);
	assert_int_equal(s.rows[beta].sum, 10);
	assert_true(s.recorded[0] && !s.recorded[1] && s.recorded[2] && !s.recorded[3]);
	sums_hold(&s);
	slices_release(&s);
}

/* Hostile minutes are of no time, and nothing overflows. */
static void minutes_of_no_clock(void **state)
{
	static const int64_t minutes[] = { INT64_MAX / 60 / 3, INT64_MAX / 60 - 1, INT64_MAX / 60,
					   INT64_MAX };
	struct slices s = { .begin = NOW * 60ll, .span = 60, .nr = 2 };
	uint32_t alpha = workload("alpha"), lib = image("lib");
	struct workload_filter f;
	int64_t first = 0, end = 0;

	(void)state;
	workload_filter_init(&f);
	for (size_t i = 0; i < sizeof(minutes) / sizeof(minutes[0]); i++)
		assert_int_equal(profdb_workloads_add(w, alpha, lib, 5, 0, minutes[i], 1), 0);
	assert_false(slices_extent(w, &f, &first, &end));
	add(alpha, lib, 5, 1, 10);
	assert_true(slices_extent(w, &f, &first, &end));
	assert_int_equal(first, (NOW + 1) * 60ll);
	assert_int_equal(end, (NOW + 2) * 60ll);
	make(&s, &f, by_workload);
	assert_int_equal(s.sum, 10);
	sums_hold(&s);
	slices_release(&s);
}

static void only_what_is_chosen(void **state)
{
	struct slices s = { .begin = NOW * 60ll, .span = 60, .nr = 4 };
	uint32_t alpha = workload("alpha"), beta = workload("beta"), lib = image("lib");
	const char *const globs[] = { "al*" };
	struct workload_filter f;

	(void)state;
	workload_filter_init(&f);
	f.globs[WORKLOAD_COMM] = globs;
	f.nr[WORKLOAD_COMM] = 1;
	f.since = (NOW + 1) * 60ll;
	add(alpha, lib, 5, 0, 10);
	add(alpha, lib, 5, 1, 20);
	add(beta, lib, 5, 2, 7);
	add(beta, image("other"), 5, 3, 9);
	make(&s, &f, by_workload);
	assert_int_equal(s.sum, 20);
	assert_int_equal(s.total[1], 20);
	/* Others have samples there: it was recorded. */
	assert_true(!s.recorded[0] && s.recorded[1] && s.recorded[2] && s.recorded[3]);
	slices_release(&s);

	s = (struct slices){ .begin = NOW * 60ll, .span = 60, .nr = 4 };
	workload_filter_init(&f);
	make(&s, &f, by_offset);
	assert_int_equal(s.sum, 37);
	assert_true(s.recorded[3] && !s.total[3]);
	slices_release(&s);
	s = (struct slices){ .begin = NOW * 60ll, .span = 60, .nr = 4 };
	assert_int_equal(slices_make(&a, w, &f, 0, no_memory, NULL, &s), -ENOMEM);
	slices_release(&s);
}

/* Single samples in each minute: what a slice cannot give a row, a later one does. */
static void shares_of_a_block(void **state)
{
	struct slices s = { .begin = NOW * 60ll, .span = 60, .nr = 100 };
	uint32_t alpha = workload("alpha"), lib = image("lib");
	struct workload_filter f;

	(void)state;
	workload_filter_init(&f);
	for (int64_t i = 0; i < 100; i++)
		add(alpha, lib, i < 60 ? 10 : i < 90 ? 310 : 620, i, 1);
	make(&s, &f, by_offset);
	sums_hold(&s);
	assert_int_equal(s.rows[0].sum, 60);
	assert_int_equal(s.rows[1].sum, 30);
	assert_int_equal(s.rows[2].sum, 10);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(s.total[i], 1);
	/* They are spread, as nothing tells where they were. */
	for (size_t i = 0, n = 0; i < 50; i++) {
		n += s.rows[0].count[i];
		assert_true(n * 10 + 10 >= i * 6 && n * 10 <= i * 6 + 20);
	}
	slices_release(&s);
}

static void all_sums_hold(void **state)
{
	struct slices s = { .begin = NOW * 60ll, .span = 300, .nr = 12 };
	uint64_t by_row[200] = { 0 }, seed = 88172645463325252ull, sum = 0;
	struct workload_filter f;

	(void)state;
	workload_filter_init(&f);
	workload("alpha"), workload("beta"), workload("gamma");
	image("zero"), image("one");
	for (int i = 0; i < 5000; i++) {
		uint32_t who, where;
		uint64_t off, n;

		seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
		who = seed % 3;
		where = seed >> 8 & 1;
		off = (seed >> 16) % (8 * BLOCK);
		n = 1 + (seed >> 32) % (seed >> 40 & 1 ? 3 : 1000);
		add(who, where, off, (int64_t)(seed >> 48) % 60, n);
		if (!where) {
			by_row[off / 300] += n;
			sum += n;
		}
	}
	make(&s, &f, by_offset);
	sums_hold(&s);
	assert_int_equal(s.sum, sum);
	/* Over all of the time the rows have what their counts say, but for roundings of blocks. */
	for (size_t r = 0; r < s.nr_rows; r++)
		if (s.rows[r].sum + 12 < by_row[r] || s.rows[r].sum > by_row[r] + 12)
			fail_msg("row %zu has %lu, not %lu", r, s.rows[r].sum, by_row[r]);
	slices_release(&s);
}

static void no_samples(void **state)
{
	struct slices s = { .begin = NOW * 60ll, .span = 60, .nr = 2 };
	int64_t first = 1, end = 2;
	struct workload_filter f;

	(void)state;
	workload_filter_init(&f);
	assert_false(slices_extent(w, &f, &first, &end));
	make(&s, &f, by_workload);
	assert_int_equal(s.sum, 0);
	assert_false(s.recorded[0] || s.recorded[1]);
	slices_release(&s);
}

static void which_slices(void **state)
{
	int64_t first = 0, end = 0, at = NOW * 60ll;
	uint32_t alpha = workload("alpha"), lib = image("lib");
	struct workload_filter f;

	(void)state;
	workload_filter_init(&f);
	add(alpha, lib, 0, 3, 1);
	add(alpha, lib, 0, 59, 1);
	assert_true(slices_extent(w, &f, &first, &end));
	assert_int_equal(first, at + 180);
	assert_int_equal(end, at + HOUR);
	f.until = at + 600;
	assert_true(slices_extent(w, &f, &first, &end));
	assert_int_equal(end, at + 240);

	assert_int_equal(slices_span(at, at + HOUR, 60), 60);
	assert_int_equal(slices_span(at, at + HOUR, 59), 120);
	assert_int_equal(slices_span(at, at + HOUR + 1, 60), 120);
	assert_int_equal(slices_span(at, at + DAY, 48), 1800);
	assert_int_equal(slices_span(at, at + (int64_t)365 * DAY, 60), 7 * DAY);
	assert_int_equal(slices_span(at, at + (int64_t)36500 * DAY, 60), 7 * 128 * DAY);
	/* At 23:00 a day's slice has begun at midnight. */
	assert_int_equal(slices_begin(at, DAY), at - 23 * HOUR);
	assert_int_equal(slices_begin(at + 59, 60), at);
	setenv("TZ", "XXX-5:30", 1);
	tzset();
	/* It is 04:30 there. */
	assert_int_equal(slices_begin(at, HOUR), at - 1800);
	assert_int_equal(slices_begin(at, DAY), at - 4 * HOUR - 1800);
	assert_int_equal(slices_begin(0, DAY), -5 * HOUR - 1800);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rows_over_time, setup, teardown),
		cmocka_unit_test_setup_teardown(minutes_of_no_clock, setup, teardown),
		cmocka_unit_test_setup_teardown(only_what_is_chosen, setup, teardown),
		cmocka_unit_test_setup_teardown(shares_of_a_block, setup, teardown),
		cmocka_unit_test_setup_teardown(all_sums_hold, setup, teardown),
		cmocka_unit_test_setup_teardown(no_samples, setup, teardown),
		cmocka_unit_test_setup_teardown(which_slices, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
