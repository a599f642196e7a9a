/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values that dcpivarg tells of a procedure: its arguments, callers and constant blocks; and
 * the loads of an image that were waited for.
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "estimate.h"
#include "procedures.h"
#include "varg.h"

const struct varg_machine *varg_machine_of(uint32_t machine)
{
	static const struct varg_machine x86 = {
		.nr = 6,
		.machine = { 7, 6, 2, 1, 8, 9 },
		.dwarf = { 5, 4, 1, 2, 8, 9 },
		.call_saves = true,
	};
	static const struct varg_machine aarch64 = {
		.nr = 8,
		.machine = { 0, 1, 2, 3, 4, 5, 6, 7 },
		.dwarf = { 0, 1, 2, 3, 4, 5, 6, 7 },
	};

	return machine == EM_X86_64 ? &x86 : machine == EM_AARCH64 ? &aarch64 : NULL;
}

/* ---- which registers carry something --------------------------------------------------------- */

struct use {
	const struct varg_machine *m;
	const struct flow *f;
	const struct flow_source *source;
	uint32_t *fresh; /* by block: arguments that may enter it unwritten */
	uint32_t used, maybe;
};

/* Bits of arguments among registers. */
static uint32_t arguments(const struct varg_machine *m, uint64_t gpr)
{
	uint32_t bits = 0;

	for (uint32_t i = 0; i < m->nr; i++)
		bits |= (uint32_t)(gpr >> m->machine[i] & 1) << i;
	return bits;
}

/* x86's "xor %eax, %eax" and "sub %eax, %eax" do not read what they clear. */
static bool clears(const struct use *u, const struct insn *insn)
{
	uint8_t code[3], rex = 0;
	size_t at = 0, len;

	if (!u->m->call_saves || insn->len > sizeof(code))
		return false;
	len = u->source->bytes(u->source->context, insn->vaddr, code, insn->len);
	if (len && (code[0] & 0xf0) == 0x40)
		rex = code[at++];
	if (len != at + 2 || (code[at + 1] >> 3 & 7) != (code[at + 1] & 7) || code[at + 1] < 0xc0)
		return false;
	return !(rex & 4) == !(rex & 1) &&
	       (code[at] == 0x31 || code[at] == 0x33 || code[at] == 0x29 || code[at] == 0x2b);
}

/* The arguments that leave the block as they entered it. */
static uint32_t through(struct use *u, const struct flow_block *b, uint32_t fresh)
{
	for (uint32_t i = b->insn; i < b->insn + b->nr_insns && fresh; i++) {
		const struct insn *insn = &u->f->insns[i];

		if (insn->flow == INSN_CALL || insn->flow == INSN_INDIRECT_CALL) {
			u->maybe |= fresh;
			return 0;
		}
		if (!clears(u, insn))
			u->used |= fresh & arguments(u->m, insn->reads.gpr);
		fresh &= ~arguments(u->m, insn->writes.gpr);
	}
	return fresh;
}

/* True where a block that it leads to has more than before. */
static bool walk_block(struct use *u, const struct flow_block *b)
{
	uint32_t fresh = through(u, b, u->fresh[b - u->f->blocks]);
	bool returns = u->f->insns[b->insn + b->nr_insns - 1].flow == INSN_RETURN, more = false;

	for (uint32_t i = b->out; fresh && i < b->out + b->nr_out; i++) {
		const struct flow_edge *e = &u->f->edges[u->f->out_of[i]];

		/* A jump into another procedure passes on what is there. */
		if (e->to == FLOW_OUTSIDE)
			u->maybe |= returns ? 0 : fresh;
		else if (fresh & ~u->fresh[e->to])
			u->fresh[e->to] |= fresh, more = true;
	}
	return more;
}

