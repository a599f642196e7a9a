/* SPDX-License-Identifier: BSD-2-Clause */
/* What is left to do when the last dump was added. */
#include <errno.h>

#include "callgrind_internal.h"
#include "insn.h"

/* Does the instruction branch to itself, as written? */
static bool branches_to_itself(struct insn_disasm *d, const struct image *img, uint64_t off)
{
	struct insn_line insn;
	uint8_t code[16];
	uint64_t vaddr;
	size_t len;

	if (!d || image_vaddr(img, off, &vaddr) < 0)
		return false;
	len = image_bytes(img, vaddr, code, sizeof(code));
	if (!len)
		return false;
	insn_disasm_one(d, code, len, vaddr, &insn);
	return insn.has_target && insn.target == vaddr;
}

static struct exact_count *count_at(struct exact_image *x, uint64_t off)
{
	size_t lo = 0, hi = x->nr_counts;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (x->counts[mid].off < off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < x->nr_counts && x->counts[lo].off == off ? &x->counts[lo] : NULL;
}

/* Rounds of "rep movs" and the like, and of locked instructions that were tried again. */
static void join_rounds(struct exact_image *x, struct insn_disasm *d, const struct image *img)
{
	size_t nr = 0;

	for (size_t i = 0; i < x->nr_edges; i++) {
		const struct exact_edge edge = x->edges[i];
		struct exact_count *c = edge.from == edge.to ? count_at(x, edge.from) : NULL;

		if (c && c->count > edge.count && !branches_to_itself(d, img, edge.from))
			c->count -= edge.count;
		else
			x->edges[nr++] = edge;
	}
	x->nr_edges = nr;
}

static int add_procedure(struct exact_image *x, struct image *img,
			 const struct image_symbol *symbol)
{
	struct exact_procedure p = { .len = symbol->len, .name = (char *)symbol->name };

	if (!*symbol->name || image_off(img, symbol->vaddr, &p.off) < 0)
		return 0;
	p.hashed = image_symbol_hashes(img, symbol, &p.hashes) == 0;
	return exact_procedure_add(x, &p);
}

/* Those in which something ran. */
static int add_procedures(struct exact_image *x, struct image *img)
{
	const struct image_symbol *last = NULL, *symbol;
	uint64_t vaddr;
	int r = 0;

	for (size_t i = 0; i < x->nr_counts && r >= 0; i++) {
		if (image_vaddr(img, x->counts[i].off, &vaddr) < 0)
			continue;
		symbol = image_symbol_at(img, vaddr);
		if (symbol && symbol != last)
			r = add_procedure(x, img, symbol);
		last = symbol;
	}
	return r;
}

static int end_object(const struct callgrind_object *o)
{
	struct insn_disasm *d = NULL;
	int r;

	if (!o->x)
		return 0;
	r = insn_disasm_open(image_machine(o->img), &d, NULL);
	if (r == -ENOMEM)
		return r;
	join_rounds(o->x, d, o->img);
	insn_disasm_close(d);
	return add_procedures(o->x, o->img);
}

int callgrind_sum_end(struct callgrind_sum *s, struct base_err *err)
{
	int r = exact_sort(s->e);

	for (size_t i = 0; i < s->nr_objects && r >= 0; i++)
		r = end_object(s->objects[i]);
	for (size_t i = 0; i < s->nr_dynamic && r >= 0; i++)
		r = end_object(s->dynamic[i]);
	for (size_t i = 0; i < s->e->nr_images && r >= 0; i++)
		if (s->e->images[i]->kind == EXACT_PROCESS)
			join_rounds(s->e->images[i], NULL, NULL);
	if (r >= 0)
		r = exact_sort(s->e);
	return r < 0 ? base_fail_errno(err, r, "cannot sum counts") : 0;
}
