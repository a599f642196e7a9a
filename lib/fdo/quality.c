/* SPDX-License-Identifier: BSD-2-Clause */
/* How good the branches of an image's traces are, and how many traces more would make them so. */
#include <math.h>
#include <stdlib.h>

#include "fdo.h"

#define LEAST_TRACES 50	  /* fewer tell nothing of how many more it takes */
#define FALLS	     0.85 /* the power of the number of traces, see fdo.h */

static bool is_taken(enum fdo_kind kind)
{
	return kind <= FDO_STUB && kind != FDO_FELL && kind != FDO_RESUMED;
}

static uint64_t text_bytes(const struct image *img)
{
	struct image_code code;
	uint64_t sum = 0;

	for (size_t i = 0; image_code_at(img, i, &code); i++)
		if (base_add_overflow(sum, code.len, &sum))
			return UINT64_MAX;
	return sum;
}

/* Ranges may overlap: the end of the first @i + 1 of them that lies highest. */
static uint64_t *highest_ends(const struct fdo *f)
{
	uint64_t *ends = calloc(f->nr_ranges + 1, sizeof(*ends));

	for (size_t i = 0; ends && i < f->nr_ranges; i++)
		ends[i] = i && ends[i - 1] > f->ranges[i].to ? ends[i - 1] : f->ranges[i].to;
	return ends;
}

static bool is_covered(const struct fdo *f, const uint64_t *ends, uint64_t vaddr)
{
	size_t from = 0, to = f->nr_ranges;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (f->ranges[mid].from <= vaddr)
			from = mid + 1;
		else
			to = mid;
	}
	return from && vaddr <= ends[from - 1];
}

static double samples_part(const struct fdo *f, const struct image *img,
			   const struct profdb_profile *p, int event)
{
	double all = 0, covered = 0;
	uint64_t *ends = event >= 0 ? highest_ends(f) : NULL;

	for (size_t i = 0; ends && i < profdb_profile_nr_entries(p); i++) {
		const struct profdb_entry *e = profdb_profile_entry(p, i);
		double count = (double)e->count[event];
		uint64_t vaddr;

		all += count;
		if (image_vaddr(img, e->off, &vaddr) >= 0 && is_covered(f, ends, vaddr))
			covered += count;
	}
	free(ends);
	return all > 0 ? covered / all : -1;
}

/* The share of the edges of one half of the traces that the other half does not have. */
static double unseen_by_half(const struct fdo *f)
{
	double all = 0, alone = 0;

	for (size_t i = 0; i < f->nr_edges; i++) {
		const struct fdo_edge *e = &f->edges[i];
		double count = (double)e->count[0] + (double)e->count[1];

		if (e->kind > FDO_STUB)
			continue;
		all += count;
		if (!e->count[0] || !e->count[1])
			alone += count;
	}
	return all > 0 ? alone / all : -1;
}

static void judge_number(const struct fdo *f, struct fdo_quality *q)
{
	double half = unseen_by_half(f);

	q->unseen = q->wanted = -1;
	if (half < 0 || q->traces < LEAST_TRACES)
		return;
	q->unseen = half * pow(2, -FALLS);
	q->wanted = (double)q->traces * pow(q->unseen / FDO_UNSEEN_ENOUGH, 1 / FALLS);
}

void fdo_quality(const struct fdo *f, struct image *img, const struct profdb_profile *p, int event,
		 struct fdo_quality *out)
{
	*out = (struct fdo_quality){
		.traces = f->sum[FDO_BEGUN] + f->sum[FDO_ENTERED],
		.fell = f->sum[FDO_FELL],
		.unplaced = f->sum[FDO_UNKNOWN],
		.text_bytes = text_bytes(img),
		.samples_part = samples_part(f, img, p, event),
	};
	for (int kind = 0; kind < FDO_NR_KINDS; kind++)
		if (is_taken((enum fdo_kind)kind))
			out->taken += f->sum[kind];
	judge_number(f, out);
}
