/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A value profile keeps one list of frequent values for each offset and its callers. As a file it
 * has a header and footer as a profile's, and section VALS between them. docs/format/values.md
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

/*
 * A concise sample has each value with the times that it was chosen, each time with probability
 * 1 / thld. A counting sample has each value with the times that it was seen from one on, which is
 * the first at which it was chosen. Both are kept over one choice, so that a value is in both or in
 * neither: of those that are counted after the first, the chosen ones lie anywhere with equal
 * probability. That is all that is needed to thin both, as if thld had been greater from the start.
 */

/* ---- chance ---------------------------------------------------------------------------------- */

/* Above 0, below 1. */
static double fraction(struct profdb_coins *c)
{
	return ((double)(base_random64(&c->state) >> 11) + 0.5) * 0x1p-53;
}

static bool coin(struct profdb_coins *c, double p)
{
	return fraction(c) < p;
}

static uint64_t clip(double x, uint64_t max)
{
	return !(x > 0) ? 0 : x >= (double)max ? max : (uint64_t)x;
}

/* From one head to the next lie as many tails as a logarithm tells. */
static uint64_t heads_by_skips(struct profdb_coins *c, uint64_t n, double p)
{
	uint64_t nr = 0, at = 0;

	for (;;) {
		double skip = log(fraction(c)) / log1p(-p);

		if (!(skip < (double)(n - at)))
			return nr;
		at += (uint64_t)skip + 1;
		nr++;
		if (at >= n)
			return nr;
	}
}

/* Heads of @n coins; where these are very many, by the normal distribution that is near. */
static uint64_t heads(struct profdb_coins *c, uint64_t n, double p)
{
	enum { MANY = 1000 };
	double mean = (double)n * p, normal;

	if (!n || p <= 0)
		return 0;
	if (p >= 1)
		return n;
	if (p > 0.5)
		return n - heads(c, n, 1 - p);
	if (mean < MANY)
		return heads_by_skips(c, n, p);
	normal = sqrt(-2 * log(fraction(c))) * cos(6.283185307179586 * fraction(c));
	return clip(mean + sqrt(mean * (1 - p)) * normal + 0.5, n);
}

/* Where of @n places, from 0, the first of @k chosen ones is; 0 < @k <= @n. */
static uint64_t first_of(struct profdb_coins *c, uint64_t k, uint64_t n)
{
	enum { NEAR = 64 };
	uint64_t at = 0;

	for (; at < NEAR && at < n - k; at++)
		if (coin(c, (double)k / (double)(n - at)))
			return at;
	/* So far that it makes no difference whether two may be chosen at one place. */
	if (at < n - k)
		at += clip((double)(n - at) * -expm1(log(fraction(c)) / (double)k), n - k - at);
	return at;
}

/* ---- thinning -------------------------------------------------------------------------------- */

/* As if it had been chosen with @p times the probability. False: it would not be in. */
static bool thin(struct profdb_hot *h, double p, struct profdb_coins *c)
{
	uint64_t later = heads(c, h->concise - 1, p);

	if (coin(c, p)) {
		h->concise = 1 + later;
		return true;
	}
	if (!later)
		return false;
	h->counting -= 1 + first_of(c, later, h->counting - 1);
	h->concise = later;
	return true;
}

static uint32_t thin_all(struct profdb_hot *v, uint32_t nv, double p, struct profdb_coins *c)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < nv; i++)
		if (thin(&v[i], p, c))
			v[kept++] = v[i];
	return kept;
}

static uint32_t drop_smallest(struct profdb_hot *v, uint32_t nv)
{
	uint32_t least = 0;

	for (uint32_t i = 1; i < nv; i++)
		if (v[i].concise < v[least].concise)
			least = i;
	v[least] = v[nv - 1];
	return nv - 1;
}

/* @v, of as many as there are, becomes that of @l. */
static void shrink(struct profdb_hotlist *l, struct profdb_hot *v, uint32_t nv,
		   struct profdb_coins *c)
{
	const uint64_t most = UINT64_C(1) << 62;

