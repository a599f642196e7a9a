/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of .text sections: those of owned ranges, and of routines, which replace them. */
#include <string.h>

#include "bound.h"
#include "pseudoimg_internal.h"

/* Which part of [@addr, @addr + @len) @s covers; the trace is zeroed before the first. */
static bool meets(const struct pseudoimg_span *s, uint64_t addr, uint8_t *trace, size_t len,
		  bool *any, struct pseudoimg_span *part)
{
	uint64_t from = s->start > addr ? s->start : addr;
	uint64_t to = pseudoimg_span_end(s) < addr + len ? pseudoimg_span_end(s) : addr + len;

	if (from >= to)
		return false;
	if (!*any)
		memset(trace, 0, len);
	*any = true;
	*part = (struct pseudoimg_span){ .start = from, .len = to - from };
	return true;
}

static int put_range(struct pseudoimg_filler *f, const struct pseudoimg_range *range, uint64_t addr,
		     uint8_t *trace, size_t len, bool *any)
{
	struct pseudoimg_span part;

	if (!meets(&range->at, addr, trace, len, any, &part))
		return 0;
	return pseudoimg_job_read(f->m->job, range->bytes_off + (part.start - range->at.start),
				  trace + (part.start - addr), part.len);
}

static int put_routine(struct pseudoimg_filler *f, const struct pseudoimg_node *node, uint64_t addr,
		       uint8_t *trace, size_t len, bool *any)
{
	struct pseudoimg_span part, at = pseudoimg_node_span(node);
	struct pseudoimg_loaded loaded;
	int r;

	if (!node->code || !meets(&at, addr, trace, len, any, &part))
		return 0;
	r = pseudoimg_model_load(f->m, node, &loaded);
	if (r >= 0)
		memcpy(trace + (part.start - addr), loaded.view.code + (part.start - node->start),
		       part.len);
	return r;
}

struct pseudoimg_filler pseudoimg_fill_from(struct pseudoimg_model *m, uint64_t addr)
{
	struct pseudoimg_filler f = { .m = m };

	f.range = BASE_BOUND(i, m->ranges.nr, pseudoimg_span_end(&m->ranges.v[i].at) <= addr);
	/* One with code overlaps no other, so only the one before can reach up to here. */
	f.routine = pseudoimg_model_from(m, addr);
	f.routine -= f.routine > 0;
	return f;
}

int pseudoimg_fill(struct pseudoimg_filler *f, uint64_t addr, uint8_t *trace, size_t len)
{
	const struct pseudoimg_range *ranges = f->m->ranges.v;
	const struct pseudoimg_node *nodes = f->m->nodes.v;
	size_t nr_ranges = f->m->ranges.nr, nr = f->m->nodes.nr;
	bool any = false;
	int r = 0;

	while (f->range < nr_ranges && pseudoimg_span_end(&ranges[f->range].at) <= addr)
		f->range++;
	for (size_t i = f->range; r >= 0 && i < nr_ranges && ranges[i].at.start < addr + len; i++)
		r = put_range(f, &ranges[i], addr, trace, len, &any);
	/* The bytes of a record are those that ran: they replace the range's bytes. */
	while (f->routine < nr &&
	       (!nodes[f->routine].code || nodes[f->routine].start + nodes[f->routine].len <= addr))
		f->routine++;
	for (size_t i = f->routine; r >= 0 && i < nr && nodes[i].start < addr + len; i++)
		r = put_routine(f, &nodes[i], addr, trace, len, &any);
	return r < 0 ? r : any;
}
