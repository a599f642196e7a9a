/* SPDX-License-Identifier: BSD-2-Clause */
/* From a trace's words to its blocks, and from these to moves. */
#include <string.h>

#include "trace.h"

static bool is_transfer(uint8_t class)
{
	switch (class) {
	case VTRACE_CLASS_BRANCH:
	case VTRACE_CLASS_JUMP:
	case VTRACE_CLASS_JUMP_INDIRECT:
	case VTRACE_CLASS_CALL:
	case VTRACE_CLASS_CALL_INDIRECT:
	case VTRACE_CLASS_RETURN:
		return true;
	default:
		return false;
	}
}

/* Behind which of its instructions the visit ended, or negative. */
static int fill(struct trace_step *s, const struct vtrace_code *c, const struct vtrace_visit *v)
{
	int first = vtrace_code_at(c, v->pc), end = first + (int)v->nr_insns;
	const struct vtrace_insn *last;
	uint64_t start;

	if (first < 0 || end > c->block.nr_insns)
		return -DCPI_EFORMAT;
	start = v->pc - c->insns[first].offset;
	last = &c->insns[v->nr_insns ? end - 1 : first];
	*s = (struct trace_step){ .pc = v->pc,
				  .next = start + c->block.len,
				  .last = start + last->offset,
				  .ran = v->nr_insns > 0,
				  .transfers = v->nr_insns && is_transfer(last->class),
				  .generation = v->generation };
	return end;
}

/* Its last instruction led there, and was the last one of its block, which ended behind @end. */
static size_t add_target(const struct insn_trace *w, struct trace_step *steps, size_t nr,
			 const struct vtrace_code *c, int end)
{
	if (!nr || !steps[nr - 1].transfers || end != c->block.nr_insns)
		return nr;
	steps[nr] = (struct trace_step){ .pc = w->end_pc,
					 .last = w->end_pc,
					 .next = w->end_pc + 1,
					 .generation = w->end_generation };
	return nr + 1;
}

/* A trace whose first block was not translated still counts as begun there. */
static int walk_nothing(const struct insn_trace *w, struct trace_step *steps)
{
	if (w->nr_insns)
		return -DCPI_EFORMAT;
	steps[0] = (struct trace_step){
		.pc = w->pc, .last = w->pc, .next = w->pc + 1, .generation = w->generation
	};
	return 1;
}

int trace_walk(vtrace_block_fn *get, void *ctx, const struct insn_trace *w, const uint64_t *words,
	       struct trace_step *steps)
{
	const struct vtrace_code *c = NULL;
	struct vtrace_visit v = { 0 };
	uint32_t sum = 0;
	size_t nr = 0;
	int r, end = 0;

	if (!w->nr_words)
		return walk_nothing(w, steps);
	if (w->nr_words > VTRACE_NR_WORDS)
		return -DCPI_EFORMAT;
	while ((r = vtrace_visit_read(words, w->nr_words, v.end, &v)) > 0) {
		/* Only the last block may be one that was entered and no more. */
		if (nr == TRACE_STEPS - 1 || (nr && !steps[nr - 1].ran))
			return -DCPI_EFORMAT;
		c = get(ctx, v.id);
		end = c ? fill(&steps[nr++], c, &v) : -DCPI_EFORMAT;
		if (end < 0)
			return end;
		sum += v.nr_insns;
	}
	if (r < 0 || sum != w->nr_insns || (nr && steps[0].pc != w->pc))
		return -DCPI_EFORMAT;
	return (int)add_target(w, steps, nr, c, end);
}

/* ---- moves ----------------------------------------------------------------------------------- */

/* The part of a trace that lay in one image. */
struct row {
	struct image *image;
	uint64_t start, last; /* offsets; of the last instruction that ran */
	size_t at;	      /* its last step */
	bool ran;	      /* and where it led to was not told */
};

struct rows {
	struct row items[TRACE_STEPS];
	size_t nr;
	uint64_t count[2];
	struct image *image; /* image of the waiting steps */
	struct profdb_edge edge_counts[2 * TRACE_STEPS];
	size_t nr_edge_counts;
	int (*fn)(void *ctx, struct image *image, const struct profdb_edge *m, size_t nr);
	void *ctx;
	int result;
};

static void tell_all(struct rows *t)
{
	int result =
		t->nr_edge_counts ? t->fn(t->ctx, t->image, t->edge_counts, t->nr_edge_counts) : 0;

	if (result < 0 && t->result == 0)
		t->result = result;
	t->nr_edge_counts = 0;
}

static void tell(struct rows *t, const struct row *r, uint64_t from, uint64_t to)
{
	if (t->nr_edge_counts && t->image != r->image)
		tell_all(t);
	t->image = r->image;
	t->edge_counts[t->nr_edge_counts++] = (struct profdb_edge){
		.start = r->start, .from = from, .to = to, .count = { t->count[0], t->count[1] }
	};
}

static struct row *find(struct rows *t, const struct image *image)
{
	for (size_t i = 0; i < t->nr; i++)
		if (t->items[i].image == image)
			return &t->items[i];
	return NULL;
}

/* Where nothing ran, the trace only leads there: that is told of the image that it leads from. */
static bool is_announced(const struct trace_step *steps, size_t i)
{
	return steps[i].where == TRACE_PLACED &&
	       (steps[i].ran || i == 0 ||
		(steps[i - 1].where == TRACE_PLACED && steps[i - 1].image == steps[i].image));
}

static void go(struct rows *t, const struct trace_step *steps, size_t i)
{
	const struct trace_step *s = &steps[i];
	struct row *r = find(t, s->image);

	if (!r) {
		r = &t->items[t->nr++];
		*r = (struct row){ .image = s->image, .start = i ? PROFDB_OUTSIDE : s->off };
		tell(t, r, PROFDB_OUTSIDE, s->off);
	} else if (r->at + 1 != i || steps[i - 1].transfers) {
		tell(t, r, r->last, s->off);
		r->ran = false;
	}
	r->at = i;
	if (s->ran) {
		r->last = s->last_off;
		r->ran = true;
	}
}

int trace_edges(const struct trace_step *steps, size_t nr, const uint64_t count[2],
		int (*fn)(void *ctx, struct image *image, const struct profdb_edge *m, size_t nr),
		void *ctx)
{
	struct rows t; /* rows; most of them stay unused and are not cleared */

	t.nr = t.nr_edge_counts = 0;
	t.count[0] = count[0];
	t.count[1] = count[1];
	t.fn = fn;
	t.ctx = ctx;
	t.result = 0;
	for (size_t i = 0; i < nr; i++)
		if (is_announced(steps, i))
			go(&t, steps, i);
	for (size_t i = 0; i < t.nr; i++)
		if (t.items[i].ran)
			tell(&t, &t.items[i], t.items[i].last, PROFDB_OUTSIDE);
	tell_all(&t);
	return t.result;
}
