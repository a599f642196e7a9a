/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts that wait for files, joined by their places when there are many. */
#include <stdlib.h>
#include <string.h>

#include "stand_ins.h"

static struct trial t;
static struct waitings waitings;
static struct process *p;

static int setup(void **state)
{
	(void)state;
	trial_open(&t);
	waitings = (struct waitings){ 0 };
	p = processes_add(t.follow.processes, 10);
	return p ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	waiting_release(&waitings);
	trial_close(&t);
	return 0;
}

static void add(uint64_t addr, uint32_t event, uint64_t first_ns, uint64_t time_ns, uint64_t count)
{
	const struct sample c = { .p = p,
				  .addr = addr,
				  .event = event,
				  .first_ns = first_ns,
				  .time_ns = time_ns,
				  .count = count,
				  .dynamic = true };

	assert_int_equal(waiting_add(&waitings, &c), 0);
}

static bool wait_on(void *ctx, struct sample *c)
{
	(void)ctx;
	(void)c;
	return false;
}

/* More counts than may wait one by one, of one other place. */
static void add_many(void)
{
	for (int i = 0; i < 40000; i++)
		add(0x9000, 0, 500, 600, 1);
}

static const struct sample *place(uint64_t addr, uint32_t event)
{
	const struct sample *found = NULL;

	for (size_t i = 0; i < p->waiting->counts.nr; i++) {
		const struct sample *c = &p->waiting->counts.items[i];

		if (c->addr != addr || c->event != event)
			continue;
		assert_null(found);
		found = c;
	}
	assert_non_null(found);
	return found;
}

/* A joined count has the times from the first of all to the last, in whatever order they came. */
static void joined_times(void **state)
{
	const struct sample *c;

	(void)state;
	add(0x1000, 0, 200, 300, 2);
	add(0x1000, 0, 100, 400, 3);
	add(0x1000, 0, 150, 250, 4);
	add(0x1000, 1, 120, 130, 5);
	add(0x2000, 0, 700, 800, 6);
	add_many();
	assert_int_equal(p->waiting->first_ns, 100);
	waiting_look(&waitings, true, wait_on, NULL);
	assert_int_equal(p->waiting->counts.nr, 4);
	assert_int_equal(waitings.joined_nr, 4);
	c = place(0x1000, 0);
	assert_int_equal(c->first_ns, 100);
	assert_int_equal(c->time_ns, 400);
	assert_int_equal(c->count, 9);
	assert_int_equal(place(0x1000, 1)->first_ns, 120);
	assert_int_equal(place(0x1000, 1)->count, 5);
	assert_int_equal(place(0x2000, 0)->time_ns, 800);
	assert_int_equal(place(0x9000, 0)->count, 40000);
	assert_int_equal(p->waiting->first_ns, 100);
}

static bool ends_before(void *ctx, struct sample *c)
{
	return c->first_ns < *(const uint64_t *)ctx;
}

/* The first of those that are left, after others were resolved; with none left there is no entry.
 */
static void first_of_the_rest(void **state)
{
	uint64_t before = 150;

	(void)state;
	add(0x1000, 0, 300, 310, 1);
	add(0x2000, 0, 100, 110, 1);
	add(0x3000, 0, 200, 210, 1);
	assert_int_equal(p->waiting->first_ns, 100);
	waiting_look(&waitings, true, ends_before, &before);
	assert_int_equal(p->waiting->first_ns, 200);
	assert_int_equal(p->waiting->counts.nr, 2);
	before = 1000;
	waiting_look(&waitings, true, ends_before, &before);
	assert_null(p->waiting);
	assert_int_equal(waitings.nr, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(joined_times, setup, teardown),
		cmocka_unit_test_setup_teardown(first_of_the_rest, setup, teardown),
	};

	return cmocka_run_group_tests_name("waiting", tests, NULL, NULL);
}
