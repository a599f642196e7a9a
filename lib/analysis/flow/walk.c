/* SPDX-License-Identifier: BSD-2-Clause */
/* From the procedure's start along every way that is known. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

enum { CODE_MAX = 16 << 20, PARTS_MAX = 64, UNNAMED_MAX = 1 << 16 };

struct flow_part *flow_walk_part(const struct flow_walk *w, uint64_t vaddr)
{
	for (size_t i = 0; i < w->nr_parts; i++)
		if (vaddr - w->parts[i].vaddr < w->parts[i].len)
			return &w->parts[i];
	return NULL;
}

struct flow_jump *flow_walk_jump(const struct flow_walk *w, uint64_t vaddr)
{
	for (size_t i = 0; i < w->nr_jumps; i++)
		if (w->jumps[i].vaddr == vaddr)
			return &w->jumps[i];
	return NULL;
}

static bool overlaps(const struct flow_walk *w, const struct flow_part *p)
{
	for (size_t i = 0; i < w->nr_parts; i++) {
		const struct flow_part *o = &w->parts[i];

		if (p->vaddr < o->vaddr + o->len && o->vaddr < p->vaddr + p->len)
			return true;
	}
	return false;
}

/*
 * What is left of a section with the linker's stubs goes by the section's name and has its size
 * (lib/image), though most stubs have names: those are procedures of their own.
 */
static uint64_t own_len(const struct flow_walk *w, const struct image_symbol *symbol)
{
	uint64_t len = 1;

	if (strncmp(symbol->name, "[.", 2) != 0 || !symbol->len || !w->source->symbol_at)
		return symbol->len;
	for (; len < symbol->len; len++) {
		const struct image_symbol *s =
			w->source->symbol_at(w->source->context, symbol->vaddr + len);

		if (s && s->vaddr != symbol->vaddr)
			break;
	}
	return len;
}

static int add_part(struct flow_walk *w, const struct image_symbol *symbol)
{
	uint64_t own = own_len(w, symbol);
	size_t len = own < CODE_MAX ? own : CODE_MAX;
	struct flow_part p = { .vaddr = symbol->vaddr, .code = malloc(len + 1) };
	int r = p.code ? 0 : -ENOMEM;

	if (r >= 0) {
		p.len = w->source->bytes(w->source->context, p.vaddr, p.code, len);
		if (p.len < own)
			w->cut = true;
		p.owner = calloc(p.len + 1, sizeof(*p.owner));
		p.mark = calloc(p.len + 1, 1);
		r = p.owner && p.mark ? 0 : -ENOMEM;
	}
	if (r >= 0 && p.len && p.vaddr + p.len > p.vaddr && w->nr_parts < PARTS_MAX &&
	    !overlaps(w, &p)) {
		r = base_grow(&w->parts, &w->cap_parts, w->nr_parts + 1, sizeof(*w->parts));
		if (r >= 0) {
			w->parts[w->nr_parts++] = p;
			return 0;
		}
	}
	free(p.code);
	free(p.owner);
	free(p.mark);
	return r;
}

/* "name.cold", "name.cold.1": what the compiler found unlikely and put elsewhere. */
static bool is_cold_part(const char *name, const char *of)
{
	size_t len = strlen(of);

	return strncmp(name, of, len) == 0 && strncmp(name + len, ".cold", 5) == 0 &&
	       (!name[len + 5] || name[len + 5] == '.');
}

/* Does the code of @len bytes at @vaddr branch into what is known of the procedure? */
static bool branches_back(const struct flow_walk *w, const uint8_t *code, size_t len,
			  uint64_t vaddr)
{
	struct insn insn;

	for (size_t off = 0; off < len; off += insn.len) {
		insn_decode(w->d, code + off, len - off, vaddr + off, &insn);
		if ((insn.flow == INSN_JUMP || insn.flow == INSN_BRANCH) &&
		    insn.target != w->symbol->vaddr && flow_walk_part(w, insn.target))
			return true;
	}
	return false;
}

static bool leads_back(struct flow_walk *w, const struct image_symbol *s)
{
	size_t len = s->len < UNNAMED_MAX ? s->len : UNNAMED_MAX;
	uint8_t *code = s->vaddr == w->not_cold ? NULL : malloc(len + 1);
	bool found;

	if (!code)
		return false;
	len = w->source->bytes(w->source->context, s->vaddr, code, len);
	found = branches_back(w, code, len, s->vaddr);
	free(code);
	if (!found)
		w->not_cold = s->vaddr;
	return found;
}

