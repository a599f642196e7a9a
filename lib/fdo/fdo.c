/* SPDX-License-Identifier: BSD-2-Clause */
/* The branches and ranges of an image are made here from its traces, and released. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fdo.h"
#include "insn.h"

struct fdo_making {
	struct fdo *f;
	struct image *img;
	struct insn_decoder *d;
};

/* ---- edges ----------------------------------------------------------------------------------- */

static int edge_by_place(const void *pa, const void *pb)
{
	const struct fdo_edge *a = pa, *b = pb;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	return (a->kind > b->kind) - (a->kind < b->kind);
}

/* Adds with saturation: the counts of a profile add up, but not those of both halves. */
static void add_to(uint64_t *sum, uint64_t count)
{
	if (base_add_overflow(*sum, count, sum))
		*sum = UINT64_MAX;
}

static void merge_equal_edges(struct fdo *f)
{
	size_t nr = 0;

	if (f->nr_edges)
		qsort(f->edges, f->nr_edges, sizeof(*f->edges), edge_by_place);
	for (size_t i = 0; i < f->nr_edges; i++) {
		struct fdo_edge *last = nr ? &f->edges[nr - 1] : NULL;

		if (!last || edge_by_place(last, &f->edges[i]) != 0) {
			f->edges[nr++] = f->edges[i];
			continue;
		}
		add_to(&last->count[0], f->edges[i].count[0]);
		add_to(&last->count[1], f->edges[i].count[1]);
	}
	f->nr_edges = nr;
}

