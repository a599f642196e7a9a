/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of many routines got slower between two sets of samples, at a stated rate of false alarms.
 */
#ifndef DCPI_COMPARE_REGRESS_H
#define DCPI_COMPARE_REGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum regress_verdict {
	REGRESS_SAME, /* what chance explains */
	REGRESS_SLOWER,
	REGRESS_FASTER,
	REGRESS_FEW,	  /* no number of samples in B could have told */
	REGRESS_UNTESTED, /* the caller excluded it */
};

struct regress_row {
	const uint64_t *count; /* the caller's; by replicate, those of A first */
	bool excluded;	       /* the caller's: no routine, or in one set alone */
	double sum[2];
	double ratio; /* time in B in multiples of that in A; INFINITY: none in A */
	double p[2];  /* probability of so much more, and so much less, by chance */
	double limit; /* slow-down, 0.05 is 5 %, that is found in 99 of 100 cases */
	enum regress_verdict verdict;
	double spread;	/* dispersion of its replicates, in multiples of what is expected */
	double degrees; /* of freedom in @spread */
};

struct regress {
	struct regress_row *v; /* the caller's */
	size_t nr;
	size_t nr_replicates[2];
	double rate;  /* probability of an alarm where nothing got slower, 0 to 0.5 */
	double least; /* slow-downs up to this, 0.05 is 5 %, are no alarm */
	/* Results. */
	double *size;	     /* by replicate: samples that an unchanged routine of one sample has */
	double total[2];     /* sums of @size */
	double size_error;   /* variance of the logarithm of total[1] / total[0] */
	size_t nr_sized;     /* number of routines that the sizes rest on */
	size_t nr_sizing[2]; /* number of routines that the sizes within each set rest on */
	double overdispersion;	     /* squared coefficient of variation between replicates */
	double prior, prior_degrees; /* the typical row's spread, and how alike rows are in it */
	double pooled_degrees;	     /* of freedom in all rows; 0: how they vary is not known */
	size_t nr_tested;	     /* number of comparisons that the rate is divided by */
};

/* Computes all results; the caller releases @x also on failure. 0, -ENOMEM, or -EINVAL: a set has
 * no samples in routines. */
int regress_make(struct regress *x);
void regress_release(struct regress *x);
/* The slow-down of a routine with @samples in A that is found in 99 of 100 cases. */
double regress_limit(const struct regress *x, double samples);

/* ---- probabilities of counts and of normal variables, exact also far out in the tails -------- */

/* The probability that of @n samples, each with probability @p, at least @k fall into a set. */
double chance_binomial(double k, double n, double p);
/* The probability that a variable of Student's t with @df degrees (INFINITY: a normal one) is above
 * @t, and the value that it exceeds with probability @p (0 to 0.5). */
double chance_above(double t, double df);
double chance_quantile(double p, double df);
/* Derivatives of lgamma; @x is above 0. */
double chance_digamma(double x);
double chance_trigamma(double x);

#endif
