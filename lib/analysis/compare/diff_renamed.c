/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Procedures that have the same readable name in two builds of a program, and others for the
 * linker: a hash in Rust's names is of the compiler's version and of the program's, too.
 */
#include <errno.h>
#include <string.h>

#include "demangle.h"
#include "diff_renamed.h"

/* The image that was asked for last, of each set. */
struct opened {
	struct analysis *a;
	const struct analysis_image *of;
	struct image *image;
};

struct renaming {
	struct opened opened[2];
	struct base_map only_a; /* image and readable name: index in the rows + 1 */
};

/* NULL: nothing of it can be read. */
static struct image *image_of(struct opened *o, const struct analysis_row *row)
{
	if (!row->nr_places)
		return NULL;
	if (o->of != row->places[0].image) {
		image_close(o->image);
		o->image = NULL;
		o->of = row->places[0].image;
		analysis_image_open(o->a, row->places[0].image, &o->image, NULL);
	}
	return o->image;
}

static bool has(struct image *img, const char *name)
{
	size_t pos = 0;

	return image_symbol_find(img, name, &pos) != NULL;
}

/* They are of two builds, and neither has a procedure of the other's name. */
static bool renamed(struct renaming *x, const struct analysis_row *a, const struct analysis_row *b)
{
	struct image *in_a = image_of(&x->opened[0], a), *in_b = image_of(&x->opened[1], b);

	return in_a && in_b && !base_id_equal(image_id(in_a), image_id(in_b)) &&
	       !has(in_b, a->procedure) && !has(in_a, b->procedure);
}

/* False: it is not in one set alone, or has no readable name. */
static bool key_of(const struct analysis_diff_row *d, int set, struct base_buf *key, int *r)
{
	const struct analysis_row *row = d->row[set];
	const char *name, *image;

	if (!row || d->row[!set] || row->facility || !row->procedure)
		return false;
	name = demangle_shown(row->procedure);
	if (name == row->procedure)
		return false;
	image = analysis_diff_image(d);
	base_buf_clear(key);
	*r = base_buf_append(key, image, strlen(image) + 1);
	if (*r == 0)
		*r = base_buf_append(key, name, strlen(name));
	return *r == 0;
}

static int note_only_a(struct renaming *x, const struct analysis_diff *d, struct base_buf *key)
{
	int r = 0;

	for (size_t i = 0; i < d->nr && r == 0; i++)
		if (key_of(&d->v[i], 0, key, &r) && !base_map_get(&x->only_a, key->data, key->len))
			r = base_map_set(&x->only_a, key->data, key->len,
					 (void *)(uintptr_t)(i + 1));
	return r;
}

/* One that is joined to another has no row any more. */
static int join(struct analysis_diff_row *to, struct analysis_diff_row *from, int set)
{
	int r = 0;

	if (to->row[set])
		r = analysis_row_join_places(to->row[set], from->row[set]);
	else
		to->row[set] = from->row[set];
	to->count[set] += from->count[set];
	from->row[set] = NULL;
	return r;
}

/* Those of @set that have the name of a row of both; first of B, which makes rows of both. */
static int join_all(struct renaming *x, struct analysis_diff *d, int set, struct base_buf *key)
{
	int r = 0;

	for (size_t i = 0; i < d->nr && r == 0; i++) {
		struct analysis_diff_row *to, *from = &d->v[i];
		size_t at;

		if (!key_of(from, set, key, &r))
			continue;
		at = (size_t)(uintptr_t)base_map_get(&x->only_a, key->data, key->len);
		to = at ? &d->v[at - 1] : NULL;
		if (!to || to == from || !to->row[!set])
			continue;
		if (set ? renamed(x, to->row[0], from->row[1])
			: renamed(x, from->row[0], to->row[1]))
			r = join(to, from, set);
	}
	return r;
}

static void drop_empty(struct analysis_diff *d)
{
	size_t nr = 0;

	for (size_t i = 0; i < d->nr; i++)
		if (d->v[i].row[0] || d->v[i].row[1])
			d->v[nr++] = d->v[i];
	d->nr = nr;
}

int analysis_diff_renamed(struct analysis_diff *d, struct analysis *const a[2])
{
	struct renaming x = { .opened = { { .a = a[0] }, { .a = a[1] } } };
	struct base_buf key = { 0 };
	int r = note_only_a(&x, d, &key);

	if (r == 0)
		r = join_all(&x, d, 1, &key);
	if (r == 0)
		r = join_all(&x, d, 0, &key);
	drop_empty(d);
	image_close(x.opened[0].image);
	image_close(x.opened[1].image);
	base_map_release(&x.only_a);
	base_buf_release(&key);
	return r;
}
