/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts routines of two sets side by side, with their counts on each host and in each epoch; and
 * tells those that are new, or gone, from those that only have no samples in one of the sets.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code.h"
#include "fleet.h"
#include "regress_sets.h"
#include "report.h"

/* The image that is read, and the procedure that was found last. Its key is released. */
struct regress_reader {
	struct regress_routines *x;
	const struct base_map *names;
	size_t event, column, width;
	const char *image_name;
	const struct image_symbol *last;
	size_t routine; /* @last's index + 1, or 0 */
	struct base_buf key;
};

static int regress_insns_count(struct regress_reader *d, struct image *img, uint64_t off,
			       size_t column, uint64_t count);
static int regress_find(const struct base_map *names, const char *image, const char *label,
			struct base_buf *key, size_t *at);

/* ---- replicates that a store has divided the samples among: they come as workloads ----------- */

/* Numbers that a store may give (STORE_REPLICATES of lib/store/store.h). */
enum { REPLICATES_MAX = 64 };

/* "replicate N" is number N. */
static int number_of(const struct profdb_workload *k, size_t *out)
{
	unsigned int number;

	if (sscanf(k->comm, "replicate %u", &number) != 1 || number >= REPLICATES_MAX)
		return -EINVAL;
	*out = number;
	return 0;
}

/* The replicates of a set that was copied from a store, which are its workloads; @nr: columns. 0 or
 * negative with @err. */
static int regress_replicates_load(const struct set *s, struct profdb_workloads **out, size_t *nr,
				   struct base_err *err)
{
	const struct analysis *a = s->a;
	int r = profdb_workloads_load_counts(a->db, a->epochs[0].name, a->platforms[0], out, err);
	size_t number;

	*nr = 0;
	if (r < 0)
		return base_fail_errno(err, r, "cannot read the replicates");
	for (size_t i = 0; i < profdb_workloads_nr(*out) && r >= 0; i++) {
		r = number_of(profdb_workloads_workload(*out, i), &number);
		if (r >= 0 && number >= *nr)
			*nr = number + 1;
	}
	return r < 0 ? base_fail(err, r, "the store's answer has no replicates") : 0;
}

/* The image whose counts are read. */
struct place {
	struct regress_reader d;
	struct analysis_image *ai;
	struct image *img; /* NULL: its routines are not known */
	size_t first;
};

static int begin_image(struct place *p, struct analysis *a, const struct profdb_image_ref *ref)
{
	int r = analysis_image_of(a, ref->kind, &ref->id, ref->stem ? ref->stem : ref->path,
				  &p->ai);

	image_close(p->img);
	p->img = NULL;
	if (r < 0)
		return r;
	if (ref->kind != PROFDB_NAMED)
		analysis_image_open(a, p->ai, &p->img, NULL);
	p->d.image_name = p->ai->facility ? p->ai->facility : p->ai->name;
	p->d.last = NULL;
	return 0;
}

static int add_count(struct place *p, const struct profdb_workload *k, uint64_t off, uint64_t n)
{
	const struct image_symbol *symbol = NULL;
	struct regress_routines *x = p->d.x;
	size_t number, at;
	uint64_t vaddr;
	int r;

	if (number_of(k, &number) < 0)
		return 0;
	if (p->img && image_vaddr(p->img, off, &vaddr) >= 0)
		symbol = image_symbol_at(p->img, vaddr);
	r = regress_find(p->d.names, p->d.image_name,
			 symbol ? symbol->name : analysis_image_label(p->ai), &p->d.key, &at);
	if (at)
		x->counts[(at - 1) * p->d.width + p->first + number] += n;
	return r < 0 || !x->with_insns || !p->img
		       ? r
		       : regress_insns_count(&p->d, p->img, off, p->first + number, n);
}

static int find_event(const struct profdb_workloads *w, const char *name)
{
	return profdb_profile_event_find(profdb_workloads_header(w), name);
}

/* Adds the samples of event @event in all replicates to the columns from @first on. 0 or -ENOMEM.
 */
