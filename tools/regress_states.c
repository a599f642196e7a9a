/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells a routine that is new, or gone, from one that only has no samples in one of the sets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fleet.h"
#include "regress_sets.h"
#include "report.h"

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

static int note_names(struct finding *f, int set)
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

/* ---- routines without samples in a set ---------------------------------------------------------
 */

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

int regress_find_states(struct set sets[2], struct analysis_opened opened[2],
			struct regress_routines *x, struct base_err *err)
{
	struct finding *f = calloc(1, sizeof(*f));
	int r = f ? 0 : -ENOMEM;

	if (f)
		*f = (struct finding){ .sets = sets, .opened = opened, .x = x };
	for (int set = 0; set < 2 && r >= 0; set++) {
		r = note_names(f, set);
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
