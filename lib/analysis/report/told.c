/* SPDX-License-Identifier: BSD-2-Clause */
/* Instruction samples are added up as the values of columns. */
#include "listing.h"
#include "told.h"

double told_value(const struct isample_columns *c, const struct told_values *v, size_t column)
{
	return isample_column_value(&c->v[column], &v->of[column], &v->by[column]);
}

static void add_insn(const struct isample_columns *c, const struct profdb_insn *m,
		     struct told_values *v)
{
	v->count += m->count;
	for (size_t i = 0; i < c->nr; i++) {
		isample_value_add(&v->of[i], &c->v[i].of, m->known, m->bits, m->count, m->sum);
		if (c->v[i].ratio)
			isample_value_add(&v->by[i], &c->v[i].by, m->known, m->bits, m->count,
					  m->sum);
	}
}

static void add_value(struct isample_value *to, const struct isample_value *v)
{
	if (base_add_overflow(to->value, v->value, &to->value))
		to->value = UINT64_MAX;
	to->told += v->told;
}

void told_join(const struct isample_columns *c, const struct told_values *v, struct told_values *to)
{
	to->count += v->count;
	for (size_t i = 0; i < c->nr; i++) {
		add_value(&to->of[i], &v->of[i]);
		add_value(&to->by[i], &v->by[i]);
	}
}

/* Its event was chosen. */
static bool is_wanted(const struct analysis_image *ai, const struct profdb_insn *m)
{
	return ai->event_of[m->event] != SIZE_MAX;
}

void told_add_entry(const struct isample_columns *c, const struct analysis_image *ai,
		    const struct profdb_insn *m, struct told_values *v)
{
	if (m->off != PROFDB_OUTSIDE && is_wanted(ai, m))
		add_insn(c, m, v);
}

void told_add_unit(const struct isample_columns *c, const struct analysis_listing *l,
		   const struct analysis_unit *u, struct told_values *v)
{
	for (size_t i = u ? analysis_told_at(l, u->vaddr) : 0; i < l->nr_told; i++) {
		if (u && l->told[i].vaddr != u->vaddr)
			break;
		add_insn(c, l->told[i].insn, v);
	}
}
