/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads from each image the functions and source lines at the places that stacks have. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "export_internal.h"

/* Until its image is read, a place has its offset in vaddr. */
static int add_place(struct export *x, uint32_t image, uint64_t off, uint32_t *out)
{
	int r = base_grow(&x->places, &x->cap_places, x->nr_places + 1, sizeof(*x->places));

	if (r < 0 || x->nr_places >= EXPORT_NONE)
		return -ENOMEM;
	*out = (uint32_t)x->nr_places;
	x->places[x->nr_places++] = (struct export_place){ .image = image, .vaddr = off };
	return 0;
}

int places_find(struct export *x, uint32_t image, uint64_t off, uint32_t *out)
{
	const uint64_t key[] = { image, off };
	uintptr_t at = (uintptr_t)base_map_get(&x->by_place, key, sizeof(key));
	int r = 0;

	*out = (uint32_t)(at - 1);
	if (at)
		return 0;
	r = add_place(x, image, off, out);
	return r < 0 ? r
		     : base_map_set(&x->by_place, key, sizeof(key), (void *)((uintptr_t)*out + 1));
}

static int add_frame(struct export *x, const struct export_frame *f)
{
	int r = base_grow(&x->frames, &x->cap_frames, x->nr_frames + 1, sizeof(*x->frames));

	if (r < 0 || x->nr_frames >= EXPORT_NONE)
		return -ENOMEM;
	x->frames[x->nr_frames++] = *f;
	return 0;
}

/* Two functions of one image differ in their names, or in where they begin. */
static int add_function(struct export *x, const struct export_function *f, uint32_t *out)
{
	const uint64_t key[] = { f->image, f->linkage, f->begin };
	uintptr_t at = (uintptr_t)base_map_get(&x->by_function, key, sizeof(key));
	int r = 0;

	if (!at) {
		r = base_grow(&x->functions, &x->cap_functions, x->nr_functions + 1,
			      sizeof(*x->functions));
		if (r < 0 || x->nr_functions >= EXPORT_NONE)
			return -ENOMEM;
		x->functions[x->nr_functions++] = *f;
		at = x->nr_functions;
		r = base_map_set(&x->by_function, key, sizeof(key), (void *)at);
	}
	*out = (uint32_t)(at - 1);
	return r;
}

int places_mark(struct export *x, const char *name, uint32_t *out)
{
	struct export_function f = { .image = EXPORT_NONE };
	struct export_frame frame = { 0 };
	int r = add_place(x, EXPORT_NONE, 0, out);

	if (r >= 0)
		r = export_text(x, name, &f.name);
	f.linkage = f.name;
	if (r >= 0)
		r = add_function(x, &f, &frame.function);
	if (r < 0)
		return r;
	x->places[*out].first = (uint32_t)x->nr_frames;
	x->places[*out].nr = 1;
	return add_frame(x, &frame);
}

/* ---- one place ------------------------------------------------------------------------------- */

struct reading {
	struct export *x;
	struct analysis_image *ai;
	uint32_t image;
	struct image *img; /* NULL: it could not be opened */
	/* The procedure of the place before, and its function: places ascend. */
	const struct image_symbol *symbol;
	uint32_t function;
};

/* Where there is no procedure: "libx.so (no symbol)", or a bucket's name. */
static int nameless(const struct reading *d, struct export_function *f)
{
	const char *label = analysis_image_label(d->ai);
	struct base_buf name = { 0 };
	int r;

	if (d->ai->kind == PROFDB_NAMED) {
		f->image = EXPORT_NONE;
		r = base_buf_printf(&name, "%s", label);
	} else {
		r = base_buf_printf(&name, "%s %s", base_path_name(d->ai->name), label);
	}
	if (r >= 0)
		r = export_text(d->x, (const char *)name.data, &f->name);
	f->linkage = f->name;
	base_buf_release(&name);
	return r;
}

static int named(const struct reading *d, const char *linkage, struct export_function *f)
{
	int r = export_text(d->x, linkage, &f->linkage);

	return r < 0 ? r : export_text(d->x, demangle_shown(linkage), &f->name);
}

/* A frame of a function that was inlined, or with @s the procedure itself. */
static int read_frame(struct reading *d, const struct image_frame *from,
		      const struct image_symbol *s)
{
	struct export_function f = { .image = d->image, .begin = s ? s->vaddr : 0 };
	struct export_frame frame = { .line = from->at.line, .function = d->function };
	const char *name = s ? s->name : from->linkage ? from->linkage : from->name;
	bool known = s && s == d->symbol && d->x->functions[d->function].begin == s->vaddr;
	int r = known ? 0 : name ? named(d, name, &f) : nameless(d, &f);

	if (r >= 0 && from->at.file)
		r = export_text(d->x, from->at.file, &frame.file);
	f.file = frame.file;
	f.line = from->begins;
	d->x->images[d->image].lines |= frame.line;
	if (r >= 0 && !known)
		r = add_function(d->x, &f, &frame.function);
	if (s) {
		d->symbol = s;
		d->function = frame.function;
	}
	return r < 0 ? r : add_frame(d->x, &frame);
}

