/* SPDX-License-Identifier: BSD-2-Clause */
/* A walk over code finds where decoding has to begin anew. */
#include <string.h>

#include "bound.h"
#include "dis.h"

struct walk {
	struct image *img;
	const struct dis_range *range;
	const struct dis_sink *sink;
	size_t next;	  /* symbol */
	uint64_t covered; /* symbols cover the code up to here */
	bool unnamed;	  /* code without a name follows, and that was reported */
};

/* Index of the first symbol at or behind @vaddr. */
static size_t first_symbol(struct image *img, uint64_t vaddr)
{
	return BASE_BOUND(i, image_nr_symbols(img), image_symbol(img, i)->vaddr < vaddr);
}

static void cover(struct walk *w, const struct image_symbol *s)
{
	if (s->vaddr + s->len > w->covered)
		w->covered = s->vaddr + s->len;
	w->unnamed = false;
}

/* The label of what begins at @at; returns the next place where decoding has to begin anew. */
static uint64_t begin(struct walk *w, uint64_t at)
{
	const struct image_symbol *s = image_symbol(w->img, w->next);

	if (s && s->vaddr == at)
		w->next++;
	else
		s = at == w->range->vaddr ? image_symbol_at(w->img, at) : NULL;
	if (s) {
		w->sink->label(w->sink->ctx, w->range, s, at);
		cover(w, s);
	}
	s = image_symbol(w->img, w->next);
	return s && s->vaddr < w->range->end ? s->vaddr : w->range->end;
}

/* Padding that compilers and linkers put between procedures. */
static bool is_filling(const struct insn_text *t, const uint8_t *code)
{
	uint32_t zeros = 0;

	while (zeros < t->len && !code[zeros])
		zeros++;
	return zeros == t->len || strstr(t->mnemonic, "nop") || strcmp(t->mnemonic, "int3") == 0 ||
	       strcmp(t->operands, "%ax, %ax") == 0;
}

/* Behind the last procedure, where an outer one may go on. */
static void leave(struct walk *w, uint64_t at, const uint8_t *code, const struct insn_text *t)
{
	const struct image_symbol *s = image_symbol_at(w->img, at);

	if (s) {
		cover(w, s);
	} else if (!is_filling(t, code)) {
		w->sink->label(w->sink->ctx, w->range, NULL, at);
		w->unnamed = true;
	}
}

/* Nothing but zeros up to @stop, and many: room that was kept, no code. */
static bool is_empty(const uint8_t *code, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++)
		if (code[i])
			return false;
	return len >= 8;
}

void dis_walk(struct image *img, struct insn_disasm *d, const struct dis_range *range,
	      const struct dis_sink *sink)
{
	struct walk w = { .img = img, .range = range, .sink = sink };
	uint64_t at = range->vaddr, stop = at;
	struct insn_text t;

	w.next = first_symbol(img, at);
	while (at < range->end) {
		const uint8_t *code = range->code + (at - range->vaddr);

		if (at == stop)
			stop = begin(&w, at);
		if (at >= w.covered && !*code && is_empty(code, stop - at)) {
			at = stop;
			continue;
		}
		insn_disasm_text(d, code, stop - at, at, &t);
		if (at >= w.covered && !w.unnamed)
			leave(&w, at, code, &t);
		sink->insn(sink->ctx, at, code, &t);
		at += t.len;
	}
}
