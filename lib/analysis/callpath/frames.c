/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the procedures at the frames of call paths, one image after the other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "callpath_internal.h"

/* A frame and the node of the database's tree that has it. */
struct place {
	uint32_t image, node;
	uint64_t off;
};

struct resolve {
	struct callpath_tree *t;
	struct frames *out;
	bool inlined;
	struct place *places; /* ascending by image and offset */
	size_t nr_places;
	size_t *first; /* indexed by image of the paths: its places, and where the last ones end */
	/* The image being read. */
	struct analysis_image *ai;
	struct callpath_group *group;
	struct image *img; /* NULL: it could not be opened */
};

static int compare(const void *pa, const void *pb)
{
	const struct place *a = pa, *b = pb;

	if (a->image != b->image)
		return a->image > b->image ? 1 : -1;
	if (a->off != b->off)
		return a->off > b->off ? 1 : -1;
	return (a->node > b->node) - (a->node < b->node);
}

static void list_places(struct resolve *x, const struct profdb_callpaths *paths, size_t nr_images)
{
	for (size_t i = PROFDB_NR_CALLPATH_ENDS; i < profdb_callpaths_nr_nodes(paths); i++) {
		struct profdb_callpath_node n = profdb_callpaths_node(paths, i);

		x->places[x->nr_places++] =
			(struct place){ n.frame.image, (uint32_t)i, n.frame.off };
	}
	qsort(x->places, x->nr_places, sizeof(*x->places), compare);
	for (size_t i = 0, at = 0; i <= nr_images; i++) {
		while (at < x->nr_places && x->places[at].image < i)
			at++;
		x->first[i] = at;
	}
}

/* The images of the paths, as the flat profile has them; those without samples are added. */
static int find_images(struct resolve *x, const struct profdb_callpaths *paths)
{
	int r = 0;

	for (size_t i = 0; i < profdb_callpaths_nr_images(paths) && r >= 0; i++) {
		const struct profdb_image_ref *pi = profdb_callpaths_image(paths, i);

		if (x->first[i] < x->first[i + 1])
			r = analysis_image_of(x->t->a, pi->kind, &pi->id,
					      pi->stem ? pi->stem : pi->path, &x->out->images[i]);
	}
	return r;
}

/* ---- one frame ------------------------------------------------------------------------------- */

static int push(struct frames *f, uint32_t procedure)
{
	int r = base_grow(&f->procedures, &f->cap, f->nr + 1, sizeof(*f->procedures));

	if (r < 0 || f->nr == UINT32_MAX)
		return -ENOMEM;
	f->procedures[f->nr++] = procedure;
	return 0;
}

static int push_inlined(struct resolve *x, uint64_t vaddr)
{
	struct image_frame v[IMAGE_FRAMES_MAX];
	size_t nr = image_frames_at(x->img, vaddr, v, IMAGE_FRAMES_MAX);
	uint32_t procedure;
	int r = 0;

	for (size_t i = 0; i + 1 < nr && r >= 0; i++) {
		r = procedures_inlined(x->t, x->group, x->ai, x->img,
				       v[i].linkage ? v[i].linkage : v[i].name, &procedure);
		if (r >= 0)
			r = push(x->out, procedure);
	}
	return r;
}

static const struct image_symbol *symbol_at(const struct resolve *x, uint64_t off, uint64_t *vaddr)
{
	if (!x->img || image_vaddr(x->img, off, vaddr) < 0)
		return NULL;
	return image_symbol_at(x->img, *vaddr);
}

static int resolve_frame(struct resolve *x, uint64_t off, struct frame_chain *out)
{
	uint32_t procedure;
	uint64_t vaddr;
	const struct image_symbol *s = symbol_at(x, off, &vaddr);
	int r = procedures_place(x->t, x->group, x->ai, s, &procedure);

	out->sigreturn = x->img && image_vaddr(x->img, off, &vaddr) >= 0 &&
			 analysis_is_sigreturn(x->img, vaddr + 1);
	out->first = (uint32_t)x->out->nr;
	if (r >= 0 && s && x->inlined)
		r = push_inlined(x, vaddr);
	if (r >= 0)
		r = push(x->out, procedure);
	out->nr = (uint32_t)x->out->nr - out->first;
	return r;
}

/* ---- one image ------------------------------------------------------------------------------- */

/* Frames of one offset, which are neighbours, are read once. */
static int resolve_places(struct resolve *x, size_t image)
{
	struct frame_chain chain = { 0 };
	int r = 0;

	for (size_t i = x->first[image]; i < x->first[image + 1] && r >= 0; i++) {
		if (i == x->first[image] || x->places[i].off != x->places[i - 1].off)
			r = resolve_frame(x, x->places[i].off, &chain);
		x->out->of[x->places[i].node] = chain;
	}
	return r;
}

static int sum_flat(struct resolve *x)
{
	const struct profdb_profile *p = x->ai->profile;
	uint32_t procedure;
	uint64_t vaddr;
	int r = 0;

	for (size_t i = 0; i < profdb_profile_nr_entries(p) && r >= 0; i++) {
		const struct profdb_entry *e = profdb_profile_entry(p, i);

		if (!analysis_entry_wanted(x->ai, e))
			continue;
		r = procedures_place(x->t, x->group, x->ai, symbol_at(x, e->off, &vaddr),
				     &procedure);
		if (r >= 0)
			analysis_entry_add(x->ai, e, x->t->procedures[procedure].flat, NULL);
	}
	return r;
}

static bool has_samples(const struct resolve *x)
{
	for (size_t e = 0; e < x->t->a->nr_events; e++)
		if (x->ai->count[e])
			return true;
	return false;
}

static bool has_places(const struct resolve *x, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (x->out->images[i] == x->ai)
			return true;
	return false;
}

static int resolve_image(struct resolve *x, size_t nr)
{
	int r;

	if (!has_samples(x) && !has_places(x, nr))
		return 0;
	x->img = NULL;
	analysis_image_open(x->t->a, x->ai, &x->img, NULL);
	r = procedures_group(x->t, x->ai, &x->group);
	for (size_t i = 0; i < nr && r >= 0; i++)
		if (x->out->images[i] == x->ai)
			r = resolve_places(x, i);
	if (r >= 0)
		r = sum_flat(x);
	image_close(x->img);
	return r;
}

int frames_resolve(struct callpath_tree *t, const struct profdb_callpaths *paths, bool inlined,
		   struct frames *out)
{
	size_t nodes = profdb_callpaths_nr_nodes(paths), nr = profdb_callpaths_nr_images(paths);
	struct resolve x = { .t = t, .out = out, .inlined = inlined };
	int r = -ENOMEM;

	out->of = calloc(nodes + 1, sizeof(*out->of));
	x.places = calloc(nodes + 1, sizeof(*x.places));
	out->images = calloc(nr + 1, sizeof(*out->images));
	x.first = calloc(nr + 2, sizeof(*x.first));
	if (out->of && x.places && out->images && x.first) {
		list_places(&x, paths, nr);
		r = find_images(&x, paths);
	}
	for (size_t i = 0; r >= 0 && i < t->a->nr_images; i++) {
		x.ai = t->a->images[i];
		r = resolve_image(&x, nr);
	}
	free(x.places);
	free(x.first);
	return r;
}

void frames_release(struct frames *f)
{
	free(f->of);
	free(f->images);
	free(f->procedures);
}
