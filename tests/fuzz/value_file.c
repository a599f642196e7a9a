/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A value profile of any bytes: refused, or read in order; written again it is the same bytes, and
 * merged with itself no value is missing. Tried as it is and, because a checksum stops nearly all
 * mutations, with the checksum put right.
 */
#include <string.h>

#include "profdb.h"
#include "sealed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static uint64_t check_lists(const struct profdb_values *v)
{
	uint64_t total = profdb_values_lost(v);

	for (size_t i = 0; i < profdb_values_nr(v); i++) {
		const struct profdb_hotlist *l = profdb_values_at(v, i);
		uint64_t sum = 0;

		CHECK(l->nv <= PROFDB_NR_HOT && l->thld && l->vtot);
		for (size_t k = 0; k < l->nv; k++) {
			CHECK(l->v[k].concise && l->v[k].concise <= l->v[k].counting);
			CHECK(profdb_hot_count(l, k, k % 2) <= (double)l->vtot);
			sum += l->v[k].counting;
		}
		CHECK(sum <= l->vtot);
		for (size_t k = 0; k < 2; k++) {
			struct base_id id;

			CHECK(!l->context[k].image ||
			      profdb_values_image(v, l->context[k].image, &id));
		}
		total += l->vtot;
	}
	return total;
}

static void check_merge(struct profdb_values *v)
{
	struct profdb_values *sum =
		profdb_values_new(PROFDB_FILE, NULL, NULL, profdb_values_profiler(v));
	uint64_t total = check_lists(v);

	CHECK(sum);
	for (uint64_t i = 1; i <= 2; i++) {
		int r = profdb_values_merge(sum, v);

		CHECK(r >= 0 || r == -DCPI_EOVERFLOW);
		if (r < 0)
			break;
		CHECK(check_lists(sum) == i * total);
	}
	profdb_values_free(sum);
}

static void try(const uint8_t *data, size_t len)
{
	struct base_buf first = { 0 }, second = { 0 };
	struct profdb_values *v, *w;

	if (profdb_values_parse(data, len, &v, NULL) < 0) {
		CHECK(!v);
		return;
	}
	check_lists(v);
	CHECK(profdb_values_format(v, &first, NULL) >= 0);
	CHECK(profdb_values_parse(first.data, first.len, &w, NULL) >= 0);
	CHECK(profdb_values_format(w, &second, NULL) >= 0);
	CHECK(first.len == second.len && !memcmp(first.data, second.data, first.len));
	check_merge(v);
	base_buf_release(&first);
	base_buf_release(&second);
	profdb_values_free(v);
	profdb_values_free(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sealed_try(try, data, len);
	return 0;
}