static int regress_replicates_take(struct regress_routines *x, const struct base_map *names,
				   struct analysis *a, const char *event,
				   const struct profdb_workloads *w, size_t first, size_t width)
{
	struct place p = { .d = { .x = x, .names = names, .width = width }, .first = first };
	int e = find_event(w, event), r = 0;
	uint32_t last = UINT32_MAX;

	for (size_t i = 0; i < profdb_workloads_nr_counts(w) && e >= 0 && r >= 0; i++) {
		struct profdb_workload_count c = profdb_workloads_count(w, i);

		if (c.image != last)
			r = begin_image(&p, a, profdb_workloads_image(w, c.image));
		last = c.image;
		if (r >= 0 && c.count[e])
			r = add_count(&p, profdb_workloads_workload(w, c.workload), c.off,
				      c.count[e]);
	}
	image_close(p.img);
	base_buf_release(&p.d.key);
	return r;
}

static void regress_counts_drop(uint64_t *counts, size_t nr, const bool *keep, size_t width);

/* ---- instructions of routines whose code is equal in both sets ------------------------------- */

/* Do instructions of the routine have the same places in both sets? */
static bool has_equal_code(const struct regress_routines *x, size_t i)
{
	const struct analysis_diff_row *d = &x->diff.v[i];

	return x->v[i].state == REGRESS_BOTH && d->row[0] && d->row[1] &&
	       d->row[0]->nr_places == 1 && d->row[1]->nr_places == 1 &&
	       (d->code == ANALYSIS_CODE_EQUAL || d->code == ANALYSIS_CODE_OPERANDS);
}

static int find_routine(struct regress_reader *d, const struct image_symbol *symbol)
{
	size_t at;
	int r;

	if (symbol == d->last)
		return 0;
	r = regress_find(d->names, d->image_name, symbol->name, &d->key, &at);
	d->last = symbol;
	d->routine = at && has_equal_code(d->x, at - 1) ? at : 0;
	return r;
}

/* Finds or adds a row without samples. */
static int find(struct regress_insns *in, const struct regress_insn *insn, size_t width, size_t *at)
{
	uint64_t key[2] = { insn->routine, insn->off };
	size_t nr = in->test.nr;
	int r;

	*at = (size_t)(uintptr_t)base_map_get(&in->by_place, key, sizeof(key));
	if (*at)
		return 0;
	r = base_grow(&in->v, &in->cap, nr + 1, sizeof(*in->v));
	if (r >= 0)
		r = base_grow(&in->counts, &in->cap_counts, (nr + 1) * width, sizeof(*in->counts));
	if (r >= 0)
		r = base_map_set(&in->by_place, key, sizeof(key), (void *)(uintptr_t)(nr + 1));
	if (r < 0)
		return r;
	memset(&in->counts[nr * width], 0, width * sizeof(*in->counts));
	in->v[nr] = *insn;
	*at = ++in->test.nr;
	return 0;
}

/* Adds samples at an offset of an open image to a column, where its routine's code is equal in both
 * sets. 0 or -ENOMEM. */
static int regress_insns_count(struct regress_reader *d, struct image *img, uint64_t off,
			       size_t column, uint64_t count)
{
	struct regress_insns *in = &d->x->insns;
	const struct image_symbol *symbol;
	struct regress_insn insn;
	uint64_t vaddr;
	size_t at;
	int r;

	symbol = image_vaddr(img, off, &vaddr) < 0 ? NULL : image_symbol_at(img, vaddr);
	if (!symbol || !count)
		return 0;
	r = find_routine(d, symbol);
	if (r < 0 || !d->routine)
		return r;
	insn = (struct regress_insn){ d->routine - 1, vaddr - symbol->vaddr };
	r = find(in, &insn, d->width, &at);
	if (r >= 0)
		in->counts[(at - 1) * d->width + column] += count;
	return r;
}

