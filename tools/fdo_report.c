/* SPDX-License-Identifier: BSD-2-Clause */
/* The quality of a profile for compilers, and the edges of procedures as JSON. */
#include <inttypes.h>

#include "fdo_report.h"
#include "report.h"

#define PER_SECOND 100	/* traces of a busy program by dcpid -rate 1000 -vwindows 10 */
#define UNPLACED   0.01 /* of all edges: more are worth a warning */

/* ---- text ------------------------------------------------------------------------------------ */

static void print_wanted(const struct fdo_quality *q, FILE *to)
{
	double more = q->wanted - (double)q->traces;

	fprintf(to, "about %.0f traces make it %.0f %%", q->wanted, 100 * FDO_UNSEEN_ENOUGH);
	fprintf(to, ": %.0f seconds more of the program at %d traces a second\n",
		more / PER_SECOND + 1, PER_SECOND);
}

static void print_thin(const char *prog, const struct fdo_quality *q, FILE *to)
{
	if (q->unseen < 0) {
		fprintf(to,
			"%s: warning: the profile is too thin to say how good it is: %" PRIu64
			" traces; some thousands make a good one, at %d a second a minute of the "
			"program\n",
			prog, q->traces, PER_SECOND);
	} else if (q->unseen > FDO_UNSEEN_ENOUGH) {
		fprintf(to,
			"%s: warning: the profile is thin: %.1f %% of what runs next is not in "
			"it; ",
			prog, 100 * q->unseen);
		print_wanted(q, to);
	}
}

void fdo_report_quality(const char *prog, const char *image, const struct fdo_quality *q, FILE *to)
{
	double all = (double)q->taken + (double)q->fell + (double)q->unplaced;

	fprintf(to, "%s: ", prog);
	report_print_clean(to, image);
	fprintf(to, ": %" PRIu64 " traces, %" PRIu64 " taken branches", q->traces, q->taken);
	if (q->text_bytes)
		fprintf(to, " (%.3g for a byte of code)", (double)q->taken / (double)q->text_bytes);
	if (q->samples_part >= 0)
		fprintf(to, ", %.1f %% of the samples in code they reach", 100 * q->samples_part);
	if (q->unseen >= 0)
		fprintf(to, ", %.1f %% of further branches would be new", 100 * q->unseen);
	fputc('\n', to);
	print_thin(prog, q, to);
	if (all > 0 && (double)q->unplaced > UNPLACED * all)
		fprintf(to,
			"%s: warning: %" PRIu64 " edges (%.1f %%) fit no instruction of the image: "
			"its code is not what ran\n",
			prog, q->unplaced, 100 * (double)q->unplaced / all);
}

static double placed_part(const struct fdo_build *b)
{
	return b->carried.edges ? (double)b->carried.placed / (double)b->carried.edges : 0;
}

void fdo_report_builds(const char *prog, const struct fdo_gather *g, FILE *to)
{
	char id[BASE_ID_TEXT_LEN];

	for (size_t i = 0; i < g->nr_builds; i++) {
		const struct fdo_build *b = &g->builds[i];

		fprintf(to,
			"%s: build %s: %" PRIu32 " of %" PRIu32
			" procedures and %.1f %% of %" PRIu64 " edges are found in this one\n",
			prog, base_id_text(&b->id, id), b->found, b->procedures,
			100 * placed_part(b), b->carried.edges);
	}
}

void fdo_report_relink(const char *prog, const struct image *img, FILE *to)
{
	struct image_relink x;

	image_relink(img, &x);
	if (x.packed)
		fprintf(to,
			"%s: warning: the image is packed, or writes its code: lay out the "
			"program before it is packed\n",
			prog);
	if (!x.symbols)
		fprintf(to,
			"%s: warning: the image is stripped: llvm-bolt needs its symbols, so "
			"give it the file before it was stripped\n",
			prog);
	if (!x.relocations)
		fprintf(to,
			"%s: warning: the image was linked without -Wl,--emit-relocs: "
			"llvm-bolt cannot move its functions\n",
			prog);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void add_known(struct json_object *o, const char *key, double value)
{
	json_object_object_add(o, key, value >= 0 ? report_json_number(value) : NULL);
}

struct json_object *fdo_report_quality_json(const struct fdo_quality *q)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "traces", json_object_new_uint64(q->traces));
	json_object_object_add(o, "taken", json_object_new_uint64(q->taken));
	json_object_object_add(o, "not_taken", json_object_new_uint64(q->fell));
	json_object_object_add(o, "unplaced", json_object_new_uint64(q->unplaced));
	json_object_object_add(o, "code_bytes", json_object_new_uint64(q->text_bytes));
	add_known(o, "samples_part", q->samples_part);
	add_known(o, "unseen_part", q->unseen);
	add_known(o, "traces_wanted", q->wanted);
	return o;
}

