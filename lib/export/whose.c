/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Divides the samples of stacks among workloads, which some formats have as tags. The database says
 * how many samples of each instruction a workload has, and these sums are kept exactly. It also
 * says whose each path is, but for pid and thread, so workloads that differ in these alone share
 * stacks. Which of an instruction's stacks are whose is an estimate where several workloads share
 * several stacks, or where an older daemon did not keep whose its paths are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export_internal.h"

/* Samples of a workload at a place, of one event. */
struct share {
	uint32_t place, workload;
	uint32_t owner; /* of the paths that are its */
	uint32_t event; /* of the analysis */
	uint64_t left;
};

struct where {
	uint32_t place, owner, stack;
};

struct whose {
	struct export *x;
	struct analysis *a;
	const struct profdb_workloads *w;
	size_t event[PROFDB_NR_EVENTS]; /* indexed by event of @w */
	uint32_t *image;		/* indexed by image of @w: its number in @a */
	uint32_t *owner;		/* indexed by workload: its number in the paths, which
					   do not know its pid and thread */
	struct share *shares;
	size_t nr, cap;
	struct where *stacks;
	uint64_t *left; /* as x->counts: samples whose workload was not found yet */
	struct base_map by_part;
	struct base_map by_tag;
	size_t cap_parts, cap_counts, cap_tags, cap_owner_tags;
};

/* ---- tags ------------------------------------------------------------------------------------ */

/* The number of a tag, which is made so. 0 or -ENOMEM. */
static int find_tag(struct whose *d, uint32_t key, const char *text, uint32_t *out)
{
	struct export *x = d->x;
	struct export_tag tag = { .key = key };
	uintptr_t at;
	int r = export_text(x, text, &tag.text);

	if (r < 0)
		return r;
	at = (uintptr_t)base_map_get(&d->by_tag, &tag, sizeof(tag));
	if (!at) {
		r = base_grow(&x->tags, &d->cap_tags, x->nr_tags + 1, sizeof(*x->tags));
		if (r < 0)
			return r;
		x->tags[x->nr_tags++] = tag;
		at = x->nr_tags;
		r = base_map_set(&d->by_tag, &tag, sizeof(tag), (void *)at);
	}
	*out = (uint32_t)(at - 1);
	return r;
}

static int add_tag(struct whose *d, uint32_t key, const char *text)
{
	struct export *x = d->x;
	int r = base_grow(&x->owner_tags, &d->cap_owner_tags, x->nr_owner_tags + 1,
			  sizeof(*x->owner_tags));

	return r < 0 ? r : find_tag(d, key, text, &x->owner_tags[x->nr_owner_tags++]);
}

/* A workload has no tag for what is not known of it. */
static int add_tags(struct whose *d, const struct profdb_workload *k)
{
	struct base_buf text = { 0 };
	int r = 0;

	for (uint32_t key = 0; key < WORKLOAD_NR_KEYS && r >= 0; key++) {
		base_buf_clear(&text);
		r = workload_key_of(k, key, &text);
		if (r >= 0 && text.len)
			r = base_buf_append(&text, "", 1);
		if (r >= 0 && text.len)
			r = add_tag(d, key, (const char *)text.data);
	}
	base_buf_release(&text);
	return r;
}