static int add_image(struct regress_reader *d, struct analysis *a, struct analysis_image *ai)
{
	uint64_t *count = calloc(a->nr_events + 1, sizeof(*count));
	struct image *img = NULL;
	int r = count ? 0 : -ENOMEM;

	if (r == 0)
		analysis_image_open(a, ai, &img, NULL);
	d->image_name = ai->facility ? ai->facility : ai->name;
	d->last = NULL;
	for (size_t i = 0; img && i < profdb_profile_nr_entries(ai->profile) && r >= 0; i++) {
		const struct profdb_entry *e = profdb_profile_entry(ai->profile, i);

		memset(count, 0, a->nr_events * sizeof(*count));
		analysis_entry_add(ai, e, count, NULL);
		r = regress_insns_count(d, img, e->off, d->column, count[d->event]);
	}
	image_close(img);
	free(count);
	return r;
}

/* Adds the samples of @event in instructions to column @column of @width. 0 or -ENOMEM. */
static int regress_insns_add(struct regress_routines *x, const struct base_map *names,
			     struct analysis *a, size_t event, size_t column, size_t width)
{
	struct regress_reader d = {
		.x = x, .names = names, .event = event, .column = column, .width = width
	};
	int r = 0;

	for (size_t i = 0; i < a->nr_images && r >= 0; i++)
		if (a->images[i]->count[event] && a->images[i]->kind != PROFDB_NAMED)
			r = add_image(&d, a, a->images[i]);
	base_buf_release(&d.key);
	return r;
}

static int regress_insns_test(struct regress_routines *x, const bool *keep, size_t width)
{
	struct regress_insns *in = &x->insns;
	size_t nr = in->test.nr;
	int r;

	in->test = (struct regress){ .nr = nr, .rate = x->test.rate, .least = x->test.least };
	memcpy(in->test.nr_replicates, x->test.nr_replicates, sizeof(in->test.nr_replicates));
	in->test.v = calloc(nr + 1, sizeof(*in->test.v));
	if (!in->test.v)
		return -ENOMEM;
	if (nr)
		regress_counts_drop(in->counts, nr, keep, width);
	for (size_t i = 0; i < nr; i++)
		in->test.v[i].count = &in->counts[i * width];
	r = regress_make(&in->test);
	if (r != -EINVAL)
		return r;
	/* No routine with equal code has samples in both sets: there is nothing to compare. */
	in->test.nr = 0;
	return 0;
}

/* Makes the tests, after routines were tested; columns whose @keep is false are no replicates. 0 or
 * -ENOMEM. */
static void regress_insns_release(struct regress_insns *in)
{
	regress_release(&in->test);
	base_map_release(&in->by_place);
	free(in->test.v);
	free(in->v);
	free(in->counts);
}

/* ---- renamed routines ------------------------------------------------------------------------ */

struct renaming {
	struct base_map by_code[2]; /* by set: image and masked code to index + 1, or several */
};

static void *const several = (void *)UINTPTR_MAX;

/* Hashes the code of a routine that is in one set alone. False: it is not known. */
static bool code_key(struct analysis_opened *o, const struct analysis_diff_row *d, int set,
		     struct base_buf *key)
{
	const struct analysis_row *row = d->row[set];
	const char *image = analysis_diff_image(d);
	const struct image_symbol *symbol;
	struct image *img;
	uint64_t hash = 0;

	if (!row->procedure || row->facility || row->nr_places != 1 || row->unread)
		return false;
	img = analysis_opened_image(o, row->places[0].image);
	symbol = img ? image_symbol_at(img, row->places[0].vaddr) : NULL;
	if (!symbol || analysis_code_hash(img, symbol, true, &hash) < 0)
		return false;
	base_buf_clear(key);
	return base_buf_append(key, &hash, sizeof(hash)) >= 0 &&
	       base_buf_append(key, image, strlen(image)) >= 0;
}

