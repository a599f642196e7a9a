/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares two sets of samples, procedure by procedure. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "regress.h"
#include "code.h"
#include "demangle.h"
#include "diff.h"
#include "rows.h"

/* Files that have another path in each set. Zero-initialize; the keys are copies. */
struct diff_moved {
	struct base_map paths[2]; /* indexed by set: the files with samples */
	struct base_map alone[2]; /* indexed by set: base name to the only path that is not in the
				     other set */
};

/* ---- programs that have another path --------------------------------------------------------- */

/* The value of a base name that several files have. */
static const char several[] = "";

static bool is_file(const struct analysis_row *row)
{
	return !row->facility && row->image->kind == PROFDB_FILE;
}

static const char *get(const struct base_map *m, const char *name)
{
	return base_map_get(m, name, strlen(name));
}

static int note_path(struct base_map *paths, const struct analysis_row *row)
{
	const char *path = row->image->name;

	return get(paths, path) ? 0 : base_map_set(paths, path, strlen(path), (void *)path);
}

static int note_alone(struct diff_moved *m, int set, const char *path)
{
	const char *base = base_path_name(path);
	bool first = !get(&m->alone[set], base);

	return get(&m->paths[!set], path) ? 0
					  : base_map_set(&m->alone[set], base, strlen(base),
							 (void *)(first ? path : several));
}

/* Finds the files that are in one set alone, under a base name that one file has in each. 0 or
 * -ENOMEM; the caller releases @m in any case. */
static int diff_moved_find(struct diff_moved *m, struct analysis_rows *const rows[2],
			   const size_t event[2])
{
	void *path;
	int r = 0;

	for (int set = 0; set < 2; set++)
		for (size_t i = 0; i < rows[set]->nr && r >= 0; i++)
			if (rows[set]->v[i].count[event[set]] && is_file(&rows[set]->v[i]))
				r = note_path(&m->paths[set], &rows[set]->v[i]);
	for (int set = 0; set < 2; set++)
		for (size_t pos = 0; r >= 0 && base_map_next(&m->paths[set], &pos, &path);)
			r = note_alone(m, set, path);
	return r;
}

/* Does the row's file match one of the other set by its base name? */
static bool diff_moved_is(const struct diff_moved *m, const struct analysis_row *row)
{
	const char *base, *a, *b;

	if (!is_file(row))
		return false;
	base = base_path_name(row->image->name);
	a = get(&m->alone[0], base);
	b = get(&m->alone[1], base);
	if (!a || !b || a == several || b == several)
		return false;
	return strcmp(a, row->image->name) == 0 || strcmp(b, row->image->name) == 0;
}

static void diff_moved_release(struct diff_moved *m)
{
	for (int set = 0; set < 2; set++) {
		base_map_release(&m->paths[set]);
		base_map_release(&m->alone[set]);
	}
}

/* ---- renamed --------------------------------------------------------------------------------- */

/*
 * Procedures can have the same readable name in two builds of a program and different linker's
 * names: a hash in Rust's names depends on the compiler's version and on the program's.
 */

struct renaming {
	struct analysis_opened opened[2]; /* by set */
	struct base_map only_a;		  /* image and readable name: index in the rows + 1 */
};

struct image *analysis_opened_image(struct analysis_opened *o, struct analysis_image *ai)
{
	if (o->of != ai) {
		image_close(o->image);
		o->image = NULL;
		o->of = ai;
		analysis_image_open(o->a, ai, &o->image, NULL);
	}
	return o->image;
}

/* NULL: the row's image cannot be read. */
static struct image *image_of_row(struct analysis_opened *o, const struct analysis_row *row)
{
	return row->nr_places ? analysis_opened_image(o, row->places[0].image) : NULL;
}

static bool has(struct image *img, const char *name)
{
	size_t pos = 0;

	return image_symbol_find(img, name, &pos) != NULL;
}

