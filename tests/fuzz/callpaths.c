/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file of call paths of any bytes: refused, or read with each node behind its parent; written
 * again it is the same bytes, and merged with itself no sample is missing. Tried as it is and,
 * because a checksum stops nearly all mutations, with the checksum put right.
 */
#include <stdlib.h>
#include <string.h>

#include "profdb.h"
#include "sealed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_event(const struct profdb_callpaths *c, size_t event)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < profdb_callpaths_nr_nodes(c); i++)
		sum += profdb_callpaths_node(c, i).count[event];
	CHECK(sum == profdb_callpaths_event(c, event)->sum);
}

static void check(const struct profdb_callpaths *c)
{
	for (size_t i = 0; i < profdb_callpaths_nr_nodes(c); i++) {
		struct profdb_callpath_node n = profdb_callpaths_node(c, i);
		bool end = i < PROFDB_NR_CALLPATH_ENDS;

		CHECK(end ? n.parent == i : n.parent < i);
		if (n.frame.image == PROFDB_CALLPATH_WORKLOAD)
			CHECK(n.parent < PROFDB_NR_CALLPATH_ENDS &&
			      profdb_callpaths_workload(c, n.frame.off));
		else
			CHECK(end || profdb_callpaths_image(c, n.frame.image));
	}
	for (size_t e = 0; e < profdb_callpaths_nr_events(c); e++)
		check_event(c, e);
}

static void check_merge(const struct profdb_callpaths *c)
{
	struct profdb_callpaths *sum = profdb_callpaths_new();

	CHECK(sum);
	for (uint64_t i = 1; i <= 2; i++) {
		int r = profdb_callpaths_merge(sum, c);

		CHECK(r >= 0 || r == -DCPI_EOVERFLOW);
		if (r < 0)
			break;
		check(sum);
		CHECK(profdb_callpaths_nr_nodes(sum) == profdb_callpaths_nr_nodes(c));
		for (size_t e = 0; e < profdb_callpaths_nr_events(c); e++)
			CHECK(profdb_callpaths_event(sum, e)->sum ==
			      i * profdb_callpaths_event(c, e)->sum);
	}
	profdb_callpaths_free(sum);
}

/* Where it is not said whose paths are, all are there; of no workload there is none. */
static void check_select(const struct profdb_callpaths *c)
{
	size_t nr = profdb_callpaths_nr_workloads(c);
	bool *none = calloc(nr + 1, sizeof(*none));

	CHECK(none);
	for (int i = 0; i < 2; i++) {
		struct profdb_callpaths *to = profdb_callpaths_new();

		CHECK(to && profdb_callpaths_select(to, c, i ? none : NULL, false) >= 0);
		check(to);
		CHECK(!profdb_callpaths_nr_workloads(to));
		for (size_t e = 0; e < profdb_callpaths_nr_events(c); e++)
			CHECK(profdb_callpaths_event(to, e)->sum ==
			      (i ? 0 : profdb_callpaths_event(c, e)->sum));
		profdb_callpaths_free(to);
	}
	free(none);
}

static void try(const uint8_t *data, size_t len)
{
	struct base_buf first = { 0 }, second = { 0 };
	struct profdb_callpaths *c, *d;

	if (profdb_callpaths_parse(data, len, &c, NULL) < 0) {
		CHECK(!c);
		return;
	}
	check(c);
	CHECK(profdb_callpaths_format(c, &first, NULL) >= 0);
	CHECK(profdb_callpaths_parse(first.data, first.len, &d, NULL) >= 0);
	CHECK(profdb_callpaths_format(d, &second, NULL) >= 0);
	CHECK(first.len == second.len && !memcmp(first.data, second.data, first.len));
	check_merge(c);
	check_select(c);
	base_buf_release(&first);
	base_buf_release(&second);
	profdb_callpaths_free(c);
	profdb_callpaths_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sealed_try(try, data, len);
	return 0;
}