static int note_codes(struct renaming *n, struct analysis_opened o[2],
		      const struct regress_routines *x, struct base_buf *key)
{
	int r = 0;

	for (size_t i = 0; i < x->diff.nr && r >= 0; i++) {
		const struct analysis_diff_row *d = &x->diff.v[i];
		enum regress_state state = x->v[i].state;
		int set = state == REGRESS_NEW;
		void *value = (void *)(uintptr_t)(i + 1);

		if ((state != REGRESS_NEW && state != REGRESS_VANISHED) ||
		    !code_key(&o[set], d, set, key))
			continue;
		if (base_map_get(&n->by_code[set], key->data, key->len))
			value = several;
		r = base_map_set(&n->by_code[set], key->data, key->len, value);
	}
	return r;
}

/* Makes the vanished routine @to and the new one @from one. */
static void rename_routine(struct regress_routines *x, size_t to, size_t from)
{
	struct analysis_diff_row *d = x->diff.v;

	d[to].row[1] = d[from].row[1];
	d[to].count[1] = d[from].count[1];
	d[to].code = ANALYSIS_CODE_OPERANDS;
	d[from].row[1] = NULL;
	x->v[to].renamed = d[to].row[1]->procedure;
	x->v[to].state = REGRESS_BOTH;
	x->v[from].state = REGRESS_OTHER;
	x->v[from].counts_as = to;
}

/* A vanished routine and a new one whose code is equal, each the only one with it, are one. */
static int join_renamed(struct analysis_opened o[2], struct regress_routines *x)
{
	struct renaming n = { 0 };
	struct base_buf key = { 0 };
	int r = note_codes(&n, o, x, &key);

	for (size_t i = 0; i < x->diff.nr && r >= 0; i++) {
		void *at[2];

		if (x->v[i].state != REGRESS_VANISHED || !code_key(&o[0], &x->diff.v[i], 0, &key))
			continue;
		for (int set = 0; set < 2; set++)
			at[set] = base_map_get(&n.by_code[set], key.data, key.len);
		if (!at[1] || at[0] == several || at[1] == several)
			continue;
		rename_routine(x, i, (uintptr_t)at[1] - 1);
	}
	base_map_release(&n.by_code[0]);
	base_map_release(&n.by_code[1]);
	base_buf_release(&key);
	return r;
}

/* ---- the counts of all columns --------------------------------------------------------------- */

/*
 * A set is divided by host and epoch. Where that were too many columns, each one has several
 * epochs, and then several hosts. A store divides in the same way (lib/store/fetch_where.c).
 */
struct division {
	size_t platforms, epochs;   /* numbers of parts, which are read one by one */
	size_t columns;		    /* at most so many as parts */
	struct profdb_workloads *w; /* all parts of a store's answer, by column */
};

/* A host's name tells its column where there are more hosts than columns. */
static size_t column_of(const struct analysis *a, const struct division *d, size_t part)
{
	const char *platform = a->platforms[part / d->epochs];
	struct base_sha256 s;
	uint8_t sum[32];

	if (d->platforms <= REPLICATES_MAX)
		return part;
	base_sha256_init(&s);
	base_sha256_add(&s, platform, strlen(platform));
	base_sha256_end(&s, sum);
	return sum[0] % REPLICATES_MAX;
}

static struct division divide(const struct analysis *a)
{
	struct division d = { .platforms = a->nr_platforms, .epochs = a->nr_epochs };

	if (d.platforms && d.epochs > REPLICATES_MAX / d.platforms)
		d.epochs = d.platforms > REPLICATES_MAX ? 1 : REPLICATES_MAX / d.platforms;
	d.columns = d.platforms > REPLICATES_MAX ? REPLICATES_MAX : d.platforms * d.epochs;
	return d;
}

static int append_key(struct base_buf *key, const char *image, const char *label)
{
	base_buf_clear(key);
	return base_buf_append(key, image, strlen(image) + 1) < 0 ||
			       base_buf_append(key, label, strlen(label)) < 0
		       ? -ENOMEM
		       : 0;
}

static const char *image_of(const struct analysis_row *row)
{
	return row->facility ? row->facility->name : row->image->name;
}

