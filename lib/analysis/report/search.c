/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the procedures that a user names by a name or an address. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "code.h"
#include "demangle.h"
#include "rows.h"
#include "search.h"

enum { NEAR_MAX = 3 };

struct near {
	char *name;
	unsigned int distance;
};

struct search {
	struct analysis *a;
	const char *what;
	bool by_address;
	bool readable;	       /* no linker's name matches, so readable names are compared */
	enum demangle_fit fit; /* the best so far, of readable names */
	size_t from;	       /* the first one found in the image that is searched */
	uint64_t vaddr;
	struct analysis_founds *out;
	struct near near[NEAR_MAX]; /* the nearest names met, nearest first */
	size_t nr_images;
};

/* The distance of two names; values above @what's length are not near. A name that contains the
 * other is near. */
static unsigned int distance(const char *what, const char *name)
{
	size_t len = strlen(what), name_len = strlen(name);
	unsigned int limit = 1 + (unsigned int)(len < 90 ? len / 3 : 30), d;

	if (len >= 3 && strstr(name, what))
		return 1;
	if (name_len > len + limit || len > name_len + limit)
		return UINT32_MAX;
	d = base_name_distance(what, name);
	return d <= limit ? d : UINT32_MAX;
}

static void note_near(struct search *s, const char *name)
{
	unsigned int d = distance(s->what, name);
	size_t at = NEAR_MAX;
	char *copy;

	for (size_t i = 0; i < NEAR_MAX; i++)
		if (s->near[i].name && strcmp(s->near[i].name, name) == 0)
			return;
	while (at > 0 && (!s->near[at - 1].name || d < s->near[at - 1].distance))
		at--;
	if (d == UINT32_MAX || at == NEAR_MAX || !(copy = strdup(name)))
		return;
	free(s->near[NEAR_MAX - 1].name);
	memmove(&s->near[at + 1], &s->near[at], (NEAR_MAX - 1 - at) * sizeof(s->near[0]));
	s->near[at] = (struct near){ copy, d };
}

static int add_found(struct search *s, struct analysis_image *ai, const struct image_symbol *symbol)
{
	struct analysis_founds *f = s->out;
	struct analysis_found one = { .image = ai, .vaddr = symbol->vaddr, .len = symbol->len };
	int r = base_grow(&f->v, &f->cap, f->nr + 1, sizeof(*f->v));

	one.name = strdup(symbol->name);
	one.count = calloc(s->a->nr_events + 1, sizeof(*one.count));
	if (r < 0 || !one.name || !one.count) {
		free(one.name);
		free(one.count);
		return -ENOMEM;
	}
	f->v[f->nr++] = one;
	return 0;
}

/* Counts the samples of the procedures found in this image. */
static void count_found(struct search *s, struct analysis_image *ai, struct image *img)
{
	const struct profdb_profile *p = ai->profile;
	const struct image_symbol *symbol;
	uint64_t vaddr;

	for (size_t i = 0; i < profdb_profile_nr_entries(p) && s->from < s->out->nr; i++) {
		const struct profdb_entry *e = profdb_profile_entry(p, i);

		if (image_vaddr(img, e->off, &vaddr) < 0 || !(symbol = image_symbol_at(img, vaddr)))
			continue;
		for (size_t f = s->from; f < s->out->nr; f++)
			if (s->out->v[f].vaddr == symbol->vaddr)
				analysis_entry_add(ai, e, s->out->v[f].count, NULL);
	}
}

static void free_found(struct analysis_found *f)
{
	free(f->name);
	free(f->count);
}

static void drop_found(struct search *s)
{
	for (size_t i = 0; i < s->out->nr; i++)
		free_found(&s->out->v[i]);
	s->out->nr = s->from = 0;
}

/* A name that fits better than those before takes their place. */
static int add_fitting(struct search *s, struct analysis_image *ai,
		       const struct image_symbol *symbol, const char *name)
{
	enum demangle_fit fit = demangle_fit(name, s->what);

	if (fit == DEMANGLE_NONE && !s->out->nr)
		note_near(s, name);
	if (fit == DEMANGLE_NONE || fit < s->fit)
		return 0;
	if (fit > s->fit)
		drop_found(s);
	s->fit = fit;
	return add_found(s, ai, symbol);
}

