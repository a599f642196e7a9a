/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "stand_ins.h"

static struct trial t;
static char announced[512];
static struct driver_range told_ranges[DRIVER_NR_RANGES];
static size_t told_nr;
static unsigned int nr_calls;
static int32_t told_pid;
static struct driver_client told_client;
static int refusal;

/* What the driver was told, as "1-2 5-9" (pages). */
static int set(struct driver *d, int32_t pid, const struct driver_client *client)
{
	const struct driver_range *ranges = client ? client->ranges : NULL;
	size_t nr = client ? client->nr_ranges : 0, len = 0;

	assert_ptr_equal(d, &t);
	assert_true(nr <= DRIVER_NR_RANGES);
	nr_calls++;
	told_pid = pid;
	told_client = client ? *client : (struct driver_client){ 0 };
	told_nr = nr;
	if (nr)
		memcpy(told_ranges, ranges, nr * sizeof(*ranges));
	announced[0] = '\0';
	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(ranges[i].kind,
				 stand_ins.words ? DRIVER_RANGE_WORDS : DRIVER_RANGE_SINGLE);
		len += (size_t)snprintf(announced + len, sizeof(announced) - len, "%s%x-%x",
					i ? " " : "", (unsigned int)(ranges[i].start >> 12),
					(unsigned int)(ranges[i].end >> 12));
	}
	return refusal;
}

static int setup(void **state)
{
	(void)state;
	trial_open(&t);
	t.follow.driver = (struct driver *)&t;
	t.follow.client_set = set;
	nr_calls = 0;
	refusal = 0;
	announced[0] = '\0';
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	trial_close(&t);
	return 0;
}

static void anon(int32_t pid, uint64_t page, uint64_t nr)
{
	trial_mmap(&t, pid, page << 12, nr << 12, 0, "//anon", 0);
}

static void attach(int32_t pid)
{
	trial_mmap(&t, pid, 0x7000000, 0x1000, 0, "/memfd:dbgdyn (deleted)", 0);
}

static void whoever_is_registered(void **state)
{
	(void)state;
	anon(10, 1, 2);
	trial_mmap(&t, 10, 0x8000, 0x1000, 0, "/bin/a", 1);
	ranges_tell(&t.follow);
	assert_int_equal(nr_calls, 0);
	stand_ins.code_virgin = true;
	attach(10);
	ranges_tell(&t.follow);
	assert_int_equal(nr_calls, 0);
	/* An address gets its second routine: the registry had news. */
	stand_ins.code_virgin = false;
	t.follow.ranges_changed = true;
	ranges_tell(&t.follow);
	assert_string_equal(announced, "1-3");
	assert_int_equal(told_pid, 10);
	/* Nothing new: nothing told. */
	ranges_tell(&t.follow);
	anon(10, 1, 1);
	ranges_tell(&t.follow);
	assert_int_equal(nr_calls, 1);
	anon(10, 3, 1);
	anon(10, 5, 1);
	/* What its registry says of addresses whose mapping is not known. */
	stand_ins.code_start = 0x20000;
	stand_ins.code_end = 0x21000;
	ranges_tell(&t.follow);
	assert_string_equal(announced, "1-4 5-6 20-21");
	/* A file in its place: nothing tells whether dynamic code comes back. */
	trial_mmap(&t, 10, 0x1000, 0x5000, 0, "/bin/a", 1);
	ranges_tell(&t.follow);
	assert_int_equal(nr_calls, 2);
	/* The kernel's addresses are no process's. */
	anon(10, 0xffffffffff600, 1);
	ranges_tell(&t.follow);
	assert_int_equal(nr_calls, 2);
}

/* At once, whether addresses were reused or not. */
static void with_words(void **state)
{
	(void)state;
	stand_ins.code_virgin = true;
	stand_ins.words = 0x9000;
	attach(10);
	/* No code yet, nothing to tell. */
	ranges_tell(&t.follow);
	assert_int_equal(nr_calls, 0);
	anon(10, 1, 2);
	ranges_tell(&t.follow);
	assert_string_equal(announced, "1-3");
	assert_int_equal(told_client.words, 0x9000);
	assert_int_equal(told_client.nr_words, 16);
	assert_int_equal(told_client.cursor, 0x5000);
	t.follow.ranges_changed = true;
	ranges_tell(&t.follow);
	assert_int_equal(nr_calls, 1);
	/* An arena. */
	stand_ins.code_start = 0x200000;
	stand_ins.code_end = 0x400000;
	t.follow.ranges_changed = true;
	ranges_tell(&t.follow);
	assert_string_equal(announced, "1-3 200-400");
	stand_ins.words = 0xa000;
	t.follow.ranges_changed = true;
	ranges_tell(&t.follow);
	assert_int_equal(told_client.words, 0xa000);
	assert_int_equal(nr_calls, 3);
	/* Another registry at the same place: the sampler may have the pages of the one before. */
	stand_ins.words_ino = 7;
	t.follow.ranges_changed = true;
	ranges_tell(&t.follow);
	assert_int_equal(told_client.words_ino, 7);
	assert_int_equal(nr_calls, 4);
}

