/* SPDX-License-Identifier: BSD-2-Clause */
/* Two routines of known CPU time, for an interpreter of bitcode: as v8_hot.js. */
#include <stdio.h>
#include <time.h>

__attribute__((noinline)) static unsigned long hot_a(unsigned int n)
{
	unsigned long x = 1;

	for (unsigned int i = 0; i < n; i++)
		x = (x * 48271 + i) % 2147483647;
	return x;
}

__attribute__((noinline)) static unsigned int hot_b(unsigned int n)
{
	unsigned int x = 7;

	for (unsigned int i = 0; i < n; i++)
		x = (x ^ x << 3 ^ i) >> 1;
	return x;
}

int main(void)
{
	clock_t end = clock() + 3 * CLOCKS_PER_SEC, a = 0, b = 0;
	unsigned long sink = 0;

	while (clock() < end) {
		clock_t begin = clock(), middle;

		sink ^= hot_a(400000);
		middle = clock();
		sink ^= hot_b(600000);
		a += middle - begin;
		b += clock() - middle;
	}
	printf("hot_a %f\nhot_b %f\n", (double)a / CLOCKS_PER_SEC, (double)b / CLOCKS_PER_SEC);
	return sink == 5;
}
