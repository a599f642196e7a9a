/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A real-time thread that reads the clock without end on one CPU, and works between: a step that
 * takes a microsecond longer than others is an interruption.
 */
#ifndef DCPI_BENCH_SPIN_H
#define DCPI_BENCH_SPIN_H

#include <stddef.h>
#include <stdint.h>

struct spin {
	uint32_t *gaps; /* ns, each with the step that was interrupted */
	size_t nr;
	double per_ns;	    /* steps of the clock */
	void (*work)(void); /* of a step, always as long; NULL: nothing */
	double work_ns;
};

/* This thread, from now on. 0, or -1 with errno. */
int spin_begin(struct spin *s, int cpu, void (*work)(void));
/* The interrupted steps of so many seconds, ascending. */
void spin_for(struct spin *s, double seconds);
/* The sampling interrupt's, as long as there are far more of them than of other kinds. */
uint32_t spin_median(const struct spin *s);

#endif