/* Some other client may have ended by the next flush. Until then nobody asks again. */
static void refused_is_tried_again(void **state)
{
	(void)state;
	refusal = -DCPI_ELIMIT;
	attach(10);
	anon(10, 1, 2);
	for (unsigned int round = 1; round < 4; round++) {
		ranges_tell(&t.follow);
		assert_int_equal(nr_calls, round);
		/* Not for its own news either. */
		anon(10, 10 * round, 1);
		ranges_tell(&t.follow);
		assert_int_equal(nr_calls, round);
		ranges_retry(&t.follow);
	}
	/* What was not told then is now. */
	refusal = 0;
	ranges_tell(&t.follow);
	assert_int_equal(nr_calls, 4);
	assert_string_equal(announced, "1-3 a-b 14-15 1e-1f");
	ranges_retry(&t.follow);
	ranges_tell(&t.follow);
	t.follow.ranges_changed = true;
	ranges_tell(&t.follow);
	assert_int_equal(nr_calls, 4);
}

static void nearest_are_joined(void **state)
{
	static const uint64_t pages[] = { 0x10, 0x20, 0x30, 0x38, 0x50, 0x60, 0x70,  0x7c,  0x90,
					  0xa0, 0xb0, 0xc0, 0xd0, 0xe0, 0xf0, 0x100, 0x110, 0x120 };

	(void)state;
	attach(10);
	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
		anon(10, pages[i], 1);
	ranges_tell(&t.follow);
	assert_string_equal(announced,
			    "10-11 20-21 30-39 50-51 60-61 70-7d 90-91 a0-a1 b0-b1 c0-c1 "
			    "d0-d1 e0-e1 f0-f1 100-101 110-111 120-121");
}

/* An application has as many as it likes; that must not hold up the daemon. */
static void very_many(void **state)
{
	enum { NR = 100000 };
	uint64_t page = 0x10;
	clock_t begin;

	(void)state;
	attach(10);
	for (uint64_t i = 0; i < NR; i++) {
		page += i + 2;
		anon(10, page, 1);
	}
	begin = clock();
	ranges_tell(&t.follow);
	/* Milliseconds; compared each with each it were a minute. */
	assert_true(clock() - begin < 5 * CLOCKS_PER_SEC);
	assert_int_equal(told_nr, DRIVER_NR_RANGES);
	assert_int_equal(told_ranges[0].start, 0x12000);
	for (size_t i = DRIVER_NR_RANGES - 1; i > 0; i--) {
		assert_int_equal(told_ranges[i].start, page << 12);
		assert_int_equal(told_ranges[i].end, (page + 1) << 12);
		page -= NR - 1 - (DRIVER_NR_RANGES - 1 - i) + 2;
	}
	assert_int_equal(told_ranges[0].end, (page + 1) << 12);
}

/* Its later life was none: what the driver knows of it is known. */
static void second_of_one_life(void **state)
{
	struct process *p, *later;

	(void)state;
	attach(10);
	anon(10, 1, 1);
	p = processes_find(t.follow.processes, 10);
	stand_ins.registered = true;
	later = follow_attach(&t.follow, 10, t.time_ns);
	later->dyn = p->dyn;
	stand_ins.code_start = 0x20000;
	stand_ins.code_end = 0x21000;
	ranges_tell(&t.follow);
	assert_string_equal(announced, "20-21");
	stand_ins.code_end = 0;
	counts_resolve(&t.counts, 0);
	assert_null(p->later);
	ranges_tell(&t.follow);
	assert_string_equal(announced, "1-2 20-21");
}

static void children_and_ends(void **state)
{
	(void)state;
	attach(10);
	anon(10, 1, 1);
	ranges_tell(&t.follow);
	trial_event(&t, DRIVER_LOAD_FORK, 11, 10);
	ranges_tell(&t.follow);
	assert_int_equal(told_pid, 11);
	assert_string_equal(announced, "1-2");
	assert_int_equal(nr_calls, 2);
	trial_event(&t, DRIVER_LOAD_EXIT, 11, 0);
	counts_resolve(&t.counts, 0);
	assert_int_equal(nr_calls, 3);
	assert_int_equal(told_pid, 11);
	assert_string_equal(announced, "");
	/* The life after an exec has told of itself before the one before is let go. */
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	attach(10);
	anon(10, 4, 1);
	ranges_tell(&t.follow);
	assert_string_equal(announced, "4-5");
	counts_resolve(&t.counts, 0);
	assert_int_equal(nr_calls, 4);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(whoever_is_registered),  TEST(with_words),	       TEST(nearest_are_joined),
		TEST(refused_is_tried_again), TEST(children_and_ends), TEST(very_many),
		TEST(second_of_one_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