/* Each row has its name, also where several of them are one routine. */
static int note_names(struct base_map *names, const struct regress_routines *x,
		      const struct analysis_rows *rows)
{
	struct base_buf key = { 0 };
	int r = 0;

	for (size_t i = 0; i < rows->nr && r >= 0; i++) {
		const struct analysis_row *row = &rows->v[i];
		size_t at;

		if (!row->compared)
			continue;
		at = x->v[row->compared - 1].counts_as;
		r = append_key(&key, image_of(row), analysis_row_label(row));
		if (r >= 0)
			r = base_map_set(names, key.data, key.len, (void *)(uintptr_t)(at + 1));
	}
	base_buf_release(&key);
	return r;
}

/* Finds the index + 1 in @names of the routine @label of an image; 0: none. 0 or -ENOMEM.
 */
static int regress_find(const struct base_map *names, const char *image, const char *label,
			struct base_buf *key, size_t *at)
{
	int r = append_key(key, image, label);

	*at = r < 0 ? 0 : (uintptr_t)base_map_get(names, key->data, key->len);
	return r;
}

/* Adds a column of counts, of @x's replicate @to. */
static int take_column(struct regress_routines *x, const struct base_map *names,
		       const struct set *part, size_t event, size_t to, size_t width)
{
	const struct analysis_rows *rows = &part->rows;
	struct base_buf key = { 0 };
	int r = 0;

	for (size_t i = 0; i < rows->nr && r >= 0; i++) {
		const struct analysis_row *row = &rows->v[i];
		size_t at;

		if (!row->count[event])
			continue;
		r = regress_find(names, image_of(row), analysis_row_label(row), &key, &at);
		if (at)
			x->counts[(at - 1) * width + to] += row->count[event];
	}
	base_buf_release(&key);
	return r < 0 || !x->with_insns ? r : regress_insns_add(x, names, part->a, event, to, width);
}

/* Reads one part of a set. -ENOENT without @err: it has no samples. */
static int read_part(const struct set *of, const struct division *d, size_t part, struct set *out,
		     struct base_err *err)
{
	const struct analysis *a = of->a;
	size_t at = part % d->epochs;
	const char *first = a->epochs[at * a->nr_epochs / d->epochs].name;
	const char *last = a->epochs[(at + 1) * a->nr_epochs / d->epochs - 1].name;
	char epochs[128];

	*out = (struct set){ .sel = of->sel, .nr_what = 0 };
	snprintf(epochs, sizeof(epochs), strcmp(first, last) == 0 ? "%s" : "%s..%s", first, last);
	out->sel.epoch = epochs;
	if (d->platforms > 1)
		out->sel.platform = a->platforms[part / d->epochs];
	return sets_gather(out, false, false, err);
}

static void close_part(struct set *s)
{
	analysis_rows_release(&s->rows);
	analysis_close(s->a);
}

/* Reads part @i of a set into its column, which parts may share; @first is the set's first. */
static int take_part(const struct set *of, const struct division *d, size_t i, const char *event,
		     struct regress_routines *x, const struct base_map *names, size_t first,
		     size_t width, struct base_err *err)
{
	size_t column = first + column_of(of->a, d, i);
	struct base_err why = { 0 };
	struct set part;
	int r = read_part(of, d, i, &part, &why);
	int at = r < 0 || !part.a->nr_events ? -ENOENT : analysis_event_find(part.a, event, NULL);

	if (at >= 0) {
		r = take_column(x, names, &part, (size_t)at, column, width);
		if (r < 0)
			base_fail_errno(&why, r, "cannot compare");
	}
	if (r < 0 && r != -ENOENT && err)
		*err = why;
	close_part(&part);
	return r == -ENOENT ? 0 : r;
}

static int read_set(struct set *of, size_t event, const struct division *d,
		    struct regress_routines *x, size_t first, size_t width, struct base_err *err)
{
	const char *name = of->a->events[event].name;
	struct base_map names = { 0 };
	size_t nr = d->platforms * d->epochs;
	int r = note_names(&names, x, &of->rows);

