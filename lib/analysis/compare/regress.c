/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests every routine for a slow-down: sizes of replicates, overdispersion, exact and moderated
 * tests, Holm's correction with Tarone's count of comparisons; and computes the tails of the
 * binomial, normal and Student's distributions for that. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "regress.h"

/* ---- probabilities of counts and of normal variables ----------------------------------------- */

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

/* ---- the sets -------------------------------------------------------------------------------- */

/* A row takes part in estimates of sizes and of dispersion from this mean count on: below it,
 * ratios of small whole numbers are biased. */
enum { COUNT_MIN = 20 };
/* A routine that differs more than this is not taken for unchanged. */
static const double changed_p = 1e-3;
/* The limit is the slow-down that is found in all but this part of cases. */
static const double missed = 0.01;

static size_t nr_all(const struct regress *x)
{
	return x->nr_replicates[0] + x->nr_replicates[1];
}

static size_t first_of(const struct regress *x, int set)
{
	return set ? x->nr_replicates[0] : 0;
}

/* ---- variance -------------------------------------------------------------------------------- */

/* The part of the variance in one replicate that is not chance in sampling, of a routine with @n
 * samples in both sets: routines are unlike in that part alone. */
static double share_of(const struct regress *x, double n)
{
	double mean = n / (double)nr_all(x);

	return x->overdispersion > 0 ? 1 - 1 / (1 + x->overdispersion * mean) : 1;
}

/* The degrees that the typical spread has for a routine with @n samples in both sets, more where
 * the part is small that routines are unlike in. The part's square would do if they differed
 * little. */
static double prior_of(const struct regress *x, double n)
{
	return x->prior_degrees / share_of(x, n);
}

/* The spread of a row: its own, drawn to the typical one. */
static double spread_of(const struct regress *x, const struct regress_row *row)
{
	double d0 = prior_of(x, row->sum[0] + row->sum[1]), d = row->degrees;

	if (isinf(d0))
		return x->prior;
	return fmax(1, (d0 * x->prior + d * row->spread) / (d0 + d));
}

/* The degrees of freedom of the variance of a routine with @n samples in both sets, of which @own
 * are its own. All routines' together bound them, as the typical spread is known no better. */
static double degrees_of(const struct regress *x, double n, double own)
{
	return x->pooled_degrees > 0 ? fmin(prior_of(x, n) + own, x->pooled_degrees) : INFINITY;
}

/* The sum over a set's replicates of the squares of their parts. */
static double parts_of(const struct regress *x, int set)
{
	double sum = 0;

	for (size_t i = 0; i < x->nr_replicates[set]; i++) {
		double part = x->size[first_of(x, set) + i] / x->total[set];

		sum += part * part;
	}
	return sum;
}

/* The variance of the logarithm of a ratio of @b samples in B to @a in A, which is also that of
 * their difference in multiples of their mean. */
