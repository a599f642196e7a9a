/* SPDX-License-Identifier: BSD-2-Clause */
/* The writer of the text of flow graphs. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"

/* The maximal width of a text column; a longer instruction displaces only its own numbers. */
enum { TEXT_WIDEST = 48 };

/* The columns of a procedure's instructions, and their widths. */
struct columns {
	bool cpi, culprit, line;
	int address, text, culprit_width;
};

/* The edges of a procedure, by the block under which they are printed: those of block i are
 * [first[i], first[i + 1]) of index. */
struct by_block {
	size_t *first, *index;
};

struct out {
	struct base_buf *to;
	int r;
};

static void put(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct out *o, const char *fmt, ...)
{
	size_t at = o->to->len;
	va_list args;

	va_start(args, fmt);
	if (o->r >= 0)
		o->r = base_buf_vprintf(o->to, fmt, args);
	va_end(args);
	if (o->r >= 0)
		base_text_clean((char *)o->to->data + at);
}

static void end_line(struct out *o)
{
	while (o->to->len && o->to->data[o->to->len - 1] == ' ')
		o->to->len--;
	if (o->r >= 0)
		o->r = base_buf_append(o->to, "\n", 1);
}

static void put_freq(struct out *o, const struct graph_freq *f)
{
	if (f->confidence != GRAPH_UNKNOWN)
		put(o, " freq %.6g %s", f->value, graph_confidence_name(f->confidence));
}

/* ---- head ------------------------------------------------------------------------------------ */

static void put_word(struct out *o, const char *word, const char *text)
{
	put(o, "; %s %s", word, *text ? text : "?");
	end_line(o);
}

static void put_number(struct out *o, const char *word, uint64_t n)
{
	put(o, "; %s %" PRIu64, word, n);
	end_line(o);
}

