/* SPDX-License-Identifier: BSD-2-Clause */
/* Not run: compiled with its routines' description in a file of its own, and read by debug.c. */
int split_outer(int x);

static inline __attribute__((always_inline)) int split_inner(int x)
{
	return x * x + 7; /* line 7 */
}

int split_outer(int x)
{
	return split_inner(x); /* line 12 */
}
