/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests that work for so long that they are sampled, whatever else the machine does. */
#ifndef DCPI_TEST_WORK_H
#define DCPI_TEST_WORK_H

#include <stdint.h>
#include <time.h>

/*
 * CPU time worked; { 0 } has not begun. The clock goes on while a virtual machine stands still, in
 * which nobody is sampled: a step of more than 5 ms counts as 5 ms.
 */
struct work {
	clock_t at, done;
};

static inline int work_ms(struct work *w)
{
	clock_t now = clock(), most = CLOCKS_PER_SEC / 200;

	if (w->at)
		w->done += now - w->at < most ? now - w->at : most;
	w->at = now;
	return (int)(w->done / (CLOCKS_PER_SEC / 1000));
}

#endif
