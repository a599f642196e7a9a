/* SPDX-License-Identifier: BSD-2-Clause */
/* The images, routines and workloads of a real database become a model of machines. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fleet.h"
#include "samples.h"

/* MEAN: of two to the power of a level, over images and hours. SPREAD: of the logarithms of
 * routines' weights. */
enum { MEAN = 76, SPREAD = 2, SMALL = 60 };

uint64_t fleet_mix(uint64_t a, uint64_t b)
{
	uint64_t state = a * UINT64_C(0x9e3779b97f4a7c15) ^ b;

	base_random64(&state);
	return base_random64(&state);
}

/* From 0 to 1, neither of them. */
static double uniform(uint64_t bits)
{
	return ((double)(bits >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t seed)
{
	uint64_t state = seed;
	double u = uniform(base_random64(&state)), v = uniform(base_random64(&state));

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* ---- the real images ------------------------------------------------------------------------- */

static int add_routine(struct fleet_source *s, struct image *img, const struct image_symbol *symbol)
{
	struct fleet_routine *t = &s->routines[s->nr_routines++];

	t->name = strdup(symbol ? symbol->name : "");
	if (symbol && image_off(img, symbol->vaddr, &t->off) >= 0)
		t->len = symbol->len;
	return t->name ? 0 : -ENOMEM;
}

static int add_places(struct fleet_source *s, struct analysis_image *ai, struct image *img)
{
	size_t nr = profdb_profile_nr_entries(ai->profile);
	const struct image_symbol *last = NULL;
	int r = 0;

	s->places = calloc(nr + 1, sizeof(*s->places));
	s->routines = calloc(nr + 1, sizeof(*s->routines));
	if (!s->places || !s->routines)
		return -ENOMEM;
	for (size_t i = 0; i < nr && r >= 0; i++) {
		const struct profdb_entry *e = profdb_profile_entry(ai->profile, i);
		const struct image_symbol *symbol = NULL;
		uint64_t vaddr;

		if (img && image_vaddr(img, e->off, &vaddr) >= 0)
			symbol = image_symbol_at(img, vaddr);
		if (!s->nr_routines || symbol != last)
			r = add_routine(s, img, symbol);
		last = symbol;
		s->places[i] = (struct fleet_place){ .off = e->off,
						     .routine = (uint32_t)s->nr_routines - 1,
						     .rate = (double)e->count[0] };
	}
	s->nr_places = nr;
	return r;
}

static int add_source(struct fleet *f, struct analysis *a, struct analysis_image *ai)
{
	struct fleet_source *s = &f->sources[f->nr_sources];
	struct image *img = NULL;
	int r;

	analysis_image_open(a, ai, &img, NULL);
	s->kind = ai->kind;
	s->id = *profdb_profile_image(ai->profile);
	s->path = strdup(profdb_profile_path(ai->profile, 0));
	r = s->path ? add_places(s, ai, img) : -ENOMEM;
	if (r >= 0)
		r = store_put_symbols(&s->symbols, s->kind == PROFDB_FILE ? img : NULL);
	image_close(img);
	if (r >= 0 && s->nr_places)
		f->nr_sources++;
	return r;
}

/* ---- workloads ------------------------------------------------------------------------------- */

static struct fleet_source *source_of(struct fleet *f, const struct profdb_image_ref *ref)
{
	for (size_t i = 0; i < f->nr_sources; i++)
		if (f->sources[i].kind == ref->kind && strcmp(f->sources[i].path, ref->path) == 0)
			return &f->sources[i];
	return NULL;
}

/* Workloads of equal name are one here, as in the store's rows. */
static size_t group_of(struct fleet *f, const struct profdb_workload *k)
{
	size_t i = 0;

	for (; i < f->nr_workloads; i++)
		if (strcmp(f->workloads[i].comm, k->comm) == 0 &&
		    strcmp(f->workloads[i].exe, k->exe) == 0 && f->workloads[i].uid == k->uid)
			return i;
	f->workloads[f->nr_workloads++] = *k;
	return i;
}

static int add_shares(struct fleet *f)
{
	for (size_t i = 0; i < f->nr_sources; i++)
		if (!(f->sources[i].share = calloc(profdb_workloads_nr(f->w) + 1, sizeof(double))))
			return -ENOMEM;
	for (size_t i = 0; i < profdb_workloads_nr_counts(f->w); i++) {
		struct profdb_workload_count c = profdb_workloads_count(f->w, i);
		struct fleet_source *s = source_of(f, profdb_workloads_image(f->w, c.image));
		size_t g = group_of(f, profdb_workloads_workload(f->w, c.workload));

		if (s)
			s->share[g] += (double)c.count[0];
	}
	for (size_t i = 0; i < f->nr_sources; i++) {
		double sum = 0, *share = f->sources[i].share;

		for (size_t g = 0; g < f->nr_workloads; g++)
			sum += share[g];
		for (size_t g = 0; g < f->nr_workloads && sum > 0; g++)
			share[g] /= sum;
	}
	return 0;
}

static int add_workloads(struct fleet *f, struct analysis *a, struct base_err *err)
{
	int r = profdb_workloads_load_counts(a->db, a->epochs[0].name, a->platforms[0], &f->w, err);

	if (r < 0)
		return r;
	f->workloads = calloc(profdb_workloads_nr(f->w) + 1, sizeof(*f->workloads));
	return f->workloads ? add_shares(f) : -ENOMEM;
}

/* ---- simulated images ------------------------------------------------------------------------ */

static bool may_be_copied(const struct fleet_source *s)
{
	return (s->kind == PROFDB_FILE || s->kind == PROFDB_DYNAMIC) && s->nr_routines <= SMALL;
}

/* Later copies of an image have fewer samples, and each has other routines that are hot. */
static int add_image(struct fleet *f, size_t index)
{
	const struct fleet_source *s = &f->sources[index % f->nr_sources];
	struct fleet_image *i = &f->images[index];
	size_t copy = index / f->nr_sources;

	/* A machine has one kernel and one compiler: the further images are of smaller files. */
	for (size_t k = 1; copy && k < f->nr_sources && !may_be_copied(s); k++)
		s = &f->sources[(index + k) % f->nr_sources];
	i->source = s;
	i->places = calloc(s->nr_places + 1, sizeof(*i->places));
	if (!i->places)
		return -ENOMEM;
	memcpy(i->places, s->places, s->nr_places * sizeof(*i->places));
	for (size_t k = 0; k < s->nr_places; k++)
		i->places[k].rate *= exp(SPREAD * normal(fleet_mix(index, i->places[k].routine))) /
				     (1 + (double)copy);
	return 0;
}

static void scale(struct fleet *f, double samples)
{
	double sum = 0;

	for (size_t i = 0; i < FLEET_IMAGES; i++)
		for (size_t k = 0; k < f->images[i].source->nr_places; k++)
			sum += f->images[i].places[k].rate;
	for (size_t i = 0; i < FLEET_IMAGES; i++)
		for (size_t k = 0; k < f->images[i].source->nr_places; k++) {
			struct fleet_place *p = &f->images[i].places[k];

			p->rate *= samples / sum / MEAN;
			for (int l = 0; l < FLEET_LEVELS; l++)
				p->none[l] = (float)exp(-p->rate * pow(2, l));
		}
}

int fleet_open(const char *db, double samples, struct fleet *f, struct base_err *err)
{
	const struct analysis_selection sel = { .db = db };
	struct analysis *a;
	int r = analysis_open(&sel, &a, err);

	if (r < 0)
		return r;
	f->sources = calloc(a->nr_images + 1, sizeof(*f->sources));
	r = f->sources ? 0 : -ENOMEM;
	for (size_t i = 0; i < a->nr_images && r >= 0; i++)
		r = add_source(f, a, a->images[i]);
	if (r >= 0 && !f->nr_sources)
		r = base_fail(err, -ENOENT, "'%s' has no samples", db);
	if (r >= 0)
		r = add_workloads(f, a, err);
	for (size_t i = 0; i < FLEET_IMAGES && r >= 0; i++)
		r = add_image(f, i);
	if (r >= 0) {
		scale(f, samples);
		snprintf(f->event, sizeof(f->event), "%s", a->events[0].name);
		f->period = a->events[0].period;
	}
	analysis_close(a);
	return r < 0 ? base_fail_errno(err, r, "cannot read '%s'", db) : 0;
}

size_t fleet_most_places(const struct fleet *f)
{
	size_t most = 0;

	for (size_t i = 0; i < f->nr_sources; i++)
		if (f->sources[i].nr_places > most)
			most = f->sources[i].nr_places;
	return most;
}

/* ---- samples --------------------------------------------------------------------------------- */

uint64_t fleet_version(const struct fleet *f, uint32_t machine, size_t image)
{
	bool own = image >= FLEET_IMAGES - FLEET_OWN ||
		   f->images[image].source->kind == PROFDB_DYNAMIC;

	return own ? fleet_mix(machine + 1000, image)
		   : fleet_mix(fleet_mix(machine, image) % FLEET_VERSIONS, image);
}

/* Days have a peak, at another hour on each machine; images are used more on some. */
static int level_of(uint32_t machine, uint32_t hour, size_t image)
{
	double day = cos(2 * M_PI * (double)(hour + fleet_mix(machine, 7) % 24) / 24);
	double level = 4 + day + 2.5 * normal(fleet_mix(machine, image + 99)) +
		       0.5 * normal(fleet_mix(machine * 1000 + hour, image));

	return level < 0 ? 0 : level > FLEET_LEVELS - 1 ? FLEET_LEVELS - 1 : (int)(level + 0.5);
}

static uint32_t poisson(double rate, float none, uint64_t *random)
{
	double u = uniform(base_random64(random)), p = none, sum = none;
	uint32_t k = 0;

	if (u < p)
		return 0;
	if (rate > 40) {
		double v = rate + sqrt(rate) * normal(base_random64(random)) + 0.5;

		return v < 0 ? 0 : (uint32_t)v;
	}
	for (; u >= sum && k < 1000; sum += p)
		p *= rate / ++k;
	return k;
}

uint64_t fleet_sample(const struct fleet *f, uint32_t machine, uint32_t hour, size_t image,
		      uint32_t *count)
{
	const struct fleet_image *i = &f->images[image];
	uint64_t random = fleet_mix(fleet_mix(machine, hour), image), sum = 0;
	int level = level_of(machine, hour, image);
	double times = pow(2, level);

	for (size_t k = 0; k < i->source->nr_places; k++) {
		const struct fleet_place *p = &i->places[k];

		count[k] = poisson(p->rate * times, p->none[level], &random);
		sum += count[k];
	}
	return sum;
}
