/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control flow of one procedure, found in its bytes: the walk along every known edge, the
 * blocks and edges of the code that it reaches, and the loop that adds the targets of indirect
 * jumps until nothing new is found.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "classes.h"
#include "code.h"
#include "tables.h"
#include "walk.h"

static const char *const never[] = {
	"abort",
	"exit",
	"_exit",
	"_Exit",
	"quick_exit",
	"pthread_exit",
	"thrd_exit",
	"longjmp",
	"_longjmp",
	"siglongjmp",
	"__longjmp_chk",
	"__assert",
	"__assert_fail",
	"__assert_rtn",
	"__assert_perror_fail",
	"__assert_fail_base",
	"__stack_chk_fail",
	"__stack_chk_fail_local",
	"__fortify_fail",
	"__chk_fail",
	"__libc_fatal",
	"__libc_start_call_main",
	"__cxa_throw",
	"__cxa_rethrow",
	"__cxa_bad_cast",
	"__cxa_bad_typeid",
	"__cxa_throw_bad_array_new_length",
	"__cxa_pure_virtual",
	"__cxa_call_unexpected",
	"__cxa_call_terminate",
	"__clang_call_terminate",
	"_Unwind_Resume",
	"_ZSt9terminatev",
	"err",
	"errx",
	"verr",
	"verrx",
	"panic",
	"do_exit",
	"__builtin_unreachable",
	"rust_begin_unwind",
	"rust_panic",
};

static bool name_never_returns(const char *name)
{
	size_t len = strcspn(name, "@"); /* "abort@plt" */

	for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++)
		if (strncmp(name, never[i], len) == 0 && !never[i][len])
			return true;
	/* std::__throw_bad_alloc() and similar functions of C++; core::panicking::panic of Rust */
	return strncmp(name, "_ZSt", 4) == 0	   ? strstr(name, "__throw_") != NULL
	       : strncmp(name, "_ZN4core", 8) == 0 ? strstr(name, "9panicking") != NULL
						   : false;
}

static bool never_returns(const struct flow_walk *w, const struct insn *insn)
{
	const struct image_symbol *s;

	if (insn->flow != INSN_CALL || !w->source->symbol_at)
		return false;
	s = w->source->symbol_at(w->source->context, insn->target);
	return s && s->vaddr == insn->target && name_never_returns(s->name);
}

enum { CODE_MAX = 16 << 20, PARTS_MAX = 64, UNNAMED_MAX = 1 << 16 };

static struct flow_jump *walk_jump(const struct flow_walk *w, uint64_t vaddr)
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
 * The symbol of a section of linker stubs has the section's name and size (lib/image), though most
 * stubs in it have names of their own and are procedures. Its own code ends at the first of these.
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

/* A compiler moves unlikely code of a procedure to a symbol "name.cold" or "name.cold.1". */
static bool is_cold_part(const char *name, const char *of)
{
	size_t len = strlen(of);

	return strncmp(name, of, len) == 0 && strncmp(name + len, ".cold", 5) == 0 &&
	       (!name[len + 5] || name[len + 5] == '.');
}

/* Does the code of @len bytes at @vaddr branch into the known code of the procedure? */
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
 * A procedure without a name (lib/image calls it by its address) is a cold part of a named one if
 * that one jumps into its middle or reaches it through a table, or if it jumps back there. It must
 * stand before the named one, as linkers place cold parts; otherwise the part would claim the
 * procedure.
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

static int walk_open(struct flow_walk *w)
{
	int r = add_part(w, w->symbol);

	return r < 0 ? r : flow_walk_add(w, w->symbol->vaddr, FLOW_FROM_AWAY);
}

static void walk_release(struct flow_walk *w)
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

/* ---- walking --------------------------------------------------------------------------------- */

/* Does an instruction of @len bytes at @off overlap one that is already known? */
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

/* Follows the targets of an instruction except the next one. Returns 1 if control also reaches
 * the next instruction. */
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
		if (never_returns(w, insn))
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

/* Control enters an instruction that is already known; if it enters in the middle, the block
 * begins at that instruction. */
static void meet(struct flow_walk *w, struct flow_part *p, uint64_t off)
{
	uint64_t start = w->insns[p->owner[off] - 1].vaddr - p->vaddr;

	if (start == off)
		return;
	w->overlapping = true;
	if (p->mark[off] & FLOW_LEADER)
		p->mark[start] |= p->mark[off];
}