static double variance_of(const struct regress *x, double a, double b, double spread)
{
	double between = x->overdispersion * (parts_of(x, 0) + parts_of(x, 1));

	return spread * (1 / a + 1 / b + between);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

struct ratio {
	double ratio, weight;
};

static int by_ratio(const void *pa, const void *pb)
{
	const struct ratio *a = pa, *b = pb;

	return (a->ratio > b->ratio) - (a->ratio < b->ratio);
}

static double median(struct ratio *v, size_t nr)
{
	double all = 0, sum = 0;

	if (nr)
		qsort(v, nr, sizeof(*v), by_ratio);
	for (size_t i = 0; i < nr; i++)
		all += v[i].weight;
	for (size_t i = 0; i < nr; i++) {
		sum += v[i].weight;
		if (sum > all / 2)
			return v[i].ratio;
		if (sum == all / 2 && i + 1 < nr)
			return (v[i].ratio + v[i + 1].ratio) / 2;
	}
	return 1;
}

static double sum_of(const struct regress *x, const struct regress_row *row, int set)
{
	double sum = 0;

	for (size_t i = 0; i < x->nr_replicates[set]; i++)
		sum += (double)row->count[first_of(x, set) + i];
	return sum;
}

static bool is_unchanged(const struct regress_row *row)
{
	return !row->excluded && row->p[0] >= changed_p && row->p[1] >= changed_p;
}

/* The size of B over that of A: the median of ratios, each weighted by 1 / its standard deviation,
 * as the median of variables of unequal deviation wants it. Returns by how much totals[1] /
 * totals[0] is to be multiplied. */
static double settle_sets(struct regress *x, struct ratio *v)
{
	double ratio, information = 0;

	x->nr_sized = 0;
	for (double least = COUNT_MIN; !x->nr_sized && least >= 1; least = least > 1 ? 1 : 0) {
		for (size_t i = 0; i < x->nr; i++) {
			const struct regress_row *row = &x->v[i];
			double w;

			if (!is_unchanged(row) || row->sum[0] < least || row->sum[1] < least)
				continue;
			w = 1 / variance_of(x, row->sum[0], row->sum[1], spread_of(x, row));
			information += w;
			v[x->nr_sized++] = (struct ratio){ row->sum[1] / row->sum[0], sqrt(w) };
		}
	}
	if (!x->nr_sized)
		return 1;
	ratio = median(v, x->nr_sized);
	x->size_error = M_PI / 2 / information;
	return ratio / (x->total[1] / x->total[0]);
}

/* The sizes of replicates within a set, by their ratios to the set's sums. */
static void size_replicates(struct regress *x, int set, struct ratio *v)
{
	size_t from = first_of(x, set), nr_reps = x->nr_replicates[set];
	double total = 0;

	for (size_t r = from; r < from + nr_reps; r++) {
		size_t nr = 0;

		x->size[r] = 0;
		for (size_t i = 0; i < x->nr; i++) {
			const struct regress_row *row = &x->v[i];
			double n = (double)row->count[r];

			if (row->excluded || row->sum[set] < COUNT_MIN * (double)nr_reps)
				continue;
			v[nr++] = (struct ratio){ n / row->sum[set], sqrt(row->sum[set]) };
		}
		if (nr)
			x->size[r] = median(v, nr);
		x->nr_sizing[set] = nr;
		total += x->size[r];
	}
	x->total[set] = 0;
	for (size_t i = 0; i < x->nr; i++)
		x->total[set] += x->v[i].excluded ? 0 : x->v[i].sum[set];
	for (size_t r = from; r < from + nr_reps; r++)
		x->size[r] = total > 0 ? x->size[r] / total * x->total[set]
				       : x->total[set] / (double)nr_reps;
}

static void scale_set(struct regress *x, int set, double by)
{
	x->total[set] *= by;
	for (size_t i = 0; i < x->nr_replicates[set]; i++)
		x->size[first_of(x, set) + i] *= by;
}

/* ---- dispersion ------------------------------------------------------------------------------ */

/* Pearson's sum of a row's replicates within their sets, and its degrees of freedom. */
static double pearson(const struct regress *x, const struct regress_row *row, double dispersion,
		      double *degrees)
{
	double sum = 0;

	*degrees = 0;
	for (int set = 0; set < 2; set++) {
		size_t from = first_of(x, set), nr = x->nr_replicates[set], used = 0;

		if (row->sum[set] < COUNT_MIN * (double)nr)
			continue;
		for (size_t r = from; r < from + nr; r++) {
			double mean = row->sum[set] * x->size[r] / x->total[set];
			double off = (double)row->count[r] - mean;

			if (mean <= 0)
				continue;
			used++;
			sum += off * off / (mean + dispersion * mean * mean);
		}
		/* The sizes were fitted to the same counts: a row's part of them is no freedom. */
		if (used > 1)
			*degrees += (double)(used - 1) * (1 - 1 / (double)x->nr_sizing[set]);
	}
	return sum;
}

static double typical(const struct regress *x, double dispersion, struct ratio *v)
{
	size_t nr = 0;

	for (size_t i = 0; i < x->nr; i++) {
		double degrees, sum = pearson(x, &x->v[i], dispersion, &degrees);

		if (x->v[i].excluded || degrees == 0)
			continue;
		/* The median of chi-square, by Wilson and Hilferty. */
		v[nr].weight = 1;
		v[nr++].ratio = sum / (degrees * pow(1 - 2 / (9 * degrees), 3));
	}
	return nr ? median(v, nr) : 0;
}

/* The dispersion with which the typical row varies as expected; 0 if chance explains all. */
static void find_overdispersion(struct regress *x, struct ratio *v)
{
	double low = 0, high = 10;

	x->overdispersion = 0;
	if (typical(x, 0, v) <= 1)
		return;
	for (int i = 0; i < 40; i++) {
		double d = i < 20 ? sqrt(fmax(low, 1e-12) * high) : (low + high) / 2;

		if (typical(x, d, v) > 1)
			low = d;
		else
			high = d;
	}
	x->overdispersion = high;
}

static double trigamma_inverse(double y)
{
	double low = 1e-6, high = 1e6;

	for (int i = 0; i < 100; i++) {
		double at = sqrt(low * high);

		if (chance_trigamma(at) > y)
			low = at;
		else
			high = at;
	}
	return high;
}

/* The moments of the logarithms of spreads, less what chance makes them. */
struct moments {
	double n, sum, squares, within, weights, error;
};

static void add_moments(const struct regress *x, const struct regress_row *row, double mean,
			struct moments *m)
{
	double half = row->degrees / 2, share = share_of(x, row->sum[0] + row->sum[1]),
	       weight = share * share;
	double e, within;

	if (row->excluded || row->degrees == 0 || row->spread <= 0)
		return;
	e = log(row->spread) - chance_digamma(half) + log(half) - mean;
	within = chance_trigamma(half);
	m->n++;
	m->sum += e;
	m->squares += weight * (e * e - within);
	m->weights += weight * weight;
	m->error += 2 * weight * weight * within * within;
}

static struct moments moments_of(const struct regress *x, double mean)
{
	struct moments m = { 0 };

	for (size_t i = 0; i < x->nr; i++)
		add_moments(x, &x->v[i], mean, &m);
	return m;
}

/* Fits the distribution of true spreads to those seen: moments of their logarithms (Smyth 2004). */
static void fit_prior(struct regress *x)
{
	struct moments m;
	double mean, extra;

	for (size_t i = 0; i < x->nr; i++) {
		struct regress_row *row = &x->v[i];

		row->spread = pearson(x, row, x->overdispersion, &row->degrees);
		x->pooled_degrees += row->excluded ? 0 : row->degrees;
		if (row->degrees > 0)
			row->spread /= row->degrees;
	}
	x->prior = 1;
	x->prior_degrees = INFINITY;
	m = moments_of(x, 0);
	if (m.n < 3)
		return;
	mean = m.sum / m.n;
	m = moments_of(x, mean);
	extra = fmax(0, m.squares / m.weights * m.n / (m.n - 1));
	/* One standard error more than is seen: rows that differ more than was thought are false
	 * alarms, and the limit grows little by it where there are many. */
	extra += sqrt(m.error) / m.weights + extra * sqrt(2 / m.n);
	x->prior_degrees = 2 * trigamma_inverse(extra);
	x->prior = fmax(1, exp(mean));
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* The larger of an exact test, given the sum, and of the test with the replicates' variance. */
static double test(const struct regress *x, const struct regress_row *row, int way, double factor)
{
	double n = row->sum[0] + row->sum[1], b = x->total[1] * factor, a = x->total[0];
	double mean = n / (a + b), exact, t;

	exact = way ? chance_binomial(row->sum[0], n, a / (a + b))
		    : chance_binomial(row->sum[1], n, b / (a + b));
	t = (row->sum[1] / b - row->sum[0] / a) / mean;
	t /= sqrt(variance_of(x, mean * x->total[0], mean * x->total[1], spread_of(x, row)) +
		  x->size_error);
	return fmax(exact, chance_above(way ? -t : t, degrees_of(x, n, row->degrees)));
}

static void test_all(struct regress *x, double factor)
{
	for (size_t i = 0; i < x->nr; i++) {
		struct regress_row *row = &x->v[i];
		double n = row->sum[0] + row->sum[1];

		row->p[0] = row->p[1] = 1;
		if (row->excluded || n == 0)
			continue;
		row->p[0] = test(x, row, 0, factor);
		row->p[1] = test(x, row, 1, 1);
		row->ratio = row->sum[0] > 0
				     ? row->sum[1] / x->total[1] / (row->sum[0] / x->total[0])
				     : INFINITY;
	}
}

static int ascending(const void *pa, const void *pb)
{
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

static double least_p(const struct regress *x, const struct regress_row *row)
{
	double b = x->total[1] * (1 + x->least);

	return pow(b / (x->total[0] + b), row->sum[0] + row->sum[1]);
}

/*
 * Tarone's number: a routine with so few samples that no outcome can be an alarm is no comparison.
 * That follows from the sum of its samples alone, which the test takes as given.
 */
static size_t count_tests(const struct regress *x, double *v)
{
	size_t nr = 0, low = 1, high;

	for (size_t i = 0; i < x->nr; i++)
		if (!x->v[i].excluded)
			v[nr++] = least_p(x, &x->v[i]);
	if (nr)
		qsort(v, nr, sizeof(*v), ascending);
	high = nr ? nr : 1;
	while (low < high) {
		size_t k = low + (high - low) / 2;

		/* More than k routines can be an alarm if k comparisons are counted. */
		if (v[k] <= x->rate / (double)k)
			low = k + 1;
		else
			high = k;
	}
	return high;
}

/* Holm's procedure in one direction. */
static void decide(struct regress *x, int way, double *v)
{
	size_t nr = 0, found = 0;
	double bound;

	for (size_t i = 0; i < x->nr; i++)
		if (x->v[i].verdict == REGRESS_SAME)
			v[nr++] = x->v[i].p[way];
	if (nr)
		qsort(v, nr, sizeof(*v), ascending);
	while (found < nr && found < x->nr_tested &&
	       v[found] <= x->rate / (double)(x->nr_tested - found))
		found++;
	bound = found ? v[found - 1] : -1;
	for (size_t i = 0; i < x->nr; i++)
		if (x->v[i].verdict == REGRESS_SAME && x->v[i].p[way] <= bound)
			x->v[i].verdict = way ? REGRESS_FASTER : REGRESS_SLOWER;
}

/* The deviations between no slow-down and one that is found. */
static double reach_of(const struct regress *x, double degrees)
{
	return chance_quantile(x->rate / (double)x->nr_tested, degrees) +
	       chance_quantile(missed, degrees);
}

static double limit_of(const struct regress *x, double a, double spread, double reach)
{
	double b = a * x->total[1] / x->total[0];
	double deviation = sqrt(variance_of(x, a, b, spread) + x->size_error);

	return (1 + x->least) * exp(reach * deviation) - 1;
}

double regress_limit(const struct regress *x, double samples)
{
	double own = (double)(nr_all(x) - 2), n = samples * (1 + x->total[1] / x->total[0]);

	return limit_of(x, samples, x->prior, reach_of(x, degrees_of(x, n, own)));
}

/* Most rows have as many degrees as the one before them. */
static void find_limits(struct regress *x)
{
	double last = 0, reach = 0;

	for (size_t i = 0; i < x->nr; i++) {
		struct regress_row *row = &x->v[i];
		double n = row->sum[0] + row->sum[1];
		double degrees = degrees_of(x, n, row->degrees);

		row->limit = INFINITY;
		if (row->excluded || row->sum[0] == 0)
			continue;
		if (degrees != last)
			reach = reach_of(x, degrees);
		last = degrees;
		row->limit = limit_of(x, row->sum[0], spread_of(x, row), reach);
	}
}

static void finish(struct regress *x, double *v)
{
	x->nr_tested = count_tests(x, v);
	for (size_t i = 0; i < x->nr; i++) {
		struct regress_row *row = &x->v[i];
		bool few = least_p(x, row) > x->rate / (double)x->nr_tested;

		row->verdict = row->excluded ? REGRESS_UNTESTED : few ? REGRESS_FEW : REGRESS_SAME;
	}
	find_limits(x);
	decide(x, 0, v);
	decide(x, 1, v);
}

/* ---- all ------------------------------------------------------------------------------------- */

static int check(struct regress *x)
{
	double all[2] = { 0, 0 };

	for (size_t i = 0; i < x->nr; i++) {
		struct regress_row *row = &x->v[i];

		row->p[0] = row->p[1] = 1;
		for (int set = 0; set < 2; set++) {
			row->sum[set] = sum_of(x, row, set);
			all[set] += row->excluded ? 0 : row->sum[set];
		}
	}
	return all[0] > 0 && all[1] > 0 ? 0 : -EINVAL;
}

int regress_make(struct regress *x)
{
	enum { ROUNDS = 4 };
	struct ratio *v = calloc(x->nr + 1, sizeof(*v));
	double *p = calloc(x->nr + 1, sizeof(*p));
	int r = check(x);

	x->size = calloc(nr_all(x) + 1, sizeof(*x->size));
	if (!v || !p || !x->size)
		r = -ENOMEM;
	if (r == 0) {
		size_replicates(x, 0, v);
		size_replicates(x, 1, v);
		find_overdispersion(x, v);
		fit_prior(x);
	}
	for (int i = 0; i < ROUNDS && r == 0; i++) {
		scale_set(x, 1, settle_sets(x, v));
		test_all(x, 1);
	}
	if (r == 0) {
		test_all(x, 1 + x->least);
		finish(x, p);
	}
	free(v);
	free(p);
	return r;
}

void regress_release(struct regress *x)
{
	free(x->size);
	x->size = NULL;
}
