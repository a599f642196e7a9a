/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "spool.h"

/* A record of @len bytes that tells its number. */
static uint32_t put(struct dyn_spool *sp, struct dyn_store *st, uint64_t number, uint32_t len)
{
	struct wire_routine *r = calloc(1, len);
	uint32_t record = 0;

	r->head.len = len;
	r->seq = number;
	((uint8_t *)r)[len - 1] = (uint8_t)number;
	assert_int_equal(dyn_spool_put(sp, st, &r->head, &record), 0);
	free(r);
	return record;
}

static void check(const struct dyn_spool *sp, uint32_t record, uint64_t number, uint32_t len,
		  struct dyn_trace *w, size_t ahead)
{
	const struct wire_routine *r = dyn_spool_get(sp, record, w, ahead);

	assert_non_null(r);
	assert_int_equal(r->seq, number);
	assert_int_equal(r->head.len, len);
	assert_int_equal(((const uint8_t *)r)[len - 1], (uint8_t)number);
}

static uint32_t length(uint64_t number)
{
	return 64 + (uint32_t)(number * 37 % 250) * 8 + (number % 97 ? 0 : 200000);
}

static uint64_t blocks(const struct dyn_spool *sp)
{
	struct stat st;

	assert_int_equal(fstat(sp->fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void two_stores(int dir)
{
	enum { NR = 4000 };
	static uint32_t a[NR], b[NR];
	struct dyn_store one = { 0 }, two = { 0 };
	struct dyn_trace w = { 0 };
	struct dyn_spool sp;
	uint64_t used = 0;

	assert_int_equal(dyn_spool_open(&sp, dir), 0);
	for (uint64_t i = 0; i < NR; i++) {
		a[i] = put(&sp, &one, i, length(i));
		b[i] = put(&sp, &two, NR + i, length(i));
		used += length(i);
		check(&sp, a[i], i, length(i), &w, 0);
		base_buf_clear(&w.bytes);
	}
	assert_int_equal(one.used, used);
	assert_int_equal(two.used, used);
	assert_true(one.held >= used && one.held < 2 * used);
	assert_int_equal(sp.held, one.held + two.held);
	for (uint64_t i = 0; i < NR; i++)
		check(&sp, a[i], i, length(i), &w, 100000);
	/* Every second one goes: the others stay. */
	for (uint64_t i = 0; i < NR; i += 2)
		dyn_spool_drop(&sp, &one, a[i], length(i));
	base_buf_clear(&w.bytes);
	for (uint64_t i = 1; i < NR; i += 2)
		check(&sp, a[i], i, length(i), &w, 100000);
	for (uint64_t i = 1; i < NR; i += 2)
		dyn_spool_drop(&sp, &one, a[i], length(i));
	assert_int_equal(one.used, 0);
	assert_int_equal(one.held, 0);
	for (uint64_t i = 0; i < NR; i++)
		check(&sp, b[i], NR + i, length(i), &w, 0);
	/* Its room is used again. */
	used = sp.nr_segments;
	for (uint64_t i = 1; i < 90; i++)
		a[i] = put(&sp, &one, i, length(i));
	assert_int_equal(sp.nr_segments, used);
	base_buf_clear(&w.bytes);
	for (uint64_t i = 1; i < 90; i++)
		check(&sp, a[i], i, length(i), &w, 5000);
	dyn_spool_release(&sp, &one);
	dyn_spool_release(&sp, &two);
	assert_int_equal(sp.held, 0);
	assert_int_equal(blocks(&sp), 0);
	dyn_trace_release(&w);
	dyn_spool_close(&sp);
}

static void test_in_memory(void **state)
{
	(void)state;
	two_stores(-1);
}

static void test_in_a_folder(void **state)
{
	int dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	two_stores(dir);
	close(dir);
}

static void test_sparse(void **state)
{
	enum { NR = 20000, LEN = 512 };
	static uint32_t at[NR];
	struct dyn_store st = { 0 };
	struct dyn_spool sp;
	unsigned int nr = 0;

	(void)state;
	assert_int_equal(dyn_spool_open(&sp, -1), 0);
	for (uint64_t i = 0; i < NR; i++)
		at[i] = put(&sp, &st, i, LEN);
	assert_false(dyn_spool_is_sparse(&st));
	for (uint64_t i = 0; i < NR; i++)
		if (i % 8)
			dyn_spool_drop(&sp, &st, at[i], LEN);
	assert_true(dyn_spool_is_sparse(&st));
	for (uint64_t i = 0; i < NR; i += 8)
		nr += dyn_spool_in_sparse(&sp, at[i]);
	assert_int_equal(nr, NR / 8);
	dyn_spool_release(&sp, &st);
	dyn_spool_close(&sp);
}

/* Large records are put where others were. */
static void test_large(void **state)
{
	enum { LARGE = 65544, NR = 100 };
	struct dyn_store st = { 0 };
	struct dyn_trace w = { 0 };
	struct dyn_spool sp;
	uint32_t one, two, three;

	(void)state;
	assert_int_equal(dyn_spool_open(&sp, -1), 0);
	for (uint64_t i = 0; i < NR; i++) {
		one = put(&sp, &st, i, LARGE);
		dyn_spool_drop(&sp, &st, one, LARGE);
	}
	assert_int_equal(st.held, 0);
	assert_int_equal(sp.nr_segments, 2);
	/* Not where only one of two is free. */
	one = put(&sp, &st, 1, 4096);
	two = put(&sp, &st, 2, LARGE);
	three = put(&sp, &st, 3, 3 * LARGE);
	assert_int_equal(sp.nr_segments, 2 + 2 + 4);
	base_buf_clear(&w.bytes);
	check(&sp, one, 1, 4096, &w, 0);
	check(&sp, two, 2, LARGE, &w, 0);
	check(&sp, three, 3, 3 * LARGE, &w, 0);
	/* What lies side by side is one room, whoever had it. */
	dyn_spool_drop(&sp, &st, two, LARGE);
	dyn_spool_drop(&sp, &st, three, 3 * LARGE);
	two = put(&sp, &st, 4, 5 * LARGE);
	base_buf_clear(&w.bytes);
	check(&sp, two, 4, 5 * LARGE, &w, 0);
	assert_int_equal(sp.nr_segments, 2 + 2 + 4);
	dyn_spool_release(&sp, &st);
	assert_int_equal(sp.held, 0);
	assert_int_equal(sp.nr_free, sp.nr_segments);
	dyn_trace_release(&w);
	dyn_spool_close(&sp);
}

/* No registry takes more than its share. */
static void test_limit(void **state)
{
	struct dyn_store st = { .held = DYN_STORE_MAX - DYN_SPOOL_SEGMENT };
	struct wire_routine r = { .head.len = sizeof(r) };
	struct dyn_spool sp;
	uint32_t record;

	(void)state;
	assert_int_equal(dyn_spool_open(&sp, -1), 0);
	put(&sp, &st, 1, 64000);
	assert_int_equal(dyn_spool_put(&sp, &st, &r.head, &record), 0);
	while (st.end - st.at >= sizeof(r))
		assert_int_equal(dyn_spool_put(&sp, &st, &r.head, &record), 0);
	assert_int_equal(dyn_spool_put(&sp, &st, &r.head, &record), -DCPI_ELIMIT);
	dyn_spool_close(&sp);
}

/* From here on @fd can be read alone; what it was. */
static int turn_read_only(int fd)
{
	char path[64];
	int ro, was = dup(fd);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(was >= 0 && ro >= 0);
	assert_int_equal(dup2(ro, fd), fd);
	close(ro);
	return was;
}

/* A disk that cannot be written for a while: nothing is missing, whatever was put when. */
static void test_in_memory_meanwhile(void **state)
{
	enum { NR = 3000 };
	static uint32_t a[NR], b[NR];
	struct dyn_store one = { 0 }, two = { 0 };
	struct dyn_trace w = { 0 };
	struct dyn_spool sp;
	int fd = -1, dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(dyn_spool_open(&sp, dir), 0);
	for (uint64_t i = 0; i < NR; i++) {
		if (i == NR / 3)
			fd = turn_read_only(sp.fd);
		if (i == 2 * NR / 3)
			assert_int_equal(dup2(fd, sp.fd), sp.fd);
		a[i] = put(&sp, &one, i, length(i));
		if (i % 3)
			b[i] = put(&sp, &two, NR + i, length(i));
		check(&sp, a[i / 2], i / 2, length(i / 2), &w, 100000);
		base_buf_clear(&w.bytes);
	}
	assert_true(sp.in_memory > 0 && sp.in_memory < one.held + two.held);
	for (uint64_t i = 0; i < NR; i++)
		check(&sp, a[i], i, length(i), &w, 100000);
	for (uint64_t i = 0; i < NR; i++)
		if (i % 3)
			check(&sp, b[i], NR + i, length(i), &w, 0);
	/* Segments that are used again are the file's. */
	for (uint64_t i = 0; i < NR; i++)
		dyn_spool_drop(&sp, &one, a[i], length(i));
	dyn_spool_release(&sp, &two);
	assert_int_equal(sp.in_memory, 0);
	for (uint64_t i = 0; i < NR / 3; i++)
		a[i] = put(&sp, &one, i, length(i));
	assert_int_equal(sp.in_memory, 0);
	base_buf_clear(&w.bytes);
	for (uint64_t i = 0; i < NR / 3; i++)
		check(&sp, a[i], i, length(i), &w, 5000);
	dyn_trace_release(&w);
	dyn_spool_close(&sp);
	close(fd);
	close(dir);
}

/* Neither the disk nor memory has room: what was kept stays. */
static void test_cannot_write(void **state)
{
	struct dyn_store st = { 0 };
	struct dyn_trace w = { 0 };
	struct wire_routine *big = calloc(1, DYN_SPOOL_SEGMENT);
	struct dyn_spool sp;
	uint32_t first, record;
	int fd;

	(void)state;
	assert_int_equal(dyn_spool_open(&sp, -1), 0);
	first = put(&sp, &st, 7, 4096);
	fd = sp.fd;
	sp.fd = open("/dev/full", O_RDWR | O_CLOEXEC);
	sp.in_memory = DYN_SPOOL_MEMORY_MAX;
	big->head.len = DYN_SPOOL_SEGMENT;
	assert_int_equal(dyn_spool_put(&sp, &st, &big->head, &record), -ENOSPC);
	assert_int_equal(st.used, 4096);
	sp.in_memory = 0;
	close(sp.fd);
	sp.fd = fd;
	check(&sp, first, 7, 4096, &w, 0);
	assert_int_equal(dyn_spool_put(&sp, &st, &big->head, &record), 0);
	check(&sp, first, 7, 4096, &w, 0);
	dyn_trace_release(&w);
	dyn_spool_release(&sp, &st);
	dyn_spool_close(&sp);
	free(big);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_memory),
		cmocka_unit_test(test_in_a_folder),
		cmocka_unit_test(test_sparse),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_cannot_write),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_in_memory_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