/* Decodes the instructions from @vaddr on until control leaves them. */
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

static int walk_on(struct flow_walk *w)
{
	int r = 0;

	while (r >= 0 && w->nr_todo)
		r = walk(w, w->todo[--w->nr_todo]);
	if (r >= 0)
		sort(w);
	return r;
}

/* The number of bytes at @off to skip, as they are known, padding, or no code; 0: code begins
 * there. */
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

/* A part that is found meanwhile may stand before the one at @vaddr. */
static int part_gaps(struct flow_walk *w, uint64_t vaddr)
{
	struct flow_part *p = flow_walk_part(w, vaddr);
	int any = 0, r;

	for (uint64_t off = 0; off < p->len;) {
		uint8_t n = padding(w, p, off);

		if (n) {
			off += n;
			continue;
		}
		any = 1;
		r = flow_walk_add(w, vaddr + off, FLOW_FROM_AWAY);
		if (r >= 0)
			r = walk_on(w);
		if (r < 0)
			return r;
		p = flow_walk_part(w, vaddr);
		if (!p->owner[off]) /* the code overlaps known code */
			p->mark[off] |= FLOW_NO_CODE;
	}
	return any;
}

static int walk_gaps(struct flow_walk *w)
{
	int any = 0;

	for (size_t i = 0; i < w->nr_parts; i++) {
		int r = part_gaps(w, w->parts[i].vaddr);

		if (r < 0)
			return r;
		any |= r;
	}
	return any;
}

/* ---- blocks and edges ------------------------------------------------------------------------ */

/* The decoded instruction that stands for @vaddr begins at most so many bytes behind it. */
enum { INSN_MAX = 16 };

static bool starts_block(const struct flow_walk *w, size_t i)
{
	const struct insn *insn = &w->insns[i], *before = i ? insn - 1 : NULL;
	const struct flow_part *p = flow_walk_part(w, insn->vaddr);

	if (!before || p->mark[insn->vaddr - p->vaddr] & FLOW_LEADER ||
	    before->vaddr + before->len != insn->vaddr || insn->vaddr == p->vaddr)
		return true;
	switch ((enum insn_flow)before->flow) {
	case INSN_PLAIN:
	case INSN_INDIRECT_CALL:
		return false;
	case INSN_CALL:
		return never_returns(w, before);
	default:
		return true;
	}
}

static int make_blocks(const struct flow_walk *w, struct flow *f)
{
	struct flow_block *b = NULL;

	f->insns = malloc((w->nr_insns + 1) * sizeof(*f->insns));
	f->blocks = calloc(w->nr_insns + 1, sizeof(*f->blocks));
	if (!f->insns || !f->blocks)
		return -ENOMEM;
	if (w->nr_insns)
		memcpy(f->insns, w->insns, w->nr_insns * sizeof(*f->insns));
	f->nr_insns = (uint32_t)w->nr_insns;
	for (uint32_t i = 0; i < f->nr_insns; i++) {
		const struct insn *insn = &f->insns[i];

		if (starts_block(w, i)) {
			b = &f->blocks[f->nr_blocks++];
			b->vaddr = insn->vaddr;
			b->insn = i;
		}
		b->nr_insns++;
		b->end = insn->vaddr + insn->len;
		b->nr_calls += insn->flow == INSN_CALL || insn->flow == INSN_INDIRECT_CALL;
	}
	return 0;
}

/* The block that an edge to @vaddr enters. */
static uint32_t block_to(const struct flow_walk *w, const struct flow *f, uint64_t vaddr)
{
	const struct flow_part *p = flow_walk_part(w, vaddr);
	uint64_t off = p ? vaddr - p->vaddr : 0;

	if (!p)
		return FLOW_OUTSIDE;
	for (int i = 0; i < INSN_MAX && off < p->len; i++, off++)
		if (p->owner[off])
			return flow_block_at(f, f->insns[p->owner[off] - 1].vaddr);
	return FLOW_OUTSIDE;
}

struct edges {
	struct flow *f;
	size_t cap;
	int r;
};

static void add(struct edges *e, uint32_t from, uint32_t to, enum flow_edge_kind kind)
{
	struct flow *f = e->f;

	if (e->r < 0)
		return;
	e->r = base_grow(&f->edges, &e->cap, (size_t)f->nr_edges + 1, sizeof(*f->edges));
	if (e->r >= 0)
		f->edges[f->nr_edges++] =
			(struct flow_edge){ .from = from, .to = to, .kind = kind };
}