static int read_frames(struct reading *d, uint64_t vaddr, const struct image_symbol *s)
{
	struct image_frame v[IMAGE_FRAMES_MAX] = { 0 };
	size_t nr = d->img && s ? image_frames_at(d->img, vaddr, v, IMAGE_FRAMES_MAX) : 0;
	int r = 0;

	d->x->images[d->image].inlined |= nr > 1;
	for (size_t i = 0; i + 1 < nr && r >= 0; i++)
		r = read_frame(d, &v[i], NULL);
	return r < 0 ? r : read_frame(d, &v[nr ? nr - 1 : 0], s);
}

static void widen(struct export_image *image, uint64_t begin, uint64_t end)
{
	image->begin = begin < image->begin ? begin : image->begin;
	image->end = end > image->end ? end : image->end;
}

static int read_place(struct reading *d, const struct callpath_tree *t, uint32_t at,
		      uint32_t *procedures)
{
	const struct image_symbol *s = NULL;
	uint64_t vaddr, off = d->x->places[at].vaddr;
	int r;

	if (d->img && image_vaddr(d->img, off, &vaddr) >= 0)
		s = image_symbol_at(d->img, vaddr);
	else
		vaddr = off;
	if (d->ai->kind == PROFDB_NAMED)
		d->x->places[at].image = EXPORT_NONE;
	d->x->places[at].vaddr = vaddr;
	d->x->places[at].first = (uint32_t)d->x->nr_frames;
	widen(&d->x->images[d->image], vaddr, vaddr == UINT64_MAX ? vaddr : vaddr + 1);
	r = read_frames(d, vaddr, s);
	d->x->places[at].nr = (uint32_t)d->x->nr_frames - d->x->places[at].first;
	if (t && r >= 0)
		procedures[at] = (uint32_t)callpath_procedure_find(
			t, d->ai, d->ai->facility, s ? s->name : NULL, s ? s->vaddr : 0);
	return r;
}

/* ---- one image ------------------------------------------------------------------------------- */

static int describe(const struct reading *d)
{
	struct export_image *image = &d->x->images[d->image];
	const struct base_id *id = profdb_profile_image(d->ai->profile);
	struct image_code code;
	int r = export_text(d->x, d->ai->name, &image->name);

	image->kind = d->ai->kind;
	image->open = d->img;
	image->begin = UINT64_MAX;
	if (id->len && d->ai->kind != PROFDB_NAMED &&
	    image_known_by(profdb_profile_word(d->ai->profile, "identity")) == IMAGE_BY_ID)
		base_id_text(id, image->id);
	for (size_t i = 0; d->img && image_code_at(d->img, i, &code); i++)
		if (code.len && code.len < UINT64_MAX - code.vaddr)
			widen(image, code.vaddr, code.vaddr + code.len);
	return r;
}

static int read_image(struct reading *d, struct analysis *a, const struct callpath_tree *t,
		      const uint32_t *places, size_t nr, uint32_t *procedures)
{
	struct export_image *image = &d->x->images[d->image];
	int r;

	d->img = NULL;
	d->symbol = NULL;
	if (d->ai->kind != PROFDB_NAMED)
		analysis_image_open(a, d->ai, &d->img, NULL);
	r = describe(d);
	for (size_t i = 0; i < nr && r >= 0; i++)
		r = read_place(d, t, places[i], procedures);
	if (!image->open)
		image->off = image->begin;
	else if (image_off(d->img, image->begin, &image->off) < 0)
		image->off = 0;
	image_close(d->img);
	return r;
}

static int by_image(const void *pa, const void *pb, void *ctx)
{
	const struct export *x = ctx;
	const struct export_place *a = &x->places[*(const uint32_t *)pa];
	const struct export_place *b = &x->places[*(const uint32_t *)pb];

	if (a->image != b->image)
		return a->image > b->image ? 1 : -1;
	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

int places_read(struct export *x, struct analysis *a, const struct callpath_tree *t,
		uint32_t *procedures)
{
	struct reading d = { .x = x };
	size_t nr = 0, end;
	uint32_t *v = calloc(x->nr_places + 1, sizeof(*v));
	int r = 0;

	x->images = calloc(a->nr_images + 1, sizeof(*x->images));
	x->nr_images = a->nr_images;
	if (!v || !x->images)
		r = -ENOMEM;
	for (uint32_t i = 0; i < x->nr_places && r >= 0; i++)
		if (x->places[i].image != EXPORT_NONE)
			v[nr++] = i;
	if (nr && r >= 0)
		qsort_r(v, nr, sizeof(*v), by_image, x);
	for (size_t i = 0; i < nr && r >= 0; i = end) {
		d.image = x->places[v[i]].image;
		d.ai = a->images[d.image];
		for (end = i; end < nr && x->places[v[end]].image == d.image;)
			end++;
		r = read_image(&d, a, t, v + i, end - i, procedures);
	}
	free(v);
	return r;
}
