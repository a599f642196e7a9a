/* SPDX-License-Identifier: BSD-2-Clause */
/* Probabilities of counts and of normal variables, exact also far out in the tails. */
#ifndef DCPI_COMPARE_CHANCE_H
#define DCPI_COMPARE_CHANCE_H

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