static void put_head(struct out *o, const struct graph_proc *p)
{
	put_word(o, "PROC", p->name);
	if (p->linkage)
		put_word(o, "LINKAGE", p->linkage);
	put_word(o, "IMAGE", p->image);
	if (p->id)
		put_word(o, "ID", p->id);
	put(o, "; EVENT %s %" PRIu64, p->event, p->period);
	end_line(o);
	put_number(o, "SAMPLES", p->samples);
	if (p->outside)
		put_number(o, "OUTSIDE", p->outside);
	for (size_t i = 0; i < p->files.nr; i++) {
		put(o, "; FILE %zu %s", i, p->files.v[i]);
		end_line(o);
	}
	if (p->freq)
		put_word(o, "FREQ", p->freq);
	if (p->unit != GRAPH_CYCLES)
		put_word(o, "UNIT", graph_unit_name(p->unit));
	if (p->same_size) {
		put(o, "; SAMESIZE");
		end_line(o);
	}
	for (size_t i = 0; i < p->notes.nr; i++)
		put_word(o, "NOTE", p->notes.v[i]);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static int digits(uint64_t v)
{
	return snprintf(NULL, 0, "0x%" PRIx64, v);
}

static void widen(int *width, int to)
{
	if (to > *width)
		*width = to;
}

static struct columns columns_of(const struct graph_proc *p)
{
	struct columns c = { .address = (int)strlen("Addr"),
			     .text = (int)strlen("Instruction"),
			     .culprit_width = (int)strlen("Culprit") };

	for (uint32_t b = 0; b < p->nr_blocks; b++) {
		for (size_t i = 0; i < p->blocks[b].nr_insns; i++) {
			const struct graph_insn *insn = &p->blocks[b].insns[i];

			c.cpi |= insn->cpi >= 0;
			c.culprit |= insn->culprit != NULL;
			c.line |= insn->line != 0;
			widen(&c.address, digits(insn->vaddr));
			widen(&c.text, (int)strnlen(insn->text, TEXT_WIDEST));
			if (insn->culprit)
				widen(&c.culprit_width, (int)strnlen(insn->culprit, TEXT_WIDEST));
		}
	}
	return c;
}

static void put_above(struct out *o, const struct graph_proc *p, const struct graph_above *a)
{
	for (size_t i = 0; i < a->source.nr; i++) {
		put(o, "  | %s", a->source.v[i]);
		end_line(o);
	}
	for (size_t i = 0; i < a->nr_stalls; i++) {
		const struct graph_stall *s = &a->stalls[i];

		put(o, "  ... %s %.1f..%.1f%s", s->letters, s->low, s->high,
		    graph_unit_name(p->unit));
		if (s->legend)
			put(o, " (%s)", s->legend);
		end_line(o);
	}
}

/* The CPI is computed from the printed cycles, so that a reader can check it. */
static void put_cycles(struct out *o, const struct graph_proc *p, const char *name,
		       const struct graph_cycles *c)
{
	char cycles[64];

	if (c->cycles < 0 || !c->nr_insns)
		return;
	snprintf(cycles, sizeof(cycles), "%.6g", c->cycles);
	put(o, "  *** %s %s/%u = %.2f%s", name, cycles, c->nr_insns,
	    strtod(cycles, NULL) / c->nr_insns,
	    p->unit == GRAPH_CYCLES ? "CPI" : graph_unit_name(p->unit));
	end_line(o);
}

static void put_heading(struct out *o, const struct graph_proc *p, const struct columns *c)
{
	put(o, "  %-*s  %-*s  %8s", c->address, "Addr", c->text, "Instruction", "Samples");
	if (c->cpi)
		put(o, "  %8s", p->unit == GRAPH_CYCLES ? "CPI" : "Cost");
	if (c->culprit)
		put(o, "  %-*s", c->culprit_width, "Culprit");
	if (c->line)
		put(o, "  %s", "Line");
	end_line(o);
}

static void put_insn(struct out *o, const struct graph_proc *p, const struct columns *c,
		     const struct graph_insn *insn)
{
	const char *unit = graph_unit_name(p->unit);

	put_above(o, p, &insn->above);
	put(o, "  0x%-*" PRIx64 "  %-*s  %8" PRIu64, c->address - 2, insn->vaddr, c->text,
	    *insn->text ? insn->text : "?", insn->samples);
	if (c->cpi && insn->cpi >= 0)
		put(o, "  %*.1f%s", 8 - (int)strlen(unit), insn->cpi, unit);
	else if (c->cpi)
		put(o, "  %8s", "-");
	if (c->culprit)
		put(o, "  %-*s", c->culprit_width, insn->culprit ? insn->culprit : "-");
	if (c->line && insn->line)
		put(o, "  %u:%u", insn->file, insn->line);
	else if (c->line)
		put(o, "  -");
	end_line(o);
}

/* An edge is printed under the block that it leaves; an entry under the block that it enters. */
static uint32_t owner(const struct graph_edge *e)
{
	return e->kind == GRAPH_ENTRY ? e->to : e->from;
}

static int edges_by_block(const struct graph_proc *p, struct by_block *by)
{
	size_t sum = 0;

	by->first = calloc((size_t)p->nr_blocks + 2, sizeof(*by->first));
	by->index = calloc(p->nr_edges + 1, sizeof(*by->index));
	if (!by->first || !by->index)
		return -ENOMEM;
	for (size_t i = 0; i < p->nr_edges; i++)
		by->first[owner(&p->edges[i]) + 2]++;
	for (uint32_t b = 0; b <= p->nr_blocks; b++)
		by->first[b + 1] = sum += by->first[b + 1];
	/* Each first[i] advances to the end of its range, which is the start of the next one. */
	for (size_t i = 0; i < p->nr_edges; i++)
		by->index[by->first[owner(&p->edges[i]) + 1]++] = i;
	return 0;
}

static void put_edge(struct out *o, const struct graph_edge *e)
{
	if (e->kind == GRAPH_ENTRY)
		put(o, "  from outside");
	else if (e->kind == GRAPH_EXIT)
		put(o, "  to outside");
	else
		put(o, "  to %u %s", e->to, graph_edge_kind_name(e->kind));
	put_freq(o, &e->freq);
	end_line(o);
}

static void put_block(struct out *o, const struct graph_proc *p, const struct columns *c,
		      const struct by_block *by, uint32_t i)
{
	const struct graph_block *b = &p->blocks[i];

	end_line(o);
	put(o, "block %u 0x%" PRIx64 "..0x%" PRIx64 " samples %" PRIu64, i, b->vaddr, b->end,
	    b->samples);
	put_freq(o, &b->freq);
	if (b->omitted)
		put(o, " omitted");
	end_line(o);
	for (size_t k = by->first[i]; k < by->first[i + 1]; k++)
		if (p->edges[by->index[k]].kind == GRAPH_ENTRY)
			put_edge(o, &p->edges[by->index[k]]);
	for (size_t k = by->first[i]; k < by->first[i + 1]; k++)
		if (p->edges[by->index[k]].kind != GRAPH_ENTRY)
			put_edge(o, &p->edges[by->index[k]]);
	put_cycles(o, p, "Best-case", &b->best);
	put_cycles(o, p, "Actual", &b->actual);
	put_above(o, p, &b->above);
	if (b->nr_insns)
		put_heading(o, p, c);
	for (size_t k = 0; k < b->nr_insns; k++)
		put_insn(o, p, c, &b->insns[k]);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void put_summary(struct out *o, const struct graph_texts *summary)
{
	if (!summary->nr)
		return;
	end_line(o);
	put(o, "summary");
	end_line(o);
	for (size_t i = 0; i < summary->nr; i++) {
		put(o, "  %s", summary->v[i]);
		end_line(o);
	}
}

static int put_proc(struct out *o, const struct graph_proc *p)
{
	struct columns c = columns_of(p);
	struct by_block by = { 0 };
	int r = edges_by_block(p, &by);

	if (r >= 0) {
		end_line(o);
		put_head(o, p);
		for (uint32_t i = 0; i < p->nr_blocks; i++)
			put_block(o, p, &c, &by, i);
		put_summary(o, &p->summary);
		r = o->r;
	}
	free(by.first);
	free(by.index);
	return r;
}

int graph_write(const struct graph *g, struct base_buf *to)
{
	struct out o = { .to = to };
	int r;

	put(&o, "dcpi-graph 1");
	end_line(&o);
	r = o.r;
	for (size_t i = 0; i < g->nr && r >= 0; i++)
		r = put_proc(&o, &g->procs[i]);
	return r;
}

int graph_file_print(const struct graph *g, struct base_err *err)
{
	struct base_buf text = { 0 };
	int r = graph_write(g, &text);

	if (r >= 0 && fwrite(text.data, 1, text.len, stdout) != text.len)
		r = -EIO;
	base_buf_release(&text);
	return r < 0 ? base_fail_errno(err, r, "cannot write the graph") : 0;
}