uint32_t varg_used(const struct varg_machine *m, const struct flow *f,
		   const struct flow_source *source, uint32_t *maybe)
{
	struct use u = { .m = m, .f = f, .source = source };
	bool more = true;

	*maybe = 0;
	if (f->entry == FLOW_OUTSIDE)
		return 0;
	u.fresh = calloc(f->nr_blocks + 1, sizeof(*u.fresh));
	if (!u.fresh)
		return 0;
	u.fresh[f->entry] = (1u << m->nr) - 1;
	while (more) {
		more = false;
		for (uint32_t i = 0; i < f->nr_blocks; i++)
			more |= u.fresh[i] && walk_block(&u, &f->blocks[i]);
	}
	free(u.fresh);
	*maybe = u.maybe & ~u.used;
	return u.used;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int by_vaddr(const void *pa, const void *pb)
{
	const struct varg_place *a = pa, *b = pb;

	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

/*
 * Find the values @of has for the image, by address. 0 or -ENOMEM; release it also after failure.
 */
static int places_find(const struct varg *x, const struct hotlists *of, struct varg_places *out)
{
	size_t nr;

	out->values = hotlists_of(of, x->ai);
	nr = out->values ? profdb_values_nr(out->values) : 0;
	out->v = calloc(nr + 1, sizeof(*out->v));
	if (!out->v)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		struct varg_place *p = &out->v[out->nr];

		p->at = i;
		if (image_vaddr(x->img, profdb_values_at(out->values, i)->off, &p->vaddr) >= 0)
			out->nr++;
	}
	qsort(out->v, out->nr, sizeof(*out->v), by_vaddr);
	return 0;
}

/* The same of the moves of the image's profile. */
static int edges_find(const struct varg *x, struct varg_places *out)
{
	const struct profdb_profile *p = x->ai->profile;
	size_t nr = profdb_profile_nr_edges(p);

	out->v = calloc(nr + 1, sizeof(*out->v));
	if (!out->v)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const struct profdb_edge *m = profdb_profile_edge(p, i);
		struct varg_place *at = &out->v[out->nr];

		at->at = i;
		if (m->to != PROFDB_OUTSIDE && image_vaddr(x->img, m->to, &at->vaddr) >= 0)
			out->nr++;
	}
	qsort(out->v, out->nr, sizeof(*out->v), by_vaddr);
	return 0;
}

static void places_release(struct varg_places *p)
{
	free(p->v);
	memset(p, 0, sizeof(*p));
}

/* The first at @vaddr or behind it. */
static size_t place_at(const struct varg_places *p, uint64_t vaddr)
{
	return BASE_LOWER_BOUND(p->v, p->nr, vaddr, vaddr);
}

/* Collect the values at an instruction; *@out is zero at first. 0 or -ENOMEM. */
static int spot_at(const struct varg *x, const struct varg_places *of, uint64_t vaddr,
		   struct hotlist_spot *out)
{
	int r = 0;

	for (size_t i = place_at(of, vaddr); i < of->nr && of->v[i].vaddr == vaddr && r >= 0; i++)
		r = hotlist_spot_add(out, profdb_values_at(of->values, of->v[i].at),
				     x->valued.opt->concise);
	return r;
}

/* A row of a table: samples, address, text, values. @samples: below 0: none are told. */
static void put_columns(struct varg *x, struct table *t)
{
	size_t event = analysis_event_default(x->a);

	table_column(t, false, event < x->a->nr_events ? x->a->events[event].name : "samples");
	table_column(t, true, "address");
	table_column(t, true, "instruction");
	valued_columns(t);
}

static int put_row(struct varg *x, const struct insn *insn, double samples, struct table *t,
		   struct json_object *rows)
{
	uint32_t machine = image_machine(x->img);
	struct hotlist_spot spot = { 0 };
	struct insn_line text;
	struct valued_insn bytes;
	uint8_t code[16];
	struct json_object *o;
	int r = spot_at(x, &x->seen, insn->vaddr, &spot);

	bytes = (struct valued_insn){ insn->vaddr, code,
				      image_bytes(x->img, insn->vaddr, code, insn->len) };
	insn_disasm_one(x->disasm, code, bytes.len, insn->vaddr, &text);
	if (r >= 0 && t) {
		if (samples > 0)
			table_cell(t, "%.0f", samples);
		else
			table_cell(t, "%s", "");
		table_cell(t, "0x%" PRIx64, insn->vaddr);
		table_cell(t, "%s", text.text);
		valued_cells(&x->valued, machine, &bytes, &spot, t);
	} else if (r >= 0) {
		o = json_object_new_object();
		json_object_object_add(o, "address", report_json_hex(insn->vaddr));
		json_object_object_add(o, "instruction", report_json_text(text.text));
		json_object_object_add(o, "samples", report_json_number(samples));
		json_object_object_add(o, "values",
				       valued_json(&x->valued, machine, &bytes, &spot));
		json_object_array_add(rows, o);
	}
	hotlist_spot_release(&spot);
	return r;
}

