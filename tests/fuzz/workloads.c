/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file of workloads of any bytes: refused, or read with counts and minutes that agree; written
 * again it is the same bytes, and merged with itself no sample is missing. Tried as it is and,
 * because a checksum stops nearly all mutations, with the checksum put right.
 */
#include <string.h>

#include "profdb_internal.h"
#include "sealed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_event(const struct profdb_workloads *w, size_t event)
{
	uint64_t counts = 0, minutes = 0;

	for (size_t i = 0; i < profdb_workloads_nr_counts(w); i++)
		counts += profdb_workloads_count(w, i).count[event];
	for (size_t i = 0; i < profdb_workloads_nr_minutes(w); i++)
		minutes += profdb_workloads_minute(w, i).count[event];
	CHECK(counts == profdb_workloads_event(w, event)->sum);
	CHECK(counts == minutes);
}

static void check(const struct profdb_workloads *w)
{
	for (size_t i = 0; i < profdb_workloads_nr_counts(w); i++) {
		struct profdb_workload_count c = profdb_workloads_count(w, i);

		CHECK(profdb_workloads_image(w, c.image));
		CHECK(profdb_workloads_workload(w, c.workload));
	}
	for (size_t i = 0; i < profdb_workloads_nr_minutes(w); i++) {
		struct profdb_workload_minute m = profdb_workloads_minute(w, i);

		CHECK(profdb_workloads_image(w, m.image));
		CHECK(profdb_workloads_workload(w, m.workload));
		CHECK(m.minute >= 0);
	}
	for (size_t e = 0; e < profdb_workloads_nr_events(w); e++)
		check_event(w, e);
}

static void check_merge(const struct profdb_workloads *w)
{
	struct profdb_workloads *sum = profdb_workloads_new();

	CHECK(sum);
	for (uint64_t i = 1; i <= 2; i++) {
		int r = profdb_workloads_merge(sum, w);

		CHECK(r >= 0 || r == -DCPI_EOVERFLOW);
		if (r < 0)
			break;
		check(sum);
		CHECK(profdb_workloads_nr_counts(sum) == profdb_workloads_nr_counts(w));
		CHECK(profdb_workloads_nr_minutes(sum) == profdb_workloads_nr_minutes(w));
		for (size_t e = 0; e < profdb_workloads_nr_events(w); e++)
			CHECK(profdb_workloads_event(sum, e)->sum ==
			      i * profdb_workloads_event(w, e)->sum);
	}
	profdb_workloads_free(sum);
}

/* A flush adds a part to a file that it does not read all of: everything is there once more. */
static void check_flush(const uint8_t *data, size_t len, const struct profdb_workloads *w)
{
	struct base_buf bytes = { .data = (uint8_t *)data, .len = len }, file = { 0 };
	struct profdb_workloads *stored, *again;
	void *of;
	int r = profdb_whole_workload_images.parse(&bytes, "x", &of, NULL);

	CHECK(r >= 0);
	again = of;
	CHECK(profdb_workloads_nr_images(again) == profdb_workloads_nr_images(w));
	profdb_workloads_free(again);
	r = profdb_whole_workloads.parse_stored(&bytes, "x", &of, NULL);
	CHECK(r >= 0);
	stored = of;
	if (profdb_workloads_merge(stored, w) >= 0) {
		CHECK(profdb_workloads_format(stored, &file, NULL) >= 0);
		CHECK(profdb_workloads_parse(file.data, file.len, &again, NULL) >= 0);
		check(again);
		CHECK(profdb_workloads_nr_counts(again) == profdb_workloads_nr_counts(w));
		CHECK(profdb_workloads_nr_minutes(again) == profdb_workloads_nr_minutes(w));
		for (size_t e = 0; e < profdb_workloads_nr_events(w); e++)
			CHECK(profdb_workloads_event(again, e)->sum ==
			      2 * profdb_workloads_event(w, e)->sum);
		profdb_workloads_free(again);
	}
	base_buf_release(&file);
	profdb_workloads_free(stored);
}

static void try(const uint8_t *data, size_t len)
{
	struct base_buf first = { 0 }, second = { 0 };
	struct profdb_workloads *w, *again;

	if (profdb_workloads_parse(data, len, &w, NULL) < 0) {
		CHECK(!w);
		return;
	}
	check(w);
	CHECK(profdb_workloads_format(w, &first, NULL) >= 0);
	CHECK(profdb_workloads_parse(first.data, first.len, &again, NULL) >= 0);
	CHECK(profdb_workloads_format(again, &second, NULL) >= 0);
	CHECK(first.len == second.len && !memcmp(first.data, second.data, first.len));
	check_merge(w);
	check_flush(data, len, w);
	base_buf_release(&first);
	base_buf_release(&second);
	profdb_workloads_free(w);
	profdb_workloads_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sealed_try(try, data, len);
	return 0;
}
