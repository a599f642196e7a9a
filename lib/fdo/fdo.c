/* SPDX-License-Identifier: BSD-2-Clause */
/* The branches and ranges of an image are made here from its traces, and released. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fdo.h"
#include "insn.h"

/* An edge while profiles are added up. */
struct adding {
	uint64_t from, to;
	double count[2];
	double seen; /* their sum without corrections */
	enum fdo_kind kind;
};

struct fdo_making {
	struct fdo *f;
	struct image *img;
	struct insn_decoder *d;
	struct adding *edges;
	size_t nr_edges, cap_edges;
};

/* Adds with saturation: the counts of a profile add up, but not those of both halves. */
static void add_to(uint64_t *sum, uint64_t count)
{
	if (base_add_overflow(*sum, count, sum))
		*sum = UINT64_MAX;
}

/* ---- edges ----------------------------------------------------------------------------------- */

static int edge_by_place(const void *pa, const void *pb)
{
	const struct adding *a = pa, *b = pb;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	return (a->kind > b->kind) - (a->kind < b->kind);
}

static void merge_equal_edges(struct fdo_making *m)
{
	size_t nr = 0;

	if (m->nr_edges)
		qsort(m->edges, m->nr_edges, sizeof(*m->edges), edge_by_place);
	for (size_t i = 0; i < m->nr_edges; i++) {
		struct adding *last = nr ? &m->edges[nr - 1] : NULL;

		if (!last || edge_by_place(last, &m->edges[i]) != 0) {
			m->edges[nr++] = m->edges[i];
			continue;
		}
		last->count[0] += m->edges[i].count[0];
		last->count[1] += m->edges[i].count[1];
		last->seen += m->edges[i].seen;
	}
	m->nr_edges = nr;
}