	while (nv > PROFDB_NR_HOT) {
		uint64_t thld = l->thld + 1 + l->thld / 8;

		if (thld > most) {
			nv = drop_smallest(v, nv);
			continue;
		}
		nv = thin_all(v, nv, (double)l->thld / (double)thld, c);
		l->thld = thld;
	}
	memset(l->v, 0, sizeof(l->v));
	memcpy(l->v, v, nv * sizeof(*v));
	l->nv = nv;
}

/* ---- adding ---------------------------------------------------------------------------------- */

static struct profdb_hot *find(struct profdb_hot *v, uint32_t nv, uint64_t value)
{
	for (uint32_t i = 0; i < nv; i++)
		if (v[i].value == value)
			return &v[i];
	return NULL;
}

static void profdb_hotlist_add(struct profdb_hotlist *l, uint64_t value, struct profdb_coins *c)
{
	bool chosen = l->thld == 1 || coin(c, 1 / (double)l->thld);
	struct profdb_hot *h = find(l->v, l->nv, value), v[PROFDB_NR_HOT + 1];

	l->vtot++;
	if (h) {
		h->counting++;
		h->concise += chosen;
		return;
	}
	if (!chosen)
		return;
	memcpy(v, l->v, l->nv * sizeof(*v));
	v[l->nv] = (struct profdb_hot){ value, 1, 1 };
	shrink(l, v, l->nv + 1, c);
}

/*
 * As if what the one of lower threshold has had been seen after the other: what is in already
 * counts all of it, what is not has to come in first.
 */
static void profdb_hotlist_merge(struct profdb_hotlist *to, const struct profdb_hotlist *from,
				 struct profdb_coins *c)
{
	const struct profdb_hotlist *high = to->thld >= from->thld ? to : from;
	const struct profdb_hotlist *low = high == to ? from : to;
	double p = (double)low->thld / (double)high->thld;
	struct profdb_hot v[2 * PROFDB_NR_HOT];
	uint32_t nv = high->nv;

	memcpy(v, high->v, nv * sizeof(*v));
	for (uint32_t i = 0; i < low->nv; i++) {
		struct profdb_hot one = low->v[i], *h = find(v, high->nv, one.value);

		if (h) {
			h->counting += one.counting;
			h->concise += heads(c, one.concise, p);
		} else if (p >= 1 || thin(&one, p, c)) {
			v[nv++] = one;
		}
	}
	to->vtot += from->vtot;
	to->thld = high->thld;
	shrink(to, v, nv, c);
}

double profdb_hot_count(const struct profdb_hotlist *l, size_t i, bool concise)
{
	double thld = (double)l->thld, n;

	if (concise)
		n = (double)l->v[i].concise * thld;
	else /* Add the estimated occurrences before the value entered the list (Gibbons and
		Matias). */
		n = (double)l->v[i].counting + (l->thld > 1 ? 0.418 * thld - 1 : 0);
	return n > (double)l->vtot ? (double)l->vtot : n;
}

/* ---- order ----------------------------------------------------------------------------------- */

static bool comes_before(const struct profdb_hot *a, const struct profdb_hot *b)
{
	if (a->counting != b->counting)
		return a->counting > b->counting;
	return a->value < b->value;
}

/* Merge two lists of one place; the sum of both vtot must fit. */
static void profdb_hotlist_sort(struct profdb_hotlist *l)
{
	for (uint32_t i = 1; i < l->nv; i++) {
		struct profdb_hot h = l->v[i];
		uint32_t at = i;

		for (; at && comes_before(&h, &l->v[at - 1]); at--)
			l->v[at] = l->v[at - 1];
		l->v[at] = h;
	}
}

/* Bytes of a header that the images for contexts may take, at most four for each of their paths. */
enum { IMAGES_TEXT_MAX = PROFDB_HEADER_MAX / 2 };