/*
 * A procedure that has no name (lib/image calls it by its address) is a cold part of the one that
 * jumps into its middle or by a table, or that it jumps back to. And it stands before that one: so
 * linkers put them, and else the part would have the procedure for its own.
 */
static bool is_unnamed_part(struct flow_walk *w, const struct image_symbol *s, uint64_t vaddr,
			    bool by_table)
{
	if (strncmp(s->name, "0x", 2) != 0 || s->vaddr > w->symbol->vaddr)
		return false;
	return vaddr != s->vaddr || by_table || leads_back(w, s);
}

static int find_part(struct flow_walk *w, uint64_t vaddr, bool by_table, struct flow_part **out)
{
	const struct image_symbol *s;
	int r = 0;

	*out = flow_walk_part(w, vaddr);
	if (*out || !w->source->symbol_at)
		return 0;
	s = w->source->symbol_at(w->source->context, vaddr);
	if (s && (is_cold_part(s->name, w->symbol->name) || is_unnamed_part(w, s, vaddr, by_table)))
		r = add_part(w, s);
	*out = flow_walk_part(w, vaddr);
	return r;
}

int flow_walk_add(struct flow_walk *w, uint64_t vaddr, uint8_t marks)
{
	struct flow_part *p;
	int r = find_part(w, vaddr, false, &p);

	if (r < 0 || !p)
		return r;
	p->mark[vaddr - p->vaddr] |= marks | FLOW_LEADER;
	r = base_grow(&w->todo, &w->cap_todo, w->nr_todo + 1, sizeof(*w->todo));
	if (r < 0)
		return r;
	w->todo[w->nr_todo++] = vaddr;
	return 1;
}

int flow_walk_reaches(struct flow_walk *w, uint64_t vaddr)
{
	struct flow_part *p;
	int r = find_part(w, vaddr, true, &p);

	return r < 0 ? r : p != NULL;
}

int flow_walk_open(struct flow_walk *w)
{
	int r = add_part(w, w->symbol);

	return r < 0 ? r : flow_walk_add(w, w->symbol->vaddr, FLOW_FROM_AWAY);
}

void flow_walk_release(struct flow_walk *w)
{
	for (size_t i = 0; i < w->nr_parts; i++) {
		free(w->parts[i].code);
		free(w->parts[i].owner);
		free(w->parts[i].mark);
	}
	for (size_t i = 0; i < w->nr_jumps; i++)
		free(w->jumps[i].targets);
	free(w->parts);
	free(w->insns);
	free(w->todo);
	free(w->jumps);
}

/* ---- walking ------------------------------------------------------------------------------- */

/* Does an instruction of @len bytes at @off run into one that is known already? */
static bool runs_into(struct flow_walk *w, struct flow_part *p, uint64_t off, uint8_t len)
{
	for (uint8_t i = 1; i < len; i++) {
		if (!p->owner[off + i])
			continue;
		w->overlapping = true;
		p->mark[off + i] |= FLOW_LEADER;
		return true;
	}
	return false;
}

static int record(struct flow_walk *w, struct flow_part *p, const struct insn *insn)
{
	uint64_t off = insn->vaddr - p->vaddr;
	int r = base_grow(&w->insns, &w->cap_insns, w->nr_insns + 1, sizeof(*w->insns));

	if (r < 0)
		return r;
	w->insns[w->nr_insns++] = *insn;
	for (uint8_t i = 0; i < insn->len; i++)
		p->owner[off + i] = (uint32_t)w->nr_insns;
	return 0;
}

static int add_jump(struct flow_walk *w, uint64_t vaddr)
{
	int r = base_grow(&w->jumps, &w->cap_jumps, w->nr_jumps + 1, sizeof(*w->jumps));

	if (r >= 0)
		w->jumps[w->nr_jumps++] = (struct flow_jump){ .vaddr = vaddr };
	return r;
}

/* What an instruction leads to, but for the next one. Returns whether that is reached too. */
static int follow(struct flow_walk *w, const struct insn *insn)
{
	int r;

	switch ((enum insn_flow)insn->flow) {
	case INSN_BRANCH:
		r = flow_walk_add(w, insn->target, 0);
		if (r >= 0)
			r = flow_walk_add(w, insn->vaddr + insn->len, 0);
		return r < 0 ? r : 0;
	case INSN_JUMP:
		r = flow_walk_add(w, insn->target, 0);
		return r < 0 ? r : 0;
	case INSN_INDIRECT_JUMP:
		return add_jump(w, insn->vaddr);
	case INSN_CALL:
		if (flow_never_returns(w, insn))
			return 0;
		if (insn->target != w->symbol->vaddr && flow_walk_part(w, insn->target) &&
		    insn->target != insn->vaddr + insn->len &&
		    (r = flow_walk_add(w, insn->target, FLOW_FROM_AWAY)) < 0)
			return r;
		return 1;
	case INSN_PLAIN:
	case INSN_INDIRECT_CALL:
		return 1;
	case INSN_RETURN:
	case INSN_TRAP:
	case INSN_DATA:
		break;
	}
	return 0;
}

