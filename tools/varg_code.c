/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks whose results do not change, and loads that were waited for. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "estimate.h"
#include "procedures.h"
#include "varg.h"

/* As often a result must be the same, and as often it must have been seen for that to mean much. */
static const double SAME = 0.99;
enum { SEEN = 20 };

/* ---- blocks ---------------------------------------------------------------------------------- */

static bool operands(const struct varg *x, const struct insn *insn, struct vtrace_operands *o)
{
	enum vtrace_arch arch;
	uint8_t code[16];
	size_t len = image_bytes(x->img, insn->vaddr, code, insn->len);

	return valued_arch(image_machine(x->img), &arch) &&
	       vtrace_insn_operands(arch, code, len, o) >= 0 && o->len;
}

/* 1: always the same, 0: not, or nobody knows; -ENOMEM. */
static int is_same(const struct varg *x, const struct insn *insn)
{
	struct hotlist_spot s = { 0 };
	int r = varg_spot(x, &x->seen, insn->vaddr, &s);

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

		if (!operands(x, insn, &o))
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
		varg_columns(x, &t);
	}
	for (uint32_t i = b->insn; r >= 0 && i < b->insn + b->nr_insns; i++)
		r = varg_row(x, &f->insns[i], 0, o ? NULL : &t, rows);
	return o || r < 0 ? r : varg_table(&t);
}

int varg_blocks(struct varg *x, const struct varg_procedure *p, struct json_object *o)
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
		varg_columns(x, &t);
	for (size_t i = 0; r >= 0 && i < l->nr && i < max; i++)
		r = varg_row(x, &l->v[i].insn, l->v[i].samples, rows ? NULL : &t, rows);
	return rows || r < 0 ? r : varg_table(&t);
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
