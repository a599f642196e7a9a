/* SPDX-License-Identifier: BSD-2-Clause */
/* The control flow of one procedure, found in its bytes step by step. */
#include <errno.h>
#include <stdlib.h>

#include "code.h"
#include "graph_internal.h"
#include "tables.h"

/* Walk, see where the indirect jumps lead, walk on from there; at last what nothing led to. */
static int discover(struct flow_walk *w, struct flow *f)
{
	int r = flow_walk_open(w);

	while (r >= 0) {
		r = flow_walk_on(w);
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
