/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the value profiles of the chosen epochs: the values seen at instructions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hotlists.h"

/* ---- a hotlist ------------------------------------------------------------------------------- */

static int by_count(const void *pa, const void *pb)
{
	const struct hotlist_pair *a = pa, *b = pb;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return (a->value > b->value) - (a->value < b->value);
}

static int add_pair(struct hotlist_spot *s, uint64_t value, double count)
{
	int r;

	for (size_t i = 0; i < s->nv; i++) {
		if (s->v[i].value == value) {
			s->v[i].count += count;
			return 0;
		}
	}
	r = base_grow(&s->v, &s->cap, s->nv + 1, sizeof(*s->v));
	if (r >= 0)
		s->v[s->nv++] = (struct hotlist_pair){ value, count };
	return r;
}

int hotlist_spot_add(struct hotlist_spot *s, const struct profdb_hotlist *h, bool concise)
{
	int r = 0;

	s->vtot += h->vtot;
	if (h->thld > s->thld)
		s->thld = h->thld;
	for (uint32_t i = 0; r >= 0 && i < h->nv; i++) {
		double count = profdb_hot_count(h, i, concise);

		r = add_pair(s, h->v[i].value, count < (double)h->vtot ? count : (double)h->vtot);
	}
	if (s->nv)
		qsort(s->v, s->nv, sizeof(*s->v), by_count);
	return r;
}

double hotlist_share(const struct hotlist_spot *s, size_t index)
{
	return s->vtot ? s->v[index].count / (double)s->vtot : 0;
}

void hotlist_spot_release(struct hotlist_spot *s)
{
	free(s->v);
	memset(s, 0, sizeof(*s));
}

ssize_t hotlist_spot_at(const struct profdb_values *v, size_t index, bool concise,
			struct hotlist_spot *out)
{
	uint64_t off = profdb_values_at(v, index)->off;
	int r = 0;

	for (; r >= 0 && index < profdb_values_nr(v); index++) {
		const struct profdb_hotlist *h = profdb_values_at(v, index);

		if (h->off != off)
			break;
		r = hotlist_spot_add(out, h, concise);
	}
	return r < 0 ? r : (ssize_t)index;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Is it the same image, by the rules of struct analysis? A pseudo-image that grew keeps its name
 * alone. */
static bool is_image(const struct profdb_profile *p, const struct base_id *id, const char *path)
{
	const char *own = profdb_profile_path(p, 0);

	if (!own || !path)
		return false;
	if (profdb_profile_kind(p) == PROFDB_DYNAMIC)
		return strcmp(base_path_name(own), base_path_name(path)) == 0;
	if (id->len)
		return base_id_equal(profdb_profile_image(p), id);
	return strcmp(own, path) == 0;
}

static struct analysis_image *image_of(struct analysis *a, const struct profdb_profile *header)
{
	for (size_t i = 0; i < a->nr_images; i++) {
		const struct profdb_profile *p = a->images[i]->profile;

		if (profdb_profile_kind(p) == profdb_profile_kind(header) &&
		    is_image(p, profdb_profile_image(header), profdb_profile_path(header, 0)))
			return a->images[i];
	}
	return NULL;
}

struct analysis_image *hotlists_context_image(struct analysis *a, const struct profdb_values *v,
					      const struct profdb_context *context)
{
	struct base_id id;
	const char *path = context->image ? profdb_values_image(v, context->image, &id) : NULL;

	for (size_t i = 0; path && i < a->nr_images; i++)
		if (is_image(a->images[i]->profile, &id, path))
			return a->images[i];
	return NULL;
}

static int on_values(void *ctx, const char *file, struct profdb_values *v)
{
	struct hotlists *x = ctx;
	struct analysis_image *ai = image_of(x->a, profdb_values_header(v));
	int r = 0;

	(void)file;
	for (size_t i = 0; ai && i < x->nr; i++) {
		if (x->images[i].ai != ai)
			continue;
		r = profdb_values_merge(x->images[i].v, v);
		profdb_values_free(v);
		return r;
	}
	r = base_grow(&x->images, &x->cap, x->nr + 1, sizeof(*x->images));
	if (r < 0)
		profdb_values_free(v);
	else
		x->images[x->nr++] = (struct hotlists_image){ ai, v };
	return r;
}

static void on_bad(void *ctx, const char *file, const struct base_err *err)
{
	struct hotlists *x = ctx;

	if (err->code != -EACCES && err->code != -EPERM) {
		analysis_note_bad(x->a, x->epoch, x->platform, file, err);
		return;
	}
	if (base_grow(&x->denied, &x->cap_denied, x->nr_denied + 1, sizeof(*x->denied)) >= 0)
		x->denied[x->nr_denied++] = *err;
}

static int walk_epoch(struct hotlists *x, const char *profiler, struct base_err *err)
{
	char **platforms = profdb_platforms(x->a->db, x->epoch, err);
	int r = platforms ? 0 : err->code;

	for (size_t i = 0; r >= 0 && platforms[i]; i++) {
		bool chosen = false;

		for (size_t k = 0; k < x->a->nr_platforms; k++)
			chosen |= strcmp(x->a->platforms[k], platforms[i]) == 0;
		x->platform = platforms[i];
		if (chosen)
			r = profdb_walk_values(x->a->db, x->epoch, platforms[i], profiler,
					       on_values, on_bad, x, err);
	}
	free(platforms); /* one allocation, see profdb.h */
	return r;
}

/* Hints at the option with which the daemon stores such profiles. */
static void hint_option(const char *profiler, struct base_err *err)
{
	if (!strcmp(profiler, PROFDB_VALUES) ||
	    !strncmp(profiler, PROFDB_VALUES_ARG, strlen(PROFDB_VALUES_ARG)))
		base_hint(err, "the daemon makes them with -vprof, see dcpid(8)");
	else if (!strcmp(profiler, PROFDB_VALUES_REPLAY))
		base_hint(err, "the daemon makes them with -vreplay, see dcpid(8)");
	else
		base_hint(err, "the daemon makes them with -vtrace, given the file of '%s'",
			  profiler);
}

int hotlists_open(struct analysis *a, const char *profiler, struct hotlists *out,
		  struct base_err *err)
{
	int r = 0;