	if (r >= 0 && d->w)
		r = regress_replicates_take(x, &names, of->a, name, d->w, first, width);
	else if (r >= 0 && nr == 1)
		r = take_column(x, &names, of, event, first, width);
	if (r < 0)
		base_fail_errno(err, r, "cannot compare");
	for (size_t i = 0; i < nr && nr > 1 && !d->w && r >= 0; i++)
		r = take_part(of, d, i, name, x, &names, first, width, err);
	base_map_release(&names);
	return r;
}

/* Removes the columns whose @keep is false. */
static void regress_counts_drop(uint64_t *counts, size_t nr, const bool *keep, size_t width)
{
	for (size_t i = 0; i < nr; i++)
		for (size_t c = 0, to = 0; c < width; c++)
			if (keep[c])
				counts[i * width + to++] = counts[i * width + c];
}

/* Hosts did not run in each epoch: columns without samples are no replicates. */
static void find_empty(struct regress_routines *x, bool *keep, size_t width)
{
	size_t first_b = x->test.nr_replicates[0];

	for (size_t c = 0; c < width; c++) {
		for (size_t i = 0; i < x->diff.nr; i++)
			keep[c] = keep[c] || x->counts[i * width + c];
		if (!keep[c])
			x->test.nr_replicates[c >= first_b]--;
	}
}

static int test(struct regress_routines *x, size_t width, struct base_err *err)
{
	bool *keep = calloc(width + 1, sizeof(*keep));
	int r = keep ? 0 : -ENOMEM;

	if (r == 0) {
		find_empty(x, keep, width);
		regress_counts_drop(x->counts, x->diff.nr, keep, width);
		for (size_t i = 0; i < x->diff.nr; i++) {
			x->test.v[i].count = &x->counts[i * width];
			x->test.v[i].excluded = x->v[i].state != REGRESS_BOTH;
		}
		r = regress_make(&x->test);
	}
	if (r == 0 && x->with_insns)
		r = regress_insns_test(x, keep, width);
	free(keep);
	if (r == -EINVAL)
		return base_fail(err, r, "no routine has samples in both sets");
	return r < 0 ? base_fail_errno(err, r, "cannot compare") : 0;
}

static int read_columns(struct set sets[2], const size_t event[2], const struct division d[2],
			struct regress_routines *x, struct base_err *err)
{
	size_t width = d[0].columns + d[1].columns;
	int r = 0;

	x->counts = calloc(x->diff.nr * width + 1, sizeof(*x->counts));
	if (!x->counts)
		return base_fail_errno(err, -ENOMEM, "cannot compare");
	for (int set = 0; set < 2 && r >= 0; set++) {
		x->test.nr_replicates[set] = d[set].columns;
		r = read_set(&sets[set], event[set], &d[set], x, set ? d[0].columns : 0, width,
			     err);
	}
	return r < 0 ? r : test(x, width, err);
}

static int read_counts(struct set sets[2], const size_t event[2], struct regress_routines *x,
		       struct base_err *err)
{
	struct division d[2] = { divide(sets[0].a), divide(sets[1].a) };
	int r = 0;

	for (int i = 0; i < 2 && r >= 0; i++)
		if (fleet_has_replicates(sets[i].sel.db))
			r = regress_replicates_load(&sets[i], &d[i].w, &d[i].columns, err);
	if (r >= 0)
		r = read_columns(sets, event, d, x, err);
	profdb_workloads_free(d[0].w);
	profdb_workloads_free(d[1].w);
	return r;
}

/* ---- which routines are new, or gone --------------------------------------------------------- */

struct finding {
	struct set *sets;
	struct analysis_opened *opened;
	struct regress_routines *x;
	/* For each set: images by the name that rows match by, and identities of images. */
	struct base_map by_name[2], by_id[2];
	/* For each set that is a copy of a store's sums: symbols of images, and the last one of
	 * them. */
	char folder[2][PATH_MAX];
	const struct analysis_image *of[2];
	struct image *symbols[2];
};

/* ---- images ---------------------------------------------------------------------------------- */

