/* SPDX-License-Identifier: BSD-2-Clause */
/* The control-flow edges of an image's traces, each once, told apart by the instruction there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fdo_internal.h"

static int by_place(const void *pa, const void *pb)
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

static void merge_equal(struct fdo *f)
{
	size_t nr = 0;

	if (f->nr_edges)
		qsort(f->edges, f->nr_edges, sizeof(*f->edges), by_place);
	for (size_t i = 0; i < f->nr_edges; i++) {
		struct fdo_edge *last = nr ? &f->edges[nr - 1] : NULL;

		if (!last || by_place(last, &f->edges[i]) != 0) {
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

int fdo_make_edges(struct fdo_making *m, const struct profdb_profile *p)
{
	size_t nr = profdb_profile_nr_edges(p);
	struct fdo *f = m->f;
	int r = 0;

	for (size_t i = 0; i < nr && r >= 0; i++)
		r = take(m, profdb_profile_edge(p, i));
	if (r < 0)
		return r;
	merge_equal(f);
	for (size_t i = 0; i < f->nr_edges; i++) {
		struct fdo_edge *e = &f->edges[i];

		if (e->kind == FDO_NR_KINDS)
			e->kind = kind_of(m, e);
		add_to(&f->sum[e->kind], e->count[0]);
		add_to(&f->sum[e->kind], e->count[1]);
	}
	return 0;
}
