/* SPDX-License-Identifier: BSD-2-Clause */
/* The callers of procedures, and where procedures keep their arguments. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "varg.h"

enum { TERSE_CALLERS = 3 };

/* A place that was returned to. */
struct caller {
	const struct analysis_image *ai; /* NULL: nobody knows where */
	bool placed;
	uint64_t vaddr; /* where it is not placed, the offset in the image */
	uint64_t seen;
	char *name; /* name of its procedure; NULL: none */
	uint64_t into;
};

struct callers {
	struct caller *v;
	size_t nr, cap;
	uint64_t seen;
	bool by_paths; /* not by return addresses */
};

static void release(struct callers *c)
{
	for (size_t i = 0; i < c->nr; i++)
		free(c->v[i].name);
	free(c->v);
	memset(c, 0, sizeof(*c));
}

static int by_seen(const void *pa, const void *pb)
{
	const struct caller *a = pa, *b = pb;

	if (a->seen != b->seen)
		return a->seen > b->seen ? -1 : 1;
	if (!a->name != !b->name)
		return a->name ? -1 : 1;
	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

/* The image, opened once; NULL where it cannot be. */
static struct image *image_of(struct varg *x, struct analysis_image *ai)
{
	struct varg_image *v;

	if (ai == x->ai)
		return x->img;
	for (size_t i = 0; i < x->nr_opened; i++)
		if (x->opened[i].ai == ai)
			return x->opened[i].img;
	if (base_grow(&x->opened, &x->cap_opened, x->nr_opened + 1, sizeof(*x->opened)) < 0)
		return NULL;
	v = &x->opened[x->nr_opened++];
	*v = (struct varg_image){ .ai = ai };
	if (analysis_image_open(x->a, ai, &v->img, NULL) < 0)
		v->img = NULL;
	return v->img;
}

/* @img: NULL: @vaddr is an offset. */
static int add(struct callers *c, struct image *img, const struct analysis_image *ai,
	       uint64_t vaddr, uint64_t seen)
{
	const struct image_symbol *s = img ? image_symbol_at(img, vaddr) : NULL;
	int r;

	c->seen += seen;
	for (size_t i = 0; i < c->nr; i++) {
		if (c->v[i].ai == ai && c->v[i].placed == (img != NULL) && c->v[i].vaddr == vaddr) {
			c->v[i].seen += seen;
			return 0;
		}
	}
	r = base_grow(&c->v, &c->cap, c->nr + 1, sizeof(*c->v));
	if (r < 0)
		return r;
	c->v[c->nr] =
		(struct caller){ .ai = ai, .placed = img != NULL, .vaddr = vaddr, .seen = seen };
	if (s) {
		c->v[c->nr].name = strdup(s->name);
		c->v[c->nr].into = vaddr - s->vaddr;
		if (!c->v[c->nr].name)
			return -ENOMEM;
	}
	c->nr++;
	return 0;
}

static int add_context(struct varg *x, const struct profdb_values *v,
		       const struct profdb_context *context, uint64_t seen, struct callers *c)
{
	struct analysis_image *ai = hotlists_context_image(x->a, v, context);
	struct image *img = ai ? image_of(x, ai) : NULL;
	uint64_t vaddr;

	if (!img)
		return add(c, NULL, ai, ai ? context->off : 0, seen);
	if (image_vaddr(img, context->off, &vaddr) < 0)
		return add(c, NULL, ai, context->off, seen);
	return add(c, img, ai, vaddr, seen);
}

/* All argument registers were seen at the same calls, some of them unknown then: of the one that
 * was known most often. */
static int by_values(struct varg *x, uint64_t entry, struct callers *out)
{
	int r = 0;

	for (uint32_t i = 0; r >= 0 && i < x->machine->nr; i++) {
		const struct varg_places *p = &x->seen_args[i];
		struct callers c = { 0 };

		for (size_t k = varg_place_at(p, entry);
		     r >= 0 && k < p->nr && p->v[k].vaddr == entry; k++) {
			const struct profdb_hotlist *h = profdb_values_at(p->values, p->v[k].at);

			r = add_context(x, p->values, &h->context[0], h->vtot, &c);
		}
		if (r >= 0 && c.seen > out->seen) {
			release(out);
			*out = c;
		} else {
			release(&c);
		}
	}
	return r;
}

/* Is there a call at @vaddr? Its end, or 0. */
static uint64_t behind_call(const struct varg *x, uint64_t vaddr)
{
	struct insn insn;
	uint8_t code[16];
	size_t len = image_bytes(x->img, vaddr, code, sizeof(code));

	if (!len)
		return 0;
	insn_decode(x->decoder, code, len, vaddr, &insn);
	return insn.flow == INSN_CALL || insn.flow == INSN_INDIRECT_CALL ? vaddr + insn.len : 0;
}

/* Paths lie in one image: calls from elsewhere are known as such. */
static int by_paths(struct varg *x, uint64_t entry, struct callers *out)
{
	int r = x->edge_counts.v ? 0 : varg_edges_find(x, &x->edge_counts);
	uint64_t from;

	for (size_t i = r < 0 ? 0 : varg_place_at(&x->edge_counts, entry);
	     r >= 0 && i < x->edge_counts.nr && x->edge_counts.v[i].vaddr == entry; i++) {
		const struct profdb_edge *m =
			profdb_profile_edge(x->ai->profile, x->edge_counts.v[i].at);
		uint64_t nr = m->count[0] + m->count[1];

		/* A trace that begins here was called by nobody that it saw. */
		if (m->from == PROFDB_OUTSIDE)
			r = m->start == m->to ? 0 : add(out, NULL, NULL, 0, nr);
		else if (image_vaddr(x->img, m->from, &from) >= 0 && behind_call(x, from))
			r = add(out, x->img, x->ai, behind_call(x, from), nr);
	}
	out->by_paths = true;
	return r;
}

static int find(struct varg *x, uint64_t entry, struct callers *out)
{
	int r = by_values(x, entry, out);

	if (r >= 0 && !out->nr)
		r = by_paths(x, entry, out);
	if (out->nr)
		qsort(out->v, out->nr, sizeof(*out->v), by_seen);
	return r;
}

/* ---- text ------------------------------------------------------------------------------------ */

static int place_text(const struct caller *c, char **out)
{
	int r;

	if (c->name && c->into)
		r = asprintf(out, "%s+0x%" PRIx64, demangle_shown(c->name), c->into);
	else if (c->name)
		r = asprintf(out, "%s", demangle_shown(c->name));
	else if (c->ai)
		r = asprintf(out, "%s0x%" PRIx64, c->placed ? "" : "+", c->vaddr);
	else
		r = asprintf(out, "(elsewhere)");
	return r < 0 ? -ENOMEM : 0;
}

static double percent(const struct callers *all, const struct caller *c)
{
	return all->seen ? 100.0 * (double)c->seen / (double)all->seen : 0;
}

static int print_full(const struct callers *all)
{
	struct table t = { 0 };

	table_column(&t, false, all->by_paths ? "in traces" : "calls");
	table_column(&t, false, "%");
	table_column(&t, true, "returns to");
	table_column(&t, true, "image");
	for (size_t i = 0; i < all->nr; i++) {
		const struct caller *c = &all->v[i];
		char *text = NULL;

		if (place_text(c, &text) < 0)
			text = NULL;
		table_cell(&t, "%" PRIu64, c->seen);
		table_cell(&t, "%.2f%%", percent(all, c));
		table_cell(&t, "%s", text ? text : "?");
		table_cell(&t, "%s", c->ai ? c->ai->name : "");
		free(text);
	}
	return varg_table(&t);
}

static int print_terse(const struct varg *x, const struct varg_procedure *p,
		       const struct callers *all)
{
	size_t event = analysis_event_default(x->a);
	uint64_t total = event < x->a->nr_events ? x->ai->count[event] : 0;
	size_t nr = all->nr < TERSE_CALLERS ? all->nr : TERSE_CALLERS;

	printf("%5.2f%%  ", total ? 100.0 * (double)p->of->samples / (double)total : 0);
	report_print_name(stdout, p->of->symbol->name);
	for (size_t i = 0; i < nr; i++) {
		char *text = NULL;

		if (place_text(&all->v[i], &text) < 0)
			return -ENOMEM;
		fputs(i ? ", " : " <- ", stdout);
		report_print_clean(stdout, text);
		printf(" (%.1f%%)", percent(all, &all->v[i]));
		free(text);
	}
	printf("%s\n", nr < all->nr ? ", ..." : "");
	return 0;
}

static void add_json(const struct callers *all, struct json_object *o)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < all->nr; i++) {
		const struct caller *c = &all->v[i];
		struct json_object *one = json_object_new_object();

		json_object_object_add(one, "seen", json_object_new_uint64(c->seen));
		json_object_object_add(one, "percent", report_json_number(percent(all, c)));
		report_json_procedure(one, c->name);
		json_object_object_add(one, "offset",
				       c->name ? json_object_new_uint64(c->into) : NULL);
		json_object_object_add(one, "address",
				       c->placed ? report_json_hex(c->vaddr) : NULL);
		report_json_image(one, c->ai);
		json_object_array_add(list, one);
	}
	json_object_object_add(o, "callers_from",
			       json_object_new_string(all->by_paths ? "paths" : "calls"));
	json_object_object_add(o, "callers", list);
}