/* Is it one procedure in two builds? Then neither build has a procedure of the other's name. */
static bool renamed(struct renaming *x, const struct analysis_row *a, const struct analysis_row *b)
{
	struct image *in_a = image_of_row(&x->opened[0], a), *in_b = image_of_row(&x->opened[1], b);

	return in_a && in_b && !base_id_equal(image_id(in_a), image_id(in_b)) &&
	       !has(in_b, a->procedure) && !has(in_a, b->procedure);
}

/* Makes the key of a row. False: the row is in both sets, or has no readable name. */
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

/* Adds the code of @from to @to, as both are one row of the comparison. 0 or -ENOMEM. */
static int merge_row(struct analysis_row *to, struct analysis_row *from)
{
	int r = base_grow(&to->places, &to->cap_places, to->nr_places + from->nr_places,
			  sizeof(*to->places));

	if (r < 0)
		return r;
	if (from->nr_places)
		memcpy(to->places + to->nr_places, from->places,
		       from->nr_places * sizeof(*from->places));
	to->nr_places += from->nr_places;
	to->unread |= from->unread;
	from->merged = to;
	return 0;
}

/* Merges two rows; the second one is removed. */
static int join(struct analysis_diff_row *to, struct analysis_diff_row *from, int set)
{
	int r = 0;

	if (to->row[set])
		r = merge_row(to->row[set], from->row[set]);
	else
		to->row[set] = from->row[set];
	to->count[set] += from->count[set];
	from->row[set] = NULL;
	return r;
}

/* Merges rows of @set into rows of the same readable name; B first, which makes rows of both
 * sets. */
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

/*
 * Merges rows that are in one set alone, in images of one name but different build-ids, if their
 * readable names are equal and neither image has a procedure of the other's linker's name. 0 or
 * -ENOMEM.
 */
static int analysis_diff_renamed(struct analysis_diff *d, struct analysis *const a[2])
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

/* ---- the comparison -------------------------------------------------------------------------- */

/* The probability that a comparison of equal sets shows a change in some row. */
#define CHANCE 0.01
/* With fewer samples, sets show three times as many rows as CHANCE says, or hundreds of times. */
enum { NORMAL_MIN = 128 };

struct pair {
	struct analysis *const *a;
	struct analysis_rows *const *rows;
	const size_t *event;
	struct analysis_diff *out;
	struct diff_moved moved;
	struct base_map by_name; /* index in out + 1 */
};

/* ---- matching -------------------------------------------------------------------------------- */

/* Runs of a facility have different processes, and so different names of images. */
static const char *image_of(const struct analysis_row *row, bool moved)
{
	if (row->facility)
		return row->facility->name;
	return moved ? base_path_name(row->image->name) : row->image->name;
}

static int name_row(const struct analysis_row *row, bool moved, struct base_buf *key)
{
	const char *label = analysis_row_label(row);
	const char *image = image_of(row, moved);
	int r = base_buf_append(key, row->facility ? "f" : moved ? "m" : "i", 1);

	if (r >= 0)
		r = base_buf_append(key, image, strlen(image) + 1);
	if (r >= 0)
		r = base_buf_append(key, row->procedure ? "p" : "n", 1);
	return r < 0 ? r : base_buf_append(key, label, strlen(label));
}

static int find(struct pair *p, const struct analysis_row *row, struct analysis_diff_row **out)
{
	struct analysis_diff *d = p->out;
	bool moved = diff_moved_is(&p->moved, row);
	struct base_buf key = { 0 };
	size_t at = 0;
	int r = name_row(row, moved, &key);

	if (r >= 0)
		at = (size_t)(uintptr_t)base_map_get(&p->by_name, key.data, key.len);
	if (r >= 0 && !at) {
		r = base_grow(&d->v, &d->cap, d->nr + 1, sizeof(*d->v));
		if (r >= 0)
			r = base_map_set(&p->by_name, key.data, key.len,
					 (void *)(uintptr_t)(d->nr + 1));
		if (r >= 0) {
			d->v[d->nr] = (struct analysis_diff_row){ .moved = moved };
			at = ++d->nr;
		}
	}
	base_buf_release(&key);
	*out = at ? &d->v[at - 1] : NULL;
	return r;
}

