/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds and names the procedures at the frames of call paths, one image after the other. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "callpath_internal.h"

/* ---- procedures ------------------------------------------------------------------------------ */

/* The mark that stands where a path ends. */
static void name_end(size_t end, char *text, size_t len)
{
	if (end == CALLPATH_OUTERMOST)
		snprintf(text, len, "(outermost)");
	else if (end == CALLPATH_NO_PATH)
		snprintf(text, len, "(no path kept)");
	else
		snprintf(text, len, "(%s)",
			 profdb_callpath_end_text((enum profdb_callpath_end)end));
}

static int add_procedure(struct callpath_tree *t, enum callpath_kind kind, const char *name)
{
	size_t nr_events = t->a->nr_events + 1;
	struct callpath_procedure p = { .kind = kind, .name = strdup(name) };
	int r = base_grow(&t->procedures, &t->cap_procedures, t->nr_procedures + 1,
			  sizeof(*t->procedures));

	p.flat = calloc(nr_events, sizeof(*p.flat));
	p.paths = calloc(nr_events, sizeof(*p.paths));
	if (r < 0 || !p.name || !p.flat || !p.paths || t->nr_procedures == UINT32_MAX) {
		free(p.name);
		free(p.flat);
		free(p.paths);
		return -ENOMEM;
	}
	t->procedures[t->nr_procedures++] = p;
	return 0;
}

/* The procedures that stand where paths end. */
static int add_ends(struct callpath_tree *t)
{
	char name[32];
	int r = 0;

	for (size_t i = 0; i < CALLPATH_NR_ENDS && r >= 0; i++) {
		name_end(i, name, sizeof(name));
		r = add_procedure(t, CALLPATH_END, name);
	}
	return r;
}

/* ---- groups of images ------------------------------------------------------------------------ */

static int add_group(struct callpath_tree *t, const char *facility, struct callpath_group **out)
{
	struct callpath_group *g = calloc(1, sizeof(*g));
	int r = g ? base_grow(&t->groups, &t->cap_groups, t->nr_groups + 1, sizeof(*t->groups))
		  : -ENOMEM;

	if (r < 0) {
		free(g);
		return r;
	}
	t->groups[t->nr_groups++] = *out = g;
	if (!facility)
		return 0;
	g->facility = strdup(facility);
	return g->facility ? base_map_set(&t->by_facility, facility, strlen(facility), g) : -ENOMEM;
}

/* The image was opened, or cannot be: its facility is known. */
static int procedures_group(struct callpath_tree *t, struct analysis_image *ai,
			    struct callpath_group **out)
{
	const char *facility = ai->facility;
	int r = 0;

	*out = facility ? base_map_get(&t->by_facility, facility, strlen(facility)) : NULL;
	if (!*out)
		r = add_group(t, facility, out);
	if (r >= 0)
		(*out)->nr_images++;
	return r;
}

const char *callpath_image_name(const struct callpath_procedure *p)
{
	if (!p->image || p->image->kind == PROFDB_NAMED)
		return "";
	if (p->group->facility && p->group->nr_images > 1)
		return p->group->facility;
	return p->image->name;
}

int procedures_compare(const struct callpath_tree *t, uint32_t a, uint32_t b)
{
	const struct callpath_procedure *p = &t->procedures[a], *q = &t->procedures[b];
	int r = strcmp(p->name, q->name);

	if (!r)
		r = strcmp(callpath_image_name(p), callpath_image_name(q));
	return r ? r : (p->vaddr > q->vaddr) - (p->vaddr < q->vaddr);
}

/* ---- which procedure ------------------------------------------------------------------------- */

/* An image alone has its procedures by address, a facility by name; other code has neither. */
static int make_key(struct base_buf *key, const struct analysis_image *ai, const char *facility,
		    const char *name, uint64_t vaddr)
{
	char kind = !name ? '-' : facility ? 'n' : 'a';
	int r = base_buf_append(key, &kind, 1);

	if (r >= 0 && facility)
		r = base_buf_append(key, facility, strlen(facility) + 1);
	else if (r >= 0)
		r = base_buf_append(key, &ai, sizeof(struct analysis_image *));
	if (r >= 0 && name && facility)
		r = base_buf_append(key, name, strlen(name));
	else if (r >= 0 && name)
		r = base_buf_append(key, &vaddr, sizeof(vaddr));
	return r;
}

