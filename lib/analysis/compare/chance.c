/* SPDX-License-Identifier: BSD-2-Clause */
/* Computes tails of the binomial, normal and Student's distributions. */
#include <math.h>

#include "chance.h"

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double fraction(double x, double a, double b)
{
	enum { STEPS_MAX = 1000000 };
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), h;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	h = d;
	for (double m = 1; m < STEPS_MAX; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double change;

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		h *= d * c;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		change = d * c;
		h *= change;
		if (fabs(change - 1) < 1e-14)
			break;
	}
	return h;
}

/* The regularised incomplete beta function I_x(a, b); a, b above 0, x from 0 to 1. */
static double chance_beta(double x, double a, double b)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * fraction(x, a, b) / a;
	return 1 - front * fraction(1 - x, b, a) / b;
}

double chance_binomial(double k, double n, double p)
{
	return k <= 0 ? 1 : k > n ? 0 : chance_beta(p, k, n - k + 1);
}

double chance_above(double t, double df)
{
	double half;

	if (isinf(df))
		return erfc(t / sqrt(2)) / 2;
	half = chance_beta(df / (df + t * t), df / 2, 0.5) / 2;
	return t > 0 ? half : 1 - half;
}

/* The logarithm of the probability above @t over @p, which is nearly straight between two values.
 */
static double over(double t, double df, double p)
{
	return log(fmax(chance_above(t, df), 1e-300) / p);
}

/* The Illinois method: a line between both ends meets 0, and an end that stays is weighed less. */
double chance_quantile(double p, double df)
{
	double low = 0, high = 1, at_low = log(0.5 / p), at_high = over(high, df, p);
	int stays = 0;

	for (; at_high > 0 && high < 1e12; high *= 2, at_high = over(high, df, p)) {
		low = high;
		at_low = at_high;
	}
	for (int i = 0; i < 200 && at_high < 0 && high - low > 1e-13 * high; i++) {
		double t = (low * at_high - high * at_low) / (at_high - at_low);
		double at = over(t, df, p);
		int side = at > 0 ? 1 : -1;

		if (at > 0) {
			low = t;
			at_low = at;
			at_high /= side == stays ? 2 : 1;
		} else {
			high = t;
			at_high = at;
			at_low /= side == stays ? 2 : 1;
		}
		stays = side;
	}
	return high;
}

/* The recurrence shifts @x up until the asymptotic series is exact. */
double chance_digamma(double x)
{
	double sum = 0, inverse;

	for (; x < 12; x++)
		sum -= 1 / x;
	inverse = 1 / (x * x);
	return sum + log(x) - 1 / (2 * x) -
	       inverse * (1.0 / 12 - inverse * (1.0 / 120 - inverse / 252));
}

double chance_trigamma(double x)
{
	double sum = 0, inverse;

	for (; x < 12; x++)
		sum += 1 / (x * x);
	inverse = 1 / (x * x);
	return sum + 1 / x + inverse / 2 +
	       inverse / x * (1.0 / 6 - inverse * (1.0 / 30 - inverse / 42));
}