static int note_image_names(struct finding *f, int set)
{
	const struct regress_routines *x = f->x;
	int r = 0;

	for (size_t i = 0; i < x->diff.nr && r >= 0; i++) {
		const struct analysis_diff_row *d = &x->diff.v[i];
		const char *name = analysis_diff_image(d);

		if (d->row[set])
			r = base_map_set(&f->by_name[set], name, strlen(name), d->row[set]->image);
	}
	return r;
}

/* Equal images have equal routines. Code of processes differs with what they make, and the sums of
 * a store have it in images "facility". */
static const struct base_id *identity_of(const struct analysis_image *ai)
{
	const struct base_id *id = profdb_profile_image(ai->profile);
	bool known = id->len && ai->kind != PROFDB_DYNAMIC && ai->kind != PROFDB_NAMED &&
		     !profdb_profile_word(ai->profile, "text") &&
		     !profdb_profile_word(ai->profile, "facility");

	return known ? id : NULL;
}

static bool has_samples(const struct analysis *a, const struct analysis_image *ai)
{
	for (size_t e = 0; e < a->nr_events; e++)
		if (ai->count[e])
			return true;
	return false;
}

static int note_identities(struct finding *f, int set)
{
	const struct analysis *a = f->sets[set].a;
	int r = 0;

	for (size_t i = 0; i < a->nr_images && r >= 0; i++) {
		const struct base_id *id = identity_of(a->images[i]);

		if (id && has_samples(a, a->images[i]))
			r = base_map_set(&f->by_id[set], id->bytes, id->len, a->images[i]);
	}
	return r;
}

/* ---- routines without samples in a set ------------------------------------------------------- */

/* The set that has no samples of a routine, whose image is in both under another identity: then
 * *@ai is that set's. Else -1, and @x has its state. */
static int set_without(struct finding *f, size_t i, struct analysis_image **ai)
{
	const struct analysis_diff_row *d = &f->x->diff.v[i];
	int without = d->row[0] != NULL;
	const struct analysis_row *row = d->row[!without];
	const char *image = analysis_diff_image(d);
	const struct base_id *id = identity_of(row->image);

	if (!row->procedure)
		f->x->v[i].state = REGRESS_OTHER;
	if (!row->procedure || (d->row[0] && d->row[1]) ||
	    (id && base_map_get(&f->by_id[without], id->bytes, id->len)))
		return -1;
	*ai = base_map_get(&f->by_name[without], image, strlen(image));
	if (*ai)
		return without;
	f->x->v[i].state = without ? REGRESS_VANISHED : REGRESS_NEW;
	return -1;
}

/* The sums of a store have the names of routines with samples alone. */
static bool is_sum(const struct finding *f, int set)
{
	return fleet_has_replicates(f->sets[set].sel.db) && !f->x->with_insns;
}

struct identities {
	char **v;
	size_t nr, cap;
	struct base_map seen;
};

static int add_identity(struct identities *ids, const struct base_id *id)
{
	char text[BASE_ID_TEXT_LEN];
	int r;

	if (base_map_get(&ids->seen, id->bytes, id->len))
		return 0;
	r = base_map_set(&ids->seen, id->bytes, id->len, ids);
	if (r >= 0)
		r = base_grow(&ids->v, &ids->cap, ids->nr + 1, sizeof(*ids->v));
	if (r < 0 || !(ids->v[ids->nr] = strdup(base_id_text(id, text))))
		return -ENOMEM;
	ids->nr++;
	return 0;
}

/* Copies the symbols of the images of a set in which routines are missing. */
static int ask_symbols(struct finding *f, int set, struct base_err *err)
{
	struct identities ids = { 0 };
	struct analysis_image *ai;
	int r = 0;

	for (size_t i = 0; i < f->x->diff.nr && r >= 0; i++)
		if (set_without(f, i, &ai) == set && identity_of(ai))
			r = add_identity(&ids, identity_of(ai));
	if (r >= 0 && ids.nr)
		r = fleet_symbols(f->sets[set].sel.db, ids.nr, ids.v, f->folder[set], err);
	for (size_t i = 0; i < ids.nr; i++)
		free(ids.v[i]);
	free(ids.v);
	base_map_release(&ids.seen);
	return r;
}

