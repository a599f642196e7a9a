/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds the flow graph of a procedure with its samples, in the form that is printed. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "graph_flow.h"

/* ---- parts ----------------------------------------------------------------------------------- */

static bool lies_in(const struct analysis_listing *l, uint64_t vaddr)
{
	return vaddr - l->symbol.vaddr < (l->symbol.len ? l->symbol.len : 1);
}

static bool is_listed(const struct graph_flow *f, uint64_t vaddr)
{
	for (size_t i = 0; i < f->nr_parts; i++)
		if (lies_in(f->parts[i], vaddr))
			return true;
	return false;
}

static int add_part(struct graph_flow *f, struct analysis_listing *l)
{
	int r = base_grow(&f->parts, &f->cap_parts, f->nr_parts + 1, sizeof(*f->parts));

	if (r < 0)
		analysis_listing_close(l);
	else
		f->parts[f->nr_parts++] = l;
	return r;
}

static int open_part(struct graph_flow *f, uint64_t vaddr, struct base_err *err)
{
	struct analysis_listing *main = f->parts[0], *l;
	const struct image_symbol *symbol;
	struct image *img;
	int r = analysis_image_open(main->a, main->ai, &img, err);

	if (r < 0)
		return r;
	symbol = image_symbol_at(img, vaddr);
	if (!symbol) {
		image_close(img);
		return 0;
	}
	r = analysis_listing_open(main->a, main->ai, img, symbol, NULL, &l, err);
	if (r >= 0)
		r = add_part(f, l);
	return r;
}

int graph_flow_open(struct analysis_listing *l, struct graph_flow *out, struct base_err *err)
{
	int r = add_part(out, l);

	if (r < 0)
		return base_fail_errno(err, r, "cannot list the procedure");
	r = flow_build(l->img, &l->symbol, &out->flow, err);
	for (uint32_t i = 0; r >= 0 && i < out->flow->nr_blocks; i++)
		if (!is_listed(out, out->flow->blocks[i].vaddr))
			r = open_part(out, out->flow->blocks[i].vaddr, err);
	if (r < 0)
		graph_flow_close(out);
	return r;
}

void graph_flow_close(struct graph_flow *f)
{
	flow_free(f->flow);
	for (size_t i = 0; i < f->nr_parts; i++)
		analysis_listing_close(f->parts[i]);
	free(f->parts);
	memset(f, 0, sizeof(*f));
}

/* ---- units ----------------------------------------------------------------------------------- */

/* A line of one of the listings. */
struct item {
	const struct analysis_listing *l;
	const struct analysis_unit *unit;
};

struct making {
	const struct graph_flow *f;
	size_t event;
	struct graph_proc *p;
	struct item *items; /* ascending by address */
	size_t nr_items;
};

static int by_vaddr(const void *pa, const void *pb)
{
	const struct item *a = pa, *b = pb;

	return (a->unit->vaddr > b->unit->vaddr) - (a->unit->vaddr < b->unit->vaddr);
}

static int collect(struct making *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->f->nr_parts; i++)
		n += m->f->parts[i]->nr_units;
	m->items = calloc(n + 1, sizeof(*m->items));
	if (!m->items)
		return -ENOMEM;
	for (size_t i = 0; i < m->f->nr_parts; i++)
		for (size_t k = 0; k < m->f->parts[i]->nr_units; k++)
			m->items[m->nr_items++] =
				(struct item){ m->f->parts[i], &m->f->parts[i]->units[k] };
	qsort(m->items, m->nr_items, sizeof(*m->items), by_vaddr);
	return 0;
}

static uint64_t samples_of(const struct making *m, const struct analysis_unit *u)
{
	return u->count && m->event < m->f->parts[0]->a->nr_events ? u->count[m->event] : 0;
}

/* The index of the file in the graph, which has each name once. */
static int file_index(struct making *m, const struct item *item, uint32_t *out)
{
	const char *name = item->l->files[item->unit->file];
	struct graph_texts *files = &m->p->files;

	for (size_t i = files->nr; i-- > 0;) {
		if (strcmp(files->v[i], name) == 0) {
			*out = (uint32_t)i;
			return 0;
		}
	}
	*out = (uint32_t)files->nr;
	return graph_text_add(files, "%s", name);
}

static int add_item(struct making *m, struct graph_block *b, const struct item *item)
{
	struct graph_insn *insn;
	char text[512];

	analysis_unit_text(item->l, item->unit, text, sizeof(text));
	insn = graph_insn_add(b, item->unit->vaddr, text, samples_of(m, item->unit));
	if (!insn)
		return -ENOMEM;
	insn->line = item->unit->line;
	return insn->line ? file_index(m, item, &insn->file) : 0;
}