static void add_to(struct edges *e, const struct flow_walk *w, uint32_t from, uint64_t vaddr,
		   enum flow_edge_kind kind)
{
	uint32_t to = block_to(w, e->f, vaddr);

	add(e, from, to, to == FLOW_OUTSIDE ? FLOW_EXIT : kind);
}

static void add_table(struct edges *e, const struct flow_walk *w, uint32_t from, uint64_t vaddr)
{
	const struct flow_jump *j = walk_jump(w, vaddr);
	uint32_t first = e->f->nr_edges;

	for (size_t i = 0; j && i < j->nr_targets; i++) {
		uint32_t to = block_to(w, e->f, j->targets[i]), k = first;

		while (k < e->f->nr_edges && e->f->edges[k].to != to)
			k++;
		if (k == e->f->nr_edges)
			add(e, from, to, to == FLOW_OUTSIDE ? FLOW_EXIT : FLOW_TABLE);
	}
	if (!j || !j->found)
		add(e, from, FLOW_OUTSIDE, FLOW_EXIT);
}

static void add_outgoing(struct edges *e, const struct flow_walk *w, uint32_t b)
{
	const struct flow_block *block = &e->f->blocks[b];
	const struct insn *last = &e->f->insns[block->insn + block->nr_insns - 1];

	switch ((enum insn_flow)last->flow) {
	case INSN_BRANCH:
		add_to(e, w, b, block->end, FLOW_FALL);
		add_to(e, w, b, last->target, FLOW_TAKEN);
		break;
	case INSN_JUMP:
		add_to(e, w, b, last->target, FLOW_TAKEN);
		break;
	case INSN_INDIRECT_JUMP:
		add_table(e, w, b, last->vaddr);
		break;
	case INSN_RETURN:
	case INSN_TRAP:
	case INSN_DATA:
		add(e, b, FLOW_OUTSIDE, FLOW_EXIT);
		break;
	case INSN_CALL:
	case INSN_PLAIN:
	case INSN_INDIRECT_CALL:
		if (never_returns(w, last))
			add(e, b, FLOW_OUTSIDE, FLOW_EXIT);
		else
			add_to(e, w, b, block->end, FLOW_FALL);
		break;
	}
}

static int make_lists(struct flow *f)
{
	uint32_t in = 0, out = 0;

	free(f->into);
	free(f->out_of);
	f->into = calloc((size_t)f->nr_edges + 1, sizeof(*f->into));
	f->out_of = calloc((size_t)f->nr_edges + 1, sizeof(*f->out_of));
	if (!f->into || !f->out_of)
		return -ENOMEM;
	for (uint32_t b = 0; b < f->nr_blocks; b++)
		f->blocks[b].nr_in = f->blocks[b].nr_out = 0;
	for (uint32_t i = 0; i < f->nr_edges; i++) {
		if (f->edges[i].from != FLOW_OUTSIDE)
			f->blocks[f->edges[i].from].nr_out++;
		if (f->edges[i].to != FLOW_OUTSIDE)
			f->blocks[f->edges[i].to].nr_in++;
	}
	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		struct flow_block *block = &f->blocks[b];

		block->in = in;
		block->out = out;
		in += block->nr_in;
		out += block->nr_out;
		block->nr_in = block->nr_out = 0;
	}
	for (uint32_t i = 0; i < f->nr_edges; i++) {
		const struct flow_edge *e = &f->edges[i];

		if (e->from != FLOW_OUTSIDE) {
			struct flow_block *b = &f->blocks[e->from];

			f->out_of[b->out + b->nr_out++] = i;
		}
		if (e->to != FLOW_OUTSIDE) {
			struct flow_block *b = &f->blocks[e->to];

			f->into[b->in + b->nr_in++] = i;
		}
	}
	return 0;
}

static bool from_away(const struct flow_walk *w, const struct flow_block *b)
{
	const struct flow_part *p = flow_walk_part(w, b->vaddr);

	return p->mark[b->vaddr - p->vaddr] & FLOW_FROM_AWAY;
}

static void release_graph(struct flow *f)
{
	free(f->insns);
	free(f->blocks);
	free(f->edges);
	free(f->into);
	free(f->out_of);
	memset(f, 0, sizeof(*f));
}

