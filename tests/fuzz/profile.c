/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile file of any bytes: refused, or read; what was read and is written again reads as the
 * same. Tried as it is and, because a checksum stops nearly all mutations, with the checksum put
 * right.
 */
#include <string.h>

#include "profdb.h"
#include "sealed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Rows and event @event of @p are event @other of @q. */
static void check_same(const struct profdb_profile *p, size_t event, const struct profdb_profile *q,
		       size_t other)
{
	size_t at = 0;

	CHECK(profdb_profile_event(p, event)->sum == profdb_profile_event(q, other)->sum);
	CHECK(!strcmp(profdb_profile_event(p, event)->name, profdb_profile_event(q, other)->name));
	for (size_t i = 0; i < profdb_profile_nr_entries(p); i++) {
		const struct profdb_entry *a = profdb_profile_entry(p, i), *b;

		if (!a->count[event])
			continue;
		while ((b = profdb_profile_entry(q, at)) && !b->count[other])
			at++;
		CHECK(b && a->off == b->off && a->count[event] == b->count[other]);
		at++;
	}
}

static void check_moves(const struct profdb_profile *p, const struct profdb_profile *q)
{
	CHECK(profdb_profile_nr_edges(p) == profdb_profile_nr_edges(q));
	for (size_t i = 0; i < profdb_profile_nr_edges(p); i++) {
		const struct profdb_edge *a = profdb_profile_edge(p, i);

		CHECK(!memcmp(a, profdb_profile_edge(q, i), sizeof(*a)));
		CHECK(a->count[0] || a->count[1]);
	}
}

static void check_insns(const struct profdb_profile *p, const struct profdb_profile *q)
{
	CHECK(profdb_profile_nr_insns(p) == profdb_profile_nr_insns(q));
	for (size_t i = 0; i < profdb_profile_nr_insns(p); i++) {
		const struct profdb_insn *a = profdb_profile_insn(p, i);

		CHECK(!memcmp(a, profdb_profile_insn(q, i), sizeof(*a)));
		CHECK(a->count && !(a->bits & ~a->known));
	}
}

/* Printing is a normal form: the second time gives the same bytes. */
static void check_version1(const struct profdb_profile *p)
{
	struct base_buf first = { 0 }, second = { 0 };
	struct profdb_profile *q;

	CHECK(profdb_profile_format(p, PROFDB_FORMAT_1, 0, &first, NULL) >= 0);
	CHECK(profdb_profile_parse(first.data, first.len, &q, NULL) >= 0);
	CHECK(profdb_profile_nr_events(p) == profdb_profile_nr_events(q));
	CHECK(profdb_profile_nr_entries(p) == profdb_profile_nr_entries(q));
	for (size_t i = 0; i < profdb_profile_nr_events(p); i++)
		check_same(p, i, q, i);
	check_moves(p, q);
	check_insns(p, q);
	CHECK(profdb_profile_format(q, PROFDB_FORMAT_1, 0, &second, NULL) >= 0);
	CHECK(first.len == second.len && !memcmp(first.data, second.data, first.len));
	base_buf_release(&first);
	base_buf_release(&second);
	profdb_profile_free(q);
}

/* The old format holds one event, and not every count. */
static void check_version0(const struct profdb_profile *p)
{
	for (size_t i = 0; i < profdb_profile_nr_events(p); i++) {
		struct base_buf buf = { 0 };
		struct profdb_profile *q = NULL;
		int r = profdb_profile_format(p, PROFDB_FORMAT_0_07, i, &buf, NULL);

		CHECK(r >= 0 || r == -DCPI_EOVERFLOW);
		if (r >= 0) {
			CHECK(profdb_profile_parse(buf.data, buf.len, &q, NULL) >= 0);
			check_same(p, i, q, 0);
		}
		profdb_profile_free(q);
		base_buf_release(&buf);
	}
}

static void try(const uint8_t *data, size_t len)
{
	struct profdb_profile *p, *sum;

	if (profdb_profile_parse(data, len, &p, NULL) < 0) {
		CHECK(!p);
		return;
	}
	check_version1(p);
	check_version0(p);
	sum = profdb_profile_new(profdb_profile_kind(p), profdb_profile_image(p), NULL);
	CHECK(sum && profdb_profile_merge(sum, p) >= 0);
	for (size_t i = 0; i < profdb_profile_nr_events(p); i++)
		check_same(p, i, sum, i);
	check_moves(p, sum);
	profdb_profile_free(sum);
	profdb_profile_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sealed_try(try, data, len);
	return 0;
}
