/* SPDX-License-Identifier: BSD-2-Clause */
/* Compiled and counted by tests/system/feedback.sh, which knows how often what runs here. */
#include <stdio.h>

static inline int weigh(int x)
{
	if (x % 16)
		return x * 3;
	return x / 7;
}

__attribute__((noinline)) static int rare(int x)
{
	return printf("%d\n", x);
}

__attribute__((noinline)) static int plus(int x)
{
	return x + 1;
}

__attribute__((noinline)) static int minus(int x)
{
	return x - 1;
}

__attribute__((noinline)) int work(int n, int (*step)(int));
__attribute__((noinline)) int work(int n, int (*step)(int))
{
	int sum = 0;

	for (int i = 0; i < n; i++) {
		sum += weigh(i);
		if (i == n - 1)
			rare(sum);
		sum = step(sum);
	}
	return sum;
}

int main(int argc, char **argv)
{
	(void)argv;
	return work(1000, argc > 5 ? minus : plus) & 1;
}
