/* SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>

#include "scratch.h"

/*
 * What may be expected of a sample in which a value is each time chosen with probability 1 / thld:
 * the times that it is chosen have a standard deviation below sqrt(f / thld), so that f, estimated
 * by concise, is off by sqrt(f * thld). By counting only what comes before the first choice is
 * missing: a geometric number of mean thld, which is above 6 * thld once in 400. The seeds are
 * fixed, so that a run passes always or never; means over many seeds show that nothing is off in
 * one direction by more than a threshold.
 */
enum { N = 40000, SEEDS = 25 };

struct stream {
	uint64_t state;
	uint64_t (*next)(struct stream *s);
	uint64_t seen[8]; /* true counts of values 0 to 7 */
};

static uint64_t random64(uint64_t *state)
{
	uint64_t v = *state += UINT64_C(0x9e3779b97f4a7c15);

	v = (v ^ v >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	v = (v ^ v >> 27) * UINT64_C(0x94d049bb133111eb);
	return v ^ v >> 31;
}

/* 45, 25, 15 and 10 %, and 5 % of one in a thousand others. */
static uint64_t hot(struct stream *s)
{
	uint64_t x = random64(&s->state) % 100;

	return x < 45 ? 0 : x < 70 ? 1 : x < 85 ? 2 : x < 95 ? 3 : 100 + random64(&s->state) % 1000;
}

/* Value i comes in proportion to 1 / (i + 1) / (i + 2): 50, 17, 8, 5 %, … */
static uint64_t zipf(struct stream *s)
{
	double u = ((double)(random64(&s->state) >> 11) + 0.5) * 0x1p-53;

	return (uint64_t)(1 / u) - 1;
}

static uint64_t uniform(struct stream *s)
{
	return random64(&s->state) % 10000;
}

static uint64_t rare(struct stream *s)
{
	return random64(&s->state);
}

static void feed(struct profdb_values *v, struct stream *s, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t value = s->next(s);

		if (value < 8)
			s->seen[value]++;
		assert_int_equal(profdb_values_add(v, 16, NULL, value), 0);
	}
}

static struct profdb_values *values(uint64_t seed)
{
	struct profdb_values *v = profdb_values_new(PROFDB_FILE, NULL, "/a", PROFDB_VALUES);

	assert_non_null(v);
	profdb_values_seed(v, seed);
	return v;
}

static void check_list(const struct profdb_hotlist *l, uint64_t n)
{
	uint64_t sum = 0;

	assert_true(l->vtot == n && l->nv <= PROFDB_NR_HOT && l->thld >= 1);
	for (size_t i = 0; i < l->nv; i++) {
		assert_true(l->v[i].concise && l->v[i].concise <= l->v[i].counting);
		assert_true(!i || l->v[i - 1].counting >= l->v[i].counting);
		sum += l->v[i].counting;
	}
	assert_true(sum <= n);
}

static size_t place(const struct profdb_hotlist *l, uint64_t value)
{
	size_t i = 0;

	while (i < l->nv && l->v[i].value != value)
		i++;
	return i;
}

/* Errors in thresholds, added up over seeds. */
struct error {
	double counting, concise;
};

static void check_value(const struct profdb_hotlist *l, uint64_t value, uint64_t seen,
			struct error *sum)
{
	double thld = (double)l->thld, f = (double)seen, counting, concise;
	size_t i = place(l, value);

	assert_true(i < l->nv);
	counting = profdb_hot_count(l, i, false) - f;
	concise = profdb_hot_count(l, i, true) - f;
	assert_true(fabs(counting) <= 6 * thld);
	assert_true(fabs(concise) <= 4.5 * sqrt(f * thld) + thld);
	sum->counting += counting / thld;
	sum->concise += concise / sqrt(f * thld);
}

/* @missing: by counting, in thresholds. Either error has a standard deviation of 1 at most. */
static void check_means(const struct error *sum, double missing)
{
	assert_true(fabs(sum->counting / SEEDS + missing) < 4 / sqrt(SEEDS));
	assert_true(fabs(sum->concise / SEEDS) < 4 / sqrt(SEEDS));
}

/* In @parts that are merged one after the other, as flushes are. */
static const struct profdb_hotlist *run(struct profdb_values *v, struct stream *s, uint64_t seed,
					int parts)
{
	const struct profdb_hotlist *l;

	feed(v, s, N / (uint64_t)parts);
	for (int i = 1; i < parts; i++) {
		struct profdb_values *more = values(seed + (uint64_t)i * 1000);

		feed(more, s, N / (uint64_t)parts);
		assert_int_equal(profdb_values_merge(v, more), 0);
		profdb_values_free(more);
	}
	assert_int_equal(profdb_values_nr(v), 1);
	l = profdb_values_at(v, 0);
	check_list(l, N);
	return l;
}

