/* SPDX-License-Identifier: BSD-2-Clause */
/* Tails of distributions against values that Python's fractions and mpmath (50 digits) computed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "regress.h"

/* Is @value within a billionth of @expected? */
static void assert_near(double value, double expected)
{
	if (fabs(value - expected) > 1e-9 * fabs(expected))
		fail_msg("%.12g is not %.12g", value, expected);
}

/* sum(comb(n, j) p^j (1-p)^(n-j) for j in k..n) in fractions; the last by mpmath.loggamma. */
static void test_binomial(void **state)
{
	(void)state;
	assert_near(chance_binomial(60, 100, 0.5), 0.028443966820490395);
	assert_near(chance_binomial(9, 10, 1.0 / 3), 0.00035563684397703604);
	assert_near(chance_binomial(1300, 2000, 0.5), 8.146748513802352e-42);
	assert_near(chance_binomial(5, 1000, 0.001), 0.00363687802952179);
	assert_true(fabs(chance_binomial(100050000, 200000000, 0.5) / 7.69120966594e-13 - 1) <
		    1e-5);
	assert_true(chance_binomial(0, 10, 0.5) == 1);
	assert_true(chance_binomial(11, 10, 0.5) == 0);
}

/* mpmath.quad of the density; erfc(4.75 / sqrt(2)) / 2. */
static void test_student(void **state)
{
	(void)state;
	assert_near(chance_above(4, 5), 0.00516170774042);
	assert_near(chance_above(6, 20), 3.62184996521e-6);
	assert_near(chance_above(4.75, INFINITY), 1.01708324257e-6);
	assert_near(chance_above(-4, 5), 1 - 0.00516170774042);
	assert_near(chance_quantile(3.62184996521e-6, 20), 6);
	assert_near(chance_quantile(1.01708324257e-6, INFINITY), 4.75);
}

/* mpmath.digamma(x), mpmath.psi(1, x). */
static void test_gamma(void **state)
{
	(void)state;
	assert_near(chance_digamma(0.5), -1.96351002602142);
	assert_near(chance_trigamma(0.5), 4.93480220054468);
	assert_near(chance_digamma(7), 1.87278433509847);
	assert_near(chance_trigamma(7), 0.153545177959338);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_binomial),
		cmocka_unit_test(test_student),
		cmocka_unit_test(test_gamma),
	};

	return cmocka_run_group_tests_name("chance", tests, NULL, NULL);
}
