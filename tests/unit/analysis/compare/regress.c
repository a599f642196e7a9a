/* SPDX-License-Identifier: BSD-2-Clause */
/* Slow-downs above the limit are found, and chance raises no alarm, with and without replicates. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "regress.h"

enum { NR = 500, REPLICATES_MAX = 12 };

struct fixture {
	uint64_t counts[NR * REPLICATES_MAX];
	struct regress_row rows[NR];
	struct regress x;
};

static struct fixture f;

static uint64_t seed;

static int begin(void **state)
{
	(void)state;
	seed = 1;
	return 0;
}

static double uniform(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return ((double)(seed >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* Sizes as Zipf has them, the smallest one 100 samples. */
static double size_of(size_t i)
{
	return 100.0 * NR / (double)(i + 1);
}

static uint64_t count_of(double mean)
{
	return (uint64_t)fmax(0, round(mean + sqrt(mean) * normal()));
}

/* @load: samples by replicate; @deviation: relative, beside chance. Every 50th routine from number
 * 3 on takes @slower times as long in B. */
static void fill(size_t each, const double *load, double deviation, double slower)
{
	size_t width = 2 * each;

	memset(&f, 0, sizeof(f));
	for (size_t i = 0; i < NR; i++) {
		for (size_t r = 0; r < width; r++) {
			double mean = size_of(i) * load[r];

			if (r >= each && i % 50 == 3)
				mean *= slower;
			mean *= exp(deviation * normal());
			f.counts[i * width + r] = count_of(mean);
		}
		f.rows[i].count = &f.counts[i * width];
	}
	f.x = (struct regress){
		.v = f.rows, .nr = NR, .nr_replicates = { each, each }, .rate = 0.01
	};
	assert_int_equal(regress_make(&f.x), 0);
}

static size_t nr_of(enum regress_verdict verdict)
{
	size_t nr = 0;

	for (size_t i = 0; i < NR; i++)
		nr += f.rows[i].verdict == verdict;
	return nr;
}

static const double pair[] = { 10, 13 };
/* Hosts of different load, of which B has more. */
static const double hosts[] = { 1, 9, 3, 0.5, 2, 5, 7, 1, 3, 4, 2, 6 };

static void test_quiet(void **state)
{
	size_t alarms = 0;

	(void)state;
	for (int run = 0; run < 30; run++) {
		fill(run % 2 ? 1 : 6, run % 2 ? pair : hosts, run % 2 ? 0 : 0.02, 1);
		alarms += nr_of(REGRESS_SLOWER) > 0;
		regress_release(&f.x);
	}
	assert_true(alarms <= 1);
}

/* Has one of @nr routines, the first one of @size samples, an alarm between sets of two replicates?
 * They vary by @typical, and with @unlike some of them more than others, and most have few samples.
 */
static bool has_alarm(size_t nr, double size, bool unlike)
{
	bool alarm;

	memset(&f, 0, sizeof(f));
	for (size_t i = 0; i < nr; i++) {
		double deviation = 0.02 * (unlike ? exp(0.5 * normal()) : 1);
		double each = unlike ? size / (double)(i + 1) : size;

		for (size_t r = 0; r < 4; r++)
			f.counts[4 * i + r] = count_of(each * exp(deviation * normal()));
		f.rows[i].count = &f.counts[4 * i];
	}
	f.x = (struct regress){ .v = f.rows, .nr = nr, .nr_replicates = { 2, 2 }, .rate = 0.01 };
	assert_int_equal(regress_make(&f.x), 0);
	alarm = nr_of(REGRESS_SLOWER) > 0;
	regress_release(&f.x);
	return alarm;
}

static void check_rate(size_t runs, size_t nr, bool unlike)
{
	size_t alarms = 0;

	for (size_t run = 0; run < runs; run++)
		alarms += has_alarm(nr, 1e5, unlike);
	assert_true(chance_binomial((double)alarms, (double)runs, 0.01) > 1e-3);
}

/* A few routines tell little about how they vary. */
static void test_few_routines(void **state)
{
	(void)state;
	check_rate(800, 2, false);
	check_rate(800, 3, false);
	check_rate(200, 10, false);
}

/* Routines that vary more than the typical one are no alarm, also where two replicates cannot tell
 * which ones these are. */
