/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A concise sample has each value with the times that it was chosen, each time with probability
 * 1 / thld. A counting sample has each value with the times that it was seen from one on, which is
 * the first at which it was chosen. Both are kept over one choice, so that a value is in both or in
 * neither: of those that are counted after the first, the chosen ones lie anywhere with equal
 * probability. That is all that is needed to thin both, as if thld had been greater from the start.
 */
#include <math.h>
#include <string.h>

#include "profdb_internal.h"

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

void profdb_hotlist_add(struct profdb_hotlist *l, uint64_t value, struct profdb_coins *c)
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
void profdb_hotlist_merge(struct profdb_hotlist *to, const struct profdb_hotlist *from,
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

void profdb_hotlist_sort(struct profdb_hotlist *l)
{
	for (uint32_t i = 1; i < l->nv; i++) {
		struct profdb_hot h = l->v[i];
		uint32_t at = i;

		for (; at && comes_before(&h, &l->v[at - 1]); at--)
			l->v[at] = l->v[at - 1];
		l->v[at] = h;
	}
}
