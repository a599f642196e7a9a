/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dyn_truth DATABASE FACILITY…: judge each sample in the facilities' images, made of routines as
 * truth_jit.h has them. Prints
 *
 *	total N       samples in the images
 *	unnamed N     in no routine, or in an image that cannot be opened
 *	wrong N       in bytes where another slot works
 *	bytes N       in a routine whose bytes are not those of its slot
 *	lines N       without the line of its slot
 *	images N      with samples
 *	routine NAME N
 *	bucket N NAME      samples in no image at all, of everybody
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"
#include "profdb.h"
#include "truth_jit.h"

struct routine {
	char *name;
	uint64_t samples;
	struct routine *next;
};

static struct {
	struct profdb *db;
	struct image_store *store;
	char **facilities;
	uint64_t total, unnamed, wrong, bytes, lines, images;
	struct routine *routines;
} t;

static void *need(void *p)
{
	if (!p)
		abort();
	return p;
}

static uint64_t samples(const struct profdb_profile *p, const struct profdb_entry *e)
{
	uint64_t n = 0;

	for (size_t i = 0; i < profdb_profile_nr_events(p); i++)
		n += e->count[i];
	return n;
}

static void add(const char *name, uint64_t n)
{
	struct routine *r = t.routines;

	while (r && strcmp(r->name, name))
		r = r->next;
	if (!r) {
		r = need(calloc(1, sizeof(*r)));
		r->name = need(strdup(name));
		r->next = t.routines;
		t.routines = r;
	}
	r->samples += n;
}

/* Whether the symbol's bytes are those of its slot. */
static bool right_bytes(const struct image *img, const struct image_symbol *sym, int slot)
{
	unsigned char truth[TRUTH_BLOCK], got[TRUTH_BLOCK];

	truth_code(truth, slot);
	return sym->len == TRUTH_BLOCK &&
	       image_bytes(img, sym->vaddr, got, sizeof(got)) == sizeof(got) &&
	       !memcmp(truth, got, sizeof(got));
}

static void judge(struct image *img, uint64_t off, uint64_t n)
{
	const struct image_symbol *sym = NULL;
	struct image_line line = { 0 };
	uint64_t vaddr, at;
	int slot;

	t.total += n;
	if (img && image_vaddr(img, off, &vaddr) == 0)
		sym = image_symbol_at(img, vaddr);
	if (!sym) {
		t.unnamed += n;
		return;
	}
	slot = truth_slot(sym->name);
	if (slot < 0) {
		t.wrong += n;
		return;
	}
	at = vaddr - sym->vaddr;
	add(sym->name, n);
	if (at >= TRUTH_HEAD && (at - TRUTH_HEAD) / TRUTH_OWN != (uint64_t)slot)
		t.wrong += n;
	if (!right_bytes(img, sym, slot))
		t.bytes += n;
	if (image_line_at(img, vaddr, &line) < 0 || line.line != truth_line(slot, at))
		t.lines += n;
}

/* A pseudo-image's file name begins with its facility. */
static bool wanted(const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	for (char **f = t.facilities; *f; f++)
		if (!strncmp(name, *f, strlen(*f)) && name[strlen(*f)] == '-')
			return true;
	return false;
}

static int visit(void *ctx, const char *file, struct profdb_profile *p)
{
	const char *path = profdb_profile_path(p, 0) ? profdb_profile_path(p, 0) : "";
	bool named = profdb_profile_kind(p) == PROFDB_NAMED;
	const char *paths[] = { path, NULL };
	struct image_query query = { .kind = IMAGE_DYNAMIC,
				     .id = *profdb_profile_image(p),
				     .paths = paths };
	struct base_err err = { 0 };
	struct image *img = NULL;
	uint64_t sum = 0;

	(void)ctx;
	if (named || (profdb_profile_kind(p) == PROFDB_DYNAMIC && wanted(path))) {
		if (!named && image_open(t.store, &query, &img, &err) < 0)
			fprintf(stderr, "dyn_truth: %s: %s\n", file, err.text);
		t.images += !named;
		for (size_t i = 0; i < profdb_profile_nr_entries(p); i++) {
			const struct profdb_entry *e = profdb_profile_entry(p, i);

			sum += samples(p, e);
			if (!named)
				judge(img, e->off, samples(p, e));
		}
		if (named)
			printf("bucket %" PRIu64 " %s\n", sum, path);
		image_close(img);
	}
	profdb_profile_free(p);
	return 0;
}

static void bad(void *ctx, const char *file, const struct base_err *err)
{
	(void)ctx;
	fprintf(stderr, "dyn_truth: %s: %s\n", file, err->text);
	exit(1);
}

static int walk(struct base_err *err)
{
	char **epochs = profdb_epochs(t.db, err), **platforms;
	int r = epochs ? 0 : err->code;

	for (char **e = epochs; r >= 0 && *e; e++) {
		platforms = profdb_platforms(t.db, *e, err);
		for (char **p = platforms; r >= 0 && p && *p; p++)
			r = profdb_walk(t.db, *e, *p, visit, bad, NULL, err);
		free(platforms);
	}
	free(epochs);
	return r;
}

static void release(void)
{
	struct routine *next;

	for (struct routine *r = t.routines; r; r = next) {
		next = r->next;
		free(r->name);
		free(r);
	}
}

int main(int argc, char **argv)
{
	struct base_err err = { 0 };

	if (argc < 3)
		return 2;
	t.facilities = argv + 2;
	if (profdb_open(argv[1], false, &t.db, &err) < 0 ||
	    image_store_open(profdb_dyn_fd(t.db), profdb_kernel_fd(t.db), &t.store) < 0 ||
	    walk(&err) < 0) {
		base_err_print(&err, "dyn_truth", stderr);
		return 1;
	}
	printf("total %" PRIu64 "\nunnamed %" PRIu64 "\nwrong %" PRIu64 "\nbytes %" PRIu64
	       "\nlines %" PRIu64 "\nimages %" PRIu64 "\n",
	       t.total, t.unnamed, t.wrong, t.bytes, t.lines, t.images);
	for (struct routine *r = t.routines; r; r = r->next)
		printf("routine %s %" PRIu64 "\n", r->name, r->samples);
	release();
	image_store_close(t.store);
	profdb_close(t.db);
	return 0;
}