/* Print it with its heads, and release it. 0 or -ENOMEM. */
static int print_table(struct table *t)
{
	int r = table_print(t, true, stdout);

	table_release(t);
	return r;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static const char *register_name(const struct varg *x, uint32_t i, char name[VTRACE_REGISTER_NAME])
{
	enum vtrace_arch arch;

	valued_arch(image_machine(x->img), &arch);
	return vtrace_register_name(arch, x->machine->dwarf[i], 8, name);
}

/* False: it is none. */
static bool operands_of(const struct varg *x, const struct insn *insn, struct vtrace_operands *o)
{
	enum vtrace_arch arch;
	uint8_t code[16];
	size_t len = image_bytes(x->img, insn->vaddr, code, insn->len);

	return valued_arch(image_machine(x->img), &arch) &&
	       vtrace_insn_operands(arch, code, len, o) >= 0 && o->len;
}

/* Does the instruction put the argument register somewhere, as it is? */
static bool saves(const struct varg *x, const struct insn *insn, uint32_t i)
{
	struct vtrace_operands o;

	if (!(insn->reads.gpr >> x->machine->machine[i] & 1) || !operands_of(x, insn, &o))
		return false;
	return (o.class == VTRACE_CLASS_MOVE || o.class == VTRACE_CLASS_STORE ||
		o.class == VTRACE_CLASS_PUSH) &&
	       o.a == x->machine->dwarf[i];
}

static int was_seen(const struct varg *x, uint64_t vaddr)
{
	struct hotlist_spot s = { 0 };
	int r = spot_at(x, &x->seen, vaddr, &s);

	r = r < 0 ? r : s.vtot != 0;
	hotlist_spot_release(&s);
	return r;
}

/* From the start on as far as it is one line, and the registers are the callers'. */
static int saving_rows(struct varg *x, const struct varg_procedure *p, struct table *t,
		       struct json_object *rows)
{
	uint64_t at = p->of->symbol->vaddr, written = 0;
	const struct insn *insn;
	int r = 0, nr = 0;

	while (r >= 0 && (insn = flow_insn_at(p->flow, at)) && insn->vaddr == at) {
		for (uint32_t i = 0; i < x->machine->nr; i++) {
			if (written >> x->machine->machine[i] & 1 || !saves(x, insn, i))
				continue;
			r = was_seen(x, insn->vaddr);
			if (r > 0)
				r = put_row(x, insn, 0, t, rows), nr++;
		}
		written |= insn->writes.gpr;
		if (insn->flow != INSN_PLAIN && insn->flow != INSN_BRANCH)
			break;
		at += insn->len;
	}
	return r < 0 ? r : nr;
}

static void put_argument(struct varg *x, uint32_t i, bool maybe, const struct hotlist_spot *s,
			 struct table *t, struct json_object *list)
{
	char name[VTRACE_REGISTER_NAME];
	struct json_object *o;

	register_name(x, i, name);
	if (t) {
		table_cell(t, "%u%s", i + 1, maybe ? "?" : "");
		valued_cells_as(&x->valued, name, s, t);
		return;
	}
	o = valued_json_as(&x->valued, name, s);
	json_object_object_add(o, "argument", json_object_new_uint64(i + 1));
	json_object_object_add(o, "passed_on", json_object_new_boolean(maybe));
	json_object_array_add(list, o);
}

static void print_argument(struct varg *x, uint32_t i, const struct hotlist_spot *s, bool first)
{
	char name[VTRACE_REGISTER_NAME];

	printf("%s%s", first ? "(" : ", ", register_name(x, i, name));
	if (s->nv && !valued_is_given(s, 0))
		fputs(" .", stdout);
	else if (s->nv)
		printf(" %.1f%% %s", 100 * hotlist_share(s, 0),
		       valued_text(&x->valued, s->v[0].value));
	else
		fputs(" ?", stdout);
}

/* A line's beginning of what is told tersely. */
static void print_share(const struct varg *x, const struct varg_procedure *p)
{
	size_t event = analysis_event_default(x->a);
	uint64_t total = event < x->a->nr_events ? x->ai->count[event] : 0;

	printf("%5.2f%%  ", total ? 100.0 * (double)p->of->samples / (double)total : 0);
	report_print_name(stdout, p->of->symbol->name);
}

static size_t read_image(void *context, uint64_t vaddr, void *out, size_t len)
{
	return image_bytes(context, vaddr, out, len);
}

/*
 * Add rows for the arguments that calls were seen with. Returns their number, or a negative error.
 */
static int argument_rows(struct varg *x, const struct varg_procedure *p, bool terse,
			 struct table *t, struct json_object *list)
{
	struct flow_source source = { .context = x->img, .bytes = read_image };
	uint32_t maybe, used = varg_used(x->machine, p->flow, &source, &maybe);
	int r = 0, nr = 0;

	for (uint32_t i = 0; r >= 0 && i < x->machine->nr; i++) {
		struct hotlist_spot s = { 0 };

		if (!((used | (terse ? 0 : maybe)) >> i & 1))
			continue;
		r = spot_at(x, &x->seen_args[i], p->of->symbol->vaddr, &s);
		if (r >= 0 && s.vtot && terse && !nr)
			print_share(x, p);
		if (r >= 0 && s.vtot && terse)
			print_argument(x, i, &s, !nr);
		else if (r >= 0 && s.vtot)
			put_argument(x, i, maybe >> i & 1, &s, t, list);
		nr += s.vtot != 0;
		hotlist_spot_release(&s);
	}
	if (terse && nr)
		puts(")");
	return r < 0 ? r : nr;
}

static int print_arguments(struct varg *x, const struct varg_procedure *p)
{
	struct table t = { 0 };
	int r;

	table_column(&t, true, "argument");
	valued_columns(&t);
	r = argument_rows(x, p, false, &t, NULL);
	if (r > 0)
		return print_table(&t) < 0 ? -ENOMEM : r;
	table_release(&t);
	if (r < 0)
		return r;
	put_columns(x, &t);
	r = saving_rows(x, p, &t, NULL);
	if (r > 0)
		return print_table(&t) < 0 ? -ENOMEM : r;
	table_release(&t);
	return r;
}

static int tell_arguments(struct varg *x, const struct varg_procedure *p, bool full,
			  struct json_object *o)
{
	struct json_object *list, *rows;
	int r, saved;

	if (!o)
		return full ? print_arguments(x, p) : argument_rows(x, p, true, NULL, NULL);
	list = json_object_new_array();
	rows = json_object_new_array();
	json_object_object_add(o, "arguments", list);
	json_object_object_add(o, "saved", rows);
	r = argument_rows(x, p, false, NULL, list);
	saved = r < 0 ? r : saving_rows(x, p, NULL, rows);
	return saved < 0 ? saved : r + saved;
}

/* ---- callers --------------------------------------------------------------------------------- */

enum { TERSE_CALLERS = 3 };

/* A place that was returned to. */
struct caller {
	const struct analysis_image *ai; /* NULL: it is not known where */
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

		for (size_t k = place_at(p, entry); r >= 0 && k < p->nr && p->v[k].vaddr == entry;
		     k++) {
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
	int r = x->edge_counts.v ? 0 : edges_find(x, &x->edge_counts);
	uint64_t from;

	for (size_t i = r < 0 ? 0 : place_at(&x->edge_counts, entry);
	     r >= 0 && i < x->edge_counts.nr && x->edge_counts.v[i].vaddr == entry; i++) {
		const struct profdb_edge *m =
			profdb_profile_edge(x->ai->profile, x->edge_counts.v[i].at);
		uint64_t nr = m->count[0] + m->count[1];

		/* A trace that begins here has no caller that it saw. */
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
	return print_table(&t);
}

static int print_terse(const struct varg *x, const struct varg_procedure *p,
		       const struct callers *all)
{
	size_t nr = all->nr < TERSE_CALLERS ? all->nr : TERSE_CALLERS;

	print_share(x, p);
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

static int tell_callers(struct varg *x, const struct varg_procedure *p, bool full,
			struct json_object *o)
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

static int tell_saves(struct varg *x, const struct varg_procedure *p, struct json_object *o)
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
		put_columns(x, &t);
	if (insn)
		r = put_row(x, insn, 0, o ? NULL : &t, rows);
	if (insn && !o)
		r = print_table(&t) < 0 ? -ENOMEM : r;
	if (r >= 0)
		r = tell_callers(x, p, true, o);
	return r < 0 ? r : 1;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* As often a result must be the same, and as often it must have been seen for that to mean much. */
static const double SAME = 0.99;
enum { SEEN = 20 };

/* 1: always the same, 0: not, or not known; -ENOMEM. */
static int is_same(const struct varg *x, const struct insn *insn)
{
	struct hotlist_spot s = { 0 };
	int r = spot_at(x, &x->seen, insn->vaddr, &s);

	if (r >= 0)
		r = s.vtot >= SEEN && s.nv && hotlist_share(&s, 0) >= SAME;
	hotlist_spot_release(&s);
	return r;
}

/* Is it so of all that have results, and of one at least whose result its code does not tell? */
static int is_invariant(const struct varg *x, const struct flow *f, const struct flow_block *b)
{
	enum vtrace_arch arch;
	bool any = false;
	int r = valued_arch(image_machine(x->img), &arch);

	for (uint32_t i = b->insn; r > 0 && i < b->insn + b->nr_insns; i++) {
		const struct insn *insn = &f->insns[i];
		char name[VTRACE_REGISTER_NAME];
		struct vtrace_operands o;

		if (!operands_of(x, insn, &o))
			return 0;
		if (!valued_of(arch, &o, name))
			continue;
		any |= o.form & VTRACE_FORM_READS || insn->reads.gpr & ~INSN_FLAGS;
		r = is_same(x, insn);
	}
	return r > 0 ? any : r;
}

static int block_rows(struct varg *x, const struct flow *f, const struct flow_block *b,
		      struct json_object *list)
{
	struct json_object *o = list ? json_object_new_object() : NULL, *rows = NULL;
	struct table t = { 0 };
	int r = 0;

	if (o) {
		rows = json_object_new_array();
		json_object_object_add(o, "start", report_json_hex(b->vaddr));
		json_object_object_add(o, "end", report_json_hex(b->end));
		json_object_object_add(o, "instructions", rows);
		json_object_array_add(list, o);
	} else {
		put_columns(x, &t);
	}
	for (uint32_t i = b->insn; r >= 0 && i < b->insn + b->nr_insns; i++)
		r = put_row(x, &f->insns[i], 0, o ? NULL : &t, rows);
	return o || r < 0 ? r : print_table(&t);
}

static int tell_blocks(struct varg *x, const struct varg_procedure *p, struct json_object *o)
{
	struct json_object *list = o ? json_object_new_array() : NULL;
	int r = 0, nr = 0;

	if (o)
		json_object_object_add(o, "blocks", list);
	for (uint32_t i = 0; r >= 0 && i < p->flow->nr_blocks; i++) {
		r = is_invariant(x, p->flow, &p->flow->blocks[i]);
		if (r <= 0)
			continue;
		if (nr++ && !o)
			putchar('\n');
		r = block_rows(x, p->flow, &p->flow->blocks[i], list);
	}
	return r < 0 ? r : nr;
}

/* ---- loads ----------------------------------------------------------------------------------- */

struct load {
	struct insn insn;
	double samples;
};

struct loads {
	struct load *v;
	size_t nr, cap;
};

static bool reads(const struct insn *insn, const struct insn *load)
{
	return insn->reads.gpr & load->writes.gpr & ~INSN_FLAGS ||
	       insn->reads.vector & load->writes.vector;
}

/*
 * The load that an interrupt at instruction @i waited for: the last one in the block before it
 * whose result it needs, or the one before it does, which was reported one instruction late.
 */
static const struct insn *waited_for(const struct flow *f, const struct flow_block *b, uint32_t i)
{
	for (uint32_t k = i; k-- > b->insn;) {
		const struct insn *load = &f->insns[k];

		if (!(load->kinds & INSN_LOAD))
			continue;
		if (k + 1 == i || reads(&f->insns[i], load) || reads(&f->insns[i - 1], load))
			return load;
	}
	return NULL;
}

static int add_load(struct loads *l, const struct insn *insn, double samples)
{
	int r;

	for (size_t i = 0; i < l->nr; i++) {
		if (l->v[i].insn.vaddr == insn->vaddr) {
			l->v[i].samples += samples;
			return 0;
		}
	}
	r = base_grow(&l->v, &l->cap, l->nr + 1, sizeof(*l->v));
	if (r >= 0)
		l->v[l->nr++] = (struct load){ *insn, samples };
	return r;
}

/* @by_insn: samples. */
static int add_waits(const struct flow *f, const double *by_insn, struct loads *l)
{
	int r = 0;

	for (uint32_t i = 0; i < f->nr_blocks; i++) {
		const struct flow_block *b = &f->blocks[i];

		for (uint32_t k = b->insn + 1; r >= 0 && k < b->insn + b->nr_insns; k++) {
			const struct insn *load = by_insn[k] > 0 ? waited_for(f, b, k) : NULL;

			r = load ? add_load(l, load, by_insn[k]) : 0;
		}
	}
	return r;
}

static int add_procedure(struct varg *x, const struct hotlists_procedure *p,
			 const struct estimate_samples *samples, struct loads *l)
{
	struct flow *f = NULL;
	double *by_insn;
	int r = p->samples ? flow_build(x->img, p->symbol, &f, NULL) : 0;

	if (r < 0 || !f)
		return r == -DCPI_EUNSUPPORTED ? 0 : r;
	by_insn = calloc(f->nr_insns + 1, sizeof(*by_insn));
	r = by_insn ? 0 : -ENOMEM;
	if (by_insn) {
		estimate_samples_place(samples, f, by_insn);
		r = add_waits(f, by_insn, l);
	}
	free(by_insn);
	flow_free(f);
	return r;
}

static int by_samples(const void *pa, const void *pb)
{
	const struct load *a = pa, *b = pb;

	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	return (a->insn.vaddr > b->insn.vaddr) - (a->insn.vaddr < b->insn.vaddr);
}

static int load_rows(struct varg *x, const struct loads *l, size_t max, struct json_object *rows)
{
	struct table t = { 0 };
	int r = 0;

	if (!rows)
		put_columns(x, &t);
	for (size_t i = 0; r >= 0 && i < l->nr && i < max; i++)
		r = put_row(x, &l->v[i].insn, l->v[i].samples, rows ? NULL : &t, rows);
	return rows || r < 0 ? r : print_table(&t);
}

int varg_loads(struct varg *x, const struct hotlists_procedure *v, size_t nr, size_t max,
	       struct json_object *list)
{
	struct estimate_samples samples = { 0 };
	struct loads l = { 0 };
	int r = estimate_samples_gather(&samples, x->a, x->ai, x->img,
					analysis_event_default(x->a));

	for (size_t i = 0; r >= 0 && i < nr; i++)
		r = add_procedure(x, &v[i], &samples, &l);
	if (l.nr)
		qsort(l.v, l.nr, sizeof(*l.v), by_samples);
	if (r >= 0 && !list)
		printf("loads of %s, by samples that waited for them\n", x->ai->name);
	if (r >= 0)
		r = load_rows(x, &l, max, list);
	estimate_samples_release(&samples);
	free(l.v);
	return r < 0 ? r : (int)l.nr;
}

/* ---- an image, and what is told of its procedures -------------------------------------------- */

int varg_image_open(struct varg *x, struct analysis_image *ai)
{
	uint32_t machine;
	int r;

	x->ai = ai;
	if (analysis_image_open(x->a, ai, &x->img, NULL) < 0)
		return 0;
	machine = image_machine(x->img);
	x->machine = varg_machine_of(machine);
	if (!x->machine || insn_decoder_open(machine, &x->decoder, NULL) < 0 ||
	    insn_disasm_open(machine, &x->disasm, NULL) < 0)
		return 0;
	r = places_find(x, &x->valued.lists, &x->seen);
	for (unsigned int i = 0; r >= 0 && i < VARG_REGISTERS; i++)
		r = places_find(x, &x->args[i], &x->seen_args[i]);
	return r < 0 ? r : 1;
}

void varg_image_close(struct varg *x)
{
	places_release(&x->seen);
	places_release(&x->edge_counts);
	for (unsigned int i = 0; i < VARG_REGISTERS; i++)
		places_release(&x->seen_args[i]);
	insn_decoder_close(x->decoder);
	insn_disasm_close(x->disasm);
	image_close(x->img);
	x->decoder = NULL;
	x->disasm = NULL;
	x->img = NULL;
}

int varg_tell(struct varg *x, enum varg_part part, bool full, const struct varg_procedure *p,
	      struct json_object *o)
{
	switch (part) {
	case VARG_ARGUMENTS:
		return tell_arguments(x, p, full, o);
	case VARG_CALLERS:
		return tell_callers(x, p, full, o);
	case VARG_SAVES:
		return tell_saves(x, p, o);
	case VARG_BLOCKS:
		return tell_blocks(x, p, o);
	}
	return 0;
}
