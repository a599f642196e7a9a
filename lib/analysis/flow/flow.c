/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "code.h"
#include "flow_internal.h"

/* Walk, see where the indirect jumps lead, walk on from there; at last what nothing led to. */
static int discover(struct flow_walk *w, struct flow *f)
{
	int r = flow_walk_open(w);

	while (r >= 0) {
		r = flow_walk_on(w);
		if (r >= 0)
			r = flow_walk_sort(w);
		flow_graph_release(f);
		if (r >= 0)
			r = flow_graph_make(w, f);
		if (r >= 0)
			r = flow_tables_find(w, f);
		if (r == 0)
			r = flow_walk_gaps(w);
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
		r = flow_graph_finish(&w, f);
	if (r >= 0)
		r = flow_classes_find(f);
	flow_walk_release(&w);
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

void flow_free(struct flow *f)
{
	if (f)
		flow_graph_release(f);
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
