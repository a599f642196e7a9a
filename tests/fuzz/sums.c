/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An epoch's index of any bytes: refused, or each of its headers is one or is refused. Tried as it
 * is and with the checksum put right, which stops nearly all mutations.
 */
#include "profdb.h"
#include "sealed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int take(void *ctx, const struct profdb_sum *s)
{
	struct profdb_profile *p = NULL;
	uint64_t *sum = ctx;

	if (profdb_sum_profile(s, &p) < 0) {
		CHECK(!p);
		return 0;
	}
	CHECK(profdb_profile_nr_events(p) <= s->nr_events && !profdb_profile_nr_entries(p));
	for (size_t i = 0; i < profdb_profile_nr_events(p); i++)
		*sum += profdb_profile_event(p, i)->sum;
	profdb_profile_free(p);
	return 0;
}

static void try(const uint8_t *data, size_t len)
{
	uint64_t sum = 0;

	profdb_sums_parse(data, len, take, &sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sealed_try(try, data, len);
	return 0;
}