static bool profiler_ok(const char *name)
{
	size_t len = 0;

	for (; name[len]; len++)
		if ((unsigned char)name[len] <= ' ' || name[len] == 0x7f)
			return false;
	return len && len < PROFDB_PROFILER;
}

struct profdb_values *profdb_values_new(enum profdb_kind kind, const struct base_id *image,
					const char *path, const char *profiler)
{
	struct profdb_values *v = profiler_ok(profiler) ? calloc(1, sizeof(*v)) : NULL;

	if (!v)
		return NULL;
	v->header = profdb_profile_new(kind, image, path);
	if (!v->header) {
		free(v);
		return NULL;
	}
	strcpy(v->profiler, profiler);
	v->uid = UINT32_MAX;
	v->coins.state = base_now_ns() ^ (uint64_t)(uintptr_t)v;
	return v;
}

void profdb_values_free(struct profdb_values *v)
{
	if (!v)
		return;
	for (size_t i = 0; i < v->nr_images; i++)
		free(v->images[i].path);
	free(v->images);
	free(v->slots);
	free(v->v);
	profdb_profile_free(v->header);
	free(v);
}

void profdb_values_seed(struct profdb_values *v, uint64_t seed)
{
	v->coins.state = seed;
}

const struct profdb_profile *profdb_values_header(const struct profdb_values *v)
{
	return v->header;
}

void profdb_values_set_image(struct profdb_values *v, const struct base_id *image)
{
	profdb_profile_set_image(v->header, image);
}

const char *profdb_values_profiler(const struct profdb_values *v)
{
	return v->profiler;
}

uint64_t profdb_values_lost(const struct profdb_values *v)
{
	return v->lost;
}

/* ---- images for contexts --------------------------------------------------------------------- */

static bool is_image(const struct profdb_context_image *i, const struct base_id *id,
		     const char *path)
{
	return base_id_equal(&i->id, id) && (id->len || !strcmp(i->path, path));
}

int profdb_values_image_add(struct profdb_values *v, const struct base_id *id, const char *path)
{
	const struct base_id none = { 0 };
	size_t len = 4 * strlen(path) + 2 * sizeof(id->bytes) + 16;
	char *copy;

	id = id ? id : &none;
	for (size_t i = 0; i < v->nr_images; i++)
		if (is_image(&v->images[i], id, path))
			return (int)i + 1;
	if (!*path || len > IMAGES_TEXT_MAX - v->images_text)
		return 0;
	if (base_grow(&v->images, &v->cap_images, v->nr_images + 1, sizeof(*v->images)) < 0)
		return -ENOMEM;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	v->images[v->nr_images++] = (struct profdb_context_image){ .id = *id, .path = copy };
	v->images_text += len;
	return (int)v->nr_images;
}

