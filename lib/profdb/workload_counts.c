/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts of workloads in a file: by image, offset, workload, range-coded. docs/format/workloads.md
 */
#include <errno.h>

#include "profdb_internal.h"

/* The models: */
enum {
	STEP = 0,     /* how a key follows the one before, by how that one did */
	FIRST = 3,    /* the first offset of an image */
	OFF = 4,      /* gap to the next offset */
	WORKLOAD = 5, /* the first workload of an offset */
	NEXT = 6,     /* gap to its next one */
	COUNT = 7     /* one for each event */
};

/* ---- keys ------------------------------------------------------------------------------------ */

struct place {
	bool any; /* there is a count before */
	uint64_t step;
	uint64_t image, off, workload;
};

/* 0: the same offset, another workload; 1: another offset; else 1 more than images further. */
static uint64_t step_to(const struct place *p, const struct profdb_workload_key *key)
{
	if (!p->any)
		return 2 + (uint64_t)key->image;
	return key->image != p->image ? 1 + key->image - p->image : key->off != p->off;
}

/* Gaps by which @p goes on: one of another image, of another offset, and of the workload. */
struct gaps {
	uint64_t off, workload;
};

static struct gaps gaps_to(const struct place *p, const struct profdb_workload_key *key)
{
	return (struct gaps){
		.off = p->step == 1 ? key->off - p->off - 1 : key->off,
		.workload = p->step ? key->workload : key->workload - p->workload - 1,
	};
}

/* False: out of bounds. */
static bool go(struct place *p, uint64_t step, const struct gaps *gaps)
{
	uint64_t image = p->any ? p->image : UINT64_MAX, off = gaps->off, workload = gaps->workload;

	if (!step && !p->any)
		return false;
	if (step > 1 && step - 1 > UINT32_MAX)
		return false;
	if (step > 1)
		image += step - 1;
	if (step == 1 && (!p->any || base_add_overflow(p->off, off, &off) || ++off == 0))
		return false;
	if (!step) {
		off = p->off;
		if (base_add_overflow(p->workload, workload, &workload) || ++workload == 0)
			return false;
	}
	*p = (struct place){ true, step, image, off, workload };
	return true;
}

/* @key: the next one, which the reader gets. */
static void code_key(struct profdb_workload_coder *c, const struct profdb_workloads *w,
		     struct place *p, struct profdb_workload_key *key)
{
	uint64_t how = p->step < 2 ? p->step : 2, step = c->writes ? step_to(p, key) : 0;
	struct gaps gaps = { 0 };

	profdb_workload_code(c, STEP + how, &step);
	p->step = step;
	if (c->writes)
		gaps = gaps_to(p, key);
	if (step)
		profdb_workload_code(c, step == 1 ? OFF : FIRST, &gaps.off);
	profdb_workload_code(c, step ? WORKLOAD : NEXT, &gaps.workload);
	if (c->error >= 0 &&
	    (!go(p, step, &gaps) || p->image >= w->images.nr || p->workload >= w->nr))
		c->error = -DCPI_EFORMAT;
	*key = (struct profdb_workload_key){ .off = p->off,
					     .image = (uint32_t)p->image,
					     .workload = (uint32_t)p->workload };
}

/* ---- writing --------------------------------------------------------------------------------- */

static void put_counts(struct profdb_workload_coder *c, const struct profdb_workloads *w)
{
	const struct profdb_workload_rows *counts = &w->counts;
	struct place p = { 0 };

	for (size_t i = 0; c->error >= 0 && i < counts->nr; i++) {
		struct profdb_workload_key key = *profdb_workload_rows_key(counts, i);

		code_key(c, w, &p, &key);
		for (size_t k = 0; k < w->header->nr_events; k++)
			profdb_workload_code(c, COUNT + k,
					     &profdb_workload_rows_counts(counts, i)[k]);
	}
}

static int counts_print(const struct profdb_workloads *w, struct base_buf *out)
{
	struct profdb_workload_coder c;
	int r = profdb_workload_coder_write(&c, COUNT + w->header->nr_events, w->counts.nr, out);

	/* Their order is no part of what they say: sorting does not change const ones. */
	profdb_workload_rows_sort((struct profdb_workload_rows *)&w->counts);
	if (r >= 0) {
		put_counts(&c, w);
		r = profdb_workload_coder_end(&c);
	}
	profdb_workload_coder_release(&c);
	return r;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int add_sums(uint64_t *sums, const uint64_t *count, size_t nr_events)
{
	bool any = false;

	for (size_t k = 0; k < nr_events; k++) {
		if (base_add_overflow(sums[k], count[k], &sums[k]))
			return -DCPI_EFORMAT;
		any = any || count[k];
	}
	return any ? 0 : -DCPI_EFORMAT;
}

static int get_counts(struct profdb_workload_coder *c, const struct profdb_workloads *w,
		      struct profdb_workload_part *part)
{
	struct place p = { 0 };
	struct profdb_workload_key key;
	uint64_t *count;
	int r = 0;

	for (uint64_t i = 0; r >= 0 && i < c->nr_rows; i++) {
		code_key(c, w, &p, &key);
		r = c->error < 0 ? c->error
				 : profdb_workload_rows_append(&part->counts, &key, &count);
		for (size_t k = 0; r >= 0 && k < part->nr_events; k++) {
			profdb_workload_code(c, COUNT + k, &count[k]);
			r = c->error;
		}
		if (r >= 0)
			r = add_sums(part->sums, count, part->nr_events);
	}
	return r;
}

static int counts_parse(struct profdb_workload_part *part, const struct profdb_workloads *w,
			const struct profdb_payload *s)
{
	struct profdb_workload_coder c;
	int r = profdb_workload_coder_read(&c, COUNT + part->nr_events, s);

	if (r >= 0)
		r = get_counts(&c, w, part);
	if (r >= 0 && !profdb_workload_coder_done(&c))
		r = -DCPI_EFORMAT;
	profdb_workload_coder_release(&c);
	return r;
}

const struct profdb_coded_rows profdb_coded_counts = { counts_parse, counts_print };
