/* SPDX-License-Identifier: BSD-2-Clause */
/* A second procedure named helper, local as the one in app.c. */
int other(int x);

static int helper(int x)
{
	return x - 1;
}

int other(int x)
{
	return helper(x) + 2;
}
