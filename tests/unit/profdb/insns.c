/* SPDX-License-Identifier: BSD-2-Clause */
/* The section of instruction samples is added up, bounded, written, read and merged. */
#include <errno.h>
#include <string.h>

#include "scratch.h"

static struct profdb_profile *make(uint64_t samples)
{
	struct profdb_profile *p = profdb_profile_new(PROFDB_FILE, NULL, "/bin/app");

	assert_non_null(p);
	assert_int_equal(profdb_profile_event_add(p, "ibs_op//", 1000), 0);
	assert_int_equal(profdb_profile_add(p, 0x10, 0, samples), 0);
	return p;
}

static void add(struct profdb_profile *p, uint64_t off, uint64_t bits, uint64_t n, uint64_t cycles)
{
	const struct profdb_insn m = {
		.off = off,
		.known = 7 | ISAMPLE_HAS(ISAMPLE_LATENCY),
		.bits = bits,
		.count = n,
		.sum[ISAMPLE_LATENCY] = cycles,
	};

	assert_int_equal(profdb_profile_insn_add(p, &m), 0);
}

static uint64_t total(const struct profdb_profile *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < profdb_profile_nr_insns(p); i++)
		sum += profdb_profile_insn(p, i)->count;
	return sum;
}

/* In the file, and back. */
static struct profdb_profile *reread(const struct profdb_profile *p)
{
	struct profdb_profile *q = NULL;
	struct base_buf buf = { 0 }, again = { 0 };
	struct base_err err = { 0 };

	assert_int_equal(profdb_profile_format(p, PROFDB_FORMAT_1, 0, &buf, NULL), 0);
	if (profdb_profile_parse(buf.data, buf.len, &q, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(profdb_profile_format(q, PROFDB_FORMAT_1, 0, &again, NULL), 0);
	assert_int_equal(again.len, buf.len);
	assert_memory_equal(again.data, buf.data, buf.len);
	base_buf_release(&buf);
	base_buf_release(&again);
	return q;
}

static void test_equal_ones_add_up_in_order(void **state)
{
	struct profdb_profile *p = make(10), *q;

	(void)state;
	add(p, 0x20, 1, 1, 5);
	add(p, 0x10, 4, 2, 6);
	add(p, 0x20, 1, 3, 7);
	assert_int_equal(profdb_profile_nr_insns(p), 2);
	q = reread(p);
	assert_int_equal(profdb_profile_nr_insns(q), 2);
	for (size_t i = 0; i < 2; i++)
		assert_memory_equal(profdb_profile_insn(p, i), profdb_profile_insn(q, i),
				    sizeof(struct profdb_insn));
	assert_int_equal(profdb_profile_insn(q, 0)->off, 0x10);
	assert_int_equal(profdb_profile_insn(q, 1)->count, 4);
	assert_int_equal(profdb_profile_insn(q, 1)->sum[ISAMPLE_LATENCY], 12);
	profdb_profile_free(p);
	profdb_profile_free(q);
}

static void test_profiles_add_up_by_event(void **state)
{
	struct profdb_profile *p = make(10), *q = profdb_profile_new(PROFDB_FILE, NULL, "/bin/app");

	(void)state;
	/* The same event has another number there. */
	assert_int_equal(profdb_profile_event_add(q, "cycles", 1), 0);
	assert_int_equal(profdb_profile_event_add(q, "ibs_op//", 1000), 1);
	assert_int_equal(profdb_profile_add(q, 0x10, 1, 10), 0);
	add(p, 0x10, 1, 2, UINT64_MAX - 1);
	for (int i = 0; i < 2; i++) {
		struct profdb_insn m = *profdb_profile_insn(p, 0);

		m.event = 1;
		m.off += (uint64_t)i;
		assert_int_equal(profdb_profile_insn_add(q, &m), 0);
	}
	assert_int_equal(profdb_profile_merge(p, q), 0);
	assert_int_equal(profdb_profile_nr_insns(p), 2);
	assert_int_equal(profdb_profile_insn(p, 0)->count, 4);
	assert_int_equal(profdb_profile_insn(p, 0)->sum[ISAMPLE_LATENCY], UINT64_MAX);
	assert_int_equal(profdb_profile_insn(p, 1)->event, 0);
	profdb_profile_free(p);
	profdb_profile_free(q);
}

static void test_without_room_their_number_stays(void **state)
{
	enum { MORE = 10 };
	struct profdb_profile *p = make(PROFDB_NR_INSNS + 2 * MORE), *q;
	const struct profdb_insn *last;

	(void)state;
	for (uint64_t i = 0; i < PROFDB_NR_INSNS + MORE; i++)
		add(p, i, 1, 1, 1);
	/* Those that have a place keep it. */
	for (uint64_t i = 0; i < MORE; i++)
		add(p, i, 1, 1, 1);
	assert_int_equal(total(p), PROFDB_NR_INSNS + 2 * MORE);
	q = reread(p);
	assert_int_equal(profdb_profile_nr_insns(q), PROFDB_NR_INSNS + 1);
	last = profdb_profile_insn(q, PROFDB_NR_INSNS);
	assert_true(last->off == PROFDB_OUTSIDE && last->count == MORE && !last->known);
	profdb_profile_free(p);
	profdb_profile_free(q);
}

static void test_what_is_refused(void **state)
{
	struct profdb_profile *p = make(10);
	struct profdb_insn m = { .off = 1, .known = 1, .count = 1 };

	(void)state;
	m.event = 1;
	assert_int_equal(profdb_profile_insn_add(p, &m), -EINVAL);
	m.event = 0;
	m.bits = 2;
	assert_int_equal(profdb_profile_insn_add(p, &m), -EINVAL);
	m.bits = 0;
	m.off = PROFDB_OUTSIDE;
	assert_int_equal(profdb_profile_insn_add(p, &m), -EINVAL);
	m = (struct profdb_insn){ .off = 1, .known = UINT64_C(1) << 47, .count = 1 };
	assert_int_equal(profdb_profile_insn_add(p, &m), -EINVAL);
	assert_int_equal(profdb_profile_nr_insns(p), 0);
	profdb_profile_free(p);
}

static void test_more_than_there_are_samples_is_damage(void **state)
{
	struct profdb_profile *p = make(3), *q = NULL;
	struct base_buf buf = { 0 };

	(void)state;
	add(p, 1, 1, 4, 1);
	assert_int_equal(profdb_profile_format(p, PROFDB_FORMAT_1, 0, &buf, NULL), 0);
	assert_int_equal(profdb_profile_parse(buf.data, buf.len, &q, NULL), -DCPI_EFORMAT);
	profdb_profile_clear(p);
	assert_int_equal(profdb_profile_nr_insns(p), 0);
	base_buf_release(&buf);
	profdb_profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_equal_ones_add_up_in_order),
		cmocka_unit_test(test_profiles_add_up_by_event),
		cmocka_unit_test(test_without_room_their_number_stays),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_more_than_there_are_samples_is_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