static struct image *symbols_of(struct finding *f, int set, const struct analysis_image *ai)
{
	const struct base_id *id = identity_of(ai);
	char text[BASE_ID_TEXT_LEN], path[PATH_MAX + BASE_ID_TEXT_LEN + 32];

	if (f->of[set] == ai || !id || !*f->folder[set])
		return f->of[set] == ai ? f->symbols[set] : NULL;
	image_close(f->symbols[set]);
	f->symbols[set] = NULL;
	f->of[set] = ai;
	snprintf(path, sizeof(path), "%s/kernel/%s.symbols", f->folder[set],
		 base_id_text(id, text));
	image_open_path(path, IMAGE_FILE, &f->symbols[set], NULL);
	return f->symbols[set];
}

static bool has_routine(struct finding *f, int set, struct analysis_image *ai, const char *name)
{
	struct image *img = is_sum(f, set) ? symbols_of(f, set, ai)
					   : analysis_opened_image(&f->opened[set], ai);
	size_t pos = 0;

	return img && image_symbol_find(img, name, &pos);
}

/* A routine without samples in a set is compared where that set's image has it. */
static void find_state(struct finding *f, size_t i)
{
	const struct analysis_diff_row *d = &f->x->diff.v[i];
	struct analysis_image *ai;
	int without = set_without(f, i, &ai);

	if (without >= 0 && !has_routine(f, without, ai, d->row[!without]->procedure))
		f->x->v[i].state = without ? REGRESS_VANISHED : REGRESS_NEW;
}

/* Finds which routines are new in B, or gone. 0, or negative, with @err where a store cannot be
 * asked. */
static int find_states(struct set sets[2], struct analysis_opened opened[2],
		       struct regress_routines *x, struct base_err *err)
{
	struct finding *f = calloc(1, sizeof(*f));
	int r = f ? 0 : -ENOMEM;

	if (f)
		*f = (struct finding){ .sets = sets, .opened = opened, .x = x };
	for (int set = 0; set < 2 && r >= 0; set++) {
		r = note_image_names(f, set);
		if (r >= 0)
			r = note_identities(f, set);
	}
	for (int set = 0; set < 2 && r >= 0; set++)
		if (is_sum(f, set))
			r = ask_symbols(f, set, err);
	for (size_t i = 0; i < x->diff.nr && r >= 0; i++)
		find_state(f, i);
	for (int set = 0; set < 2 && f; set++) {
		image_close(f->symbols[set]);
		base_map_release(&f->by_name[set]);
		base_map_release(&f->by_id[set]);
	}
	free(f);
	return r;
}

/* ---- all ------------------------------------------------------------------------------------- */

int regress_routines_make(struct set sets[2], const size_t event[2], struct regress_routines *x,
			  struct base_err *err)
{
	struct analysis *const a[2] = { sets[0].a, sets[1].a };
	struct analysis_rows *const rows[2] = { &sets[0].rows, &sets[1].rows };
	struct analysis_opened opened[2] = { { .a = a[0] }, { .a = a[1] } };
	int r = analysis_diff_rows(a, rows, event, &x->diff);

	if (r >= 0) {
		x->test.nr = x->diff.nr;
		x->v = calloc(x->diff.nr + 1, sizeof(*x->v));
		x->test.v = calloc(x->diff.nr + 1, sizeof(*x->test.v));
		r = x->v && x->test.v ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < x->diff.nr && r >= 0; i++)
		x->v[i].counts_as = i;
	if (r >= 0)
		r = find_states(sets, opened, x, err);
	if (r >= 0)
		r = join_renamed(opened, x);
	image_close(opened[0].image);
	image_close(opened[1].image);
	if (r < 0)
		return base_fail_errno(err, r, "cannot compare");
	return read_counts(sets, event, x, err);
}

void regress_routines_release(struct regress_routines *x)
{
	regress_insns_release(&x->insns);
	regress_release(&x->test);
	free(x->test.v);
	free(x->v);
	free(x->counts);
	analysis_diff_release(&x->diff);
}
