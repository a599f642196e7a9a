/* SPDX-License-Identifier: BSD-2-Clause */
/* The counting table in user space: whatever is put in, counts and losses are all that was put in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf_table.h"

static struct count_shape shape;
static union count_bucket *table;

static void make(uint32_t len)
{
	free(table);
	shape = count_shape_of(len);
	table = calloc(count_nr_elements(&shape), sizeof(*table));
	assert_non_null(table);
}

static int clean(void **state)
{
	(void)state;
	free(table);
	table = NULL;
	return 0;
}

static uint64_t seed = 1;

static uint32_t draw(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % below;
}

static bool add(const struct count_key *k, uint64_t now)
{
	return count_sample(table, &shape, k, false, now);
}

static enum count_made put(const struct count_key *k, uint64_t now)
{
	const struct count_place p = count_place_of(&shape, k);

	return count_add(table, &shape, &table->head, k, &p, now);
}

static bool is_same(const struct count_entry *e, const struct count_key *k)
{
	return e->addr == k->addr && e->instance == k->instance && e->tgid == k->tgid &&
	       e->generation == k->generation && e->what == k->what;
}

/* ---- what came out --------------------------------------------------------------------------- */

struct sum {
	uint64_t counts, entries, nr_bad;
	uint64_t of_event[COUNT_NR_EVENTS];
	uint64_t wanted;	     /* count of key */
	const struct count_key *key; /* may be NULL */
	uint64_t first_ns, last_ns;  /* of key */
};

static void see(void *ctx, const struct count_entry *e)
{
	struct sum *s = ctx;

	s->counts += e->count;
	s->entries++;
	s->of_event[COUNT_WHAT_EVENT(e->what)] += e->count;
	s->nr_bad += e->first_ns > e->last_ns || !e->count;
	if (!s->key || !is_same(e, s->key))
		return;
	s->wanted += e->count;
	if (!s->first_ns || e->first_ns < s->first_ns)
		s->first_ns = e->first_ns;
	if (e->last_ns > s->last_ns)
		s->last_ns = e->last_ns;
}

static uint64_t received(void)
{
	uint64_t sum = 0;

	for (int i = 0; i < COUNT_NR_EVENTS; i++)
		sum += table->head.received[i];
	return sum;
}

static uint64_t lost(void)
{
	return count_lost(&table->head);
}

static struct sum look(const struct count_key *key)
{
	struct sum s = { .key = key };

	count_walk(table, &shape, see, &s);
	assert_int_equal(s.nr_bad, 0);
	return s;
}

