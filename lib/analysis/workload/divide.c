/* SPDX-License-Identifier: BSD-2-Clause */
/* Divides samples in proportion to counts, so that the sum stays exact. */
#include "workload.h"

typedef unsigned __int128 wide;

static uint64_t sum_of(const uint64_t *count, size_t nr)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < nr; i++)
		sum += count[i];
	return sum;
}

/* The largest remainder that was not served yet; the first of equal ones. */
static size_t next(const uint64_t *rest, size_t nr)
{
	size_t best = 0;

	for (size_t i = 1; i < nr; i++)
		if (rest[i] > rest[best])
			best = i;
	return best;
}

void workload_divide(const uint64_t *count, size_t nr, uint64_t total, uint64_t *share,
		     uint64_t *rest)
{
	uint64_t sum = sum_of(count, nr), left = total;

	for (size_t i = 0; i < nr; i++) {
		share[i] = sum ? (uint64_t)((wide)count[i] * total / sum) : 0;
		rest[i] = sum ? (uint64_t)((wide)count[i] * total % sum) : 0;
		left -= share[i];
	}
	/* Remainders add up to the sum so many times: each is above 0 that is served. */
	for (; sum && left; left--) {
		size_t i = next(rest, nr);

		share[i]++;
		rest[i] = 0;
	}
}