/* Blocks and items both ascend; items between blocks are padding or code that was not reached. */
static int add_blocks(struct making *m)
{
	const struct flow *flow = m->f->flow;
	size_t i = 0;
	int r = 0;

	for (uint32_t k = 0; k < flow->nr_blocks && r >= 0; k++) {
		const struct flow_block *from = &flow->blocks[k];
		struct graph_block *b = graph_block_add(m->p, from->vaddr, from->end);

		if (!b)
			return -ENOMEM;
		for (; i < m->nr_items && m->items[i].unit->vaddr < from->vaddr; i++)
			m->p->outside += samples_of(m, m->items[i].unit);
		for (; i < m->nr_items && m->items[i].unit->vaddr < from->end && r >= 0; i++)
			r = add_item(m, b, &m->items[i]);
		m->p->samples += b->samples;
	}
	for (; i < m->nr_items; i++)
		m->p->outside += samples_of(m, m->items[i].unit);
	m->p->samples += m->p->outside;
	return r;
}

static int add_edges(struct making *m)
{
	static const enum graph_edge_kind kinds[] = {
		[FLOW_FALL] = GRAPH_FALL,   [FLOW_TAKEN] = GRAPH_TAKEN, [FLOW_TABLE] = GRAPH_TABLE,
		[FLOW_ENTRY] = GRAPH_ENTRY, [FLOW_EXIT] = GRAPH_EXIT,
	};
	int r = 0;

	for (uint32_t i = 0; i < m->f->flow->nr_edges && r >= 0; i++) {
		const struct flow_edge *e = &m->f->flow->edges[i];

		r = graph_edge_add(m->p, &(struct graph_edge){ .from = e->from,
							       .to = e->to,
							       .kind = kinds[e->kind] });
	}
	return r;
}

/* ---- notes ----------------------------------------------------------------------------------- */

static int add_notes(struct making *m)
{
	const struct analysis_listing *l = m->f->parts[0];
	const struct flow *flow = m->f->flow;
	struct graph_texts *notes = &m->p->notes;
	int r = 0;

	for (size_t i = 0; i < l->a->nr_epochs && r >= 0; i++)
		if (l->a->epochs[i].open)
			r = graph_text_add(notes, "epoch %s is open: this is its last flush",
					   l->a->epochs[i].name);
	if (r >= 0 && l->nr_places > 1)
		r = graph_text_add(notes, "the samples of %zu places where this code stands",
				   l->nr_places);
	if (r >= 0 && flow->cut)
		r = graph_text_add(notes, "bytes of this procedure are missing, and blocks with "
					  "them");
	if (r >= 0 && flow->nr_unresolved)
		r = graph_text_add(notes,
				   "the targets of %u of %u indirect jumps are not known: whatever "
				   "may be one is entered from outside",
				   flow->nr_unresolved, flow->nr_indirect);
	if (r >= 0 && flow->overlapping)
		r = graph_text_add(notes, "a branch leads into the middle of an instruction");
	return r;
}

static int add_identity(struct making *m)
{
	const struct base_id *id = image_id(m->f->parts[0]->img);
	char text[BASE_ID_TEXT_LEN];

	if (!id->len)
		return 0;
	m->p->id = strdup(base_id_text(id, text));
	return m->p->id ? 0 : -ENOMEM;
}

static int add_names(struct making *m, struct graph *g, const struct analysis_event *ev)
{
	const struct analysis_listing *l = m->f->parts[0];
	const char *shown = demangle_shown(l->symbol.name);
	const struct profdb_event *own = analysis_image_event(l->ai, m->event);

	m->p = graph_proc_add(g, shown, l->ai->name, ev->name, own ? own->period : ev->period);
	if (m->p && shown != l->symbol.name)
		m->p->linkage = strdup(l->symbol.name);
	return m->p && (m->p->linkage || shown == l->symbol.name) ? 0 : -ENOMEM;
}

int graph_flow_add(const struct graph_flow *f, size_t event, struct graph *g, struct base_err *err)
{
	const struct analysis_listing *l = f->parts[0];
	const struct analysis_event none = { .name = "none" }, *ev = &none;
	struct making m = { .f = f, .event = event };
	int r;

	if (event < l->a->nr_events)
		ev = &l->a->events[event];
	r = add_names(&m, g, ev);
	if (r >= 0)
		r = collect(&m);
	if (r >= 0)
		r = add_identity(&m);
	if (r >= 0)
		r = add_blocks(&m);
	if (r >= 0)
		r = add_edges(&m);
	if (r >= 0)
		r = add_notes(&m);
	free(m.items);
	return r < 0 ? base_fail_errno(err, r, "cannot make a graph of '%s'", l->symbol.name) : 0;
}
