/* SPDX-License-Identifier: BSD-2-Clause */
/* The next version of app.c, see README: hot has a further branch, warm another name. */
void _start(void);
int added(int n);
int hot(int n);
int lukewarm(int n);

int added(int n)
{
	return n ^ 5;
}

static int helper(int x)
{
	return x * 7;
}

int hot(int n)
{
	int sum = 0;

	if (n > 4096)
		n = added(n);
	for (int i = 0; i < n; i++)
		sum += i * 3;

	return sum;
}

int lukewarm(int n)
{
	return n ? hot(n) + helper(n) : 0;
}

void _start(void)
{
	lukewarm(10);
	for (;;)
		;
}