static int find_or_add(struct callpath_tree *t, struct base_buf *key, enum callpath_kind kind,
		       const char *name, uint32_t *out)
{
	uintptr_t at = (uintptr_t)base_map_get(&t->by_key, key->data, key->len);
	int r = 0;

	if (!at) {
		r = add_procedure(t, kind, name);
		at = t->nr_procedures;
		if (r >= 0)
			r = base_map_set(&t->by_key, key->data, key->len, (void *)at);
	}
	*out = (uint32_t)(at - 1);
	return r;
}

static void describe(struct callpath_tree *t, uint32_t at, struct callpath_group *group,
		     struct analysis_image *ai, const struct image_symbol *symbol)
{
	struct callpath_procedure *p = &t->procedures[at];

	if (p->image)
		return;
	p->image = ai;
	p->group = group;
	p->vaddr = symbol ? symbol->vaddr : 0;
	p->len = symbol ? symbol->len : 0;
}

/* The procedure of @symbol (NULL: none) in @ai; or an inlined function of that name. */
static int procedures_place(struct callpath_tree *t, struct callpath_group *group,
			    struct analysis_image *ai, const struct image_symbol *symbol,
			    uint32_t *out)
{
	struct base_buf key = { 0 };
	int r = make_key(&key, ai, group->facility, symbol ? symbol->name : NULL,
			 symbol ? symbol->vaddr : 0);

	if (r >= 0)
		r = find_or_add(t, &key, symbol ? CALLPATH_PROCEDURE : CALLPATH_NO_SYMBOL,
				symbol ? symbol->name : analysis_image_label(ai), out);
	if (r >= 0)
		describe(t, *out, group, ai, symbol);
	base_buf_release(&key);
	return r;
}

/* The only procedure of that name, or NULL: static functions may share one. */
static const struct image_symbol *only_symbol(struct image *img, const char *name)
{
	size_t pos = 0;
	const struct image_symbol *s = image_symbol_find(img, name, &pos);

	return s && !image_symbol_find(img, name, &pos) ? s : NULL;
}

/* Where the function also stands alone in its image it is that procedure. */
static int procedures_inlined(struct callpath_tree *t, struct callpath_group *group,
			      struct analysis_image *ai, struct image *img, const char *name,
			      uint32_t *out)
{
	const struct image_symbol *s = only_symbol(img, name);
	struct base_buf key = { 0 };
	int r;

	if (s)
		return procedures_place(t, group, ai, s, out);
	r = make_key(&key, ai, group->facility, NULL, 0);
	if (r >= 0)
		r = base_buf_printf(&key, "i%s", name);
	if (r >= 0)
		r = find_or_add(t, &key, CALLPATH_INLINED, name, out);
	if (r >= 0)
		describe(t, *out, group, ai, NULL);
	base_buf_release(&key);
	return r;
}

int64_t callpath_procedure_find(const struct callpath_tree *t, const struct analysis_image *ai,
				const char *facility, const char *name, uint64_t vaddr)
{
	struct base_buf key = { 0 };
	int r = make_key(&key, ai, facility, name, vaddr);
	uintptr_t at = r < 0 ? 0 : (uintptr_t)base_map_get(&t->by_key, key.data, key.len);

	base_buf_release(&key);
	return at ? (int64_t)at - 1 : -ENOENT;
}

/* ---- frames ---------------------------------------------------------------------------------- */

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

bool analysis_is_sigreturn(const struct image *img, uint64_t vaddr)
{
	static const uint8_t x86[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t aarch64[] = { 0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 };
	const bool arm = image_machine(img) == EM_AARCH64;
	const size_t len = arm ? sizeof(aarch64) : sizeof(x86);
	uint8_t code[sizeof(x86)];

	return image_bytes(img, vaddr, code, len) == len &&
	       memcmp(code, arm ? aarch64 : x86, len) == 0;
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
	int r = add_ends(t);

	if (r < 0)
		return r;
	r = -ENOMEM;

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