	out->a = a;
	for (size_t i = 0; r >= 0 && i < a->nr_epochs; i++) {
		out->epoch = a->epochs[i].name;
		r = walk_epoch(out, profiler, err);
	}
	out->epoch = out->platform = NULL;
	if (r < 0)
		return base_fail_errno(err, r, "cannot read value profiles");
	if (out->nr || out->nr_denied)
		return 0;
	base_fail(err, -ENOENT, "no value profiles of '%s' in the chosen epochs", profiler);
	hint_option(profiler, err);
	return -ENOENT;
}

void hotlists_release(struct hotlists *v)
{
	for (size_t i = 0; i < v->nr; i++)
		profdb_values_free(v->images[i].v);
	free(v->images);
	free(v->denied);
	memset(v, 0, sizeof(*v));
}

const struct profdb_values *hotlists_of(const struct hotlists *v, const struct analysis_image *ai)
{
	for (size_t i = 0; i < v->nr; i++)
		if (v->images[i].ai == ai)
			return v->images[i].v;
	return NULL;
}

/* ---- procedures ------------------------------------------------------------------------------ */

struct procedures {
	struct hotlists_procedure *v;
	size_t nr, cap;
	struct base_map by_vaddr; /* index + 1 */
};

static int procedure_at(struct procedures *p, struct image *img, uint64_t off,
			struct hotlists_procedure **out)
{
	const struct image_symbol *s;
	uint64_t vaddr;
	size_t index;
	int r;

	*out = NULL;
	s = image_vaddr(img, off, &vaddr) >= 0 ? image_symbol_at(img, vaddr) : NULL;
	if (!s)
		return 0;
	index = (size_t)(uintptr_t)base_map_get(&p->by_vaddr, &s->vaddr, sizeof(s->vaddr));
	if (!index) {
		r = base_grow(&p->v, &p->cap, p->nr + 1, sizeof(*p->v));
		if (r < 0)
			return r;
		p->v[p->nr++] = (struct hotlists_procedure){ .symbol = s };
		index = p->nr;
		r = base_map_set(&p->by_vaddr, &s->vaddr, sizeof(s->vaddr), (void *)index);
		if (r < 0)
			return r;
	}
	*out = &p->v[index - 1];
	return 0;
}

static int by_weight(const void *pa, const void *pb)
{
	const struct hotlists_procedure *a = pa, *b = pb;

	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	if (a->vtot != b->vtot)
		return a->vtot > b->vtot ? -1 : 1;
	return (a->symbol->vaddr > b->symbol->vaddr) - (a->symbol->vaddr < b->symbol->vaddr);
}

static int add_samples(struct procedures *p, const struct analysis_image *ai, struct image *img,
		       size_t event)
{
	struct hotlists_procedure *at;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < profdb_profile_nr_entries(ai->profile); i++) {
		const struct profdb_entry *e = profdb_profile_entry(ai->profile, i);