struct json_object *fdo_report_builds_json(const struct fdo_gather *g)
{
	struct json_object *all = json_object_new_array();
	char id[BASE_ID_TEXT_LEN];

	for (size_t i = 0; i < g->nr_builds; i++) {
		const struct fdo_build *b = &g->builds[i];
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "build_id",
				       json_object_new_string(base_id_text(&b->id, id)));
		json_object_object_add(o, "procedures", json_object_new_uint64(b->procedures));
		json_object_object_add(o, "found", json_object_new_uint64(b->found));
		json_object_object_add(o, "edges", json_object_new_uint64(b->carried.edges));
		json_object_object_add(o, "placed", json_object_new_uint64(b->carried.placed));
		json_object_array_add(all, o);
	}
	return all;
}

static uint64_t offset_in(const struct image_symbol *s, uint64_t vaddr)
{
	return s ? vaddr - s->vaddr : vaddr;
}

static const char *const kind_names[FDO_NR_KINDS] = {
	[FDO_TAKEN] = "taken",	     [FDO_FELL] = "not taken",
	[FDO_JUMP] = "jump",	     [FDO_INDIRECT_JUMP] = "indirect jump",
	[FDO_CALL] = "call",	     [FDO_INDIRECT_CALL] = "indirect call",
	[FDO_RETURN] = "return",     [FDO_RESUMED] = "call outside",
	[FDO_STUB] = "jump outside", [FDO_BEGUN] = "begun",
	[FDO_ENTERED] = "entered",   [FDO_ENDED] = "ended",
	[FDO_UNKNOWN] = "unknown",
};

static struct json_object *edge_json(const struct fdo_edge *e, const struct image_symbol *from,
				     const struct image_symbol *to)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "from", json_object_new_uint64(offset_in(from, e->from)));
	json_object_object_add(o, "to", json_object_new_uint64(offset_in(to, e->to)));
	if (to != from)
		json_object_object_add(o, "to_procedure", report_json_text(to ? to->name : NULL));
	json_object_object_add(o, "kind", json_object_new_string(kind_names[e->kind]));
	json_object_object_add(o, "count", json_object_new_uint64(e->count[0] + e->count[1]));
	return o;
}

static struct json_object *procedure_json(const struct image_symbol *s)
{
	struct json_object *o = json_object_new_object();

	report_json_procedure(o, s->name);
	json_object_object_add(o, "address", report_json_hex(s->vaddr));
	json_object_object_add(o, "size", json_object_new_uint64(s->len));
	json_object_object_add(o, "edges", json_object_new_array());
	return o;
}

struct json_object *fdo_report_edges(const struct fdo *f, struct image *img,
				     bool (*wanted)(void *context, const struct image_symbol *s),
				     void *context)
{
	struct json_object *all = json_object_new_array(), *edges = NULL;
	const struct image_symbol *last = NULL;

	for (size_t i = 0; i < f->nr_edges; i++) {
		const struct fdo_edge *e = &f->edges[i];
		const struct image_symbol *s;

		if (e->kind > FDO_STUB)
			continue;
		s = image_symbol_at(img, e->from);
		if (!s || (wanted && !wanted(context, s)))
			continue;
		if (s != last) {
			struct json_object *o = procedure_json(s);

			json_object_array_add(all, o);
			edges = json_object_object_get(o, "edges");
			last = s;
		}
		json_object_array_add(edges, edge_json(e, s, image_symbol_at(img, e->to)));
	}
	return all;
}
