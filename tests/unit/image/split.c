/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Not run: compiled with its routines' description in a file of its own, and read by debug.c. As if
 * its parts came from folders that the compiler was given relative to where it ran.
 */
#line 3 "inc/split.h"
int split_outer(int x);

static inline __attribute__((always_inline)) int split_inner(int x)
{
	return x * x + 7; /* line 7 */
}

#line 10 "src/split.c"
int split_outer(int x)
{
	return split_inner(x); /* line 12 */
}
