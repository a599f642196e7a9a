/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the source lines of a procedure that ran, as far as its samples tell. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coverage.h"
#include "flow.h"

/* ---- which blocks ---------------------------------------------------------------------------- */

static bool is_sampled(const uint64_t *sampled, size_t nr, uint64_t from, uint64_t to)
{
	size_t lo = 0, hi = nr;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (sampled[mid] < from)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < nr && sampled[lo] < to;
}

/*
 * Immediate dominators: the dominator of a block is the last block on every path from outside to
 * it. The algorithm is that of Cooper, Harvey and Kennedy (A Simple, Fast Dominance Algorithm,
 * 2001). The outside is the node behind the blocks.
 */
struct dominators {
	const struct flow *f;
	uint32_t *of;	  /* FLOW_OUTSIDE: not known yet, or the block cannot be reached */
	uint32_t *number; /* postorder number of each reached block */
	uint32_t *order;  /* block by number; has nr elements */
	uint32_t *next;	  /* next edge to follow out of a block on the stack */
	uint32_t *stack;
	bool *seen;
	uint32_t nr;
};

static void dominators_release(struct dominators *d)
{
	free(d->of);
	free(d->number);
	free(d->order);
	free(d->next);
	free(d->stack);
	free(d->seen);
}

static int dominators_init(struct dominators *d, const struct flow *f)
{
	size_t nr = (size_t)f->nr_blocks + 1;

	d->f = f;
	d->of = calloc(nr, sizeof(*d->of));
	d->number = calloc(nr, sizeof(*d->number));
	d->order = calloc(nr, sizeof(*d->order));
	d->next = calloc(nr, sizeof(*d->next));
	d->stack = calloc(nr, sizeof(*d->stack));
	d->seen = calloc(nr, sizeof(*d->seen));
	if (!d->of || !d->number || !d->order || !d->next || !d->stack || !d->seen)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++)
		d->of[i] = FLOW_OUTSIDE;
	d->of[f->nr_blocks] = f->nr_blocks;
	return 0;
}

static void visit(struct dominators *d, uint32_t from)
{
	const struct flow *f = d->f;
	uint32_t depth = 0;

	if (d->seen[from])
		return;
	d->seen[from] = true;
	d->stack[depth++] = from;
	while (depth) {
		uint32_t b = d->stack[depth - 1], i = d->next[b]++, to;

		if (i == f->blocks[b].nr_out) {
			d->number[b] = d->nr;
			d->order[d->nr++] = b;
			depth--;
			continue;
		}
		to = f->edges[f->out_of[f->blocks[b].out + i]].to;
		if (to != FLOW_OUTSIDE && !d->seen[to]) {
			d->seen[to] = true;
			d->stack[depth++] = to;
		}
	}
}

/* The nearest common dominator of both nodes. */
static uint32_t meet(const struct dominators *d, uint32_t a, uint32_t b)
{
	while (a != b) {
		while (d->number[a] < d->number[b])
			a = d->of[a];
		while (d->number[b] < d->number[a])
			b = d->of[b];
	}
	return a;
}

static bool improve(struct dominators *d, uint32_t b)
{
	const struct flow *f = d->f;
	uint32_t best = FLOW_OUTSIDE;

	for (uint32_t i = 0; i < f->blocks[b].nr_in; i++) {
		uint32_t from = f->edges[f->into[f->blocks[b].in + i]].from;

		from = from == FLOW_OUTSIDE ? f->nr_blocks : from;
		if (d->of[from] != FLOW_OUTSIDE)
			best = best == FLOW_OUTSIDE ? from : meet(d, best, from);
	}
	if (best == d->of[b])
		return false;
	d->of[b] = best;
	return true;
}

static void dominators_find(struct dominators *d)
{
	const struct flow *f = d->f;
	bool more = true;

	for (uint32_t i = 0; i < f->nr_edges; i++)
		if (f->edges[i].from == FLOW_OUTSIDE && f->edges[i].to != FLOW_OUTSIDE)
			visit(d, f->edges[i].to);
	d->number[f->nr_blocks] = d->nr;
	while (more) {
		more = false;
		for (uint32_t i = d->nr; i-- > 0;)
			more |= improve(d, d->order[i]);
	}
}

/* Marks blocks that must have run: those in the class of a marked block, and its dominators. */
static bool spread(const struct dominators *d, bool *ran, bool *classes)
{
	const struct flow *f = d->f;
	bool more = false;

	for (uint32_t b = 0; b < f->nr_blocks; b++) {
		if (!ran[b] && classes[f->blocks[b].eq_class])
			ran[b] = more = true;
		if (!ran[b])
			continue;
		more |= !classes[f->blocks[b].eq_class];
		classes[f->blocks[b].eq_class] = true;
		for (uint32_t up = d->of[b]; up < f->nr_blocks && !ran[up]; up = d->of[up])
			ran[up] = more = true;
	}
	return more;
}