static void check_law(void)
{
	assert_int_equal(received(), look(NULL).counts + lost());
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void every_part_of_a_key_keeps_counts_apart(void **state)
{
	const struct count_key base = { 5, 0x401000, 10, 3, COUNT_WHAT(1, 0) };
	struct count_key keys[] = { base, base, base, base, base, base, base, base, base };

	(void)state;
	make(64);
	keys[1].instance = 6;
	keys[2].addr++;
	keys[3].tgid = 11;
	keys[4].generation = 4;
	keys[5].what = COUNT_WHAT(2, 0);
	keys[6].what = COUNT_WHAT(1, 1);
	keys[7].what |= COUNT_WHAT_UNREAD;
	keys[8].what |= COUNT_OF_THREAD(0x3fff);
	for (size_t i = 0; i < 9; i++) {
		for (size_t n = 0; n <= i; n++)
			assert_int_equal(add(&keys[i], 100 * (i + 1) + n), n == 0);
	}
	for (size_t i = 0; i < 9; i++) {
		struct sum s = look(&keys[i]);

		assert_int_equal(s.entries, 9);
		assert_int_equal(s.wanted, i + 1);
		assert_int_equal(s.first_ns, 100 * (i + 1));
		assert_int_equal(s.last_ns, 100 * (i + 1) + i);
	}
	check_law();
	assert_int_equal(lost(), 0);
	assert_int_equal(table->head.received[1], 45 - 6);
	assert_int_equal(table->head.received[2], 6);
}

static void fifth_of_a_bucket_pushes_one_into_the_log(void **state)
{
	struct count_key k = { .instance = 1, .addr = 0 };

	(void)state;
	make(4); /* one bucket, four log entries */
	assert_int_equal(shape.nr_buckets, 1);
	assert_int_equal(shape.nr_log, 4);
	for (k.addr = 1; k.addr <= 8; k.addr++)
		assert_true(add(&k, k.addr));
	assert_int_equal(table->head.nr_log, 4);
	assert_int_equal(lost(), 0);
	assert_int_equal(look(NULL).entries, 8);
	/* What is in a bucket still counts; what is new is lost. */
	k.addr = 8;
	assert_false(add(&k, 20));
	assert_int_equal(look(&k).wanted, 2);
	k.addr = 9;
	assert_false(add(&k, 21));
	assert_int_equal(table->head.lost_table, 1);
	check_law();
	/* A key that was pushed out comes back as another entry: its counts add up. */
	count_clear(table, &shape);
	assert_int_equal(received() + lost() + look(NULL).entries, 0);
	for (k.addr = 1; k.addr <= 5; k.addr++)
		add(&k, k.addr);
	k.addr = 1;
	assert_true(add(&k, 30));
	assert_int_equal(look(&k).wanted, 2);
	check_law();
}

static void losses_after_a_request_are_late(void **state)
{
	struct count_key k = { .instance = 1 };
	const uint64_t announced = 1000;

	(void)state;
	make(4);
	while (!count_should_tell(&shape, &table->head)) {
		k.addr++;
		assert_true(add(&k, announced));
	}
	assert_int_equal(table->head.nr_log, shape.nr_log / 2);
	table->head.announced_ns = announced;
	assert_false(count_should_tell(&shape, &table->head));
	while (table->head.nr_log < shape.nr_log) {
		k.addr++;
		add(&k, announced);
	}
	k.addr++;
	add(&k, announced + COUNT_LATE_NS);
	assert_int_equal(table->head.lost_table, 1);
	add(&k, announced + COUNT_LATE_NS + 1);
	assert_int_equal(table->head.lost_late, 1);
	/* A tick is given the time at which its interrupt began. */
	add(&k, announced - 1);
	assert_int_equal(table->head.lost_table, 2);
	assert_int_equal(table->head.lost_late, 1);
	check_law();
}

static void singles_stay_single(void **state)
{
	const struct count_key k = { 1, 0x1000, 7, 0, COUNT_WHAT(0, 0) };
	struct sum s;

	(void)state;
	make(16);
	for (uint64_t i = 0; i < 3; i++)
		count_sample(table, &shape, &k, true, 100 + i);
	s = look(&k);
	assert_int_equal(s.entries, 3);
	assert_int_equal(s.wanted, 3);
	for (uint64_t i = 0; i < 3; i++)
		count_sample(table, &shape, &k, true, 200);
	assert_int_equal(table->head.lost_table, 2);
	check_law();
}

static void who_interrupts_is_lost(void **state)
{
	const struct count_key k = { 1, 0x1000, 7, 0, COUNT_WHAT(0, 0) };
	const struct count_key other = { 1, 0x1000, 7, 0, COUNT_WHAT(1, 0) };

	(void)state;
	make(16);
	add(&k, 1);
	/* As the program does: received first, then the table. */
	table->head.received[0]++;
	assert_true(count_enter(&table->head));
	add(&other, 2);
	add(&other, 3);
	put(&k, 4);
	count_leave(&table->head);
	add(&other, 5);
	assert_int_equal(table->head.lost_nested, 2);
	assert_int_equal(look(&k).wanted, 2);
	assert_int_equal(look(&other).wanted, 1);
	check_law();
}

static void full_counter_begins_anew(void **state)
{
	const struct count_key k = { 1, 0x1000, 7, 0, COUNT_WHAT(0, 0) };
	struct count_tags *t;

	(void)state;
	make(4);
	add(&k, 1);
	t = &table[shape.tags].tags[0];
	assert_int_equal(t->count[0], 1);
	t->count[0] = UINT32_MAX - 1;
	table->head.received[0] = UINT32_MAX - 1;
	for (uint64_t i = 0; i < 3; i++)
		add(&k, 2 + i);
	assert_int_equal(look(NULL).counts, (uint64_t)UINT32_MAX + 2);
	check_law();
}

/* Floods are counted by process, each table anew; another process is not touched by it. */
static void floods_are_told(void **state)
{
	union count_bucket *floods;

	(void)state;
	make(64);
	floods = &table[COUNT_FLOODS];
	for (uint32_t i = 0; i < shape.nr_flood; i++) {
		assert_false(count_is_flooded(floods, &shape, 1234));
		assert_int_equal(table->head.flooded, 0);
		count_flood(floods, &shape, &table->head, 1234);
	}
	assert_true(count_is_flooded(floods, &shape, 1234));
	assert_true(table->head.flooded);
	assert_false(count_is_flooded(floods, &shape, 1235));
	assert_int_equal(look(NULL).entries, 0);
	count_clear(table, &shape);
	assert_false(count_is_flooded(floods, &shape, 1234));
	assert_int_equal(table->head.flooded, 0);
}

/* A process that runs much code is none that renews it: only other generations of a place tell. */
static void only_new_generations_are_renewed(void **state)
{
	struct count_key k = { 1, 0, 7, 1, COUNT_WHAT(0, 0) };

	(void)state;
	make(64);
	for (k.addr = 0; k.addr < 200; k.addr++)
		assert_int_equal(put(&k, 1) == COUNT_RENEWED, 0);
	count_clear(table, &shape);
	k.addr = 5;
	assert_int_equal(put(&k, 1), COUNT_NEW);
	for (k.generation = 2; k.generation < 12; k.generation++)
		assert_int_equal(put(&k, 1), COUNT_RENEWED);
	k.generation--;
	assert_int_equal(put(&k, 1), COUNT_KNOWN);
	/* Another process at the same place, another life. */
	k.tgid = 8;
	k.generation = 1;
	assert_int_equal(put(&k, 1), COUNT_NEW);
	k.tgid = 7;
	k.instance = 2;
	assert_int_equal(put(&k, 1), COUNT_NEW);
	/* Other threads. */
	make(4096);
	for (uint32_t i = 1; i < 100; i++) {
		k.what = COUNT_WHAT(0, 0) | COUNT_OF_THREAD(i);
		assert_int_equal(put(&k, 1), COUNT_NEW);
	}
	k.what |= COUNT_WHAT_READ;
	assert_int_equal(put(&k, 1), COUNT_RENEWED);
}

/* Random keys, few or many, into tables from tiny to roomy, with clearing between. */
static void random_counts_add_up(void **state)
{
	static const uint32_t lens[] = { 4, 8, 16, 64, 256, 4096, 16384 };

	(void)state;
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		make(lens[i]);
		for (int round = 0; round < 4; round++) {
			uint64_t of_event[COUNT_NR_EVENTS] = { 0 };
			uint32_t spread = 1 + draw(2 * lens[i]);
			struct sum s;

			for (uint64_t n = 0; n < 20000; n++) {
				struct count_key k = { draw(3), draw(spread), draw(2), draw(2),
						       COUNT_WHAT(draw(16), draw(2)) };

				of_event[COUNT_WHAT_EVENT(k.what)]++;
				count_sample(table, &shape, &k, draw(1000) == 0, n);
			}
			check_law();
			s = look(NULL);
			for (int e = 0; e < COUNT_NR_EVENTS; e++) {
				assert_int_equal(table->head.received[e], of_event[e]);
				assert_true(s.of_event[e] <= of_event[e]);
			}
			assert_true(lens[i] > 16 || lost() > 0);
			count_clear(table, &shape);
			assert_int_equal(received() + lost() + look(NULL).entries, 0);
		}
	}
}

