/* SPDX-License-Identifier: BSD-2-Clause */
/* Routines that are walked from: of one kind of frame each, compiled without frame pointers. */
#ifndef ROUTINES_H
#define ROUTINES_H

#include <stddef.h>

typedef void routines_fn(void);

/* Call themselves and each other @depth times, then @fn. */
int routines_plain(unsigned int depth, routines_fn *fn);
int routines_alloca(unsigned int depth, routines_fn *fn);
int routines_aligned(unsigned int depth, routines_fn *fn);
int routines_large(unsigned int depth, routines_fn *fn);
int routines_many_arguments(unsigned int depth, routines_fn *fn, int a, int b, int c, int d, int e,
			    int f, int g);
/* The C library sorts and calls @fn for each comparison. */
int routines_sort(routines_fn *fn);
/* Leafs, and calls of the C library: to be interrupted. */
unsigned int routines_work(unsigned int rounds);

#endif
