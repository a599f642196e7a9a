/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a flow graph as text: made, added to and released. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"

struct graph *graph_new(void)
{
	return calloc(1, sizeof(struct graph));
}

/* ---- releasing ------------------------------------------------------------------------------- */

static void texts_release(struct graph_texts *t)
{
	for (size_t i = 0; i < t->nr; i++)
		free(t->v[i]);
	free(t->v);
}

void graph_above_release(struct graph_above *a)
{
	for (size_t i = 0; i < a->nr_stalls; i++) {
		free(a->stalls[i].letters);
		free(a->stalls[i].legend);
	}
	free(a->stalls);
	texts_release(&a->source);
	*a = (struct graph_above){ 0 };
}

static void insns_release(struct graph_block *b)
{
	for (size_t i = 0; i < b->nr_insns; i++) {
		free(b->insns[i].text);
		free(b->insns[i].culprit);
		graph_above_release(&b->insns[i].above);
	}
	free(b->insns);
	b->insns = NULL;
	b->nr_insns = b->cap_insns = 0;
}

static void block_release(struct graph_block *b)
{
	insns_release(b);
	graph_above_release(&b->above);
}

static void proc_release(struct graph_proc *p)
{
	for (uint32_t i = 0; i < p->nr_blocks; i++)
		block_release(&p->blocks[i]);
	free(p->blocks);
	free(p->edges);
	free(p->name);
	free(p->image);
	free(p->linkage);
	free(p->id);
	free(p->event);
	free(p->freq);
	texts_release(&p->files);
	texts_release(&p->notes);
	texts_release(&p->summary);
}

void graph_free(struct graph *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->nr; i++)
		proc_release(&g->procs[i]);
	free(g->procs);
	free(g);
}

/* ---- adding ---------------------------------------------------------------------------------- */

struct graph_proc *graph_proc_add(struct graph *g, const char *name, const char *image,
				  const char *event, uint64_t period)
{
	struct graph_proc *p;

	if (base_grow(&g->procs, &g->cap, g->nr + 1, sizeof(*g->procs)) < 0)
		return NULL;
	p = &g->procs[g->nr];
	*p = (struct graph_proc){ .name = strdup(name),
				  .image = strdup(image),
				  .event = strdup(event),
				  .period = period };
	if (!p->name || !p->image || !p->event) {
		proc_release(p);
		return NULL;
	}
	g->nr++;
	return p;
}

struct graph_block *graph_block_add(struct graph_proc *p, uint64_t vaddr, uint64_t end)
{
	struct graph_block *b;

	if (p->nr_blocks >= GRAPH_OUTSIDE - 1 ||
	    base_grow(&p->blocks, &p->cap_blocks, (size_t)p->nr_blocks + 1, sizeof(*p->blocks)) < 0)
		return NULL;
	b = &p->blocks[p->nr_blocks++];
	*b = (struct graph_block){
		.vaddr = vaddr, .end = end, .best = { -1, 0 }, .actual = { -1, 0 }
	};
	return b;
}

struct graph_insn *graph_insn_add(struct graph_block *b, uint64_t vaddr, const char *text,
				  uint64_t samples)
{
	struct graph_insn *insn;

	if (base_grow(&b->insns, &b->cap_insns, b->nr_insns + 1, sizeof(*b->insns)) < 0)
		return NULL;
	insn = &b->insns[b->nr_insns];
	*insn = (struct graph_insn){
		.vaddr = vaddr, .text = strdup(text), .samples = samples, .cpi = -1
	};
	if (!insn->text)
		return NULL;
	b->nr_insns++;
	b->samples += samples;
	return insn;
}

void graph_block_omit(struct graph_block *b)
{
	insns_release(b);
	b->omitted = true;
}

int graph_edge_add(struct graph_proc *p, const struct graph_edge *e)
{
	int r = base_grow(&p->edges, &p->cap_edges, p->nr_edges + 1, sizeof(*p->edges));

	if (r >= 0)
		p->edges[p->nr_edges++] = *e;
	return r;
}

int graph_text_add(struct graph_texts *t, const char *fmt, ...)
{
	va_list args;
	char *text;
	int r;

	va_start(args, fmt);
	r = vasprintf(&text, fmt, args);
	va_end(args);
	if (r < 0)
		return -ENOMEM;
	r = base_grow(&t->v, &t->cap, t->nr + 1, sizeof(*t->v));
	if (r < 0)
		free(text);
	else
		t->v[t->nr++] = text;
	return r;
}

int graph_stall_add(struct graph_above *a, const char *letters, double low, double high,
		    const char *legend)
{
	struct graph_stall s = { strdup(letters), low, high, legend ? strdup(legend) : NULL };

	if (!s.letters || (legend && !s.legend) ||
	    base_grow(&a->stalls, &a->cap_stalls, a->nr_stalls + 1, sizeof(*a->stalls)) < 0) {
		free(s.letters);
		free(s.legend);
		return -ENOMEM;
	}
	a->stalls[a->nr_stalls++] = s;
	return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

const char *graph_confidence_name(enum graph_confidence c)
{
	static const char *const names[] = {
		[GRAPH_UNKNOWN] = "unknown", [GRAPH_LOW] = "low",     [GRAPH_MEDIUM] = "medium",
		[GRAPH_HIGH] = "high",	     [GRAPH_EXACT] = "exact",
	};

	return names[c];
}

const char *graph_unit_name(enum graph_unit u)
{
	static const char *const names[] = {
		[GRAPH_CYCLES] = "cy",
		[GRAPH_NS] = "ns",
		[GRAPH_TIMES] = "x",
	};

	return names[u];
}

const char *graph_edge_kind_name(enum graph_edge_kind k)
{
	static const char *const names[] = {
		[GRAPH_FALL] = "fall",	 [GRAPH_TAKEN] = "taken", [GRAPH_TABLE] = "table",
		[GRAPH_ENTRY] = "entry", [GRAPH_EXIT] = "exit",
	};

	return names[k];
}
