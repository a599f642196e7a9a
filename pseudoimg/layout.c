/* SPDX-License-Identifier: BSD-2-Clause */
/* Which .text sections there are, and their bytes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "pseudoimg_internal.h"

enum {
	GAP_LEAST = 4 << 10, /* up to here code is one section, and the gap zero (a hole on disk) */
	GAP_MOST = 1 << 20,
	NR_TEXT_GOOD = 1024,  /* above: larger gaps are closed too */
	NR_TEXT_MOST = 16000, /* fits e_shnum, e_phnum and st_shndx with room for the others */
};
#define TEXT_BYTES_MOST (UINT64_C(4) << 30)

static int add_span(struct pseudoimg_layout *l, const struct pseudoimg_span *s)
{
	struct pseudoimg_text *last = l->text.nr ? &l->text.v[l->text.nr - 1] : NULL;

	if (last && s->start <= last->addr + last->len + GAP_LEAST &&
	    last->addr + last->len <= UINT64_MAX - GAP_LEAST) {
		if (pseudoimg_span_end(s) > last->addr + last->len)
			last->len = pseudoimg_span_end(s) - last->addr;
		return 0;
	}
	last = PSEUDOIMG_PUSH(&l->text);
	if (!last)
		return -ENOMEM;
	*last = (struct pseudoimg_text){ .addr = s->start, .len = s->len };
	return 0;
}

static int collect(struct pseudoimg_layout *l, const struct pseudoimg_model *m)
{
	size_t range = 0, routine = 0;
	int r = 0;

	while (r >= 0 && (range < m->ranges.nr || routine < m->nodes.nr)) {
		struct pseudoimg_span s;

		if (routine == m->nodes.nr ||
		    (range < m->ranges.nr &&
		     m->ranges.v[range].at.start < m->nodes.v[routine].start))
			s = m->ranges.v[range++].at;
		else
			s = pseudoimg_node_span(&m->nodes.v[routine++]);
		if (s.len)
			r = add_span(l, &s);
	}
	return r;
}

static void coarsen(struct pseudoimg_layout *l, uint64_t gap)
{
	struct pseudoimg_text *v = l->text.v;
	size_t kept = 0;

	for (size_t i = 0; i < l->text.nr; i++) {
		if (kept && v[i].addr - (v[kept - 1].addr + v[kept - 1].len) <= gap)
			v[kept - 1].len = v[i].addr + v[i].len - v[kept - 1].addr;
		else
			v[kept++] = v[i];
	}
	l->text.nr = kept;
}

static uint64_t sum(const struct pseudoimg_layout *l)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < l->text.nr; i++)
		if (base_add_overflow(bytes, l->text.v[i].len, &bytes))
			return UINT64_MAX;
	return bytes;
}

int pseudoimg_layout_make(struct pseudoimg_layout *l, const struct pseudoimg_model *m,
			  struct base_err *err)
{
	int r = collect(l, m);

	if (r < 0)
		return base_fail_errno(err, r, "cannot lay out pseudo-image");
	for (uint64_t gap = GAP_LEAST * 4; gap <= GAP_MOST && l->text.nr > NR_TEXT_GOOD; gap *= 4)
		coarsen(l, gap);
	l->text_bytes = sum(l);
	if (l->text.nr > NR_TEXT_MOST)
		return base_fail(err, -DCPI_ELIMIT,
				 "cannot lay out pseudo-image: code in %zu places more than 1 MiB "
				 "apart, %d at most",
				 l->text.nr, NR_TEXT_MOST);
	if (l->text_bytes > TEXT_BYTES_MOST)
		return base_fail(err, -DCPI_ELIMIT,
				 "cannot lay out pseudo-image: code spans more than 4 GiB");
	return 0;
}

void pseudoimg_layout_release(struct pseudoimg_layout *l)
{
	free(l->text.v);
	memset(l, 0, sizeof(*l));
}

/* ---- bytes ----------------------------------------------------------------------------------- */

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

void pseudoimg_fill_from(struct pseudoimg_filler *f, uint64_t addr)
{
	f->range =
		BASE_BOUND(i, f->m->ranges.nr, pseudoimg_span_end(&f->m->ranges.v[i].at) <= addr);
	/* One with code overlaps no other, so only the one before can reach up to here. */
	f->routine = pseudoimg_model_from(f->m, addr);
	f->routine -= f->routine > 0;
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