static int make_owners(struct whose *d)
{
	size_t nr = profdb_workloads_nr(d->w);
	int r = find_tag(d, WORKLOAD_NR_KEYS, "estimated", &d->x->estimated);

	d->x->owners = calloc(nr + 1, sizeof(*d->x->owners));
	if (!d->x->owners)
		return -ENOMEM;
	for (size_t i = 0; i < nr && r >= 0; i++) {
		d->x->owners[i].first = (uint32_t)d->x->nr_owner_tags;
		r = add_tags(d, profdb_workloads_workload(d->w, i));
		d->x->owners[i].nr = (uint32_t)d->x->nr_owner_tags - d->x->owners[i].first;
	}
	return r;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* @n samples of a stack are of a workload (EXPORT_NONE: it is not known). 0 or -ENOMEM. */
static int add_part(struct whose *d, const struct export_part *part, size_t event, uint64_t n)
{
	struct export *x = d->x;
	size_t nr_events = d->a->nr_events;
	uintptr_t at = (uintptr_t)base_map_get(&d->by_part, part, sizeof(*part));
	int r = 0;

	if (!at) {
		r = base_grow(&x->parts, &d->cap_parts, x->nr_parts + 1, sizeof(*x->parts));
		if (r >= 0)
			r = base_grow(&x->part_counts, &d->cap_counts,
				      (x->nr_parts + 1) * nr_events, sizeof(*x->part_counts));
		if (r < 0)
			return r;
		memset(&x->part_counts[x->nr_parts * nr_events], 0,
		       nr_events * sizeof(*x->part_counts));
		x->parts[x->nr_parts++] = *part;
		at = x->nr_parts;
		r = base_map_set(&d->by_part, part, sizeof(*part), (void *)at);
	}
	x->part_counts[(at - 1) * nr_events + event] += n;
	return r;
}

static uint64_t *left_of(const struct whose *d, const struct where *s, size_t event)
{
	return &d->left[s->stack * d->a->nr_events + event];
}

static int move(struct whose *d, const struct where *s, struct share *h, bool estimated)
{
	const struct export_part part = { s->stack, h->workload, estimated };
	uint64_t *left = left_of(d, s, h->event);
	uint64_t n = h->left < *left ? h->left : *left;

	h->left -= n;
	*left -= n;
	return add_part(d, &part, h->event, n);
}

/* Samples of no workload that was recorded. */
static int add_rest(struct whose *d)
{
	int r = 0;

	for (uint32_t i = 0; i < d->x->nr_stacks; i++)
		for (size_t e = 0; e < d->a->nr_events && r >= 0; e++) {
			const struct export_part part = { i, EXPORT_NONE, 0 };
			uint64_t n = d->left[i * d->a->nr_events + e];

			r = n ? add_part(d, &part, e, n) : 0;
		}
	return r;
}

/* ---- shares of workloads --------------------------------------------------------------------- */

static int add_share(void *ctx, const struct profdb_workload_count *c, size_t event, uint64_t n)
{
	struct whose *d = ctx;
	const uint64_t key[] = { d->image[c->image], c->off };
	uintptr_t at = (uintptr_t)base_map_get(&d->x->by_place, key, sizeof(key));
	int r;

	/* Where files of an epoch contradict each other, the profile is right. */
	if (!at || d->event[event] == SIZE_MAX)
		return 0;
	r = base_grow(&d->shares, &d->cap, d->nr + 1, sizeof(*d->shares));
	if (r >= 0)
		d->shares[d->nr++] =
			(struct share){ (uint32_t)(at - 1), c->workload, d->owner[c->workload],
					(uint32_t)d->event[event], n };
	return r;
}

static int find_images(struct whose *d)
{
	struct analysis_image *ai;
	int r = 0;

	for (size_t i = 0; i < profdb_workloads_nr_images(d->w) && r >= 0; i++) {
		r = workload_image(d->a, d->w, i, &ai);
		if (r >= 0)
			d->image[i] = export_image_number(d->a, ai);
	}
	return r;
}

static int find_owners(struct whose *d)
{
	for (size_t i = 0; i < profdb_workloads_nr(d->w); i++) {
		const struct profdb_workload *k = profdb_workloads_workload(d->w, i);
		int r = d->x->paths ? profdb_callpaths_workload_add(d->x->paths, k) : 0;

		if (r < 0)
			return r;
		d->owner[i] = (uint32_t)r;
	}
	return 0;
}

/* ---- stacks and their owners ----------------------------------------------------------------- */

static int by_place(const void *pa, const void *pb)
{
	const struct where *a = pa, *b = pb;

	if (a->place != b->place)
		return a->place > b->place ? 1 : -1;
	if (a->owner != b->owner)
		return a->owner > b->owner ? 1 : -1;
	return (a->stack > b->stack) - (a->stack < b->stack);
}

static int make_stacks(struct whose *d)
{
	const struct export *x = d->x;

	d->stacks = calloc(x->nr_stacks + 1, sizeof(*d->stacks));
	if (!d->stacks)
		return -ENOMEM;
	for (uint32_t i = 0; i < x->nr_stacks; i++)
		d->stacks[i] = (struct where){ x->stacks[i].place, x->stacks[i].owner, i };
	if (x->nr_stacks)
		qsort(d->stacks, x->nr_stacks, sizeof(*d->stacks), by_place);
	return 0;
}

/* ---- stacks and shares of one place ---------------------------------------------------------- */

/* Workloads of one place, and of one owner of paths or all; the shares are of one event. */
struct meeting {
	const struct where *s;
	struct share *h;
	size_t nr_s, nr_h;
};

/*
 * Which is whose is not known, unless all samples of the only stack or of the only workload are
 * left to be paired. A stack of another owner belongs to none of these workloads.
 */
static bool is_unsure(const struct whose *d, const struct meeting *m)
{
	uint64_t stacks = 0, shares = 0;
	size_t nr_s = 0, nr_h = 0;
	bool foreign = false;

	for (size_t i = 0; i < m->nr_s; i++) {
		uint64_t left = *left_of(d, &m->s[i], m->h->event);

		stacks += left;
		nr_s += left > 0;
		foreign |= left && m->s[i].owner != PROFDB_CALLPATH_NOBODY &&
			   m->s[i].owner != m->h->owner;
	}
	for (size_t i = 0; i < m->nr_h; i++) {
		shares += m->h[i].left;
		nr_h += m->h[i].left > 0;
	}
	return foreign || (nr_s > 1 && (nr_h > 1 || shares < stacks)) ||
	       (nr_h > 1 && stacks < shares);
}

static int pair(struct whose *d, const struct meeting *m, bool unsure)
{
	size_t i = 0, k = 0;
	int r = 0;

	while (i < m->nr_s && k < m->nr_h && r >= 0) {
		if (!*left_of(d, &m->s[i], m->h->event))
			i++;
		else if (!m->h[k].left)
			k++;
		else
			r = move(d, &m->s[i], &m->h[k], unsure);
	}
	return r;
}

/* The workloads of each owner of paths, which stand together. */
static int pair_owners(struct whose *d, const struct meeting *all)
{
	struct meeting m = { .s = all->s };
	const struct where *end = all->s + all->nr_s;
	int r = 0;

	for (m.h = all->h; m.h < all->h + all->nr_h && r >= 0; m.h += m.nr_h) {
		uint32_t owner = m.h->owner;

		for (m.nr_h = 1; m.h + m.nr_h < all->h + all->nr_h;)
			if (m.h[m.nr_h].owner == owner)
				m.nr_h++;
			else
				break;
		while (m.s < end && m.s->owner < owner)
			m.s++;
		for (m.nr_s = 0; m.s + m.nr_s < end && m.s[m.nr_s].owner == owner;)
			m.nr_s++;
		r = pair(d, &m, is_unsure(d, &m));
	}
	return r;
}

static int by_event(const void *pa, const void *pb)
{
	const struct share *a = pa, *b = pb;

	if (a->place != b->place)
		return a->place > b->place ? 1 : -1;
	if (a->event != b->event)
		return a->event > b->event ? 1 : -1;
	if (a->owner != b->owner)
		return a->owner > b->owner ? 1 : -1;
	return (a->workload > b->workload) - (a->workload < b->workload);
}

static int meet(struct whose *d)
{
	const struct where *end = d->stacks + d->x->nr_stacks;
	struct meeting m = { .s = d->stacks };
	int r = 0;

	if (d->nr)
		qsort(d->shares, d->nr, sizeof(*d->shares), by_event);
	for (m.h = d->shares; m.h < d->shares + d->nr && r >= 0; m.h += m.nr_h) {
		for (m.nr_h = 1; m.h + m.nr_h < d->shares + d->nr &&
				 m.h[m.nr_h].place == m.h->place &&
				 m.h[m.nr_h].event == m.h->event;)
			m.nr_h++;
		while (m.s < end && m.s->place < m.h->place)
			m.s++;
		for (m.nr_s = 0; m.s + m.nr_s < end && m.s[m.nr_s].place == m.h->place;)
			m.nr_s++;
		r = pair_owners(d, &m);
		if (r >= 0)
			r = pair(d, &m, is_unsure(d, &m));
	}
	return r;
}

/* ---- all together ---------------------------------------------------------------------------- */

static int divide(struct whose *d, const struct workload_filter *f)
{
	int r = make_owners(d);

	workload_events(d->a, d->w, d->event);
	if (r >= 0)
		r = find_images(d);
	if (r >= 0)
		r = find_owners(d);
	if (r >= 0)
		r = workload_each(d->a, d->w, f, add_share, d);
	if (r >= 0)
		r = make_stacks(d);
	return r < 0 ? r : meet(d);
}

int export_whose(struct export *x, struct analysis *a, const struct profdb_workloads *w,
		 const struct workload_filter *f, struct base_err *err)
{
	size_t nr = x->nr_stacks * a->nr_events;
	struct whose d = { .x = x, .a = a, .w = w };
	int r = -ENOMEM;

	d.image = calloc(w ? profdb_workloads_nr_images(w) + 1 : 1, sizeof(*d.image));
	d.owner = calloc(w ? profdb_workloads_nr(w) + 1 : 1, sizeof(*d.owner));
	d.left = calloc(nr + 1, sizeof(*d.left));
	if (d.image && d.owner && d.left) {
		memcpy(d.left, x->counts, nr * sizeof(*d.left));
		r = w ? divide(&d, f) : 0;
	}
	if (r >= 0)
		r = add_rest(&d);
	base_map_release(&d.by_part);
	base_map_release(&d.by_tag);
	free(d.image);
	free(d.owner);
	free(d.shares);
	free(d.stacks);
	free(d.left);
	return r < 0 ? base_fail_errno(err, r, "cannot divide samples among workloads") : 0;
}
