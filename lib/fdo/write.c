/* SPDX-License-Identifier: BSD-2-Clause */
/* Branches and ranges are written here as llvm-bolt and llvm-profgen read them. */
#include <inttypes.h>

#include "fdo.h"

static uint64_t count_of(const struct fdo_edge *e)
{
	uint64_t sum;

	return base_add_overflow(e->count[0], e->count[1], &sum) ? UINT64_MAX : sum;
}

/* A stub's edge is left out: what it leads to is not what its callee returned to. */
static bool is_branch(const struct fdo_edge *e)
{
	return e->kind == FDO_TAKEN || e->kind == FDO_JUMP || e->kind == FDO_INDIRECT_JUMP ||
	       e->kind == FDO_CALL || e->kind == FDO_INDIRECT_CALL || e->kind == FDO_RETURN;
}

/* ---- BOLT ------------------------------------------------------------------------------------ */

/*
 * B: a branch from, to, how often, how often mispredicted (not known). F: a range, which fell
 * through all blocks from the first to the last instruction; it begins at the branch or call
 * before, where that was the way to it. f: control came to its beginning from elsewhere, so that
 * BOLT looks whether a call stands before.
 */
int fdo_write_bolt(const struct fdo *f, struct base_buf *out)
{
	int r = 0;

	for (size_t i = 0; i < f->nr_edges && r >= 0; i++)
		if (is_branch(&f->edges[i]))
			r = base_buf_printf(out, "B %" PRIx64 " %" PRIx64 " %" PRIu64 " 0\n",
					    f->edges[i].from, f->edges[i].to,
					    count_of(&f->edges[i]));
	for (size_t i = 0; i < f->nr_ranges && r >= 0; i++)
		if (!f->ranges[i].stub)
			r = base_buf_printf(out, "%c %" PRIx64 " %" PRIx64 " %" PRIu64 "\n",
					    f->ranges[i].after_call ? 'f' : 'F',
					    f->ranges[i].before, f->ranges[i].to,
					    f->ranges[i].count);
	return r;
}

/* ---- LLVM ------------------------------------------------------------------------------------ */

static bool same_range(const struct fdo_range *a, const struct fdo_range *b)
{
	return a->from == b->from && a->to == b->to;
}

static size_t nr_of_same(const struct fdo *f, size_t i, uint64_t *count)
{
	size_t first = i;

	for (*count = 0; i < f->nr_ranges && same_range(&f->ranges[first], &f->ranges[i]); i++)
		if (base_add_overflow(*count, f->ranges[i].count, count))
			*count = UINT64_MAX;
	return i - first;
}

static int put_ranges(const struct fdo *f, struct base_buf *out)
{
	uint64_t count;
	size_t nr = 0;
	int r;

	for (size_t i = 0; i < f->nr_ranges; i += nr_of_same(f, i, &count))
		nr++;
	r = base_buf_printf(out, "%zu\n", nr);
	for (size_t i = 0; i < f->nr_ranges && r >= 0; i += nr) {
		nr = nr_of_same(f, i, &count);
		r = base_buf_printf(out, "%" PRIx64 "-%" PRIx64 ":%" PRIu64 "\n", f->ranges[i].from,
				    f->ranges[i].to, count);
	}
	return r;
}

static int put_branches(const struct fdo *f, struct base_buf *out)
{
	size_t nr = 0;
	int r;

	for (size_t i = 0; i < f->nr_edges; i++)
		nr += is_branch(&f->edges[i]);
	r = base_buf_printf(out, "%zu\n", nr);
	for (size_t i = 0; i < f->nr_edges && r >= 0; i++)
		if (is_branch(&f->edges[i]))
			r = base_buf_printf(out, "%" PRIx64 "->%" PRIx64 ":%" PRIu64 "\n",
					    f->edges[i].from, f->edges[i].to,
					    count_of(&f->edges[i]));
	return r;
}

int fdo_write_unsymbolized(const struct fdo *f, struct base_buf *out)
{
	int r = put_ranges(f, out);

	return r < 0 ? r : put_branches(f, out);
}
