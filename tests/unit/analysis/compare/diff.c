/* SPDX-License-Identifier: BSD-2-Clause */
/* What chance may make is called no change, whatever the sizes of the two sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "diff.h"

enum { NR = 20 };

static char facility_name[] = "f";
static struct analysis_facility facility = { .name = facility_name };
static char names[NR][8];

/* Of NR procedures the first has @count samples, the last the rest, the others one each, or none
 * where there are not so many. */
struct side {
	struct analysis_row row[NR];
	uint64_t count[NR];
	struct analysis_rows rows;
};

static void fill(struct side *s, uint64_t count, uint64_t total)
{
	const uint64_t each = total - count > NR;

	memset(s, 0, sizeof(*s));
	for (size_t i = 0; i < NR; i++) {
		s->count[i] = each;
		s->row[i] = (struct analysis_row){ .facility = &facility,
						   .procedure = names[i],
						   .count = &s->count[i] };
	}
	s->count[0] = count;
	s->count[NR - 1] = total - count - each * (NR - 2);
	s->rows = (struct analysis_rows){ .v = s->row, .nr = NR, .nr_events = 1 };
}

static double change_of(uint64_t a, uint64_t total_a, uint64_t b, uint64_t total_b)
{
	static struct side side[2];
	struct analysis *const none[2] = { NULL, NULL };
	struct analysis_rows *const rows[2] = { &side[0].rows, &side[1].rows };
	const size_t event[2] = { 0, 0 };
	struct analysis_diff d = { 0 };
	double change = 0;
	bool found = false;

	fill(&side[0], a, total_a);
	fill(&side[1], b, total_b);
	assert_int_equal(analysis_diff_rows(none, rows, event, &d), 0);
	assert_int_equal(d.nr, NR);
	assert_int_equal(d.total[0], total_a);
	assert_int_equal(d.total[1], total_b);
	for (size_t i = 0; i < d.nr; i++)
		if (strcmp(analysis_diff_label(&d.v[i]), names[0]) == 0) {
			change = d.v[i].change;
			found = true;
		}
	analysis_diff_release(&d);
	assert_true(found);
	return change;
}

static void test_change(void **state)
{
	(void)state;
	assert_true(change_of(400, 10000, 800, 10000) == 0.04);
	assert_true(change_of(400, 10000, 0, 10000) == -0.04);
	assert_true(change_of(0, 1000000, 400, 1000000) == 0.0004);
}

static void test_chance(void **state)
{
	(void)state;
	assert_true(change_of(400, 10000, 440, 10000) == 0);
	assert_true(change_of(4, 10000, 0, 10000) == 0);
	/* Four were to be expected, and none comes once in fifty times. */
	assert_true(change_of(400, 1000000, 0, 10000) == 0);
	assert_true(change_of(0, 10000, 400, 1000000) == 0);
	/* One sample is no normal number: it falls anywhere once in so many times as there are. */
	assert_true(change_of(0, 100, 1, 1) == 0);
	assert_true(change_of(1, 1, 0, 100) == 0);
	assert_true(change_of(11, 100, 3, 3) == 0);
	assert_true(change_of(60, 100, 0, 3) == 0);
	assert_true(change_of(10, 10000, 3, 3) != 0);
	/* One sample in 10,001 is that of the small set with probability 2/10,001 and 4/10,001:
	 * both ways, and in 20 rows, 0.008 and 0.016. */
	assert_true(change_of(1, 10000, 1, 1) != 0);
	assert_true(change_of(3, 10000, 1, 1) == 0);
}

static int setup(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR; i++)
		snprintf(names[i], sizeof(names[i]), "p%zu", i);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_chance),
	};

	return cmocka_run_group_tests_name("diff", tests, setup, NULL);
}
