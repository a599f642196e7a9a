/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of losses and buckets, and the sum of an account. */
#include "images.h"

const char *account_loss_name(enum account_loss loss)
{
	static const char *const names[] = {
#define X(id, name, text) name,
		ACCOUNT_LOSSES(X)
#undef X
	};

	return (unsigned int)loss < ACCOUNT_NR_LOSSES ? names[loss] : "?";
}

const char *account_bucket_name(enum account_bucket bucket)
{
	static const char *const names[] = {
#define X(id, name, text) name,
		ACCOUNT_BUCKETS(X)
#undef X
	};

	return (unsigned int)bucket < ACCOUNT_NR_BUCKETS ? names[bucket] : "?";
}

void account_total(const struct account *own, const struct driver_stats *driver,
		   struct account *out)
{
	*out = *own;
	for (size_t i = 0; i < DRIVER_NR_EVENTS; i++)
		out->received += driver->received[i];
	out->pending += driver->held;
	out->lost[ACCOUNT_LOST_RING] += driver->lost_ring;
	out->lost[ACCOUNT_LOST_TABLE] += driver->lost_table;
	out->lost[ACCOUNT_LOST_LATE] += driver->lost_late;
	out->lost[ACCOUNT_LOST_NESTED] += driver->lost_nested;
	out->lost[ACCOUNT_LOST_READ] += driver->lost_read;
	out->lost[ACCOUNT_LOST_BAD] += driver->lost_bad;
}

void account_times_total(const struct account *own, const struct driver_wait_stats *driver,
			 struct account *out)
{
	*out = *own;
	out->received += driver->received;
	out->pending += driver->held;
	out->lost[ACCOUNT_LOST_TABLE] += driver->lost_full;
	out->lost[ACCOUNT_LOST_READ] += driver->lost_read;
}

_Static_assert((int)ACCOUNT_BUCKET_WAITS_UNKNOWN - (int)ACCOUNT_BUCKET_RUNS ==
		       (int)DRIVER_WAIT_UNKNOWN - (int)DRIVER_WAIT_RUNS,
	       "buckets of waits");

enum account_bucket account_bucket_of(enum driver_wait wait)
{
	return (enum account_bucket)((int)ACCOUNT_FIRST_TIME + (int)wait - (int)DRIVER_WAIT_RUNS);
}

uint64_t account_lost(const struct account *a)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < ACCOUNT_NR_LOSSES; i++)
		sum += a->lost[i];
	return sum;
}

bool account_balanced(const struct account *total)
{
	return total->received == total->stored + total->pending + account_lost(total);
}