/* FDO_NONE for what is outside of the image; false: the image has no such offset. */
static bool vaddr_of(const struct fdo_making *m, uint64_t off, uint64_t *out)
{
	*out = FDO_NONE;
	return off >= PROFDB_ANY_START || image_vaddr(m->img, off, out) >= 0;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

/* Decodes what stands at @vaddr. False: no instruction of the image does. */
static bool fdo_decode(const struct fdo_making *m, uint64_t vaddr, struct insn *out)
{
	uint8_t code[16];
	size_t len = image_bytes(m->img, vaddr, code, sizeof(code));

	if (!len)
		return false;
	insn_decode_flow(m->d, code, len, vaddr, out);
	return out->flow != INSN_DATA;
}

/* Does an instruction before @vaddr end there as a call does? The lengths of calls are tried. */
static bool is_after_call(const struct fdo_making *m, uint64_t vaddr)
{
	static const uint8_t lengths[] = { 5, 4, 2, 3, 6, 7, 8 };
	struct insn insn;

	for (size_t i = 0; i < sizeof(lengths); i++)
		if (vaddr >= lengths[i] && fdo_decode(m, vaddr - lengths[i], &insn) &&
		    insn.len == lengths[i] &&
		    (insn.flow == INSN_CALL || insn.flow == INSN_INDIRECT_CALL))
			return true;
	return false;
}

/* A stub's jump, and a procedure's last one, may lead into another image; the callee returns behind
 * the call that led here. Jumps within the image lead elsewhere. */
static enum fdo_kind kind_of_jump(const struct fdo_making *m, const struct fdo_edge *e)
{
	const struct image_symbol *from = image_symbol_at(m->img, e->from);
	const struct image_symbol *to = image_symbol_at(m->img, e->to);

	if ((from && from == to) || (to && to->vaddr == e->to) || !is_after_call(m, e->to))
		return FDO_INDIRECT_JUMP;
	return FDO_STUB;
}

static enum fdo_kind kind_of(const struct fdo_making *m, const struct fdo_edge *e)
{
	bool next;
	struct insn insn;

	if (!fdo_decode(m, e->from, &insn))
		return FDO_UNKNOWN;
	next = e->to == e->from + insn.len;
	switch ((enum insn_flow)insn.flow) {
	case INSN_BRANCH:
		return next ? FDO_FELL : e->to == insn.target ? FDO_TAKEN : FDO_UNKNOWN;
	case INSN_JUMP:
		return e->to == insn.target ? FDO_JUMP : FDO_UNKNOWN;
	case INSN_CALL:
		return e->to == insn.target ? FDO_CALL : next ? FDO_RESUMED : FDO_UNKNOWN;
	case INSN_INDIRECT_CALL:
		return next ? FDO_RESUMED : FDO_INDIRECT_CALL;
	case INSN_INDIRECT_JUMP:
		return kind_of_jump(m, e);
	case INSN_RETURN:
		return FDO_RETURN;
	case INSN_PLAIN:
	case INSN_TRAP:
	case INSN_DATA:
		break;
	}
	return FDO_UNKNOWN;
}

static enum fdo_kind kind_at_end(const struct fdo_making *m, const struct fdo_edge *e, bool outside)
{
	struct insn insn;

	if (!fdo_decode(m, e->from == FDO_NONE ? e->to : e->from, &insn))
		return FDO_UNKNOWN;
	if (e->to == FDO_NONE)
		return FDO_ENDED;
	return outside ? FDO_ENTERED : FDO_BEGUN;
}

/* ---- the profile ----------------------------------------------------------------------------- */

static int take(struct fdo_making *m, const struct profdb_edge *v)
{
	struct fdo *f = m->f;
	struct fdo_edge e = { .count = { v->count[0], v->count[1] } };
	bool known = vaddr_of(m, v->from, &e.from);
	int r;

	known = vaddr_of(m, v->to, &e.to) && known;
	if (!known || (e.from == FDO_NONE && e.to == FDO_NONE))
		e.kind = FDO_UNKNOWN;
	else if (e.from == FDO_NONE || e.to == FDO_NONE)
		e.kind = kind_at_end(m, &e, v->start == PROFDB_OUTSIDE);
	else
		e.kind = FDO_NR_KINDS; /* told apart below, once for all starts */
	r = base_grow(&f->edges, &f->cap_edges, f->nr_edges + 1, sizeof(*f->edges));
	if (r >= 0)
		f->edges[f->nr_edges++] = e;
	return r;
}

/* The edges of @p, each once, with its kind. 0 or -ENOMEM. */
static int fdo_make_edges(struct fdo_making *m, const struct profdb_profile *p)
{
	size_t nr = profdb_profile_nr_edges(p);
	struct fdo *f = m->f;
	int r = 0;

	for (size_t i = 0; i < nr && r >= 0; i++)
		r = take(m, profdb_profile_edge(p, i));
	if (r < 0)
		return r;
	merge_equal_edges(f);
	for (size_t i = 0; i < f->nr_edges; i++) {
		struct fdo_edge *e = &f->edges[i];

		if (e->kind == FDO_NR_KINDS)
			e->kind = kind_of(m, e);
		add_to(&f->sum[e->kind], e->count[0]);
		add_to(&f->sum[e->kind], e->count[1]);
	}
	return 0;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/*
 * The ranges of code between branches. A trace that comes to an address runs from there to the
 * next instruction that may branch, unless it ends before: all edges are known, so that both the
 * arrivals and the ends of a stretch of code are.
 */

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

/* Does @vaddr lie in a section of stubs? */
static bool fdo_in_stub(const struct fdo_making *m, uint64_t vaddr)
{
	struct image_code code;

	for (size_t i = 0; image_code_at(m->img, i, &code); i++)
		if (vaddr - code.vaddr < code.len)
			return strncmp(code.name, ".plt", 4) == 0;
	return false;
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

static void merge_equal_ranges(struct events *e)
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
	merge_equal_ranges(&s->came);
	merge_equal_ranges(&s->ended);
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

static int range_by_place(const void *pa, const void *pb)
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
		qsort(f->ranges, f->nr_ranges, sizeof(*f->ranges), range_by_place);
	return r;
}

/* The ranges between them. 0 or -ENOMEM. */
static int fdo_make_ranges(struct fdo_making *m)
{
	struct splitting s = { .m = m };
	int r = gather(&s);

	if (r >= 0)
		r = split(&s);
	free(s.came.v);
	free(s.ended.v);
	return r;
}

/* ---- both ------------------------------------------------------------------------------------ */

static const char *const names[FDO_NR_KINDS] = {
	[FDO_TAKEN] = "taken",	     [FDO_FELL] = "not taken",
	[FDO_JUMP] = "jump",	     [FDO_INDIRECT_JUMP] = "indirect jump",
	[FDO_CALL] = "call",	     [FDO_INDIRECT_CALL] = "indirect call",
	[FDO_RETURN] = "return",     [FDO_RESUMED] = "call outside",
	[FDO_STUB] = "jump outside", [FDO_BEGUN] = "begun",
	[FDO_ENTERED] = "entered",   [FDO_ENDED] = "ended",
	[FDO_UNKNOWN] = "unknown",
};

const char *fdo_kind_name(enum fdo_kind kind)
{
	return names[kind];
}

int fdo_make(const struct profdb_profile *p, struct image *img, struct fdo **out,
	     struct base_err *err)
{
	struct fdo_making m = { .img = img };
	int r;

	if (!profdb_profile_nr_edges(p)) {
		base_fail(err, -ENOENT, "there are no instruction traces of '%s'", image_path(img));
		base_hint(err, "dcpid -vwindows 10 makes traces, of one sample in ten");
		return -ENOENT;
	}
	r = insn_decoder_open(image_machine(img), &m.d, err);
	if (r < 0)
		return r;
	m.f = calloc(1, sizeof(*m.f));
	r = m.f ? fdo_make_edges(&m, p) : -ENOMEM;
	if (r >= 0)
		r = fdo_make_ranges(&m);
	insn_decoder_close(m.d);
	if (r < 0) {
		fdo_free(m.f);
		return base_fail_errno(err, r, "cannot place the traces of '%s'", image_path(img));
	}
	*out = m.f;
	return 0;
}

void fdo_free(struct fdo *f)
{
	if (!f)
		return;
	free(f->edges);
	free(f->ranges);
	free(f);
}
