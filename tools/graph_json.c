/* SPDX-License-Identifier: BSD-2-Clause */
/* A flow graph is printed as JSON. */
#include <inttypes.h>

#include "graph_json.h"
#include "report.h"

static void add(struct json_object *o, const char *key, struct json_object *value)
{
	json_object_object_add(o, key, value);
}

static void add_count(struct json_object *o, const char *key, uint64_t n)
{
	add(o, key, json_object_new_uint64(n));
}

/* null where it is not known */
static void add_known(struct json_object *o, const char *key, bool known, double value)
{
	add(o, key, known ? json_object_new_double(value) : NULL);
}

static void add_freq(struct json_object *o, const struct graph_freq *f)
{
	bool known = f->confidence != GRAPH_UNKNOWN;

	add_known(o, "frequency", known, f->value);
	add(o, "confidence",
	    known ? json_object_new_string(graph_confidence_name(f->confidence)) : NULL);
}

static struct json_object *json_texts(const struct graph_texts *t)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < t->nr; i++)
		json_object_array_add(list, report_json_text(t->v[i]));
	return list;
}

/* Only where dcpisource put some. */
static void add_source(struct json_object *o, const struct graph_above *a)
{
	if (a->source.nr)
		add(o, "source", json_texts(&a->source));
}

static struct json_object *json_stalls(const struct graph_above *a)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < a->nr_stalls; i++) {
		struct json_object *o = json_object_new_object();

		add(o, "causes", report_json_text(a->stalls[i].letters));
		add_known(o, "low", true, a->stalls[i].low);
		add_known(o, "high", true, a->stalls[i].high);
		json_object_array_add(list, o);
	}
	return list;
}

static struct json_object *json_insn(const struct graph_proc *p, const struct graph_insn *insn)
{
	struct json_object *o = json_object_new_object();

	add(o, "address", report_json_hex(insn->vaddr));
	add(o, "text", report_json_text(insn->text));
	add_count(o, "samples", insn->samples);
	add_known(o, "cycles", insn->cpi >= 0, insn->cpi);
	add(o, "culprit", report_json_text(insn->culprit));
	add(o, "file", insn->line ? report_json_text(p->files.v[insn->file]) : NULL);
	add(o, "line", insn->line ? json_object_new_int64(insn->line) : NULL);
	add_source(o, &insn->above);
	add(o, "stalls", json_stalls(&insn->above));
	return o;
}

static struct json_object *json_block(const struct graph_proc *p, const struct graph_block *b)
{
	struct json_object *o = json_object_new_object(), *insns = json_object_new_array();

	add(o, "address", report_json_hex(b->vaddr));
	add(o, "end", report_json_hex(b->end));
	add_count(o, "samples", b->samples);
	add_freq(o, &b->freq);
	add_known(o, "best_cycles", b->best.cycles >= 0, b->best.cycles);
	add_known(o, "cycles", b->actual.cycles >= 0, b->actual.cycles);
	add(o, "omitted", json_object_new_boolean(b->omitted));
	add_source(o, &b->above);
	add(o, "stalls", json_stalls(&b->above));
	for (size_t i = 0; i < b->nr_insns; i++)
		json_object_array_add(insns, json_insn(p, &b->insns[i]));
	add(o, "instructions", insns);
	return o;
}

/* null: outside of the procedure */
static struct json_object *json_end(uint32_t block)
{
	return block == GRAPH_OUTSIDE ? NULL : json_object_new_int64(block);
}

static struct json_object *json_edge(const struct graph_edge *e)
{
	struct json_object *o = json_object_new_object();

	add(o, "from", json_end(e->from));
	add(o, "to", json_end(e->to));
	add(o, "kind", json_object_new_string(graph_edge_kind_name(e->kind)));
	add_freq(o, &e->freq);
	return o;
}

static struct json_object *json_proc(const struct graph_proc *p)
{
	struct json_object *o = json_object_new_object();
	struct json_object *blocks = json_object_new_array(), *edges = json_object_new_array();

	for (uint32_t i = 0; i < p->nr_blocks; i++)
		json_object_array_add(blocks, json_block(p, &p->blocks[i]));
	for (size_t i = 0; i < p->nr_edges; i++)
		json_object_array_add(edges, json_edge(&p->edges[i]));
	add(o, "procedure", report_json_text(p->name));
	if (p->linkage)
		add(o, "linkage", report_json_text(p->linkage));
	add(o, "image", report_json_text(p->image));
	add(o, "build_id", report_json_text(p->id));
	add(o, "event", report_json_text(p->event));
	add_count(o, "samples", p->samples);
	add_count(o, "outside", p->outside);
	add(o, "unit", json_object_new_string(graph_unit_name(p->unit)));
	add(o, "frequencies", report_json_text(p->freq));
	add(o, "notes", json_texts(&p->notes));
	add(o, "blocks", blocks);
	add(o, "edges", edges);
	add(o, "summary", json_texts(&p->summary));
	return o;
}

static struct json_object *json_root(const char *schema, const struct analysis *a)
{
	uint64_t sums[ANALYSIS_NR_EVENTS] = { 0 };
	struct json_object *root;

	if (a)
		return report_json(schema, a, report_sums(a, sums));
	root = json_object_new_object();
	add(root, "schema", json_object_new_string(schema));
	return root;
}

int graph_json_print(const struct graph *g, const char *schema, const struct analysis *a,
		     struct base_err *err)
{
	struct json_object *root = json_root(schema, a), *procs = json_object_new_array();
	int r;

	for (size_t i = 0; i < g->nr; i++)
		json_object_array_add(procs, json_proc(&g->procs[i]));
	add(root, "procedures", procs);
	r = a ? report_json_print(root, a, stdout) : report_json_put(root, stdout);
	return r < 0 ? base_fail_errno(err, r, "cannot print") : 0;
}