static int add_set(struct pair *p, int set)
{
	struct analysis_rows *rows = p->rows[set];
	struct analysis_diff_row *d;
	int r = 0;

	for (size_t i = 0; i < rows->nr && r >= 0; i++) {
		struct analysis_row *row = &rows->v[i];

		row->merged = NULL;
		row->compared = 0;
		if (!row->count[p->event[set]])
			continue;
		r = find(p, row, &d);
		if (r < 0)
			break;
		d->count[set] += row->count[p->event[set]];
		p->out->total[set] += row->count[p->event[set]];
		if (d->row[set])
			r = merge_row(d->row[set], row);
		else
			d->row[set] = row;
	}
	return r;
}

/* ---- code ------------------------------------------------------------------------------------ */

static int by_hash(const void *pa, const void *pb)
{
	const struct analysis_place *a = pa, *b = pb;

	return (a->hash > b->hash) - (a->hash < b->hash);
}

static int by_masked(const void *pa, const void *pb)
{
	const struct analysis_place *a = pa, *b = pb;

	return (a->masked > b->masked) - (a->masked < b->masked);
}

/* Sorts the places and drops repeated ones. Returns their number. */
static size_t settle(struct analysis_place *v, size_t nr,
		     int (*compare)(const void *, const void *))
{
	size_t kept = 0;

	if (nr)
		qsort(v, nr, sizeof(*v), compare);
	for (size_t i = 0; i < nr; i++)
		if (!kept || compare(&v[kept - 1], &v[i]) != 0)
			v[kept++] = v[i];
	return kept;
}

static bool same(const struct analysis_diff_row *d, int (*compare)(const void *, const void *))
{
	const struct analysis_row *a = d->row[0], *b = d->row[1];

	for (size_t i = 0; i < a->nr_places && i < b->nr_places; i++)
		if (compare(&a->places[i], &b->places[i]) != 0)
			return false;
	return a->nr_places == b->nr_places;
}

static void settle_both(struct analysis_diff_row *d, int (*compare)(const void *, const void *))
{
	for (int set = 0; set < 2; set++) {
		struct analysis_row *row = d->row[set];

		row->nr_places = settle(row->places, row->nr_places, compare);
	}
}

/* Compares the code by its unmasked hashes. */
static void compare_bytes(struct analysis_diff_row *d)
{
	if (!(d->row[0] ? d->row[0] : d->row[1])->procedure) {
		d->code = ANALYSIS_CODE_NONE;
	} else if (!d->row[0] || !d->row[1]) {
		d->code = d->row[0] ? ANALYSIS_CODE_ONLY_A : ANALYSIS_CODE_ONLY_B;
	} else if (d->row[0]->unread || d->row[1]->unread) {
		d->code = ANALYSIS_CODE_UNKNOWN;
	} else {
		settle_both(d, by_hash);
		d->code = same(d, by_hash) ? ANALYSIS_CODE_EQUAL : ANALYSIS_CODE_DIFFERS;
	}
}

static int by_image(const void *pa, const void *pb)
{
	const struct analysis_place *a = *(struct analysis_place *const *)pa;
	const struct analysis_place *b = *(struct analysis_place *const *)pb;

	return (a->image > b->image) - (a->image < b->image);
}