static int search_readable(struct search *s, struct analysis_image *ai, struct image *img)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < image_nr_symbols(img); i++) {
		const struct image_symbol *symbol = image_symbol(img, i);
		char *name = demangle_name(symbol->name);

		r = add_fitting(s, ai, symbol, name ? name : symbol->name);
		free(name);
	}
	return r;
}

static int search_image(struct search *s, struct analysis_image *ai)
{
	const struct image_symbol *symbol;
	size_t pos = 0;
	struct image *img = NULL;
	int r = 0;

	s->nr_images++;
	s->from = s->out->nr;
	if (analysis_image_open(s->a, ai, &img, NULL) < 0)
		return 0;
	if (s->by_address) {
		symbol = image_symbol_at(img, s->vaddr);
		if (symbol)
			r = add_found(s, ai, symbol);
	} else if (s->readable) {
		r = search_readable(s, ai, img);
	} else {
		while (r >= 0 && (symbol = image_symbol_find(img, s->what, &pos)))
			r = add_found(s, ai, symbol);
	}
	count_found(s, ai, img);
	image_close(img);
	return r;
}

static int by_count(const void *pa, const void *pb, void *ctx)
{
	const struct analysis_found *a = pa, *b = pb;
	size_t event = *(const size_t *)ctx;
	int r;

	if (a->count[event] != b->count[event])
		return a->count[event] > b->count[event] ? -1 : 1;
	r = strcmp(a->image->name, b->image->name);
	return r ? r : (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

static bool sampled(const struct search *s, const struct analysis_found *f)
{
	for (size_t i = 0; i < s->a->nr_events; i++)
		if (f->count[i])
			return true;
	return false;
}

/* Drops procedures without samples if others have some. */
static void drop_unsampled(struct search *s)
{
	struct analysis_founds *f = s->out;
	size_t nr = 0;
	bool any = false;

	for (size_t i = 0; i < f->nr; i++)
		any |= sampled(s, &f->v[i]);
	for (size_t i = 0; any && i < f->nr; i++) {
		if (sampled(s, &f->v[i]))
			f->v[nr++] = f->v[i];
		else
			free_found(&f->v[i]);
	}
	if (any)
		f->nr = nr;
}

static int not_found(struct search *s, const char *image, struct base_err *err)
{
	char names[200];
	size_t len = 0;

	if (image)
		base_fail(err, -DCPI_ENOSYMBOL, "no procedure '%s' in image '%s'", s->what, image);
	else
		base_fail(err, -DCPI_ENOSYMBOL, "no procedure '%s' in an image with samples",
			  s->what);
	for (size_t i = 0; i < NEAR_MAX && s->near[i].name && len < sizeof(names); i++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s'%s'", i ? ", " : "",
					s->near[i].name);
	if (*s->what == '(')
		base_hint(err, "what dcpiprof has in parentheses are samples without a procedure");
	else if (len)
		base_hint(err, "near names: %s", names);
	else if (s->by_address)
		base_hint(err, "'dcpidis FILE FROM..TO' prints code that lies in no procedure");
	else
		base_hint(err,
			  "'dcpiprof%s%s' lists the procedures with samples; one that was inlined "
			  "stands in others, where 'dcpilist -asm' names it",
			  image ? " " : "", image ? image : "");
	return -DCPI_ENOSYMBOL;
}

static int search_all(struct search *s, const char *image)
{
	int r = 0;

	for (size_t i = 0; i < s->a->nr_images && r >= 0; i++) {
		struct analysis_image *ai = s->a->images[i];

		if (ai->kind != PROFDB_NAMED && (!image || analysis_image_match(s->a, ai, image)))
			r = search_image(s, ai);
	}
	return r;
}

/* Searches a file that has no samples, or has them under another path. */
static int search_file(struct search *s, const char *path)
{
	struct analysis_image *ai;
	int r;

	if (!strchr(path, '/'))
		return 0;
	r = analysis_image_add(s->a, path, &ai, NULL);
	if (r >= 0)
		return search_image(s, ai);
	return r == -ENOMEM ? r : 0;
}

static int search_everywhere(struct search *s, const char *image)
{
	int r;

	s->nr_images = 0;
	r = search_all(s, image);
	if (r >= 0 && image && !s->nr_images)
		r = search_file(s, image);
	return r;
}

static int find(struct analysis *a, const char *what, const char *image, size_t event,
		struct analysis_founds *out, struct base_err *err)
{
	struct search s = { .a = a, .what = what, .out = out };
	char *end;
	int r;

	if (strncmp(what, "0x", 2) == 0) {
		s.vaddr = strtoull(what, &end, 16);
		s.by_address = what[2] && !*end;
	}
	r = search_everywhere(&s, image);
	if (r >= 0 && !out->nr && !s.by_address) {
		s.readable = true;
		r = search_everywhere(&s, image);
	}
	if (r < 0)
		base_fail_errno(err, r, "cannot look for '%s'", what);
	else if (image && !s.nr_images)
		r = analysis_image_unknown(a, image, err);
	else if (!out->nr)
		r = not_found(&s, image, err);
	for (size_t i = 0; i < NEAR_MAX; i++)
		free(s.near[i].name);
	if (r < 0)
		return r;
	/* A part of a name is meant to find what is worth a look. */
	if (!image || (s.readable && s.fit < DEMANGLE_UNARGUED))
		drop_unsampled(&s);
	qsort_r(out->v, out->nr, sizeof(*out->v), by_count, &event);
	return 0;
}

int analysis_find(struct analysis *a, const char *what, const char *image, size_t event,
		  struct analysis_founds *out, struct base_err *err)
{
	const char *inlined = strstr(what, ANALYSIS_ROW_INLINED);
	char *procedure;
	int r;

	if (!inlined || what[strlen(what) - 1] != ')')
		return find(a, what, image, event, out, err);
	procedure = strndup(what, (size_t)(inlined - what));
	r = procedure ? find(a, procedure, image, event, out, err)
		      : base_fail_errno(err, -ENOMEM, "cannot look for '%s'", what);
	free(procedure);
	return r;
}

static bool hash_found(struct analysis *a, const struct analysis_found *f, uint64_t *hash)
{
	const struct image_symbol *symbol;
	struct image *img = NULL;
	bool ok = false;

	if (f->image->kind == PROFDB_DYNAMIC && analysis_image_open(a, f->image, &img, NULL) >= 0) {
		symbol = image_symbol_at(img, f->vaddr);
		ok = symbol && analysis_code_hash(img, symbol, true, hash) >= 0;
	}
	image_close(img);
	return ok;
}

bool analysis_founds_versions(const struct analysis_founds *f)
{
	for (size_t i = 0; i < f->nr; i++) {
		const struct analysis_found *one = &f->v[i];

		if (one->image->kind != PROFDB_DYNAMIC || !one->image->facility ||
		    strcmp(one->name, f->v[0].name) != 0 ||
		    strcmp(one->image->facility, f->v[0].image->facility) != 0)
			return false;
	}
	return f->nr > 0;
}

size_t analysis_founds_alike(struct analysis *a, struct analysis_founds *f)
{
	uint64_t first = 0, hash;
	size_t nr = 1;

	if (!hash_found(a, &f->v[0], &first))
		return nr;
	for (size_t i = 1; i < f->nr; i++) {
		struct analysis_found one = f->v[i];

		if (one.len != f->v[0].len || !hash_found(a, &one, &hash) || hash != first)
			continue;
		memmove(&f->v[nr + 1], &f->v[nr], (i - nr) * sizeof(one));
		f->v[nr++] = one;
	}
	return nr;
}

void analysis_founds_release(struct analysis_founds *f)
{
	for (size_t i = 0; i < f->nr; i++)
		free_found(&f->v[i]);
	free(f->v);
	memset(f, 0, sizeof(*f));
}