static void test_unlike_routines(void **state)
{
	(void)state;
	check_rate(100, 20, true);
	check_rate(60, 100, true);
}

/* The median of many ratios has the variance of one, by the number of replicates, times pi / 2, by
 * the number of ratios. */
static void test_size_error(void **state)
{
	static const double equal[] = {
		1e4, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4, 1e4
	};
	double each;

	(void)state;
	fill(6, equal, 0.02, 1);
	each = f.x.overdispersion * 2 / 6;
	assert_true(fabs(f.x.overdispersion / (0.02 * 0.02) - 1) < 0.2);
	assert_true(fabs(f.x.size_error / (M_PI / 2 * each / NR) - 1) < 0.2);
	regress_release(&f.x);
}

static void check_found(size_t each, const double *load, double deviation, double slower)
{
	size_t found = 0;

	fill(each, load, deviation, slower);
	for (size_t i = 0; i < NR; i++) {
		if (i % 50 != 3) {
			assert_int_not_equal(f.rows[i].verdict, REGRESS_SLOWER);
			continue;
		}
		if (f.rows[i].limit < slower - 1)
			assert_int_equal(f.rows[i].verdict, REGRESS_SLOWER);
		found += f.rows[i].verdict == REGRESS_SLOWER;
	}
	assert_true(found > 1);
	regress_release(&f.x);
}

static void test_found(void **state)
{
	(void)state;
	check_found(1, pair, 0, 1.15);
	check_found(6, hosts, 0.02, 1.15);
}

/* B is 1.3 times A, and a third of the routines takes twice as long. */
static void test_normaliser(void **state)
{
	uint64_t counts[12][2];
	struct regress_row rows[12] = { 0 };
	struct regress x = { .v = rows, .nr = 12, .nr_replicates = { 1, 1 }, .rate = 0.01 };

	(void)state;
	for (size_t i = 0; i < 12; i++) {
		counts[i][0] = 10000;
		counts[i][1] = i < 4 ? 26000 : 13000;
		rows[i].count = counts[i];
	}
	assert_int_equal(regress_make(&x), 0);
	assert_true(fabs(x.total[1] / x.total[0] - 1.3) < 1e-9);
	for (size_t i = 0; i < 12; i++)
		assert_int_equal(rows[i].verdict, i < 4 ? REGRESS_SLOWER : REGRESS_SAME);
	assert_true(rows[0].ratio == 2);
	regress_release(&x);
}

/*
 * The least probability of n samples, of equal sets, is 2^-n: with 20 routines of 6 samples, and 3
 * of many, 2^-6 is above 0.01 / k for each k, so that 3 comparisons remain.
 */
static void test_tarone(void **state)
{
	static const uint64_t few[2] = { 3, 3 }, many[2] = { 1000, 1000 };
	struct regress_row rows[23] = { 0 };
	struct regress x = { .v = rows, .nr = 23, .nr_replicates = { 1, 1 }, .rate = 0.01 };
	double z;

	(void)state;
	for (size_t i = 0; i < 23; i++)
		rows[i].count = i < 3 ? many : few;
	assert_int_equal(regress_make(&x), 0);
	assert_int_equal(x.nr_tested, 3);
	assert_int_equal(rows[22].verdict, REGRESS_FEW);
	z = chance_quantile(0.01 / 3, INFINITY) + chance_quantile(0.01, INFINITY);
	assert_true(fabs(regress_limit(&x, 1000) - expm1(z * sqrt(2.0 / 1000 + x.size_error))) <
		    1e-9);
	regress_release(&x);
}

static void test_empty(void **state)
{
	static const uint64_t none[2] = { 0, 10 };
	struct regress_row row = { .count = none };
	struct regress x = { .v = &row, .nr = 1, .nr_replicates = { 1, 1 }, .rate = 0.01 };

	(void)state;
	assert_int_equal(regress_make(&x), -22);
	regress_release(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_quiet, begin),
		cmocka_unit_test_setup(test_few_routines, begin),
		cmocka_unit_test_setup(test_unlike_routines, begin),
		cmocka_unit_test_setup(test_size_error, begin),
		cmocka_unit_test_setup(test_found, begin),
		cmocka_unit_test(test_normaliser),
		cmocka_unit_test(test_tarone),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests_name("regress", tests, NULL, NULL);
}
