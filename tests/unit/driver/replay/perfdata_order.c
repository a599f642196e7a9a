/* SPDX-License-Identifier: BSD-2-Clause */
/* What a recorded stream holds until its order is known, and how much of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "perfdata_internal.h"

static struct perfdata_order o;

static int teardown(void **state)
{
	(void)state;
	perfdata_order_release(&o);
	assert_int_equal(o.nr + o.len + o.nr_samples, 0);
	return 0;
}

static void sample(uint64_t time_ns, uint64_t addr)
{
	const struct driver_count c = {
		.pid = 3, .tid = 4, .event = 5, .mode = DRIVER_KERNEL, .addr = addr, .count = 1
	};

	assert_int_equal(perfdata_order_sample(&o, time_ns, &c), 0);
}

static void load(uint64_t time_ns, const char *path, const void *data, size_t data_len)
{
	const struct driver_load l = {
		.kind = DRIVER_LOAD_MMAP, .path = path, .data = data, .data_len = data_len
	};

	assert_int_equal(perfdata_order_load(&o, time_ns, &l), 0);
}

/* What was handed: samples by address, loads as 'l', marks of a loss as 'x'. */
struct handed {
	char text[64];
	size_t stop_at; /* refuse behind so many; 0: none */
};

static int hand(void *ctx, struct perfdata_item *item)
{
	struct handed *h = ctx;
	size_t nr = strlen(h->text);

	h->text[nr] = item->lost ? 'x' : item->load ? 'l' : (char)item->addr;
	h->text[nr + 1] = '\0';
	return h->stop_at && nr + 1 == h->stop_at ? -EIO : 1;
}

static void expect(uint64_t until, const char *text)
{
	struct handed h = { .stop_at = 0 };

	assert_int_equal(perfdata_order_hand(&o, until, hand, &h), 0);
	assert_string_equal(h.text, text);
}

static void hands_on_in_order_of_time(void **state)
{
	struct handed two = { .stop_at = 2 };

	(void)state;
	sample(30, 'c');
	sample(10, 'a');
	load(20, "p", NULL, 0);
	sample(20, 'b'); /* equal times: as in the file */
	assert_int_equal(perfdata_order_lost(&o, 25), 0);
	sample(UINT64_MAX, 'z');
	assert_int_equal(o.nr_samples, 4);
	expect(9, "");
	expect(24, "alb");
	assert_int_equal(o.nr_samples, 2);
	sample(26, 'd');
	sample(40, 'e');
	/* What was handed when it was refused is gone. */
	assert_int_equal(perfdata_order_hand(&o, 100, hand, &two), -EIO);
	assert_string_equal(two.text, "xd");
	assert_int_equal(o.nr_samples, 3);
	expect(UINT64_MAX, "cez");
	assert_int_equal(o.nr + o.nr_samples + o.len, 0);
}

static int check_copy(void *ctx, struct perfdata_item *item)
{
	(void)ctx;
	if (!item->load) {
		assert_int_equal(item->pid, 3);
		assert_int_equal(item->tid, 4);
		assert_int_equal(item->event, 5);
		assert_int_equal(item->mode, DRIVER_KERNEL);
		return 0;
	}
	assert_string_equal(item->load->load.path, "path");
	assert_memory_equal(item->load->load.data, "data", 4);
	return 0;
}

static void keeps_copies(void **state)
{
	char path[] = "path", data[] = { 'd', 'a', 't', 'a' };

	(void)state;
	load(1, path, data, sizeof(data));
	sample(2, 'a');
	memset(path, 'x', 4);
	memset(data, 'x', 4);
	assert_int_equal(perfdata_order_hand(&o, 2, check_copy, NULL), 0);
}

/* A record of a round may be as old as the youngest before the round before it. */
static void a_round_settles_the_one_before(void **state)
{
	(void)state;
	sample(20, 'b');
	sample(10, 'a');
	assert_int_equal(perfdata_order_round(&o), 0);
	sample(15, 'c');
	assert_int_equal(perfdata_order_round(&o), 20);
	sample(30, 'd');
	assert_int_equal(perfdata_order_round(&o), 20);
	assert_int_equal(perfdata_order_round(&o), 30);
}

/* Eight loads that are the bound to the byte. */
static void so_much_is_held(void **state)
{
	const size_t len = PERFDATA_HELD_MAX / 8 - sizeof(struct perfdata_item) -
			   sizeof(struct perfdata_load) - sizeof("path");
	char *data = calloc(1, len);
	uint64_t until = 0;

	(void)state;
	assert_non_null(data);
	for (uint64_t i = 0; i < 8; i++)
		load(8 - i, "path", data, len);
	free(data);
	assert_int_equal(o.len, PERFDATA_HELD_MAX);
	assert_false(perfdata_order_full(&o, &until));
	assert_int_equal(perfdata_order_lost(&o, 100), 0);
	assert_true(perfdata_order_full(&o, &until));
	assert_int_equal(until, 5);
	expect(until, "lllll");
	assert_false(perfdata_order_full(&o, &until));
	assert_int_equal(o.len, PERFDATA_HELD_MAX / 8 * 3 + sizeof(struct perfdata_item));
	expect(100, "lllx");
	assert_int_equal(o.len, 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hands_on_in_order_of_time),
		TEST(keeps_copies),
		TEST(a_round_settles_the_one_before),
		TEST(so_much_is_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