const char *profdb_values_image(const struct profdb_values *v, size_t index, struct base_id *id)
{
	if (!index || index > v->nr_images)
		return NULL;
	*id = v->images[index - 1].id;
	return v->images[index - 1].path;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static int compare64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* <0, 0, >0 by offset and contexts. */
static int hotlist_compare(const struct profdb_hotlist *a, const struct profdb_hotlist *b)
{
	int r = compare64(a->off, b->off);

	for (int i = 0; !r && i < 2; i++) {
		r = compare64(a->context[i].image, b->context[i].image);
		r = r ? r : compare64(a->context[i].off, b->context[i].off);
	}
	return r;
}

static size_t slot_of(const struct profdb_values *v, const struct profdb_hotlist *key)
{
	uint64_t h = base_hash_u64(key->off);
	size_t mask = v->nr_slots - 1, at;

	for (int i = 0; i < 2; i++)
		h = base_hash_u64(h ^ key->context[i].off) + key->context[i].image;
	at = base_hash_u64(h) & mask;
	while (v->slots[at] && hotlist_compare(&v->v[v->slots[at] - 1], key) != 0)
		at = (at + 1) & mask;
	return at;
}

/* At most half full, so that probes stay short. */
static int make_hash(struct profdb_values *v, size_t nr)
{
	size_t want = 64;

	while (want < 2 * nr)
		want *= 2;
	if (v->slots && want <= v->nr_slots)
		return 0;
	free(v->slots);
	v->slots = calloc(want, sizeof(*v->slots));
	v->nr_slots = v->slots ? want : 0;
	if (!v->slots)
		return -ENOMEM;
	for (size_t i = 0; i < v->nr; i++)
		v->slots[slot_of(v, &v->v[i])] = (uint32_t)i + 1;
	return 0;
}

/* Room for @more, so that these cannot fail. */
static int reserve(struct profdb_values *v, size_t more)
{
	size_t nr = more < PROFDB_NR_HOTLISTS - v->nr ? v->nr + more : PROFDB_NR_HOTLISTS;
	int r = base_grow(&v->v, &v->cap, nr, sizeof(*v->v));

	return r < 0 ? r : make_hash(v, nr);
}

/* The list of the place that @key says, made where missing; NULL: no more of them, as there is room
 * for @v->cap. */
static struct profdb_hotlist *list_of(struct profdb_values *v, const struct profdb_hotlist *key)
{
	size_t at = slot_of(v, key);
	struct profdb_hotlist *l;

	if (v->slots[at])
		return &v->v[v->slots[at] - 1];
	if (v->nr == PROFDB_NR_HOTLISTS)
		return NULL;
	l = &v->v[v->nr];
	memset(l, 0, sizeof(*l));
	l->off = key->off;
	memcpy(l->context, key->context, sizeof(l->context));
	l->thld = 1;
	v->slots[at] = (uint32_t)++v->nr;
	v->unsorted = true;
	return l;
}

static bool context_ok(const struct profdb_values *v, const struct profdb_context *c)
{
	return c->image ? c->image <= v->nr_images : !c->off;
}

int profdb_values_add(struct profdb_values *v, uint64_t off, const struct profdb_context context[2],
		      uint64_t value)
{
	struct profdb_hotlist key = { .off = off }, *l;
	int r;

	for (int i = 0; context && i < 2; i++) {
		if (!context_ok(v, &context[i]))
			return -EINVAL;
		key.context[i] = context[i];
	}
	if (v->total == UINT64_MAX)
		return -DCPI_EOVERFLOW;
	r = reserve(v, 1);
	if (r < 0)
		return r;
	v->total++;
	l = list_of(v, &key);
	if (l)
		profdb_hotlist_add(l, value, &v->coins);
	else
		v->lost++;
	/* One that is no longer in its order. */
	v->unsorted = true;
	return 0;
}

/* One more list, or more of one. 0, -ENOMEM, -DCPI_EOVERFLOW. */
static int take_list(struct profdb_values *v, const struct profdb_hotlist *from)
{
	struct profdb_hotlist *l;
	uint64_t total;
	int r;

	if (base_add_overflow(v->total, from->vtot, &total))
		return -DCPI_EOVERFLOW;
	r = reserve(v, 1);
	if (r < 0)
		return r;
	v->total = total;
	l = list_of(v, from);
	if (l)
		profdb_hotlist_merge(l, from, &v->coins);
	else
		v->lost += from->vtot;
	v->unsorted = true;
	return 0;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int by_place(const void *a, const void *b)
{
	return hotlist_compare(a, b);
}

static void sort(struct profdb_values *v)
{
	if (!v->unsorted)
		return;
	if (v->nr)
		qsort(v->v, v->nr, sizeof(*v->v), by_place);
	for (size_t i = 0; i < v->nr; i++)
		profdb_hotlist_sort(&v->v[i]);
	free(v->slots);
	v->slots = NULL;
	v->nr_slots = 0;
	v->unsorted = false;
}

size_t profdb_values_nr(const struct profdb_values *v)
{
	return v->nr;
}

const struct profdb_hotlist *profdb_values_at(const struct profdb_values *v, size_t index)
{
	/* The order is no part of what it says: sorting does not change a const one. */
	sort((struct profdb_values *)v);
	return index < v->nr ? &v->v[index] : NULL;
}

/* ---- merging --------------------------------------------------------------------------------- */

/* The numbers that images of @from have in @to, from 1; free(). */
static int map_images(struct profdb_values *to, const struct profdb_values *from, uint32_t **out)
{
	uint32_t *map = calloc(from->nr_images + 1, sizeof(*map));

	*out = map;
	if (!map)
		return -ENOMEM;
	for (size_t i = 0; i < from->nr_images; i++) {
		int r = profdb_values_image_add(to, &from->images[i].id, from->images[i].path);

		if (r < 0)
			return r;
		map[i + 1] = (uint32_t)r;
	}
	return 0;
}

static void map_contexts(struct profdb_hotlist *l, const uint32_t *map)
{
	for (int i = 0; i < 2; i++) {
		l->context[i].image = map[l->context[i].image];
		if (!l->context[i].image)
			l->context[i].off = 0;
	}
}

/* There is room for all lists, and their values. */
static void take_lists(struct profdb_values *to, const struct profdb_values *from,
		       const uint32_t *map, uint64_t (*moved)(void *ctx, uint64_t off), void *ctx)
{
	for (size_t i = 0; i < from->nr; i++) {
		struct profdb_hotlist l = from->v[i];

		map_contexts(&l, map);
		if (moved)
			l.off = moved(ctx, l.off);
		take_list(to, &l);
	}
	to->lost += from->lost;
	to->total += from->lost;
}

int profdb_values_take_all(struct profdb_values *to, const struct profdb_values *from,
			   uint64_t (*moved)(void *ctx, uint64_t off), void *ctx)
{
	uint32_t *map = NULL;
	uint64_t total;
	int r = 0;

	if (strcmp(to->profiler, from->profiler) != 0)
		return -EINVAL;
	if (base_add_overflow(to->total, from->total, &total))
		return -DCPI_EOVERFLOW;
	if (from->nr)
		r = reserve(to, from->nr);
	if (r >= 0)
		r = map_images(to, from, &map);
	if (r >= 0 && !moved) /* else it is of another image */
		r = profdb_profile_merge(to->header, from->header);
	if (r >= 0)
		take_lists(to, from, map, moved, ctx);
	free(map);
	return r < 0 ? r : 0;
}

/* A user who may read the whole may read each part. */
static void share(struct profdb_values *to, const struct profdb_values *from)
{
	if (!to->total)
		to->uid = from->uid;
	else if (from->total && to->uid != from->uid)
		to->uid = UINT32_MAX;
}

int profdb_values_move(struct profdb_values *to, const struct profdb_values *from,
		       uint64_t (*moved)(void *ctx, uint64_t off), void *ctx)
{
	struct profdb_values before = { .total = to->total, .uid = to->uid };
	int r;

	share(&before, from);
	r = profdb_values_take_all(to, from, moved, ctx);
	if (r >= 0)
		to->uid = before.uid;
	return r;
}

int profdb_values_merge(struct profdb_values *to, const struct profdb_values *from)
{
	return profdb_values_move(to, from, NULL, NULL);
}

/* ---- reading a file -------------------------------------------------------------------------- */

/* Lines that are members in memory. */
static const char profiler_word[] = "profiler", lost_word[] = "lost", image_word[] = "context";

/* "ID PATH"; ID may be "0". */
static int take_image(struct profdb_values *v, const char *value)
{
	size_t digits = strcspn(value, " ");
	struct base_id id = { 0 };

	if (!value[digits] || !value[digits + 1])
		return -DCPI_EFORMAT;
	if (strncmp(value, "0 ", 2) != 0 && base_id_parse(&id, value, digits) < 0)
		return -DCPI_EFORMAT;
	return profdb_values_image_add(v, &id, value + digits + 1);
}

static int take_line(struct profdb_values *v, const char *word, const char *value)
{
	size_t before = v->nr_images;
	int r = 0;

	if (!strcmp(word, image_word)) {
		r = take_image(v, value);
		/* One that stands twice would have two numbers. */
		if (r >= 0 && v->nr_images == before)
			r = -DCPI_EFORMAT;
	} else if (!strcmp(word, profiler_word)) {
		if (v->profiler[0] || !profiler_ok(value))
			return -DCPI_EFORMAT;
		strcpy(v->profiler, value);
	} else if (!strcmp(word, lost_word)) {
		r = profdb_number_parse(value, 10, &v->lost) < 0 ? -DCPI_EFORMAT : 0;
		v->total = v->lost;
	}
	return r < 0 ? r : 0;
}

static int take_lines(struct profdb_values *v, struct base_err *err)
{
	const char *word, *value;
	int r = 0;

	v->profiler[0] = '\0';
	for (size_t i = 0; r >= 0 && (value = profdb_profile_line(v->header, i, &word)); i++) {
		r = take_line(v, word, value);
		if (r < 0)
			return base_fail_errno(err, r, "line '%s %.80s'", word, value);
	}
	if (!v->profiler[0])
		return base_fail(err, -DCPI_EFORMAT, "header has no line '%s'", profiler_word);
	profdb_profile_set_word(v->header, profiler_word, NULL);
	profdb_profile_set_word(v->header, lost_word, NULL);
	profdb_profile_set_word(v->header, image_word, NULL);
	return 0;
}

static int get_context(const struct profdb_values *v, const struct profdb_payload *s, size_t *pos,
		       struct profdb_context *c)
{
	uint64_t image;
	int r = profdb_varint_get(s, pos, &image);

	if (r < 0 || image > v->nr_images)
		return -DCPI_EFORMAT;
	c->image = (uint32_t)image;
	c->off = 0;
	return image ? profdb_varint_get(s, pos, &c->off) : 0;
}

/* Values come ascending: the first, then the difference of each to the one before, less one. */
static int get_hot(const struct profdb_payload *s, size_t *pos, struct profdb_hotlist *l,
		   uint64_t *next, bool *last)
{
	struct profdb_hot *h = &l->v[l->nv++];
	int r = profdb_varint_get(s, pos, &h->value);

	if (r >= 0)
		r = profdb_varint_get(s, pos, &h->concise);
	if (r >= 0)
		r = profdb_varint_get(s, pos, &h->counting);
	if (r < 0 || *last || !h->concise || base_add_overflow(h->value, *next, &h->value) ||
	    base_add_overflow(h->counting, h->concise, &h->counting))
		return -DCPI_EFORMAT;
	*next = h->value + 1;
	*last = h->value == UINT64_MAX;
	return 0;
}

static int get_hots(const struct profdb_payload *s, size_t *pos, struct profdb_hotlist *l)
{
	uint64_t nv, next = 0, sum = 0;
	bool last = false;
	int r = profdb_varint_get(s, pos, &nv);

	if (r < 0 || nv > PROFDB_NR_HOT)
		return -DCPI_EFORMAT;
	l->nv = 0;
	while (r >= 0 && l->nv < nv) {
		r = get_hot(s, pos, l, &next, &last);
		if (r >= 0 && base_add_overflow(sum, l->v[l->nv - 1].counting, &sum))
			r = -DCPI_EFORMAT;
	}
	return r < 0 ? r : sum > l->vtot ? -DCPI_EFORMAT : 0;
}

static int get_list(const struct profdb_values *v, const struct profdb_payload *s, size_t *pos,
		    struct profdb_hotlist *l)
{
	uint64_t gap;
	int r = profdb_varint_get(s, pos, &gap);

	if (r >= 0 && base_add_overflow(l->off, gap, &l->off))
		r = -DCPI_EFORMAT;
	for (int i = 0; r >= 0 && i < 2; i++)
		r = get_context(v, s, pos, &l->context[i]);
	if (r >= 0)
		r = profdb_varint_get(s, pos, &l->vtot);
	if (r >= 0)
		r = profdb_varint_get(s, pos, &l->thld);
	if (r >= 0 && (!l->vtot || !l->thld))
		r = -DCPI_EFORMAT;
	return r < 0 ? r : get_hots(s, pos, l);
}

static int get_lists(struct profdb_values *v, const struct profdb_payload *s, struct base_err *err)
{
	struct profdb_hotlist l = { 0 }, before;
	size_t pos = 0, at = 0;
	int r = 0;

	while (r >= 0 && pos < s->len) {
		at = pos;
		before = l;
		r = get_list(v, s, &pos, &l);
		if (r >= 0 &&
		    (v->nr == PROFDB_NR_HOTLISTS || (v->nr && hotlist_compare(&before, &l) >= 0)))
			r = -DCPI_EFORMAT;
		if (r >= 0)
			r = take_list(v, &l);
	}
	r = r == -DCPI_EOVERFLOW ? -DCPI_EFORMAT : r;
	return r < 0 ? base_fail_errno(err, r, "values, byte %zu", at) : 0;
}

static int take_sections(struct profdb_values *v, const uint8_t *file, size_t len, size_t pos,
			 struct base_err *err)
{
	struct profdb_payload foot, s;
	bool lists = false;
	int r = profdb_format1_footer(file, len, pos, 0, &foot, err);

	while (r >= 0 && (r = profdb_section_next(file, len, &pos, &s, err)) >= 0 &&
	       !profdb_section_is(&s, "FOOT")) {
		bool mine = profdb_section_is(&s, "VALS");

		if (!mine)
			r = profdb_section_keep(v->header, &s, err);
		else if (lists)
			r = base_fail(err, -DCPI_EFORMAT, "section 'VALS' stands twice");
		else
			r = get_lists(v, &s, err);
		lists = lists || mine;
	}
	if (r >= 0 && !lists)
		r = base_fail(err, -DCPI_EFORMAT, "no section 'VALS': it holds no values");
	if (r >= 0 && profdb_get64(foot.data) != v->nr)
		r = base_fail(err, -DCPI_EFORMAT, "footer tells of %llu lists, not %zu",
			      (unsigned long long)profdb_get64(foot.data), v->nr);
	return r;
}

static int take_file(struct profdb_values *v, const void *data, size_t len, struct base_err *err)
{
	enum profdb_format format;
	size_t binary;
	int r;

	profdb_profile_free(v->header);
	v->header = NULL;
	r = profdb_header_parse(data, len, &v->header, &binary, &format, err);
	if (r < 0)
		return r;
	if (format != PROFDB_FORMAT_1 || v->header->nr_events) {
		base_fail(err, -DCPI_EFORMAT, "it holds samples, not values");
		base_hint(err, "dcpicat prints such files");
		return -DCPI_EFORMAT;
	}
	r = take_lines(v, err);
	return r < 0 ? r : take_sections(v, data, len, binary, err);
}

int profdb_values_parse(const void *data, size_t len, struct profdb_values **out,
			struct base_err *err)
{
	struct profdb_values *v = profdb_values_new(PROFDB_FILE, NULL, NULL, PROFDB_VALUES);
	int r;

	*out = NULL;
	if (!v)
		return base_fail_errno(err, -ENOMEM, "cannot read values");
	r = take_file(v, data, len, err);
	if (r < 0) {
		profdb_values_free(v);
		return r;
	}
	/* The same files merged are the same hotlists: a report can be made again. */
	profdb_values_seed(v, base_crc32c(0, data, len));
	*out = v;
	return 0;
}

int profdb_values_read_at(int dir_fd, const char *name, const char *shown,
			  struct profdb_values **out, struct base_err *err)
{
	struct base_err why = { 0 };
	struct base_buf buf = { 0 };
	int r = base_file_read(dir_fd, name, PROFDB_FILE_MAX, &buf, err);

	*out = NULL;
	if (r >= 0) {
		r = profdb_values_parse(buf.data, buf.len, out, &why);
		if (r < 0) {
			base_fail(err, r, "cannot read values '%s': %s", shown, why.text);
			if (why.hint[0])
				base_hint(err, "%s", why.hint);
		}
	}
	base_buf_release(&buf);
	return r;
}

/* ---- writing a file -------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	const struct profdb_hot *x = a, *y = b;

	return (x->value > y->value) - (x->value < y->value);
}

/* A context has two numbers at most. */
enum { LIST_MAX = (8 + 3 * PROFDB_NR_HOT) * PROFDB_VARINT_MAX };

static size_t put_list(uint8_t *to, const struct profdb_hotlist *l, uint64_t before)
{
	struct profdb_hot v[PROFDB_NR_HOT];
	size_t n = profdb_varint_put(to, l->off - before);
	uint64_t next = 0;

	for (int i = 0; i < 2; i++) {
		n += profdb_varint_put(to + n, l->context[i].image);
		if (l->context[i].image)
			n += profdb_varint_put(to + n, l->context[i].off);
	}
	n += profdb_varint_put(to + n, l->vtot);
	n += profdb_varint_put(to + n, l->thld);
	n += profdb_varint_put(to + n, l->nv);
	memcpy(v, l->v, l->nv * sizeof(*v));
	qsort(v, l->nv, sizeof(*v), by_value);
	for (uint32_t i = 0; i < l->nv; i++) {
		n += profdb_varint_put(to + n, v[i].value - next);
		n += profdb_varint_put(to + n, v[i].concise);
		n += profdb_varint_put(to + n, v[i].counting - v[i].concise);
		next = v[i].value + 1;
	}
	return n;
}

static int put_lists(const struct profdb_values *v, struct base_buf *out)
{
	const struct profdb_hotlist *l;
	uint8_t bytes[LIST_MAX];
	uint64_t before = 0;
	size_t at;
	int r = profdb_section_begin(out, "VALS", &at);

	for (size_t i = 0; r >= 0 && (l = profdb_values_at(v, i)); i++) {
		r = base_buf_append(out, bytes, put_list(bytes, l, before));
		before = l->off;
	}
	return r < 0 ? r : profdb_section_end(out, at);
}

static int put_images(const struct profdb_values *v)
{
	char id[BASE_ID_TEXT_LEN];
	struct base_buf line = { 0 };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < v->nr_images; i++) {
		base_id_text(&v->images[i].id, id);
		base_buf_clear(&line);
		r = base_buf_printf(&line, "%s %s", *id ? id : "0", v->images[i].path);
		if (r >= 0)
			r = profdb_profile_add_line(v->header, image_word, (char *)line.data);
	}
	base_buf_release(&line);
	return r;
}

static int put_lines(const struct profdb_values *v)
{
	char lost[24];
	int r = profdb_profile_set_word(v->header, profiler_word, v->profiler);

	snprintf(lost, sizeof(lost), "%llu", (unsigned long long)v->lost);
	if (r >= 0 && v->lost)
		r = profdb_profile_set_word(v->header, lost_word, lost);
	return r < 0 ? r : put_images(v);
}

int profdb_values_format(const struct profdb_values *v, struct base_buf *out, struct base_err *err)
{
	size_t start = out->len;
	int r = put_lines(v);

	if (r >= 0)
		r = profdb_header_print(v->header, PROFDB_FORMAT_1, 0, out, err);
	/* They are no part of the header in memory. */
	profdb_profile_set_word(v->header, profiler_word, NULL);
	profdb_profile_set_word(v->header, lost_word, NULL);
	profdb_profile_set_word(v->header, image_word, NULL);
	if (r >= 0)
		r = put_lists(v, out);
	if (r >= 0)
		r = profdb_format1_end(v->header, v->nr, out, start);
	return r < 0 ? base_fail_errno(err, r, "cannot write values") : 0;
}