/* Into the middle of an instruction: what begins there is that instruction's block. */
static void meet(struct flow_walk *w, struct flow_part *p, uint64_t off)
{
	uint64_t start = w->insns[p->owner[off] - 1].vaddr - p->vaddr;

	if (start == off)
		return;
	w->overlapping = true;
	if (p->mark[off] & FLOW_LEADER)
		p->mark[start] |= p->mark[off];
}

/* Along the instructions from @vaddr on. */
static int walk(struct flow_walk *w, uint64_t vaddr)
{
	struct insn insn;
	int r = 1;

	while (r > 0) {
		struct flow_part *p = flow_walk_part(w, vaddr);
		uint64_t off = p ? vaddr - p->vaddr : 0;

		if (!p)
			return 0;
		if (p->owner[off]) {
			meet(w, p, off);
			return 0;
		}
		insn_decode(w->d, p->code + off, p->len - off, vaddr, &insn);
		if (runs_into(w, p, off, insn.len))
			return 0;
		r = record(w, p, &insn);
		if (r >= 0)
			r = follow(w, &insn);
		vaddr += insn.len;
	}
	return r;
}

static int by_part(const void *a, const void *b)
{
	const struct flow_part *pa = a, *pb = b;

	return (pa->vaddr > pb->vaddr) - (pa->vaddr < pb->vaddr);
}

static int by_vaddr(const void *a, const void *b)
{
	const struct insn *ia = a, *ib = b;

	return (ia->vaddr > ib->vaddr) - (ia->vaddr < ib->vaddr);
}

static void sort(struct flow_walk *w)
{
	if (w->nr_parts)
		qsort(w->parts, w->nr_parts, sizeof(*w->parts), by_part);
	if (w->nr_insns)
		qsort(w->insns, w->nr_insns, sizeof(*w->insns), by_vaddr);
	for (size_t i = 0; i < w->nr_insns; i++) {
		const struct insn *insn = &w->insns[i];
		struct flow_part *p = flow_walk_part(w, insn->vaddr);

		for (uint8_t k = 0; k < insn->len; k++)
			p->owner[insn->vaddr - p->vaddr + k] = (uint32_t)i + 1;
	}
}

int flow_walk_on(struct flow_walk *w)
{
	int r = 0;

	while (r >= 0 && w->nr_todo)
		r = walk(w, w->todo[--w->nr_todo]);
	if (r >= 0)
		sort(w);
	return r;
}

/* Past what fills the space between procedures or is no code. */
static uint8_t padding(struct flow_walk *w, struct flow_part *p, uint64_t off)
{
	struct insn insn;

	if (p->owner[off] || p->mark[off] & FLOW_NO_CODE)
		return 1;
	insn_decode(w->d, p->code + off, p->len - off, p->vaddr + off, &insn);
	if (insn.flow != INSN_DATA && !(insn.kinds & INSN_PADDING) && p->code[off])
		return 0;
	return insn.flow == INSN_DATA || insn.kinds & INSN_PADDING ? insn.len : 1;
}

static int part_gaps(struct flow_walk *w, size_t part)
{
	int any = 0, r;

	for (uint64_t off = 0; off < w->parts[part].len;) {
		struct flow_part *p = &w->parts[part];
		uint8_t n = padding(w, p, off);

		if (n) {
			off += n;
			continue;
		}
		any = 1;
		r = flow_walk_add(w, p->vaddr + off, FLOW_FROM_AWAY);
		if (r >= 0)
			r = flow_walk_on(w);
		if (r < 0)
			return r;
		if (!w->parts[part].owner[off]) /* it ran into what was known */
			w->parts[part].mark[off] |= FLOW_NO_CODE;
	}
	return any;
}

int flow_walk_gaps(struct flow_walk *w)
{
	int any = 0;

	for (size_t i = 0; i < w->nr_parts; i++) {
		int r = part_gaps(w, i);

		if (r < 0)
			return r;
		any |= r;
	}
	return any;
}