int varg_callers(struct varg *x, const struct varg_procedure *p, bool full, struct json_object *o)
{
	struct callers all = { 0 };
	int r = find(x, p->of->symbol->vaddr, &all), nr = (int)all.nr;

	if (r >= 0 && nr && o)
		add_json(&all, o);
	else if (r >= 0 && nr)
		r = full ? print_full(&all) : print_terse(x, p, &all);
	release(&all);
	return r < 0 ? r : nr;
}

/* ---- where it is kept ------------------------------------------------------------------------ */

/* The first one that stores the link register; NULL: none does. */
static const struct insn *saving(const struct varg *x, const struct varg_procedure *p)
{
	enum { LINK = 30 };

	for (uint32_t i = 0; !x->machine->call_saves && i < p->flow->nr_insns; i++) {
		const struct insn *insn = &p->flow->insns[i];

		if (insn->kinds & INSN_STORE && insn->reads.gpr >> LINK & 1)
			return insn;
	}
	return NULL;
}

int varg_saves(struct varg *x, const struct varg_procedure *p, struct json_object *o)
{
	const struct insn *insn = saving(x, p);
	struct json_object *rows = o ? json_object_new_array() : NULL;
	struct table t = { 0 };
	int r = 0;

	if (o) {
		json_object_object_add(o, "saved_by_call",
				       json_object_new_boolean(x->machine->call_saves));
		json_object_object_add(o, "saves", rows);
	} else if (x->machine->call_saves) {
		puts("the call itself puts the return address on the stack");
	} else if (!insn) {
		puts("no instruction of it saves the return address");
	}
	if (insn && !o)
		varg_columns(x, &t);
	if (insn)
		r = varg_row(x, insn, 0, o ? NULL : &t, rows);
	if (insn && !o)
		r = varg_table(&t) < 0 ? -ENOMEM : r;
	if (r >= 0)
		r = varg_callers(x, p, true, o);
	return r < 0 ? r : 1;
}