/* FDO_NONE for what is outside of the image; false: the image has no such offset. */
static bool vaddr_of(const struct image *img, uint64_t off, uint64_t *out)
{
	*out = FDO_NONE;
	return off >= PROFDB_ANY_START || image_vaddr(img, off, out) >= 0;
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
static enum fdo_kind kind_of_jump(const struct fdo_making *m, const struct adding *e)
{
	const struct image_symbol *from = image_symbol_at(m->img, e->from);
	const struct image_symbol *to = image_symbol_at(m->img, e->to);

	if ((from && from == to) || (to && to->vaddr == e->to) || !is_after_call(m, e->to))
		return FDO_INDIRECT_JUMP;
	return FDO_STUB;
}

static enum fdo_kind kind_of(const struct fdo_making *m, const struct adding *e)
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

static enum fdo_kind kind_at_end(const struct fdo_making *m, const struct adding *e, bool outside)
{
	struct insn insn;

	if (!fdo_decode(m, e->from == FDO_NONE ? e->to : e->from, &insn))
		return FDO_UNKNOWN;
	if (e->to == FDO_NONE)
		return FDO_ENDED;
	return outside ? FDO_ENTERED : FDO_BEGUN;
}

/* ---- the profile ----------------------------------------------------------------------------- */

/* The kind of an edge between two instructions is told later, once for all starts. */
static enum fdo_kind kind_of_move(const struct fdo_making *m, const struct adding *e, bool outside)
{
	if (e->from == FDO_NONE && e->to == FDO_NONE)
		return FDO_UNKNOWN;
	return e->from == FDO_NONE || e->to == FDO_NONE ? kind_at_end(m, e, outside) : FDO_NR_KINDS;
}

static int put_edge(struct fdo_making *m, const struct adding *e)
{
	int r = base_grow(&m->edges, &m->cap_edges, m->nr_edges + 1, sizeof(*m->edges));

	if (r >= 0)
		m->edges[m->nr_edges++] = *e;
	return r;
}

/* Begins and ends of traces are not corrected. @img: the build that ran. */
static struct adding counts_of(const struct fdo_traces *t, const struct image *img,
			       const struct profdb_edge *v)
{
	bool inside = v->from < PROFDB_ANY_START && v->to < PROFDB_ANY_START;
	double factor = t->weight;
	uint64_t from;

	if (t->correct && inside && image_vaddr(img, v->from, &from) >= 0)
		factor *= t->correct(t->context, from);
	return (struct adding){
		.count = { (double)v->count[0] * factor, (double)v->count[1] * factor },
		.seen = ((double)v->count[0] + (double)v->count[1]) * t->weight,
	};
}

static int take(struct fdo_making *m, const struct fdo_traces *t, const struct profdb_edge *v)
{
	struct adding e = counts_of(t, m->img, v);
	bool known = vaddr_of(m->img, v->from, &e.from);

	known = vaddr_of(m->img, v->to, &e.to) && known;
	e.kind = known ? kind_of_move(m, &e, v->start == PROFDB_OUTSIDE) : FDO_UNKNOWN;
	return put_edge(m, &e);
}

/* ---- another build --------------------------------------------------------------------------- */

/* 1: the code at that offset of the other build is in this one; 0: it is not; or -ENOMEM. */
static int carry(struct fdo_version *v, uint64_t off, uint64_t *vaddr)
{
	int r;

	if (!vaddr_of(fdo_version_from(v), off, vaddr) || *vaddr == FDO_NONE)
		return 0;
	r = fdo_version_place(v, *vaddr, vaddr);
	return r < 0 ? r : *vaddr != FDO_NONE;
}

/* This build has not the edge. A direct call or jump is one to where it leads now, and control is
 * only known to have come to the edge's end. 1: the call or jump is there; 0, or -ENOMEM. */
static int put_turned(struct fdo_making *m, struct adding *e)
{
	struct insn insn;
	int r = 0;
	bool direct =
		fdo_decode(m, e->from, &insn) && (insn.flow == INSN_CALL || insn.flow == INSN_JUMP);

	if (direct) {
		struct adding now = *e;

		now.to = insn.target;
		now.kind = insn.flow == INSN_CALL ? FDO_CALL : FDO_JUMP;
		r = put_edge(m, &now);
	}
	e->from = FDO_NONE;
	e->kind = FDO_CAME;
	if (r >= 0)
		r = put_edge(m, e);
	return r < 0 ? r : direct;
}

/* An edge between two instructions; at least one of them is in this build. As put_turned. */
static int put_inside(struct fdo_making *m, struct adding *e)
{
	int r;

	if (e->to == FDO_NONE)
		return 0;
	e->kind = e->from == FDO_NONE ? FDO_CAME : kind_of(m, e);
	if (e->kind == FDO_UNKNOWN)
		return put_turned(m, e);
	r = put_edge(m, e);
	return r < 0 ? r : e->kind != FDO_CAME;
}

static int take_carried(struct fdo_making *m, const struct fdo_traces *t,
			const struct profdb_edge *v, struct fdo_version *other,
			struct fdo_carried *sum)
{
	bool inside = v->from < PROFDB_ANY_START && v->to < PROFDB_ANY_START;
	uint64_t count = v->count[0] + v->count[1];
	struct adding e = counts_of(t, fdo_version_from(other), v);
	int from = carry(other, v->from, &e.from), to = carry(other, v->to, &e.to), r;

	if (from < 0 || to < 0)
		return -ENOMEM;
	if (inside)
		add_to(&sum->edges, count);
	if (!from && !to)
		return 0;
	if (inside) {
		r = put_inside(m, &e);
		add_to(&sum->placed, r > 0 ? count : 0);
		return r;
	}
	e.kind = kind_at_end(m, &e, v->start == PROFDB_OUTSIDE);
	return put_edge(m, &e);
}

/* ---- sums ------------------------------------------------------------------------------------ */

static uint64_t rounded(double count)
{
	return count >= (double)UINT64_MAX ? UINT64_MAX : (uint64_t)(count + 0.5);
}

/* False: traces so old that they count for nothing. A correction leaves something of each edge. */
static bool round_counts(const struct adding *a, uint64_t count[2])
{
	count[0] = rounded(a->count[0]);
	count[1] = rounded(a->count[1]);
	if (!count[0] && !count[1] && rounded(a->seen))
		count[a->count[0] < a->count[1]] = 1;
	return count[0] || count[1];
}

/* The edges that were added, each once, with its kind. 0 or -ENOMEM. */
static int fdo_make_edges(struct fdo_making *m)
{
	struct fdo *f = m->f;

	merge_equal_edges(m);
	f->edges = calloc(m->nr_edges + 1, sizeof(*f->edges));
	if (!f->edges)
		return -ENOMEM;
	for (size_t i = 0; i < m->nr_edges; i++) {
		const struct adding *a = &m->edges[i];
		struct fdo_edge e = { .from = a->from, .to = a->to, .kind = a->kind };

		if (!round_counts(a, e.count))
			continue;
		if (e.kind == FDO_NR_KINDS)
			e.kind = kind_of(m, a);
		add_to(&f->sum[e.kind], rounded(a->seen));
		f->edges[f->nr_edges++] = e;
	}
	return 0;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/*
 * The ranges of code between branches. Control that comes to an address runs from there to the
 * next instruction that may branch, also where its trace ended before. A trace that begins within
 * such a stretch of code continues, on the average, one that ended there: it adds nothing where
 * control is known to have come in.
 */

#define MAX_INSNS 4096 /* instructions in a range */

/* Control came, in so many traces. */
struct event {
	uint64_t end; /* the instruction that ends its stretch */
	uint64_t at;
	uint64_t before; /* as struct fdo_range */
	uint64_t count;
	bool after_call, stub, begun;
};

struct events {
	struct event *v;
	size_t nr, cap;
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

static int add_event(const struct fdo_making *m, struct events *to, const struct fdo_edge *e)
{
	bool fell = e->kind == FDO_FELL || e->kind == FDO_RESUMED;
	int r = base_grow(&to->v, &to->cap, to->nr + 1, sizeof(*to->v));

	if (r >= 0)
		to->v[to->nr++] = (struct event){
			.end = end_of(m, e->to),
			.at = e->to,
			.before = fell ? e->from : e->to,
			.count = count_of(e),
			.after_call = e->kind == FDO_RETURN || e->kind == FDO_STUB ||
				      e->kind == FDO_ENTERED || e->kind == FDO_CAME,
			.stub = fdo_in_stub(m, e->to),
			.begun = e->kind == FDO_BEGUN,
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
		r = (int)a->begun - (int)b->begun;
	if (!r)
		r = compare64(a->at, b->at);
	if (!r)
		r = compare64(a->before, b->before);
	return r ? r : (int)a->after_call - (int)b->after_call;
}

static void merge_equal_events(struct events *e)
{
	size_t nr = 0;

	if (e->nr)
		qsort(e->v, e->nr, sizeof(*e->v), by_stretch);
	for (size_t i = 0; i < e->nr; i++) {
		struct event *last = nr ? &e->v[nr - 1] : NULL;

		if (!last || by_stretch(last, &e->v[i]) != 0)
			e->v[nr++] = e->v[i];
		else
			add_to(&last->count, e->v[i].count);
	}
	e->nr = nr;
}

static int gather(const struct fdo_making *m, struct events *came)
{
	const struct fdo *f = m->f;
	int r = 0;

	for (size_t i = 0; i < f->nr_edges && r >= 0; i++)
		if (f->edges[i].kind != FDO_UNKNOWN && f->edges[i].kind != FDO_ENDED)
			r = add_event(m, came, &f->edges[i]);
	merge_equal_events(came);
	return r;
}

static int add_range(struct fdo *f, const struct event *came)
{
	int r = base_grow(&f->ranges, &f->cap_ranges, f->nr_ranges + 1, sizeof(*f->ranges));

	if (r >= 0)
		f->ranges[f->nr_ranges++] = (struct fdo_range){
			came->at,     came->end,	came->count,
			came->before, came->after_call, came->stub,
		};
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

/* Arrivals come first in a stretch, by address, and then what was begun. */
static int add_ranges(struct fdo *f, const struct events *came)
{
	const struct event *first = NULL;
	int r = 0;

	for (size_t i = 0; i < came->nr && r >= 0; i++) {
		const struct event *e = &came->v[i];

		if (!first || first->end != e->end)
			first = e;
		if (!e->begun || first->begun || first->at > e->at)
			r = add_range(f, e);
	}
	if (f->nr_ranges)
		qsort(f->ranges, f->nr_ranges, sizeof(*f->ranges), range_by_place);
	return r;
}

/* The ranges between them. 0 or -ENOMEM. */
static int fdo_make_ranges(const struct fdo_making *m)
{
	struct events came = { 0 };
	int r = gather(m, &came);

	if (r >= 0)
		r = add_ranges(m->f, &came);
	free(came.v);
	return r;
}

/* ---- both ------------------------------------------------------------------------------------ */

static int no_traces(const struct image *img, struct base_err *err)
{
	base_fail(err, -ENOENT, "there are no instruction traces of '%s'", image_path(img));
	base_hint(err, "dcpid -vwindows 10 makes traces, of one sample in ten");
	return -ENOENT;
}

static int failed(const struct fdo_making *m, int r, struct base_err *err)
{
	return r < 0 ? base_fail_errno(err, r, "cannot place the traces of '%s'",
				       image_path(m->img))
		     : 0;
}

int fdo_begin(struct image *img, struct fdo_making **out, struct base_err *err)
{
	struct fdo_making *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return base_fail_errno(err, -ENOMEM, "cannot place traces");
	m->img = img;
	r = insn_decoder_open(image_machine(img), &m->d, err);
	if (r < 0) {
		free(m);
		return r;
	}
	*out = m;
	return 0;
}

int fdo_add(struct fdo_making *m, const struct fdo_traces *t, struct base_err *err)
{
	size_t nr = profdb_profile_nr_edges(t->profile);
	int r = 0;

	for (size_t i = 0; i < nr && r >= 0; i++) {
		const struct profdb_edge *v = profdb_profile_edge(t->profile, i);

		r = take(m, t, v);
	}
	return failed(m, r, err);
}

int fdo_add_version(struct fdo_making *m, const struct fdo_traces *t, struct fdo_version *v,
		    struct fdo_carried *sum, struct base_err *err)
{
	size_t nr = profdb_profile_nr_edges(t->profile);
	int r = 0;

	for (size_t i = 0; i < nr && r >= 0; i++) {
		const struct profdb_edge *e = profdb_profile_edge(t->profile, i);

		r = take_carried(m, t, e, v, sum);
	}
	return failed(m, r, err);
}

static int finish(struct fdo_making *m, struct fdo **out, struct base_err *err)
{
	int r = m->nr_edges ? 0 : no_traces(m->img, err);

	if (r < 0)
		return r;
	m->f = calloc(1, sizeof(*m->f));
	r = m->f ? fdo_make_edges(m) : -ENOMEM;
	if (r >= 0)
		r = fdo_make_ranges(m);
	if (r < 0)
		fdo_free(m->f);
	else
		*out = m->f;
	return failed(m, r, err);
}

int fdo_end(struct fdo_making *m, struct fdo **out, struct base_err *err)
{
	int r = out ? finish(m, out, err) : 0;

	insn_decoder_close(m->d);
	free(m->edges);
	free(m);
	return r;
}

int fdo_make(const struct profdb_profile *p, struct image *img, struct fdo **out,
	     struct base_err *err)
{
	const struct fdo_traces t = { .profile = p, .weight = 1 };
	struct fdo_making *m;
	int r, ended;

	if (!profdb_profile_nr_edges(p))
		return no_traces(img, err);
	r = fdo_begin(img, &m, err);
	if (r < 0)
		return r;
	r = fdo_add(m, &t, err);
	ended = fdo_end(m, r < 0 ? NULL : out, err);
	return r < 0 ? r : ended;
}

void fdo_free(struct fdo *f)
{
	if (!f)
		return;
	free(f->edges);
	free(f->ranges);
	free(f);
}