/* Whoever reads a table that somebody else has written to must not leave it. */
/* What the hash was made of, in one sum: each step behind it can be undone. */
static uint64_t sum_of(const struct count_key *k)
{
	uint64_t x = count_place_of(&shape, k).tag, inverse = 1;

	/* Newton: the right bits double with each. */
	for (int i = 0; i < 6; i++)
		inverse *= 2 - 0xff51afd7ed558ccdull * inverse;
	x *= inverse;
	return x ^ x >> 32;
}

/* Forked workers at one address, sampled by two events: no bit of the sum is the same for all. */
static void all_bits_of_the_hash_count(void **state)
{
	uint64_t start = 0x123456789a, first = 0, changed = 0;

	(void)state;
	make(64);
	for (uint32_t i = 0; i < 64; i++) {
		const struct count_key k = {
			.instance = count_instance(start, 1),
			.addr = 0x401000,
			.tgid = 1000 + i,
			.what = COUNT_WHAT(i % 2, 0),
		};

		first = i ? first : sum_of(&k);
		changed |= sum_of(&k) ^ first;
		start += 100000 + draw(1000000);
	}
	assert_true(changed == UINT64_MAX);
	/* Another exec is another life. */
	assert_true(count_instance(start, 1) != count_instance(start, 2));
}

static void nonsense_in_the_head_is_survived(void **state)
{
	const struct count_key k = { 1, 0x1000, 7, 0, COUNT_WHAT(0, 0) };

	(void)state;
	make(16);
	add(&k, 1);
	table->head.nr_log = UINT32_MAX;
	assert_int_equal(look(&k).wanted, 1);
	count_clear(table, &shape);
	assert_int_equal(look(NULL).entries, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(every_part_of_a_key_keeps_counts_apart, clean),
		cmocka_unit_test_teardown(fifth_of_a_bucket_pushes_one_into_the_log, clean),
		cmocka_unit_test_teardown(losses_after_a_request_are_late, clean),
		cmocka_unit_test_teardown(singles_stay_single, clean),
		cmocka_unit_test_teardown(who_interrupts_is_lost, clean),
		cmocka_unit_test_teardown(full_counter_begins_anew, clean),
		cmocka_unit_test_teardown(floods_are_told, clean),
		cmocka_unit_test_teardown(only_new_generations_are_renewed, clean),
		cmocka_unit_test_teardown(random_counts_add_up, clean),
		cmocka_unit_test_teardown(all_bits_of_the_hash_count, clean),
		cmocka_unit_test_teardown(nonsense_in_the_head_is_survived, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
