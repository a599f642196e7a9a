/* SPDX-License-Identifier: BSD-2-Clause */
/* The database of one simulated machine: its images are copies of real files, with other build-ids.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fleet.h"

enum { IMAGE_MAX = 64 << 20 };

struct writing {
	const struct fleet *f;
	struct profdb *db;
	const char *files;
	struct profdb_profile *p[FLEET_IMAGES];
	char *path[FLEET_IMAGES];
	struct base_id id[FLEET_IMAGES];
	uint32_t *count;
	struct base_err *err;
};

static void put_id(struct base_id *id, uint64_t version)
{
	for (size_t i = 0; i < id->len; i++)
		id->bytes[i] = (uint8_t)(fleet_mix(version, i / 8) >> 8 * (i % 8));
}

/* The first place that has the old identity is that of the note. */
static int copy_file(struct writing *w, size_t index)
{
	const struct fleet_source *s = w->f->images[index].source;
	struct base_buf bytes = { 0 };
	uint8_t *at = NULL;
	int r = base_file_read(AT_FDCWD, s->path, IMAGE_MAX, &bytes, NULL);

	if (r >= 0 && s->id.len)
		at = memmem(bytes.data, bytes.len, s->id.bytes, s->id.len);
	if (at)
		memcpy(at, w->id[index].bytes, s->id.len);
	if (r >= 0)
		r = base_file_write(AT_FDCWD, w->path[index], 0755, bytes.data, bytes.len, w->err);
	base_buf_release(&bytes);
	return r == -ENOMEM ? r : 0; /* one that cannot be read has samples all the same */
}

static int name_image(struct writing *w, size_t index)
{
	const struct fleet_source *s = w->f->images[index].source;

	w->id[index] = s->id;
	put_id(&w->id[index], fleet_version(w->f, 0, index));
	if (s->kind != PROFDB_FILE)
		return (w->path[index] = strdup(s->path)) ? 0 : -ENOMEM;
	if (asprintf(&w->path[index], "%s/%zu-%s", w->files, index, base_path_name(s->path)) < 0)
		return -ENOMEM;
	return copy_file(w, index);
}

static int add_profile(struct writing *w, uint32_t hour, size_t index)
{
	const struct fleet_image *i = &w->f->images[index];
	uint64_t sum = fleet_sample(w->f, 0, hour, index, w->count);
	enum profdb_kind kind = i->source->kind;
	int r = 0;

	/* Pseudo-images and kernels would need files in the database; named ones do not. */
	if (kind != PROFDB_FILE)
		kind = PROFDB_NAMED;
	if (!sum)
		return 0;
	w->p[index] = profdb_profile_new(
		kind, kind == PROFDB_NAMED ? &(const struct base_id){ 0 } : &w->id[index],
		w->path[index]);
	if (!w->p[index])
		return -ENOMEM;
	r = profdb_profile_event_add(w->p[index], w->f->event, w->f->period);
	for (size_t k = 0; k < i->source->nr_places && r >= 0; k++)
		if (w->count[k])
			r = profdb_profile_add(w->p[index],
					       kind == PROFDB_NAMED ? 0 : i->places[k].off, 0,
					       w->count[k]);
	return r;
}

static int add_workload(struct writing *w, struct profdb_workloads *all, size_t index,
			int64_t minute)
{
	const struct fleet_source *s = w->f->images[index].source;
	const struct profdb_profile *p = w->p[index];
	const struct profdb_image_ref ref = { .kind = profdb_profile_kind(p),
					      .id = *profdb_profile_image(p),
					      .path = profdb_profile_path(p, 0) };
	size_t nr = profdb_profile_nr_entries(p), k = 0;
	int i = profdb_workloads_image_add(all, &ref), r = i;

	/* Places go to workloads one after the other, by the workloads' shares. */
	for (size_t g = 0; g < w->f->nr_workloads && r >= 0; g++) {
		size_t to = g + 1 == w->f->nr_workloads
				    ? nr
				    : k + (size_t)(s->share[g] * (double)nr + 0.5);
		int number = k < to && k < nr
				     ? profdb_workloads_workload_add(all, &w->f->workloads[g])
				     : 0;

		for (r = number; k < to && k < nr && r >= 0; k++) {
			const struct profdb_entry *e = profdb_profile_entry(p, k);

			r = profdb_workloads_add(all, (uint32_t)number, (uint32_t)i, e->off, 0,
						 minute + (int64_t)(fleet_mix(k, index) % 60),
						 e->count[0]);
		}
	}
	return r;
}

static int put_hour(struct writing *w, uint32_t begin)
{
	struct profdb_workloads *all = profdb_workloads_new();
	char stem[300];
	int r = all ? profdb_workloads_event_add(all, w->f->event, w->f->period) : -ENOMEM;

	if (r >= 0)
		r = profdb_flush_begin(w->db, w->err);
	for (size_t i = 0; i < FLEET_IMAGES && r >= 0; i++) {
		if (!w->p[i])
			continue;
		snprintf(stem, sizeof(stem), "%zu-%s", i, base_path_name(w->path[i]));
		r = profdb_flush_put(w->db, stem, w->p[i], w->err);
		if (r >= 0)
			r = add_workload(w, all, i, begin / 60);
	}
	if (r >= 0)
		r = profdb_flush_put_workloads(w->db, all, w->err);
	if (r >= 0)
		r = profdb_flush_commit(w->db, w->err);
	profdb_workloads_free(all);
	return r;
}

static int hour(struct writing *w, uint32_t hour_nr, uint32_t begin)
{
	char epoch[PROFDB_EPOCH_LEN + 1];
	int r = profdb_epoch_start(w->db, begin, epoch, w->err);

	for (size_t i = 0; i < FLEET_IMAGES && r >= 0; i++)
		r = add_profile(w, hour_nr, i);
	if (r >= 0)
		r = put_hour(w, begin);
	if (r >= 0)
		r = profdb_epoch_finish(w->db, w->err);
	for (size_t i = 0; i < FLEET_IMAGES; i++) {
		profdb_profile_free(w->p[i]);
		w->p[i] = NULL;
	}
	return r;
}

int fleet_write(const struct fleet *f, const char *db, const char *files, uint32_t hours,
		uint32_t begin, struct base_err *err)
{
	struct writing w = { .f = f, .files = files, .err = err };
	int r = profdb_open(db, true, &w.db, err);

	w.count = calloc(fleet_most_places(f) + 1, sizeof(*w.count));
	if (r >= 0)
		r = w.count ? profdb_lock(w.db, "host00000", err) : -ENOMEM;
	for (size_t i = 0; i < FLEET_IMAGES && r >= 0; i++)
		r = name_image(&w, i);
	for (uint32_t h = 0; h < hours && r >= 0; h++)
		r = hour(&w, h, begin + h * 3600);
	profdb_close(w.db);
	for (size_t i = 0; i < FLEET_IMAGES; i++)
		free(w.path[i]);
	free(w.count);
	return r < 0 ? base_fail_errno(err, r, "cannot write '%s'", db) : 0;
}
