/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the replicates that a store has divided the samples among: they come as workloads. */
#include <errno.h>
#include <stdio.h>

#include "regress_sets.h"
#include "report.h"

/* Numbers that a store may give (STORE_REPLICATES of lib/store/store.h). */
enum { REPLICATES_MAX = 64 };

/* "replicate N" is number N. */
static int number_of(const struct profdb_workload *k, size_t *out)
{
	unsigned int number;

	if (sscanf(k->comm, "replicate %u", &number) != 1 || number >= REPLICATES_MAX)
		return -EINVAL;
	*out = number;
	return 0;
}

int regress_replicates_load(const struct set *s, struct profdb_workloads **out, size_t *nr,
			    struct base_err *err)
{
	const struct analysis *a = s->a;
	int r = profdb_workloads_load_counts(a->db, a->epochs[0].name, a->platforms[0], out, err);
	size_t number;

	*nr = 0;
	if (r < 0)
		return base_fail_errno(err, r, "cannot read the replicates");
	for (size_t i = 0; i < profdb_workloads_nr(*out) && r >= 0; i++) {
		r = number_of(profdb_workloads_workload(*out, i), &number);
		if (r >= 0 && number >= *nr)
			*nr = number + 1;
	}
	return r < 0 ? base_fail(err, r, "the store's answer has no replicates") : 0;
}

/* The image whose counts are read. */
struct place {
	struct regress_reader d;
	struct analysis_image *ai;
	struct image *img; /* NULL: its routines are not known */
	size_t first;
};

static int begin_image(struct place *p, struct analysis *a, const struct profdb_image_ref *ref)
{
	int r = analysis_image_of(a, ref->kind, &ref->id, ref->stem ? ref->stem : ref->path,
				  &p->ai);

	image_close(p->img);
	p->img = NULL;
	if (r < 0)
		return r;
	if (ref->kind != PROFDB_NAMED)
		analysis_image_open(a, p->ai, &p->img, NULL);
	p->d.image_name = p->ai->facility ? p->ai->facility : p->ai->name;
	p->d.last = NULL;
	return 0;
}

static int add_count(struct place *p, const struct profdb_workload *k, uint64_t off, uint64_t n)
{
	const struct image_symbol *symbol = NULL;
	struct regress_routines *x = p->d.x;
	size_t number, at;
	uint64_t vaddr;
	int r;

	if (number_of(k, &number) < 0)
		return 0;
	if (p->img && image_vaddr(p->img, off, &vaddr) >= 0)
		symbol = image_symbol_at(p->img, vaddr);
	r = regress_find(p->d.names, p->d.image_name,
			 symbol ? symbol->name : analysis_image_label(p->ai), &p->d.key, &at);
	if (at)
		x->counts[(at - 1) * p->d.width + p->first + number] += n;
	return r < 0 || !x->with_insns || !p->img
		       ? r
		       : regress_insns_count(&p->d, p->img, off, p->first + number, n);
}

static int find_event(const struct profdb_workloads *w, const char *name)
{
	return profdb_profile_event_find(profdb_workloads_header(w), name);
}

int regress_replicates_take(struct regress_routines *x, const struct base_map *names,
			    struct analysis *a, const char *event, const struct profdb_workloads *w,
			    size_t first, size_t width)
{
	struct place p = { .d = { .x = x, .names = names, .width = width }, .first = first };
	int e = find_event(w, event), r = 0;
	uint32_t last = UINT32_MAX;

	for (size_t i = 0; i < profdb_workloads_nr_counts(w) && e >= 0 && r >= 0; i++) {
		struct profdb_workload_count c = profdb_workloads_count(w, i);

		if (c.image != last)
			r = begin_image(&p, a, profdb_workloads_image(w, c.image));
		last = c.image;
		if (r >= 0 && c.count[e])
			r = add_count(&p, profdb_workloads_workload(w, c.workload), c.off,
				      c.count[e]);
	}
	image_close(p.img);
	base_buf_release(&p.d.key);
	return r;
}