static int graph_make(const struct flow_walk *w, struct flow *f)
{
	struct edges e = { .f = f };
	int r;

	release_graph(f);
	r = make_blocks(w, f);
	for (uint32_t b = 0; r >= 0 && b < f->nr_blocks; b++) {
		add_outgoing(&e, w, b);
		r = e.r;
	}
	for (uint32_t b = 0; r >= 0 && b < f->nr_blocks; b++) {
		if (from_away(w, &f->blocks[b]))
			add(&e, FLOW_OUTSIDE, b, FLOW_ENTRY);
		r = e.r;
	}
	f->entry = r < 0 ? FLOW_OUTSIDE : block_to(w, f, w->symbol->vaddr);
	f->overlapping = w->overlapping;
	f->cut = w->cut;
	return r < 0 ? r : make_lists(f);
}

/* ---- entries and exits that are not known ---------------------------------------------------- */

static bool has_in(const struct flow *f, uint32_t b, enum flow_edge_kind kind)
{
	for (uint32_t i = 0; i < f->blocks[b].nr_in; i++)
		if (f->edges[f->into[f->blocks[b].in + i]].kind == kind)
			return true;
	return false;
}

/* Blocks may have unknown predecessors: targets of unresolved jumps, and cold parts that are
 * listed without their procedure. */
static bool entered_anywhere(const struct flow_walk *w, const struct flow *f)
{
	const char *cold = strstr(w->symbol->name, ".cold");

	return f->nr_unresolved || (cold && (!cold[5] || cold[5] == '.'));
}

static void mark_unresolved(const struct flow_walk *w, struct flow *f)
{
	f->nr_indirect = (uint32_t)w->nr_jumps;
	for (size_t i = 0; i < w->nr_jumps; i++) {
		const struct flow_jump *j = &w->jumps[i];
		uint32_t b = flow_block_at(f, j->vaddr);

		if (j->found || j->tail_call || b == FLOW_OUTSIDE)
			continue;
		f->nr_unresolved++;
		f->blocks[b].unresolved = true;
	}
}

static void add_entries(const struct flow_walk *w, struct edges *e)
{
	struct flow *f = e->f;
	bool anywhere = entered_anywhere(w, f);

	for (uint32_t b = 0; b < f->nr_blocks; b++)
		if (!f->blocks[b].nr_in ||
		    (anywhere && !has_in(f, b, FLOW_FALL) && !has_in(f, b, FLOW_ENTRY)))
			add(e, FLOW_OUTSIDE, b, FLOW_ENTRY);
}

/* Marks every block from which @b can be reached. @stack has capacity for all blocks. */
static void mark_before(const struct flow *f, uint32_t b, bool *marked, uint32_t *stack)
{
	uint32_t nr = 0;

	marked[b] = true;
	stack[nr++] = b;
	while (nr) {
		const struct flow_block *block = &f->blocks[stack[--nr]];

		for (uint32_t i = 0; i < block->nr_in; i++) {
			uint32_t from = f->edges[f->into[block->in + i]].from;

			if (from == FLOW_OUTSIDE || marked[from])
				continue;
			marked[from] = true;
			stack[nr++] = from;
		}
	}
}

/* Follows edges from @b, which is in a region without exits, to a block all of whose successors
 * were visited. */
static uint32_t deepest(const struct flow *f, uint32_t b, bool *seen)
{
	for (;;) {
		const struct flow_block *block = &f->blocks[b];
		uint32_t next = FLOW_OUTSIDE;

		seen[b] = true;
		for (uint32_t i = 0; i < block->nr_out && next == FLOW_OUTSIDE; i++) {
			uint32_t to = f->edges[f->out_of[block->out + i]].to;

			if (to != FLOW_OUTSIDE && !seen[to])
				next = to;
		}
		if (next == FLOW_OUTSIDE)
			return b;
		b = next;
	}
}

