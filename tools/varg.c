/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments and callers. */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
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

int varg_places_find(const struct varg *x, const struct hotlists *of, struct varg_places *out)
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

int varg_edges_find(const struct varg *x, struct varg_places *out)
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

void varg_places_release(struct varg_places *p)
{
	free(p->v);
	memset(p, 0, sizeof(*p));
}

size_t varg_place_at(const struct varg_places *p, uint64_t vaddr)
{
	return BASE_LOWER_BOUND(p->v, p->nr, vaddr, vaddr);
}

int varg_spot(const struct varg *x, const struct varg_places *of, uint64_t vaddr,
	      struct hotlist_spot *out)
{
	int r = 0;

	for (size_t i = varg_place_at(of, vaddr); i < of->nr && of->v[i].vaddr == vaddr && r >= 0;
	     i++)
		r = hotlist_spot_add(out, profdb_values_at(of->values, of->v[i].at),
				     x->valued.opt->concise);
	return r;
}

void varg_columns(struct varg *x, struct table *t)
{
	size_t event = analysis_event_default(x->a);

	table_column(t, false, event < x->a->nr_events ? x->a->events[event].name : "samples");
	table_column(t, true, "address");
	table_column(t, true, "instruction");
	valued_columns(t);
}

int varg_row(struct varg *x, const struct insn *insn, double samples, struct table *t,
	     struct json_object *rows)
{
	uint32_t machine = image_machine(x->img);
	struct hotlist_spot spot = { 0 };
	struct insn_line text;
	struct valued_insn bytes;
	uint8_t code[16];
	struct json_object *o;
	int r = varg_spot(x, &x->seen, insn->vaddr, &spot);

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

int varg_table(struct table *t)
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

/* Does the instruction put the argument register somewhere, as it is? */
static bool saves(const struct varg *x, const struct insn *insn, uint32_t i)
{
	struct vtrace_operands o;
	enum vtrace_arch arch;
	uint8_t code[16];
	size_t len = image_bytes(x->img, insn->vaddr, code, insn->len);

	valued_arch(image_machine(x->img), &arch);
	if (!(insn->reads.gpr >> x->machine->machine[i] & 1) ||
	    vtrace_insn_operands(arch, code, len, &o) < 0)
		return false;
	return (o.class == VTRACE_CLASS_MOVE || o.class == VTRACE_CLASS_STORE ||
		o.class == VTRACE_CLASS_PUSH) &&
	       o.a == x->machine->dwarf[i];
}

static int was_seen(const struct varg *x, uint64_t vaddr)
{
	struct hotlist_spot s = { 0 };
	int r = varg_spot(x, &x->seen, vaddr, &s);

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
				r = varg_row(x, insn, 0, t, rows), nr++;
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
static void print_terse(const struct varg *x, const struct varg_procedure *p)
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
		r = varg_spot(x, &x->seen_args[i], p->of->symbol->vaddr, &s);
		if (r >= 0 && s.vtot && terse && !nr)
			print_terse(x, p);
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
		return varg_table(&t) < 0 ? -ENOMEM : r;
	table_release(&t);
	if (r < 0)
		return r;
	varg_columns(x, &t);
	r = saving_rows(x, p, &t, NULL);
	if (r > 0)
		return varg_table(&t) < 0 ? -ENOMEM : r;
	table_release(&t);
	return r;
}

int varg_arguments(struct varg *x, const struct varg_procedure *p, bool full, struct json_object *o)
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
