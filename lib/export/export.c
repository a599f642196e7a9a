/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes stacks of the samples of a database: of its call paths, among which samples are divided, or
 * of single instructions; and reads the functions and source lines of their places from images.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "demangle.h"
#include "estimate.h"
#include "export_internal.h"

/* ---- places: functions and source lines, from images ----------------------------------------- */

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

/* The number of the place at an offset of image @image. 0 or negative. */
static int find_place(struct export *x, uint32_t image, uint64_t off, uint32_t *out)
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

/* The mark of an end is a place too. 0 or negative. */
static int mark_place(struct export *x, const char *name, uint32_t *out)
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

/* Reads all places from their images; @procedures (by place, of @t; may be NULL) gets their
 * procedures. 0 or negative. */
static int read_places(struct export *x, struct analysis *a, const struct callpath_tree *t,
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

/* ---- samples divided among paths ------------------------------------------------------------- */

/* The sampled instructions with their callers. */
struct divide {
	struct export *x;
	const struct callpath_tree *t;
	const struct profdb_callpaths *paths;
	const uint32_t *place;	   /* indexed by node of the paths */
	const uint32_t *procedure; /* indexed by place */
	uint64_t *due;		   /* [node * nr_events + event]: samples on its path */
	uint64_t *left;		   /* [place * nr_events + event]: samples without a path so far */
};

/*
 * Divides the samples of instructions among call paths. The tree of paths says how many samples of
 * a procedure each of its paths has (as dcpicalltree shows it), the flat profile how many each of
 * its instructions has; both sums are kept exactly. A path first takes samples of the very
 * instruction at which it was recorded. What is left, since few samples have a path, is paired in
 * the order of the procedure's instructions and of its paths.
 */

/* @n samples of a stack more. 0 or -ENOMEM. */
static int export_add(struct export *x, const struct export_stack *s, size_t event, uint64_t n)
{
	uintptr_t at = (uintptr_t)base_map_get(&x->by_stack, s, sizeof(*s));
	size_t nr_events = x->a->nr_events;
	int r = 0;

	if (!n)
		return 0;
	if (!at) {
		r = base_grow(&x->stacks, &x->cap_stacks, x->nr_stacks + 1, sizeof(*x->stacks));
		if (r >= 0)
			r = base_grow(&x->counts, &x->cap_counts, (x->nr_stacks + 1) * nr_events,
				      sizeof(*x->counts));
		if (r < 0 || x->nr_stacks >= EXPORT_NONE)
			return -ENOMEM;
		for (size_t e = 0; e < nr_events; e++)
			x->counts[x->nr_stacks * nr_events + e] = 0;
		x->stacks[x->nr_stacks++] = *s;
		at = x->nr_stacks;
		r = base_map_set(&x->by_stack, s, sizeof(*s), (void *)at);
	}
	x->counts[(at - 1) * nr_events + event] += n;
	return r;
}

/* ---- the samples of each path ---------------------------------------------------------------- */

/* The paths of one leaf and event that were met so far, and the samples that they have got. */
struct given {
	uint64_t paths, samples;
};

static uint64_t give(const struct callpath_tree *t, size_t at, uint64_t paths, struct given *g)
{
	uint64_t before = g->samples;

	if (!paths || !t->raw[at])
		return 0;
	g->paths += paths;
	g->samples = (uint64_t)((unsigned __int128)t->count[at] * g->paths / t->raw[at]);
	return g->samples - before;
}

static void give_event(struct divide *d, size_t of, size_t event, struct given *given)
{
	size_t nr_events = d->t->a->nr_events;

	for (size_t i = PROFDB_NR_CALLPATH_ENDS; i < profdb_callpaths_nr_nodes(d->paths); i++) {
		uint32_t leaf = d->t->leaf_of[i];
		size_t at = leaf * nr_events + event;

		if (leaf == UINT32_MAX)
			continue;
		d->due[i * nr_events + event] =
			give(d->t, at, profdb_callpaths_node(d->paths, i).count[of], &given[at]);
	}
}

/* Samples that the tree has for the path of each node, by event, into d->due. */
static int divide_due(struct divide *d)
{
	struct given *given = calloc(d->t->nr_leaves * d->t->a->nr_events + 1, sizeof(*given));

	if (!given)
		return -ENOMEM;
	for (size_t e = 0; e < profdb_callpaths_nr_events(d->paths); e++) {
		int event = analysis_event_find(d->t->a, profdb_callpaths_event(d->paths, e)->name,
						NULL);

		if (event >= 0)
			give_event(d, e, (size_t)event, given);
	}
	free(given);
	return 0;
}

/* ---- the instructions of each path ----------------------------------------------------------- */

/* The caller of a node's frame is its parent, which export.c has under the same number. */
static int move(struct divide *d, uint32_t node, uint32_t place, size_t event)
{
	const struct export_stack s = { place, d->x->callers[node].caller,
					profdb_callpaths_owner(d->paths, node) };
	size_t nr_events = d->t->a->nr_events;
	uint64_t *due = &d->due[node * nr_events + event];
	uint64_t *left = &d->left[place * nr_events + event];
	uint64_t n = *due < *left ? *due : *left;

	*due -= n;
	*left -= n;
	return export_add(d->x, &s, event, n);
}

/* Something in a procedure: a node of the paths, or a place. */
struct part {
	uint32_t procedure, number;
};

static int compare(const void *pa, const void *pb)
{
	const struct part *a = pa, *b = pb;

	if (a->procedure != b->procedure)
		return a->procedure > b->procedure ? 1 : -1;
	return (a->number > b->number) - (a->number < b->number);
}

static bool has_any(const uint64_t *counts, size_t nr)
{
	while (nr && !counts[nr - 1])
		nr--;
	return nr;
}

static size_t list_nodes(const struct divide *d, struct part *out)
{
	size_t nr = 0, nr_events = d->t->a->nr_events;

	for (size_t i = PROFDB_NR_CALLPATH_ENDS; i < profdb_callpaths_nr_nodes(d->paths); i++)
		if (has_any(d->due + i * nr_events, nr_events))
			out[nr++] = (struct part){ d->t->leaves[d->t->leaf_of[i]].procedure,
						   (uint32_t)i };
	if (nr)
		qsort(out, nr, sizeof(*out), compare);
	return nr;
}

static size_t list_places(const struct divide *d, struct part *out)
{
	size_t nr = 0, nr_events = d->t->a->nr_events;

	for (size_t i = 0; i < d->x->nr_places; i++)
		if (has_any(d->left + i * nr_events, nr_events))
			out[nr++] = (struct part){ d->procedure[i], (uint32_t)i };
	if (nr)
		qsort(out, nr, sizeof(*out), compare);
	return nr;
}

static int pair(struct divide *d, const struct part *node, size_t nr, const struct part *place,
		size_t nr_places, size_t event)
{
	size_t nr_events = d->t->a->nr_events, k = 0;
	int r = 0;

	for (size_t i = 0; i < nr && r >= 0; i++) {
		while (k < nr_places && place[k].procedure < node[i].procedure)
			k++;
		while (r >= 0 && k < nr_places && place[k].procedure == node[i].procedure &&
		       d->due[node[i].number * nr_events + event]) {
			r = move(d, node[i].number, place[k].number, event);
			if (!d->left[place[k].number * nr_events + event])
				k++;
		}
	}
	return r;
}

static int divide_make(struct divide *d)
{
	size_t nr = profdb_callpaths_nr_nodes(d->paths), nr_places, nr_events = d->t->a->nr_events;
	struct part *nodes = calloc(nr + 1, sizeof(*nodes));
	struct part *places = calloc(d->x->nr_places + 1, sizeof(*places));
	int r = nodes && places ? 0 : -ENOMEM;

	for (uint32_t i = PROFDB_NR_CALLPATH_ENDS; i < nr && r >= 0; i++)
		for (size_t e = 0; e < nr_events && r >= 0; e++)
			if (d->due[i * nr_events + e])
				r = move(d, i, d->place[i], e);
	if (r >= 0) {
		nr = list_nodes(d, nodes);
		nr_places = list_places(d, places);
		for (size_t e = 0; e < nr_events && r >= 0; e++)
			r = pair(d, nodes, nr, places, nr_places, e);
	}
	free(nodes);
	free(places);
	return r;
}

/* ---- places ---------------------------------------------------------------------------------- */

struct making {
	struct export *x;
	struct analysis *a;
	struct profdb_callpaths *paths; /* NULL: there are none */
	struct callpath_tree *t;
	uint64_t *due, *left; /* as struct divide */
	size_t nr_nodes;
	uint32_t *place; /* indexed by node */
	uint32_t *image; /* indexed by image of the paths: its number in @a; EXPORT_NONE: not looked
			    up */
};

/* The image of a frame, as the profile has it. */
static int image_of(struct making *m, uint32_t of, uint32_t *out)
{
	const struct profdb_image_ref *i = profdb_callpaths_image(m->paths, of);
	struct analysis_image *ai;
	int r = 0;

	if (m->image[of] == EXPORT_NONE) {
		r = analysis_image_of(m->a, i->kind, &i->id, i->stem ? i->stem : i->path, &ai);
		if (r >= 0)
			m->image[of] = export_image_number(m->a, ai);
	}
	*out = m->image[of];
	return r;
}

/* For each entry of the flat profile that has chosen samples. */
static int each_flat(struct making *m, int (*fn)(struct making *m, const struct analysis_image *ai,
						 const struct profdb_entry *e, uint32_t place))
{
	uint32_t place;
	int r = 0;

	for (uint32_t i = 0; i < m->a->nr_images; i++) {
		const struct analysis_image *ai = m->a->images[i];

		for (size_t k = 0; r >= 0 && k < profdb_profile_nr_entries(ai->profile); k++) {
			const struct profdb_entry *e = profdb_profile_entry(ai->profile, k);

			if (!analysis_entry_wanted(ai, e))
				continue;
			r = find_place(m->x, i, e->off, &place);
			if (r >= 0 && fn)
				r = fn(m, ai, e, place);
		}
	}
	return r;
}

static int count_flat(struct making *m, const struct analysis_image *ai,
		      const struct profdb_entry *e, uint32_t place)
{
	analysis_entry_add(ai, e, m->left + place * m->a->nr_events, NULL);
	return 0;
}

/* ---- callers --------------------------------------------------------------------------------- */

static bool has_due(const struct making *m, size_t node)
{
	for (size_t e = 0; e < m->a->nr_events; e++)
		if (m->due[node * m->a->nr_events + e])
			return true;
	return false;
}

/* Only frames of paths that have chosen samples are read. */
static void mark_used(struct making *m)
{
	struct export_caller *c = m->x->callers;

	for (uint32_t i = (uint32_t)m->nr_nodes; i-- > PROFDB_NR_CALLPATH_ENDS;) {
		if ((c[i].used || has_due(m, i)) && c[i].caller != EXPORT_NONE)
			c[c[i].caller].used = true;
	}
}

/* The outermost places of paths that do not begin with their thread. */
static int make_marks(struct making *m)
{
	struct export *x = m->x;
	int r = 0;

	for (uint32_t i = 0; i < CALLPATH_NR_ENDS && r >= 0; i++) {
		uint32_t at = i == CALLPATH_NO_PATH ? (uint32_t)m->nr_nodes : i;

		if (x->callers[at].used || i == CALLPATH_NO_PATH)
			r = mark_place(x, m->t->procedures[i].name, &x->callers[at].place);
	}
	return r;
}

static int make_callers(struct making *m)
{
	struct export_caller *c = m->x->callers;
	uint32_t image = EXPORT_NONE;
	int r;

	for (uint32_t i = 0; i < m->x->nr_callers; i++)
		c[i].caller = EXPORT_NONE;
	for (uint32_t i = PROFDB_NR_CALLPATH_ENDS; i < m->nr_nodes; i++) {
		uint32_t parent = profdb_callpaths_frame(m->paths, i).parent;

		if (m->t->contradicted[i])
			parent = PROFDB_CALLPATH_CONTRADICTED;
		c[i].caller = parent == PROFDB_CALLPATH_COMPLETE ? EXPORT_NONE : parent;
	}
	mark_used(m);
	r = make_marks(m);
	for (uint32_t i = PROFDB_NR_CALLPATH_ENDS; i < m->nr_nodes && r >= 0; i++) {
		struct profdb_frame f = profdb_callpaths_node(m->paths, i).frame;

		if (!c[i].used && !has_due(m, i))
			continue;
		r = image_of(m, f.image, &image);
		if (r >= 0)
			r = find_place(m->x, image, f.off, &c[i].place);
		m->place[i] = c[i].place;
	}
	return r;
}

static bool alloc_paths(struct making *m)
{
	size_t nr_images = profdb_callpaths_nr_images(m->paths);

	m->nr_nodes = profdb_callpaths_nr_nodes(m->paths);
	m->x->nr_callers = m->nr_nodes + 1;
	m->x->callers = calloc(m->nr_nodes + 1, sizeof(*m->x->callers));
	m->place = calloc(m->nr_nodes + 1, sizeof(*m->place));
	m->due = calloc((m->nr_nodes + 1) * (m->a->nr_events + 1), sizeof(*m->due));
	m->image = malloc((nr_images + 1) * sizeof(*m->image));
	if (m->image)
		memset(m->image, 0xff, (nr_images + 1) * sizeof(*m->image));
	return m->x->callers && m->place && m->due && m->image;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* The samples whose procedure no path ends in. */
static int rest(struct making *m)
{
	size_t nr_events = m->a->nr_events;
	uint32_t caller = m->t ? (uint32_t)m->nr_nodes : EXPORT_NONE;
	int r = 0;

	for (uint32_t i = 0; i < m->x->nr_places && r >= 0; i++) {
		const struct export_stack s = { i, caller, PROFDB_CALLPATH_NOBODY };

		for (size_t e = 0; e < nr_events && r >= 0; e++)
			r = export_add(m->x, &s, e, m->left[i * nr_events + e]);
	}
	return r;
}

static size_t depth_of(const struct export *x, size_t stack)
{
	size_t n = 1;

	for (uint32_t c = x->stacks[stack].caller; c != EXPORT_NONE; c = x->callers[c].caller)
		n++;
	return n;
}

/* A path that dividing left without a sample has no stack, and its callers are of no use. */
static void finish(struct export *x)
{
	for (size_t i = 0; i < x->nr_callers; i++)
		x->callers[i].used = false;
	for (size_t i = 0; i < x->nr_stacks; i++) {
		size_t n = depth_of(x, i);

		x->deepest = n > x->deepest ? n : x->deepest;
		for (uint32_t c = x->stacks[i].caller; c != EXPORT_NONE && !x->callers[c].used;
		     c = x->callers[c].caller)
			x->callers[c].used = true;
	}
}

static int divide(struct making *m, const uint32_t *procedures)
{
	struct divide d = { m->x, m->t, m->paths, m->place, procedures, m->due, m->left };

	return divide_make(&d);
}

static int make_paths(struct making *m, const struct export_how *how, struct base_err *err)
{
	const struct callpath_how tree = { .check = !how->unchecked };
	struct divide d = { .x = m->x };
	int r;

	if (how->flat)
		return 0;
	r = callpath_load(m->a, how->owners, &m->paths, NULL);
	if (r == -ENOENT || r == -DCPI_EFORMAT)
		return 0;
	if (r >= 0)
		r = callpath_tree_make(m->a, m->paths, &tree, &m->t, err);
	if (r >= 0)
		r = alloc_paths(m) ? 0 : -ENOMEM;
	d.t = m->t;
	d.paths = m->paths;
	d.due = m->due;
	if (r >= 0)
		r = divide_due(&d);
	m->x->paths = m->paths;
	return r;
}

static int make(struct making *m, const struct export_how *how, struct base_err *err)
{
	uint32_t *procedures = NULL, none;
	int r = export_text(m->x, "", &none);

	if (r >= 0)
		r = make_paths(m, how, err);
	if (r >= 0)
		r = each_flat(m, NULL);
	if (r >= 0 && m->t)
		r = make_callers(m);
	m->left = calloc(m->x->nr_places * m->a->nr_events + 1, sizeof(*m->left));
	if (r >= 0)
		r = m->left ? each_flat(m, count_flat) : -ENOMEM;
	procedures = calloc(m->x->nr_places + 1, sizeof(*procedures));
	if (r >= 0)
		r = procedures ? read_places(m->x, m->a, m->t, procedures) : -ENOMEM;
	if (r >= 0 && m->t)
		r = divide(m, procedures);
	if (r >= 0)
		r = rest(m);
	if (r >= 0)
		finish(m->x);
	free(procedures);
	return r;
}

int export_make(struct analysis *a, const struct export_how *how, struct export **out,
		struct base_err *err)
{
	struct making m = { .x = calloc(1, sizeof(*m.x)), .a = a };
	int r = m.x ? 0 : -ENOMEM;

	if (r >= 0) {
		m.x->a = a;
		r = make(&m, how, err);
	}
	callpath_tree_free(m.t);
	free(m.due);
	free(m.left);
	free(m.place);
	free(m.image);
	if (r < 0) {
		export_free(m.x);
		return base_fail_errno(err, r, "cannot make stacks of the samples");
	}
	*out = m.x;
	return 0;
}

void export_free(struct export *x)
{
	if (!x)
		return;
	for (size_t i = 0; i < x->nr_texts; i++)
		free(x->texts[i]);
	base_map_release(&x->by_text);
	base_map_release(&x->by_function);
	base_map_release(&x->by_place);
	base_map_release(&x->by_stack);
	free(x->texts);
	free(x->images);
	free(x->functions);
	free(x->frames);
	free(x->places);
	free(x->callers);
	profdb_callpaths_free(x->paths);
	free(x->stacks);
	free(x->counts);
	free(x->parts);
	free(x->part_counts);
	free(x->owners);
	free(x->tags);
	free(x->owner_tags);
	free(x->events);
	free(x);
}

/* ---- what formats ask ------------------------------------------------------------------------ */

size_t export_places(const struct export *x, size_t stack, uint32_t *out)
{
	size_t n = 0;

	out[n++] = x->stacks[stack].place;
	for (uint32_t c = x->stacks[stack].caller; c != EXPORT_NONE; c = x->callers[c].caller)
		out[n++] = x->callers[c].place;
	return n;
}

uint64_t export_sum(const struct export *x, size_t event)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < x->nr_stacks; i++)
		sum += export_count(x, i, event);
	return sum;
}

bool export_wanted(const struct export *x, size_t stack)
{
	for (size_t i = 0; i < x->nr_events; i++)
		if (export_count(x, stack, x->events[i]))
			return true;
	return false;
}

bool export_has_image(const struct export *x, uint32_t image)
{
	return x->images[image].end && x->images[image].kind != PROFDB_NAMED;
}

bool export_is_clock(const struct export *x, size_t event)
{
	return estimate_is_ns(x->a->events[event].name);
}

uint64_t export_begin(const struct export *x)
{
	const char *first = NULL;
	struct tm tm = { 0 };
	time_t t;

	for (size_t i = 0; i < x->a->nr_epochs; i++)
		if (!first || strcmp(x->a->epochs[i].name, first) < 0)
			first = x->a->epochs[i].name;
	if (!first || !strptime(first, "%Y%m%d%H%M", &tm))
		return 0;
	t = timegm(&tm);
	return t > 0 ? (uint64_t)t : 0;
}