/* Collects the places, in one set, of rows whose bytes differ. */
static int differing(const struct analysis_diff *d, int set, struct analysis_place ***out,
		     size_t *nr)
{
	size_t cap = 0;
	int r = 0;

	for (size_t i = 0; i < d->nr && r >= 0; i++) {
		const struct analysis_row *row = d->v[i].row[set];

		if (d->v[i].code != ANALYSIS_CODE_DIFFERS)
			continue;
		r = base_grow(out, &cap, *nr + row->nr_places, sizeof(**out));
		for (size_t k = 0; k < row->nr_places && r >= 0; k++)
			(*out)[(*nr)++] = &row->places[k];
	}
	if (*nr)
		qsort(*out, *nr, sizeof(**out), by_image);
	return r;
}

/* Masks the code of one set, image by image. */
static int mask_set(struct pair *p, int set)
{
	struct analysis_place **v = NULL;
	struct analysis_opened opened = { .a = p->a[set] };
	size_t nr = 0;
	int r = differing(p->out, set, &v, &nr);

	for (size_t i = 0; i < nr && r >= 0; i++) {
		struct image *img = analysis_opened_image(&opened, v[i]->image);
		const struct image_symbol *symbol;

		symbol = img ? image_symbol_at(img, v[i]->vaddr) : NULL;
		v[i]->masked = v[i]->hash;
		if (symbol && (r = analysis_code_hash(img, symbol, true, &v[i]->masked)) != -ENOMEM)
			r = 0;
	}
	image_close(opened.image);
	free(v);
	return r;
}

static int compare_code(struct pair *p)
{
	struct analysis_diff *d = p->out;
	int r;

	for (size_t i = 0; i < d->nr; i++)
		compare_bytes(&d->v[i]);
	r = mask_set(p, 0);
	if (r >= 0)
		r = mask_set(p, 1);
	for (size_t i = 0; i < d->nr && r >= 0; i++) {
		if (d->v[i].code != ANALYSIS_CODE_DIFFERS)
			continue;
		settle_both(&d->v[i], by_masked);
		if (same(&d->v[i], by_masked))
			d->v[i].code = ANALYSIS_CODE_OPERANDS;
	}
	return r;
}

/* ---- chance ---------------------------------------------------------------------------------- */

/* The number of standard errors that some of @nr normal variables exceeds, in either direction,
 * with probability CHANCE. */
static double bound_of(size_t nr)
{
	return chance_quantile(CHANCE / 2 / fmax(1, (double)nr), INFINITY);
}

/*
 * The share of a procedure, whose samples are a binomial part of its set's. One hit and one miss
 * are added (Agresti and Caffo), so that the error is above 0 in a set with no or few samples.
 */
static double share_of(uint64_t count, uint64_t total)
{
	return ((double)count + 1) / ((double)total + 2);
}

static double variance(double share, uint64_t total)
{
	return share * (1 - share) / ((double)total + 2);
}

/*
 * The standard error of the difference: from the shares of each set, or from the pooled share if
 * that is larger. The smaller of two very unequal sets says little if it has no samples, and its
 * own share says too much.
 */
static double standard_error(const uint64_t count[2], const uint64_t total[2])
{
	double both = (double)(count[0] + count[1] + 2) / (double)(total[0] + total[1] + 4);
	double apart = 0, pooled = 0;

	for (int set = 0; set < 2; set++) {
		apart += variance(share_of(count[set], total[set]), total[set]);
		pooled += variance(both, total[set]);
	}
	return sqrt(fmax(apart, pooled));
}

/*
 * Fisher's exact test, for numbers too small for the normal approximation: the probability that, of
 * the procedure's samples in both sets, the smaller set gets at most, or at least, as many as it
 * has; twice the smaller one. The probability of each number follows from its neighbour's by a
 * ratio.
 */