static void check_hot(int parts, double missing)
{
	struct error sum[4] = { 0 };

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct stream s = { .state = seed << 32, .next = hot };
		struct profdb_values *v = values(seed);
		const struct profdb_hotlist *l = run(v, &s, seed, parts);

		/* Of 2,000 rare ones 12 have room. */
		assert_in_range(l->thld, 50, 600);
		for (uint64_t i = 0; i < 4; i++) {
			assert_true(place(l, i) < 4);
			check_value(l, i, s.seen[i], &sum[i]);
		}
		profdb_values_free(v);
	}
	for (int i = 0; i < 4; i++)
		check_means(&sum[i], missing);
}

static void test_hot_values_among_noise(void **state)
{
	(void)state;
	/* One is missing in the mean, 0.418 are put back. */
	check_hot(1, 0.58);
}

/* What a part misses before a value comes in is its own threshold, less by as much as the parts are
 * more: all of them miss one threshold of the whole once more. */
static void test_many_parts_are_as_good_as_one(void **state)
{
	(void)state;
	check_hot(50, 1.5);
}

static void test_zipf(void **state)
{
	struct error sum[2] = { 0 };

	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct stream s = { .state = seed << 32, .next = zipf };
		struct profdb_values *v = values(seed);
		const struct profdb_hotlist *l = run(v, &s, seed, 4);

		for (uint64_t i = 0; i < 2; i++)
			check_value(l, i, s.seen[i], &sum[i]);
		profdb_values_free(v);
	}
}

/* Where nothing is frequent nothing is said to be: each of 10,000 values came four times. */
static void check_flat(uint64_t (*next)(struct stream *s))
{
	double points = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct stream s = { .state = seed << 32, .next = next };
		struct profdb_values *v = values(seed);
		const struct profdb_hotlist *l = run(v, &s, seed, 5);

		for (size_t i = 0; i < l->nv; i++) {
			assert_true(l->v[i].counting <= 20);
			points += (double)l->v[i].concise * (double)l->thld / N;
		}
		profdb_values_free(v);
	}
	/* The sample stands for all, by 8 to 16 points each time: a standard deviation of 0.35. */
	assert_true(fabs(points / SEEDS - 1) < 4 * 0.35 / sqrt(SEEDS));
}

static void test_flat(void **state)
{
	(void)state;
	check_flat(uniform);
	check_flat(rare);
}

static void test_few_are_exact(void **state)
{
	struct profdb_values *v = values(1), *w = values(2);
	const struct profdb_hotlist *l;

	(void)state;
	for (uint64_t i = 0; i < 1600; i++) {
		profdb_values_add(v, 8, NULL, i % 16);
		profdb_values_add(w, 8, NULL, i % 8);
	}
	assert_int_equal(profdb_values_merge(v, w), 0);
	l = profdb_values_at(v, 0);
	check_list(l, 3200);
	assert_int_equal(l->thld, 1);
	assert_int_equal(l->nv, 16);
	for (size_t i = 0; i < 16; i++) {
		assert_int_equal(l->v[i].value, i);
		assert_int_equal(l->v[i].counting, i < 8 ? 300 : 100);
		assert_int_equal(l->v[i].concise, l->v[i].counting);
		assert_true(profdb_hot_count(l, i, i % 2) == (i < 8 ? 300 : 100));
	}
	profdb_values_free(v);
	profdb_values_free(w);
}

/* Merged into one that has a value in already, all that another one has of it counts. */
static void test_what_is_in_counts_all(void **state)
{
	struct profdb_values *v = values(1), *w = values(2);
	struct stream s = { .state = 5, .next = hot };
	const struct profdb_hotlist *l;
	uint64_t before;

	(void)state;
	feed(v, &s, N);
	l = profdb_values_at(v, 0);
	before = l->v[3].counting;
	assert_int_equal(l->v[3].value, 3);
	/* Less than the threshold, so that by thinning nothing would be left, mostly. */
	for (int i = 0; i < 50; i++)
		profdb_values_add(w, 16, NULL, 3);
	assert_true(l->thld > 50);
	assert_int_equal(profdb_values_merge(v, w), 0);
	l = profdb_values_at(v, 0);
	assert_int_equal(l->v[place(l, 3)].counting, before + 50);
	assert_int_equal(l->vtot, N + 50);
	/* The other way round too. */
	assert_int_equal(profdb_values_merge(w, v), 0);
	l = profdb_values_at(w, 0);
	assert_int_equal(l->v[place(l, 3)].counting, before + 100);
	profdb_values_free(v);
	profdb_values_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hot_values_among_noise),
		cmocka_unit_test(test_many_parts_are_as_good_as_one),
		cmocka_unit_test(test_zipf),
		cmocka_unit_test(test_flat),
		cmocka_unit_test(test_few_are_exact),
		cmocka_unit_test(test_what_is_in_counts_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