static int find_ran(const struct flow *f, const uint64_t *sampled, size_t nr, bool *ran)
{
	bool *classes = calloc((size_t)f->nr_classes + 1, sizeof(*classes));
	struct dominators d = { 0 };
	int r = classes ? dominators_init(&d, f) : -ENOMEM;

	if (r >= 0)
		dominators_find(&d);
	for (uint32_t b = 0; b < f->nr_blocks; b++)
		ran[b] = is_sampled(sampled, nr, f->blocks[b].vaddr, f->blocks[b].end);
	while (r >= 0 && spread(&d, ran, classes))
		;
	dominators_release(&d);
	free(classes);
	return r;
}

/* ---- which lines ----------------------------------------------------------------------------- */

static int file_index(struct coverage *c, const char *file, uint32_t *out)
{
	int r;

	for (size_t i = c->nr_files; i-- > 0;) {
		if (strcmp(c->files[i], file) == 0) {
			*out = (uint32_t)i;
			return 0;
		}
	}
	r = base_grow(&c->files, &c->cap_files, c->nr_files + 1, sizeof(*c->files));
	if (r < 0)
		return r;
	c->files[c->nr_files] = strdup(file);
	if (!c->files[c->nr_files])
		return -ENOMEM;
	*out = (uint32_t)c->nr_files++;
	return 0;
}

static int add_insn(struct coverage *c, struct image *img, uint64_t vaddr, bool ran)
{
	struct coverage_line *last = c->nr ? &c->v[c->nr - 1] : NULL;
	struct coverage_line line = { .ran = ran, .missed = !ran };
	struct image_line at;
	int r;

	if (image_line_at(img, vaddr, &at) < 0)
		return 0;
	line.line = at.line;
	r = file_index(c, at.file, &line.file);
	if (r < 0 ||
	    (last && last->file == line.file && last->line == line.line && last->ran == ran))
		return r;
	r = base_grow(&c->v, &c->cap, c->nr + 1, sizeof(*c->v));
	if (r >= 0)
		c->v[c->nr++] = line;
	return r;
}

static int by_line(const void *pa, const void *pb)
{
	const struct coverage_line *a = pa, *b = pb;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return (a->line > b->line) - (a->line < b->line);
}

/* Merges equal lines; a line has the results of all its instructions. */
static void settle(struct coverage *c)
{
	size_t kept = 0;

	if (c->nr)
		qsort(c->v, c->nr, sizeof(*c->v), by_line);
	for (size_t i = 0; i < c->nr; i++) {
		if (kept && by_line(&c->v[kept - 1], &c->v[i]) == 0) {
			c->v[kept - 1].ran |= c->v[i].ran;
			c->v[kept - 1].missed |= c->v[i].missed;
		} else {
			c->v[kept++] = c->v[i];
		}
	}
	c->nr = kept;
}

static int add_lines(struct coverage *c, struct image *img, const struct image_symbol *symbol,
		     const struct flow *f, const bool *ran)
{
	int r = 0;

	c->no_code = f->nr_blocks == 0;
	for (uint32_t b = 0; b < f->nr_blocks && r >= 0; b++) {
		const struct flow_block *block = &f->blocks[b];

		if (block->vaddr - symbol->vaddr >= symbol->len)
			continue; /* the block is in a cold part, which has a symbol of its own */
		c->any_ran |= ran[b];
		for (uint32_t i = 0; i < block->nr_insns && r >= 0; i++)
			r = add_insn(c, img, f->insns[block->insn + i].vaddr, ran[b]);
	}
	settle(c);
	return r;
}

int coverage_make(struct image *img, const struct image_symbol *symbol, const uint64_t *sampled,
		  size_t nr, struct coverage *out, struct base_err *err)
{
	struct flow *f = NULL;
	bool *ran = NULL;
	int r = flow_build(img, symbol, &f, err);

	if (r < 0)
		return r;
	ran = calloc((size_t)f->nr_blocks + 1, sizeof(*ran));
	r = ran ? find_ran(f, sampled, nr, ran) : -ENOMEM;
	if (r >= 0)
		r = add_lines(out, img, symbol, f, ran);
	if (r < 0)
		base_fail_errno(err, r, "cannot find the lines of '%s'", symbol->name);
	free(ran);
	flow_free(f);
	return r;
}

void coverage_release(struct coverage *c)
{
	for (size_t i = 0; i < c->nr_files; i++)
		free(c->files[i]);
	free(c->files);
	free(c->v);
	memset(c, 0, sizeof(*c));
}
