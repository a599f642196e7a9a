/* SPDX-License-Identifier: BSD-2-Clause */
/* The program behind app, see README. Its lines are part of expected outputs: do not move them. */
void _start(void);
int hot(int n);
int warm(int n);

static int helper(int x)
{
	return x * 7;
}

int hot(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += i * 3;

	return sum;
}

int warm(int n)
{
	return n ? hot(n) + helper(n) : 0;
}

void _start(void)
{
	warm(10);
	for (;;)
		;
}