static double chance_of(const uint64_t count[2], const uint64_t total[2])
{
	int s = total[1] < total[0];
	double all = (double)(count[0] + count[1]), here = (double)total[s];
	double apart = (double)total[!s] - all, has = (double)count[s];
	double p = 1, below = 1, above = 1;

	for (double i = has; i < here && i < all; i++) {
		p *= (here - i) * (all - i) / ((i + 1) * (apart + i + 1));
		above += p;
	}
	p = 1;
	for (double i = has; i > 0 && apart + i > 0; i--) {
		p *= i * (apart + i) / ((here - i + 1) * (all - i + 1));
		below += p;
	}
	return 2 * fmin(below, above) / (below + above - 1);
}

static bool is_chance(const struct analysis_diff *d, const struct analysis_diff_row *row)
{
	if (fabs(row->difference) <= d->bound * row->error)
		return true;
	return (d->total[0] < NORMAL_MIN || d->total[1] < NORMAL_MIN) &&
	       chance_of(row->count, d->total) * (double)d->nr > CHANCE;
}

static void weigh(struct analysis_diff *d)
{
	d->bound = bound_of(d->nr);
	for (size_t i = 0; i < d->nr; i++) {
		struct analysis_diff_row *row = &d->v[i];

		for (int set = 0; set < 2; set++)
			if (d->total[set])
				row->share[set] = (double)row->count[set] / (double)d->total[set];
		row->difference = row->share[1] - row->share[0];
		row->error = standard_error(row->count, d->total);
		if (!is_chance(d, row))
			row->change = row->difference;
	}
}

static const struct analysis_row *any(const struct analysis_diff_row *d)
{
	return d->row[0] ? d->row[0] : d->row[1];
}

const char *analysis_diff_image(const struct analysis_diff_row *d)
{
	return image_of(any(d), d->moved);
}

const char *analysis_diff_label(const struct analysis_diff_row *d)
{
	return analysis_row_label(any(d));
}

static int descending(double a, double b)
{
	return (a < b) - (a > b);
}

static int by_weight(const void *pa, const void *pb)
{
	const struct analysis_diff_row *a = pa, *b = pb;
	int r = descending(fabs(a->change), fabs(b->change));

	if (!r)
		r = descending(fabs(a->difference), fabs(b->difference));
	if (!r)
		r = descending(a->share[0] + a->share[1], b->share[0] + b->share[1]);
	if (!r)
		r = strcmp(analysis_diff_image(a), analysis_diff_image(b));
	return r ? r : strcmp(analysis_diff_label(a), analysis_diff_label(b));
}

/* ---- all ------------------------------------------------------------------------------------- */

static void number_rows(const struct analysis_diff *d, struct analysis_rows *const rows[2])
{
	for (size_t i = 0; i < d->nr; i++)
		for (int set = 0; set < 2; set++)
			if (d->v[i].row[set])
				d->v[i].row[set]->compared = i + 1;
	for (int set = 0; set < 2; set++)
		for (size_t i = 0; i < rows[set]->nr; i++) {
			const struct analysis_row *to = &rows[set]->v[i];

			while (to->merged)
				to = to->merged;
			rows[set]->v[i].compared = to->compared;
		}
}

int analysis_diff_rows(struct analysis *const a[2], struct analysis_rows *const rows[2],
		       const size_t event[2], struct analysis_diff *out)
{
	struct pair p = { .a = a, .rows = rows, .event = event, .out = out };
	int r = diff_moved_find(&p.moved, rows, event);

	if (r >= 0)
		r = add_set(&p, 0);
	if (r >= 0)
		r = add_set(&p, 1);
	if (r >= 0)
		r = analysis_diff_renamed(out, a);
	if (r >= 0)
		r = compare_code(&p);
	if (r >= 0)
		weigh(out);
	if (r >= 0 && out->nr)
		qsort(out->v, out->nr, sizeof(*out->v), by_weight);
	if (r >= 0)
		number_rows(out, rows);
	base_map_release(&p.by_name);
	diff_moved_release(&p.moved);
	return r < 0 ? r : 0;
}

void analysis_diff_release(struct analysis_diff *d)
{
	free(d->v);
	memset(d, 0, sizeof(*d));
}
