/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "num" of bench/accuracy: kernels of arithmetic, each about as long as the others.
 *   num SEED: sizes and data depend on it; prints a sum of everything computed
 */
#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static double uniform(void)
{
	return (double)(draw() >> 11) / (double)(1ull << 53);
}

enum { MATRIX_MAX = 160, BODIES = 40, FFT_LEN = 1 << 12, SIEVE_LEN = 1 << 20, SORT_LEN = 1 << 16 };

static double a[MATRIX_MAX][MATRIX_MAX], b[MATRIX_MAX][MATRIX_MAX], c[MATRIX_MAX][MATRIX_MAX];

static double multiply(int n)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			a[i][j] = uniform();
			b[i][j] = uniform();
		}
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			double sum = 0;

			for (int k = 0; k < n; k++)
				sum += a[i][k] * b[k][j];
			c[i][j] = sum;
		}
	return c[n / 2][n / 3];
}

/* LU decomposition with partial pivoting, in place in c; the product of the pivots. */
static double decompose(int n)
{
	double product = 1;

	for (int k = 0; k < n; k++) {
		int best = k;

		for (int i = k + 1; i < n; i++)
			if (fabs(c[i][k]) > fabs(c[best][k]))
				best = i;
		for (int j = 0; best != k && j < n; j++) {
			double swap = c[k][j];

			c[k][j] = c[best][j];
			c[best][j] = swap;
		}
		for (int i = k + 1; i < n; i++) {
			double f = c[i][k] / c[k][k];

			for (int j = k; j < n; j++)
				c[i][j] -= f * c[k][j];
		}
		product = fmod(product * c[k][k], 1000);
	}
	return product;
}

static struct {
	double x[3], v[3], m;
} body[BODIES];

static double move_bodies(int steps)
{
	for (int i = 0; i < BODIES; i++)
		for (int k = 0; k < 3; k++) {
			body[i].x[k] = uniform();
			body[i].v[k] = 0;
			body[i].m = uniform();
		}
	for (int s = 0; s < steps; s++) {
		for (int i = 0; i < BODIES; i++)
			for (int j = 0; j < BODIES; j++) {
				double d[3], r2 = 0.01;

				if (i == j)
					continue;
				for (int k = 0; k < 3; k++) {
					d[k] = body[j].x[k] - body[i].x[k];
					r2 += d[k] * d[k];
				}
				for (int k = 0; k < 3; k++)
					body[i].v[k] += 1e-4 * body[j].m * d[k] / (r2 * sqrt(r2));
			}
		for (int i = 0; i < BODIES; i++)
			for (int k = 0; k < 3; k++)
				body[i].x[k] += 1e-2 * body[i].v[k];
	}
	return body[0].x[0];
}

static double complex wave[FFT_LEN];

static double transform(int rounds)
{
	double sum = 0;

	for (int r = 0; r < rounds; r++) {
		for (int i = 0; i < FFT_LEN; i++)
			wave[i] = uniform();
		for (int i = 1, j = 0; i < FFT_LEN; i++) {
			int bit = FFT_LEN >> 1;

			for (; j & bit; bit >>= 1)
				j ^= bit;
			j ^= bit;
			if (i < j) {
				double complex swap = wave[i];

				wave[i] = wave[j];
				wave[j] = swap;
			}
		}
		for (int len = 2; len <= FFT_LEN; len <<= 1) {
			double complex turn = cexp(-2 * M_PI * I / len);

			for (int i = 0; i < FFT_LEN; i += len) {
				double complex w = 1;

				for (int k = 0; k < len / 2; k++, w *= turn) {
					double complex u = wave[i + k];
					double complex v = wave[i + k + len / 2] * w;

					wave[i + k] = u + v;
					wave[i + k + len / 2] = u - v;
				}
			}
		}
		sum += cabs(wave[1]);
	}
	return sum;
}

static uint8_t composite[SIEVE_LEN];

static double sieve(int rounds)
{
	int primes = 0;

	for (int r = 0; r < rounds; r++) {
		memset(composite, 0, sizeof(composite));
		primes = 0;
		for (int i = 2; i < SIEVE_LEN; i++) {
			if (composite[i])
				continue;
			primes++;
			for (int64_t j = (int64_t)i * i; j < SIEVE_LEN; j += i)
				composite[j] = 1;
		}
	}
	return primes;
}

static uint64_t gcd(uint64_t x, uint64_t y)
{
	while (y) {
		uint64_t rest = x % y;

		x = y;
		y = rest;
	}
	return x;
}

static double divisors(int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += gcd(draw() >> 20, draw() >> 20);
	return (double)(sum % 1000003);
}

static uint64_t power(uint64_t base, uint64_t exponent, uint64_t modulus)
{
	uint64_t result = 1;

	for (base %= modulus; exponent; exponent >>= 1) {
		if (exponent & 1)
			result = (uint64_t)((unsigned __int128)result * base % modulus);
		base = (uint64_t)((unsigned __int128)base * base % modulus);
	}
	return result;
}

static double powers(int n)
{
	uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += power(draw(), draw(), draw() | 1);
	return (double)(sum % 1000003);
}

static uint32_t keys[SORT_LEN];

static void sift(size_t at, size_t end)
{
	for (size_t child; (child = 2 * at + 1) < end; at = child) {
		uint32_t swap = keys[at];

		if (child + 1 < end && keys[child + 1] > keys[child])
			child++;
		if (keys[at] >= keys[child])
			return;
		keys[at] = keys[child];
		keys[child] = swap;
	}
}

static double heap_sort(int rounds)
{
	for (int r = 0; r < rounds; r++) {
		for (size_t i = 0; i < SORT_LEN; i++)
			keys[i] = (uint32_t)draw();
		for (size_t i = SORT_LEN / 2; i--;)
			sift(i, SORT_LEN);
		for (size_t end = SORT_LEN; --end;) {
			uint32_t swap = keys[0];

			keys[0] = keys[end];
			keys[end] = swap;
			sift(0, end);
		}
	}
	return keys[SORT_LEN / 2]; /* NOLINT(bugprone-integer-division): an index */
}

int main(int argc, char **argv)
{
	unsigned int seed = argc > 1 ? (unsigned int)atoi(argv[1]) : 1;
	int n = MATRIX_MAX - (int)(seed % 7) * 5;
	double sum = 0;

	state = seed * 0x9e3779b97f4a7c15ull | 1;
	for (int i = 0; i < 3; i++) {
		sum += multiply(n);
		sum += decompose(n);
	}
	sum += move_bodies(400 + (int)seed * 10);
	sum += transform(40 + (int)seed);
	sum += sieve(3 + (int)(seed & 1));
	sum += divisors(20000 + (int)seed * 500);
	sum += powers(6000 + (int)seed * 100);
	sum += heap_sort(3);
	printf("%.9g\n", sum);
	return 0;
}
