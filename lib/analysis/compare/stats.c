/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures how the counts of procedures or images vary between several sets of samples. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"

/* Runs of a facility have different processes, and so different names of images. */
static char *image_of(const struct analysis_row *row)
{
	return row->facility ? row->facility->name : row->image->name;
}

static int find(struct stats *s, struct base_map *by_name, const char *name, struct stats_row **out)
{
	size_t at = (size_t)(uintptr_t)base_map_get(by_name, name, strlen(name));
	struct stats_row row = { .name = name };
	int r;

	if (at) {
		*out = &s->v[at - 1];
		return 0;
	}
	r = base_grow(&s->v, &s->cap, s->nr + 1, sizeof(*s->v));
	if (r >= 0)
		r = base_map_set(by_name, name, strlen(name), (void *)(uintptr_t)(s->nr + 1));
	if (r < 0)
		return r;
	row.count = calloc(s->nr_sets, sizeof(*row.count));
	if (!row.count)
		return -ENOMEM;
	s->v[s->nr] = row;
	*out = &s->v[s->nr++];
	return 0;
}

static int note_image(struct stats_row *row, char *image)
{
	int r;

	for (size_t i = 0; i < row->nr_images; i++)
		if (strcmp(row->images[i], image) == 0)
			return 0;
	r = base_grow(&row->images, &row->cap_images, row->nr_images + 1, sizeof(*row->images));
	if (r >= 0)
		row->images[row->nr_images++] = image;
	return r;
}

/* A row of several images, such as those of a facility, says nothing of their build-ids. */
static int note_id(struct stats_row *row, const struct analysis_row *from)
{
	const struct base_id *id = profdb_profile_image(from->image->profile);
	int r;

	if (from->nr_images != 1 || !id->len)
		return 0;
	for (size_t i = 0; i < row->nr_ids; i++)
		if (base_id_equal(row->ids[i], id))
			return 0;
	r = base_grow(&row->ids, &row->cap_ids, row->nr_ids + 1, sizeof(*row->ids));
	if (r >= 0)
		row->ids[row->nr_ids++] = id;
	return r;
}

static int add_set(struct stats *s, const struct stats_set *set, size_t index, bool by_image,
		   struct base_map *by_name)
{
	int r = 0;

	for (size_t i = 0; i < set->rows->nr && r >= 0; i++) {
		const struct analysis_row *from = &set->rows->v[i];
		double count = (double)from->count[set->event] * set->factor;
		struct stats_row *row;

		if (!from->count[set->event])
			continue;
		r = find(s, by_name, by_image ? image_of(from) : analysis_row_label(from), &row);
		if (r >= 0)
			r = note_image(row, image_of(from));
		if (r >= 0)
			r = note_id(row, from);
		if (r < 0)
			break;
		row->count[index] += count;
		s->total[index] += count;
	}
	return r;
}

void stats_spread(const double *count, size_t nr, struct stats_spread *out)
{
	double squares = 0;

	memset(out, 0, sizeof(*out));
	out->min = out->max = count[0];
	for (size_t i = 0; i < nr; i++) {
		out->sum += count[i];
		out->min = fmin(out->min, count[i]);
		out->max = fmax(out->max, count[i]);
		out->nr += count[i] > 0;
	}
	out->mean = out->sum / (double)nr;
	out->range = out->max - out->min;
	for (size_t i = 0; i < nr; i++)
		squares += (count[i] - out->mean) * (count[i] - out->mean);
	out->deviation = sqrt(squares / (double)(nr - 1));
}

static int descending(double a, double b)
{
	return (a < b) - (a > b);
}

static int by_range(const void *pa, const void *pb)
{
	const struct stats_row *a = pa, *b = pb;
	int r = descending(a->spread.range, b->spread.range);

	if (!r)
		r = descending(a->spread.sum, b->spread.sum);
	return r ? r : strcmp(a->name, b->name);
}

static int by_normalized(const void *pa, const void *pb)
{
	const struct stats_row *a = pa, *b = pb;
	int r = descending(a->spread.range / a->spread.sum, b->spread.range / b->spread.sum);

	return r ? r : by_range(pa, pb);
}

int stats_make(const struct stats_set *sets, size_t nr_sets, bool by_image, bool normalized,
	       struct stats *out)
{
	struct base_map by_name = { 0 };
	int r = 0;

	out->nr_sets = nr_sets;
	out->total = calloc(nr_sets, sizeof(*out->total));
	if (!out->total)
		return -ENOMEM;
	for (size_t i = 0; i < nr_sets && r >= 0; i++)
		r = add_set(out, &sets[i], i, by_image, &by_name);
	base_map_release(&by_name);
	if (r < 0)
		return r;
	for (size_t i = 0; i < out->nr; i++) {
		stats_spread(out->v[i].count, nr_sets, &out->v[i].spread);
		out->total_ranges += out->v[i].spread.range;
	}
	if (out->nr)
		qsort(out->v, out->nr, sizeof(*out->v), normalized ? by_normalized : by_range);
	return 0;
}

void stats_release(struct stats *s)
{
	for (size_t i = 0; i < s->nr; i++) {
		free(s->v[i].images);
		free(s->v[i].ids);
		free(s->v[i].count);
	}
	free(s->v);
	free(s->total);
	memset(s, 0, sizeof(*s));
}