static int add_exits(struct edges *e)
{
	struct flow *f = e->f;
	bool *leaves = calloc((size_t)f->nr_blocks + 1, sizeof(*leaves));
	bool *seen = calloc((size_t)f->nr_blocks + 1, sizeof(*seen));
	uint32_t *stack = calloc((size_t)f->nr_blocks + 1, sizeof(*stack));
	uint32_t nr = f->nr_edges;

	if (!leaves || !seen || !stack)
		e->r = -ENOMEM;
	for (uint32_t i = 0; e->r >= 0 && i < nr; i++)
		if (f->edges[i].to == FLOW_OUTSIDE && !leaves[f->edges[i].from])
			mark_before(f, f->edges[i].from, leaves, stack);
	for (uint32_t b = 0; e->r >= 0 && b < f->nr_blocks; b++) {
		uint32_t last;

		if (leaves[b])
			continue;
		last = deepest(f, b, seen);
		add(e, last, FLOW_OUTSIDE, FLOW_EXIT);
		mark_before(f, last, leaves, stack);
	}
	free(leaves);
	free(seen);
	free(stack);
	return e->r;
}

static int by_end(const void *a, const void *b)
{
	const struct flow_edge *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

static int graph_finish(const struct flow_walk *w, struct flow *f)
{
	struct edges e = { .f = f, .cap = f->nr_edges };
	int r;

	mark_unresolved(w, f);
	add_entries(w, &e);
	if (e.r >= 0)
		e.r = make_lists(f);
	r = e.r < 0 ? e.r : add_exits(&e);
	if (r < 0)
		return r;
	if (f->nr_edges)
		qsort(f->edges, f->nr_edges, sizeof(*f->edges), by_end);
	r = make_lists(f);
	return r < 0 ? r : flow_find_classes(f);
}

void flow_free(struct flow *f)
{
	if (f)
		release_graph(f);
	free(f);
}

uint32_t flow_block_at(const struct flow *f, uint64_t vaddr)
{
	uint32_t lo = 0, hi = f->nr_blocks;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (f->blocks[mid].vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && vaddr < f->blocks[lo - 1].end ? lo - 1 : FLOW_OUTSIDE;
}

const struct insn *flow_insn_at(const struct flow *f, uint64_t vaddr)
{
	uint32_t b = flow_block_at(f, vaddr), lo, hi;

	if (b == FLOW_OUTSIDE)
		return NULL;
	lo = f->blocks[b].insn;
	hi = lo + f->blocks[b].nr_insns;
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (f->insns[mid].vaddr <= vaddr)
			lo = mid;
		else
			hi = mid;
	}
	return &f->insns[lo];
}

/* Alternates between following edges and finding targets of indirect jumps; at last, code that
 * nothing leads to is added. */
static int discover(struct flow_walk *w, struct flow *f)
{
	int r = walk_open(w);

	while (r >= 0) {
		r = walk_on(w);
		if (r >= 0)
			r = graph_make(w, f);
		if (r >= 0)
			r = flow_tables_find(w, f);
		if (r == 0)
			r = walk_gaps(w);
		if (r == 0)
			break;
	}
	return r;
}

int flow_build_from(const struct flow_source *source, struct insn_decoder *d,
		    const struct image_symbol *symbol, struct flow **out, struct base_err *err)
{
	struct flow_walk w = { .source = source, .d = d, .symbol = symbol };
	struct flow *f = calloc(1, sizeof(*f));
	int r = f ? discover(&w, f) : -ENOMEM;

	if (r >= 0)
		r = graph_finish(&w, f);
	walk_release(&w);
	if (r < 0) {
		flow_free(f);
		return base_fail_errno(err, r, "cannot follow the flow of '%s'", symbol->name);
	}
	*out = f;
	return 0;
}

static size_t image_source_bytes(void *context, uint64_t vaddr, void *out, size_t len)
{
	return analysis_code_bytes(context, vaddr, out, len);
}

static int image_source_pointer(void *context, uint64_t vaddr, uint64_t *value)
{
	return image_pointer(context, vaddr, value);
}

static const struct image_symbol *image_source_symbol(void *context, uint64_t vaddr)
{
	return image_symbol_at(context, vaddr);
}

int flow_build(struct image *img, const struct image_symbol *symbol, struct flow **out,
	       struct base_err *err)
{
	const struct flow_source source = { .context = img,
					    .bytes = image_source_bytes,
					    .pointer = image_source_pointer,
					    .symbol_at = image_source_symbol };
	struct insn_decoder *d;
	int r = insn_decoder_open(image_machine(img), &d, err);

	if (r < 0)
		return r;
	r = flow_build_from(&source, d, symbol, out, err);
	insn_decoder_close(d);
	return r;
}
