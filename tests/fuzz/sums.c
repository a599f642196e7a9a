/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An epoch's index of any bytes: refused, or each of its headers is one or is refused. Tried as it
 * is and with the checksum put right, which stops nearly all mutations.
 */
#include <stdlib.h>
#include <string.h>

#include "profdb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define CHECK(x)                                                                                   \
	do {                                                                                       \
		if (!(x))                                                                          \
			abort();                                                                   \
	} while (0)

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t sum = 0;
	uint8_t *sealed;
	uint32_t crc;

	profdb_sums_parse(data, len, take, &sum);
	if (len < 4)
		return 0;
	sealed = malloc(len);
	CHECK(sealed);
	memcpy(sealed, data, len);
	crc = base_crc32c(0, sealed, len - 4);
	for (int i = 0; i < 4; i++)
		sealed[len - 4 + i] = (uint8_t)(crc >> 8 * i);
	profdb_sums_parse(sealed, len, take, &sum);
	free(sealed);
	return 0;
}
