/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sampleprof_internal.h"

static int compare_places(const struct sampleprof_place *a, const struct sampleprof_place *b)
{
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return (a->block > b->block) - (a->block < b->block);
}

static int by_spot(const void *pa, const void *pb)
{
	const struct sampleprof_spot *a = pa, *b = pb;
	int r = compare_places(&a->at, &b->at);

	return r ? r : (a->owner > b->owner) - (a->owner < b->owner);
}

static int by_target(const void *pa, const void *pb)
{
	const struct sampleprof_target *a = pa, *b = pb;
	int r = compare_places(&a->at, &b->at);

	return r ? r : strcmp(a->name, b->name);
}

static int by_part(const void *pa, const void *pb)
{
	const struct sampleprof_part *a = pa, *b = pb;
	int r = compare_places(&a->at, &b->at);

	return r ? r : strcmp(a->routine->name, b->routine->name);
}

static int by_total(const void *pa, const void *pb)
{
	const struct sampleprof_routine *a = *(struct sampleprof_routine *const *)pa,
					*b = *(struct sampleprof_routine *const *)pb;

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* As LLVM adds: up to what fits. */
static void add_to(uint64_t *sum, uint64_t count)
{
	if (base_add_overflow(*sum, count, sum))
		*sum = UINT64_MAX;
}

/* Of one procedure's instructions the most counts, of several procedures their sum. */
static void sum_spots(struct sampleprof_routine *r)
{
	size_t nr = 0;

	if (r->nr_spots)
		qsort(r->spots, r->nr_spots, sizeof(*r->spots), by_spot);
	for (size_t i = 0; i < r->nr_spots;) {
		struct sampleprof_spot sum = { .at = r->spots[i].at };

		while (i < r->nr_spots && sampleprof_same(&r->spots[i].at, &sum.at)) {
			uint32_t owner = r->spots[i].owner;
			uint64_t most = 0;

			for (; i < r->nr_spots && r->spots[i].owner == owner &&
			       sampleprof_same(&r->spots[i].at, &sum.at);
			     i++)
				most = most > r->spots[i].count ? most : r->spots[i].count;
			add_to(&sum.count, most);
		}
		add_to(&r->total, sum.count);
		r->spots[nr++] = sum;
	}
	r->nr_spots = nr;
}

static void sum_targets(struct sampleprof_routine *r)
{
	size_t nr = 0;

	if (r->nr_targets)
		qsort(r->targets, r->nr_targets, sizeof(*r->targets), by_target);
	for (size_t i = 0; i < r->nr_targets; i++) {
		if (!nr || by_target(&r->targets[nr - 1], &r->targets[i]) != 0) {
			r->targets[nr++] = r->targets[i];
			continue;
		}
		add_to(&r->targets[nr - 1].count, r->targets[i].count);
		free(r->targets[i].name);
	}
	r->nr_targets = nr;
}

static void sum_routine(struct sampleprof_routine *r)
{
	r->total = 0;
	sum_spots(r);
	sum_targets(r);
	if (r->nr_parts)
		qsort(r->parts, r->nr_parts, sizeof(*r->parts), by_part);
	for (size_t i = 0; i < r->nr_parts; i++) {
		sum_routine(r->parts[i].routine);
		add_to(&r->total, r->parts[i].routine->total);
	}
}

static int put_place(struct base_buf *out, int depth, const struct sampleprof_place *at)
{
	if (at->block)
		return base_buf_printf(out, "%*s%u.%u: ", depth, "", at->line, at->block);
	return base_buf_printf(out, "%*s%u: ", depth, "", at->line);
}

static int put_spot(struct base_buf *out, int depth, const struct sampleprof_routine *in,
		    const struct sampleprof_spot *spot, size_t *target)
{
	int r = put_place(out, depth, &spot->at);

	if (r >= 0)
		r = base_buf_printf(out, "%" PRIu64, spot->count);
	for (; r >= 0 && *target < in->nr_targets &&
	       sampleprof_same(&in->targets[*target].at, &spot->at);
	     ++*target)
		r = base_buf_printf(out, " %s:%" PRIu64, in->targets[*target].name,
				    in->targets[*target].count);
	return r < 0 ? r : base_buf_printf(out, "\n");
}

static int put_body(struct base_buf *out, int depth, const struct sampleprof_routine *in)
{
	size_t target = 0;
	int r = 0;

	for (size_t i = 0; i < in->nr_spots && r >= 0; i++)
		r = put_spot(out, depth, in, &in->spots[i], &target);
	for (size_t i = 0; i < in->nr_parts && r >= 0; i++) {
		const struct sampleprof_routine *part = in->parts[i].routine;

		/* Made on the way to a place that was not known after all. */
		if (!part->nr_spots && !part->nr_parts)
			continue;
		r = put_place(out, depth, &in->parts[i].at);
		if (r >= 0)
			r = base_buf_printf(out, "%s:%" PRIu64 "\n", part->name, part->total);
		if (r >= 0)
			r = put_body(out, depth + 1, part);
	}
	return r;
}

int sampleprof_format(struct sampleprof *s, struct base_buf *out)
{
	int r = 0;

	for (size_t i = 0; i < s->nr; i++)
		sum_routine(s->v[i]);
	if (s->nr)
		qsort(s->v, s->nr, sizeof(struct sampleprof_routine *), by_total);
	for (size_t i = 0; i < s->nr && r >= 0; i++) {
		const struct sampleprof_routine *root = s->v[i];

		if (!root->nr_spots && !root->nr_parts)
			continue;
		r = base_buf_printf(out, "%s:%" PRIu64 ":%" PRIu64 "\n", root->name, root->total,
				    root->head);
		if (r >= 0)
			r = put_body(out, 1, root);
	}
	return r;
}
