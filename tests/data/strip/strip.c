/* SPDX-License-Identifier: BSD-2-Clause */
/* A library whose symbols are stripped: entry is exported, step is not, twice is another library's. */
int twice(int x);
int entry(int n);

__attribute__((noinline)) static int step(int x)
{
	return twice(x) + 1;
}

int entry(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += step(i);
	return sum;
}
