/* SPDX-License-Identifier: BSD-2-Clause */
/* Routines that are walked from. */
#include "routines.h"

#include <alloca.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline))

/* Keeps the compiler from doing without what was computed. */
static volatile unsigned int sink;

static APART int next(unsigned int depth, routines_fn *fn)
{
	int r = 1;

	if (!depth)
		fn();
	else if (depth % 5 == 0)
		r = routines_alloca(depth - 1, fn);
	else if (depth % 5 == 1)
		r = routines_aligned(depth - 1, fn);
	else if (depth % 5 == 2)
		r = routines_large(depth - 1, fn);
	else if (depth % 5 == 3)
		r = routines_many_arguments(depth - 1, fn, 1, 2, 3, 4, 5, 6, (int)sink);
	else
		r = routines_plain(depth - 1, fn);
	sink++;
	return r;
}

APART int routines_plain(unsigned int depth, routines_fn *fn)
{
	int a = (int)depth * 3, b = a ^ 7, c = b + (int)sink, d = c * b, r = next(depth, fn);

	return r + a + b + c + d;
}

APART int routines_alloca(unsigned int depth, routines_fn *fn)
{
	char *space = alloca(depth * 24 + 16);

	memset(space, (int)depth, depth * 24 + 16);
	sink += (unsigned int)space[depth];
	return next(depth, fn) + space[0];
}

/* The stack is aligned anew, and with alloca beside it the caller's frame is found by memory. */
APART int routines_aligned(unsigned int depth, routines_fn *fn)
{
	_Alignas(64) volatile char aligned[128];
	char *space = alloca(depth * 8 + 8);

	aligned[depth % 128] = (char)depth;
	space[0] = aligned[depth % 128];
	sink += (unsigned int)(uintptr_t)space;
	return next(depth, fn) + aligned[depth % 128] + space[0];
}

APART int routines_large(unsigned int depth, routines_fn *fn)
{
	volatile char large[5000];

	large[depth % sizeof(large)] = 1;
	return next(depth, fn) + large[depth % sizeof(large)];
}

APART int routines_many_arguments(unsigned int depth, routines_fn *fn, int a, int b, int c, int d,
				  int e, int f, int g)
{
	return next(depth, fn) + a + b * c + d * e + f * g;
}

/* ---- by the C library ------------------------------------------------------------------------ */

static routines_fn *to_call;

static APART int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	to_call();
	return (x > y) - (x < y);
}

APART int routines_sort(routines_fn *fn)
{
	int v[] = { 5, 3, 9, 1, 7, 2, 8, 4, 6, 0 };

	to_call = fn;
	qsort(v, sizeof(v) / sizeof(v[0]), sizeof(v[0]), compare);
	return v[0];
}

/* ---- to be interrupted ----------------------------------------------------------------------- */

static APART unsigned int leaf(unsigned int a)
{
	return a * 2654435761u ^ a >> 13;
}

static APART unsigned int pushes(unsigned int a)
{
	unsigned int b = leaf(a), c = leaf(b), d = leaf(c + a), e = leaf(d ^ b);

	return a + b + c + d + leaf(e);
}

static APART int by_value(const void *a, const void *b)
{
	return (int)pushes(*(const unsigned char *)a) - *(const unsigned char *)b;
}

static APART unsigned int with_library(unsigned int a)
{
	char text[64], copy[64];
	char *end;

	memset(text, '0' + (int)(a % 10), sizeof(text));
	text[a % 8 + 1] = 0;
	strcpy(copy, text);
	qsort(text, 8, 1, by_value);
	return (unsigned int)strtoul(copy, &end, 10) + (unsigned int)strlen(text);
}

APART unsigned int routines_work(unsigned int rounds)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < rounds; i++) {
		char *space = alloca(i % 4 * 16 + 8);

		space[0] = (char)i;
		sum += pushes(i) + with_library(sum) + (unsigned int)space[0];
	}
	return sum;
}