		if (analysis_entry_wanted(ai, e))
			r = procedure_at(p, img, e->off, &at);
		else
			continue;
		for (size_t k = 0; at && k < profdb_profile_nr_events(ai->profile); k++)
			if (ai->event_of[k] == event)
				at->samples += e->count[k];
	}
	return r;
}

ssize_t hotlists_procedures(const struct hotlists *v, const struct analysis_image *ai,
			    struct image *img, size_t event, struct hotlists_procedure **out)
{
	const struct profdb_values *values = hotlists_of(v, ai);
	struct procedures p = { 0 };
	struct hotlists_procedure *at;
	int r = add_samples(&p, ai, img, event);

	for (size_t i = 0; r >= 0 && values && i < profdb_values_nr(values); i++) {
		r = procedure_at(&p, img, profdb_values_at(values, i)->off, &at);
		if (at)
			at->vtot += profdb_values_at(values, i)->vtot;
	}
	base_map_release(&p.by_vaddr);
	if (p.nr)
		qsort(p.v, p.nr, sizeof(*p.v), by_weight);
	*out = p.v;
	return r < 0 ? r : (ssize_t)p.nr;
}

/* ---- listings -------------------------------------------------------------------------------- */

/* The spot of the unit that begins at @vaddr, or NULL. */
static struct hotlist_spot *unit_at(const struct analysis_listing *l, struct hotlists_listing *out,
				    uint64_t vaddr)
{
	size_t from = 0, to = l->nr_units;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (l->units[mid].vaddr < vaddr)
			from = mid + 1;
		else
			to = mid;
	}
	return from < l->nr_units && l->units[from].vaddr == vaddr ? &out->v[from] : NULL;
}

static int add_hotlist(const struct analysis_listing *l, const struct profdb_hotlist *h,
		       uint64_t vaddr, bool concise, struct hotlists_listing *out)
{
	struct hotlist_spot *spot = unit_at(l, out, vaddr);

	if (!spot)
		return 0;
	out->total += h->vtot;
	return hotlist_spot_add(spot, h, concise);
}

static int add_place(const struct hotlists *v, const struct analysis_listing *l,
		     const struct analysis_place *place, bool concise, struct hotlists_listing *out)
{
	const struct profdb_values *values = hotlists_of(v, place->image);
	struct image *img = NULL;
	uint64_t vaddr;
	int r = 0;

	if (!values)
		return 0;
	if (place->image != l->ai && analysis_image_open(l->a, place->image, &img, NULL) < 0)
		return 0;
	for (size_t i = 0; r >= 0 && i < profdb_values_nr(values); i++) {
		const struct profdb_hotlist *h = profdb_values_at(values, i);

		if (image_vaddr(img ? img : l->img, h->off, &vaddr) >= 0 &&
		    vaddr - place->vaddr < l->symbol.len)
			r = add_hotlist(l, h, l->symbol.vaddr + (vaddr - place->vaddr), concise,
					out);
	}
	image_close(img);
	return r;
}

int hotlists_listing_make(const struct hotlists *v, const struct analysis_listing *l, bool concise,
			  struct hotlists_listing *out)
{
	int r = 0;

	out->v = calloc(l->nr_units + 1, sizeof(*out->v));
	out->nr = l->nr_units;
	if (!out->v)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i < l->nr_places; i++)
		r = add_place(v, l, &l->places[i], concise, out);
	return r;
}

void hotlists_listing_release(struct hotlists_listing *x)
{
	for (size_t i = 0; x->v && i < x->nr; i++)
		hotlist_spot_release(&x->v[i]);
	free(x->v);
	memset(x, 0, sizeof(*x));
}
