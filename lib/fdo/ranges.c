/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ranges of code between branches. A trace that comes to an address runs from there to the
 * next instruction that may branch, unless it ends before: all edges are known, so that both the
 * arrivals and the ends of a stretch of code are.
 */
#include <errno.h>
#include <stdlib.h>

#include "fdo_internal.h"

#define MAX_INSNS 4096 /* instructions in a range */

/* Something that happened in a stretch of code: control came, or a trace ended. */
struct event {
	uint64_t end; /* the instruction that ends its stretch */
	uint64_t at;
	uint64_t before; /* as struct fdo_range; of arrivals alone */
	uint64_t count;
	bool after_call, stub;
};

struct events {
	struct event *v;
	size_t nr, cap;
};

struct splitting {
	struct fdo_making *m;
	struct events came, ended;
};

/* The first instruction from @vaddr on that may go elsewhere; of code that ends otherwise, the last
 * one. */
static uint64_t end_of(const struct fdo_making *m, uint64_t vaddr)
{
	uint64_t last = vaddr;
	struct insn insn;

	for (uint32_t nr = 0; nr < MAX_INSNS && fdo_decode(m, vaddr, &insn); nr++) {
		last = vaddr;
		if (insn.flow != INSN_PLAIN)
			break;
		vaddr += insn.len;
	}
	return last;
}

static uint64_t count_of(const struct fdo_edge *e)
{
	uint64_t sum;

	return base_add_overflow(e->count[0], e->count[1], &sum) ? UINT64_MAX : sum;
}

static int add_event(struct splitting *s, struct events *to, const struct fdo_edge *e, uint64_t at)
{
	bool fell = e->kind == FDO_FELL || e->kind == FDO_RESUMED;
	int r = base_grow(&to->v, &to->cap, to->nr + 1, sizeof(*to->v));

	if (r >= 0)
		to->v[to->nr++] = (struct event){
			.end = end_of(s->m, at),
			.at = at,
			.before = fell ? e->from : at,
			.count = count_of(e),
			.after_call = e->kind == FDO_RETURN || e->kind == FDO_STUB ||
				      e->kind == FDO_ENTERED,
			.stub = fdo_in_stub(s->m, at),
		};
	return r;
}

static int compare64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_stretch(const void *pa, const void *pb)
{
	const struct event *a = pa, *b = pb;
	int r = compare64(a->end, b->end);

	if (!r)
		r = compare64(a->at, b->at);
	if (!r)
		r = compare64(a->before, b->before);
	return r ? r : (int)a->after_call - (int)b->after_call;
}

static void merge_equal(struct events *e)
{
	size_t nr = 0;

	if (e->nr)
		qsort(e->v, e->nr, sizeof(*e->v), by_stretch);
	for (size_t i = 0; i < e->nr; i++) {
		struct event *last = nr ? &e->v[nr - 1] : NULL;

		if (!last || by_stretch(last, &e->v[i]) != 0)
			e->v[nr++] = e->v[i];
		else if (base_add_overflow(last->count, e->v[i].count, &last->count))
			last->count = UINT64_MAX;
	}
	e->nr = nr;
}

static int gather(struct splitting *s)
{
	const struct fdo *f = s->m->f;
	int r = 0;

	for (size_t i = 0; i < f->nr_edges && r >= 0; i++) {
		const struct fdo_edge *e = &f->edges[i];

		if (e->kind == FDO_ENDED)
			r = add_event(s, &s->ended, e, e->from);
		else if (e->kind != FDO_UNKNOWN)
			r = add_event(s, &s->came, e, e->to);
	}
	merge_equal(&s->came);
	merge_equal(&s->ended);
	return r;
}

static int add_range(struct fdo *f, const struct event *came, uint64_t to, uint64_t count)
{
	int r = count ? base_grow(&f->ranges, &f->cap_ranges, f->nr_ranges + 1, sizeof(*f->ranges))
		      : 0;

	if (count && r >= 0)
		f->ranges[f->nr_ranges++] = (struct fdo_range){
			came->at, to, count, came->before, came->after_call, came->stub,
		};
	return r;
}

/*
 * The traces that ended at @ended came in by the arrivals before it, each by as many as its share
 * of these. A share is a difference of two rounded sums, so that they add up.
 */
static int take_ended(struct fdo *f, struct event *came, size_t nr, const struct event *ended)
{
	double all = 0, sum = 0, part;
	uint64_t given = 0;
	int r = 0;

	for (size_t i = 0; i < nr && came[i].at <= ended->at; i++)
		all += (double)came[i].count;
	part = all > (double)ended->count ? (double)ended->count / all : 1;
	for (size_t i = 0; i < nr && came[i].at <= ended->at && r >= 0; i++) {
		uint64_t upto, count;

		sum += (double)came[i].count;
		upto = (uint64_t)(sum * part + 0.5);
		count = upto > given ? upto - given : 0;
		count = count < came[i].count ? count : came[i].count;
		given += count;
		came[i].count -= count;
		r = add_range(f, &came[i], ended->at, count);
	}
	return r;
}

static int by_place(const void *pa, const void *pb)
{
	const struct fdo_range *a = pa, *b = pb;
	int r = compare64(a->from, b->from);

	if (!r)
		r = compare64(a->to, b->to);
	if (!r)
		r = compare64(a->before, b->before);
	return r ? r : (int)a->after_call - (int)b->after_call;
}

static int split(struct splitting *s)
{
	const struct events *ended = &s->ended;
	struct fdo *f = s->m->f;
	size_t next, e = 0;
	int r = 0;

	for (size_t i = 0; i < s->came.nr && r >= 0; i = next) {
		struct event *came = &s->came.v[i];

		for (next = i; next < s->came.nr && s->came.v[next].end == came->end;)
			next++;
		while (e < ended->nr && ended->v[e].end < came->end)
			e++;
		/* A trace that ends at the last instruction has run all of it. */
		for (; e < ended->nr && r >= 0 && ended->v[e].end == came->end; e++)
			if (ended->v[e].at < came->end)
				r = take_ended(f, came, next - i, &ended->v[e]);
		for (size_t k = i; k < next && r >= 0; k++)
			r = add_range(f, &s->came.v[k], came->end, s->came.v[k].count);
	}
	if (f->nr_ranges)
		qsort(f->ranges, f->nr_ranges, sizeof(*f->ranges), by_place);
	return r;
}

int fdo_make_ranges(struct fdo_making *m)
{
	struct splitting s = { .m = m };
	int r = gather(&s);

	if (r >= 0)
		r = split(&s);
	free(s.came.v);
	free(s.ended.v);
	return r;
}
