/* SPDX-License-Identifier: BSD-2-Clause */
/* Workloads in memory: who they are, and their counts by place and by minute. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

struct profdb_workloads *profdb_workloads_new(void)
{
	struct profdb_workloads *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->header = profdb_profile_new(PROFDB_NAMED, NULL, PROFDB_WORKLOADS);
	if (!w->header) {
		profdb_workloads_free(w);
		return NULL;
	}
	return w;
}

static void texts_release(struct base_map *texts)
{
	void *text;

	for (size_t i = 0; base_map_next(texts, &i, &text);)
		free(text);
	base_map_release(texts);
}

void profdb_workloads_free(struct profdb_workloads *w)
{
	if (!w)
		return;
	profdb_image_table_release(&w->images);
	free(w->v);
	base_map_release(&w->by_key);
	texts_release(&w->texts);
	profdb_workload_rows_release(&w->counts);
	profdb_workload_rows_release(&w->minutes);
	base_buf_release(&w->stored);
	free(w->notes.v);
	profdb_profile_free(w->header);
	free(w);
}

/* ---- images and events ----------------------------------------------------------------------- */

int profdb_workloads_image_add(struct profdb_workloads *w, const struct profdb_image_ref *i)
{
	return profdb_image_table_add(&w->images, i);
}

size_t profdb_workloads_nr_images(const struct profdb_workloads *w)
{
	return w->images.nr;
}

const struct profdb_image_ref *profdb_workloads_image(const struct profdb_workloads *w,
						      size_t index)
{
	return index < w->images.nr ? &w->images.v[index] : NULL;
}

int profdb_workloads_event_add(struct profdb_workloads *w, const char *name, uint64_t period)
{
	int r = profdb_profile_event_find(w->header, name);
	size_t nr = w->header->nr_events + 1;

	if (r >= 0)
		return r;
	r = profdb_workload_rows_widen(&w->counts, nr);
	if (r >= 0)
		r = profdb_workload_rows_widen(&w->minutes, nr);
	return r < 0 ? r : profdb_profile_event_add(w->header, name, period);
}

size_t profdb_workloads_nr_events(const struct profdb_workloads *w)
{
	return w->header->nr_events;
}

const struct profdb_event *profdb_workloads_event(const struct profdb_workloads *w, size_t index)
{
	return profdb_profile_event(w->header, index);
}

const struct profdb_profile *profdb_workloads_header(const struct profdb_workloads *w)
{
	return w->header;
}

/* ---- who they are ---------------------------------------------------------------------------- */

/* Equal texts are one; NULL: no memory. */
static const char *intern(struct profdb_workloads *w, const char *text)
{
	size_t len = text ? strnlen(text, PROFDB_WORKLOAD_NAME) : 0;
	char *have = base_map_get(&w->texts, text ? text : "", len);

	if (have)
		return have;
	have = strndup(text ? text : "", len);
	if (have && base_map_set(&w->texts, have, len, have) < 0) {
		free(have);
		return NULL;
	}
	return have;
}

/* All but processes, with texts that are interned. */
struct key {
	const char *comm, *exe, *cgroup, *label, *thread;
	uint32_t uid;
	int32_t pid;
};

/* The last place is kept for who is known by nothing at all, so that merging has one. */
static bool has_room(const struct profdb_workloads *w, const struct key *key)
{
	bool nobody = !*key->comm && !*key->exe && !*key->cgroup && !*key->label && !*key->thread &&
		      key->uid == UINT32_MAX && !key->pid;

	return w->nr < (size_t)PROFDB_NR_WORKLOADS - !nobody;
}

static int append(struct profdb_workloads *w, const struct key *key, uint64_t processes)
{
	int r;

	if (!has_room(w, key))
		return -DCPI_ELIMIT;
	r = base_grow(&w->v, &w->cap, w->nr + 1, sizeof(*w->v));
	if (r >= 0)
		r = base_map_set(&w->by_key, key, sizeof(*key), (void *)(uintptr_t)(w->nr + 1));
	if (r < 0)
		return r;
	w->v[w->nr] = (struct profdb_workload){
		.comm = key->comm,
		.exe = key->exe,
		.cgroup = key->cgroup,
		.label = key->label,
		.thread = key->thread,
		.uid = key->uid,
		.pid = key->pid,
		.processes = processes,
	};
	return (int)w->nr++;
}

int profdb_workloads_workload_add(struct profdb_workloads *w, const struct profdb_workload *k)
{
	const struct key key = {
		.comm = intern(w, k->comm),
		.exe = intern(w, k->exe),
		.cgroup = intern(w, k->cgroup),
		.label = intern(w, k->label),
		.thread = intern(w, k->thread),
		.uid = k->uid,
		.pid = k->pid,
	};
	uintptr_t number;
	uint64_t *processes;

	if (!key.comm || !key.exe || !key.cgroup || !key.label || !key.thread)
		return -ENOMEM;
	number = (uintptr_t)base_map_get(&w->by_key, &key, sizeof(key));
	if (!number)
		return append(w, &key, k->processes);
	processes = &w->v[number - 1].processes;
	if (base_add_overflow(*processes, k->processes, processes))
		*processes = UINT64_MAX;
	return (int)number - 1;
}

size_t profdb_workloads_nr(const struct profdb_workloads *w)
{
	return w->nr;
}

const struct profdb_workload *profdb_workloads_workload(const struct profdb_workloads *w,
							size_t index)
{
	return index < w->nr ? &w->v[index] : NULL;
}

/* ---- samples --------------------------------------------------------------------------------- */

int profdb_workloads_add(struct profdb_workloads *w, uint32_t workload, uint32_t image,
			 uint64_t off, size_t event, int64_t minute, uint64_t n)
{
	const struct profdb_workload_key at = { .off = off, .image = image, .workload = workload };
	struct profdb_workload_key when = at;
	uint64_t sum;
	int r;

	if (workload >= w->nr || image >= w->images.nr || event >= w->header->nr_events ||
	    minute < 0 || w->no_minutes)
		return -EINVAL;
	/* No count exceeds the sum, so the sum alone tells of an overflow. */
	if (base_add_overflow(w->header->events[event].sum, n, &sum))
		return -DCPI_EOVERFLOW;
	r = n ? profdb_workload_rows_reserve(&w->counts, 1) : 0;
	if (r >= 0 && n)
		r = profdb_workload_rows_reserve(&w->minutes, 1);
	if (r < 0 || !n)
		return r;
	when.minute = minute;
	when.off /= PROFDB_MINUTE_BLOCK;
	profdb_workload_rows_at(&w->counts, &at)[event] += n;
	profdb_workload_rows_at(&w->minutes, &when)[event] += n;
	w->header->events[event].sum = sum;
	return 0;
}

size_t profdb_workloads_nr_counts(const struct profdb_workloads *w)
{
	return w->counts.nr;
}

struct profdb_workload_count profdb_workloads_count(const struct profdb_workloads *w, size_t index)
{
	const struct profdb_workload_key *key;

	/* Their order is no part of what they say: sorting does not change const ones. */
	profdb_workload_rows_sort((struct profdb_workload_rows *)&w->counts);
	key = profdb_workload_rows_key(&w->counts, index);
	return (struct profdb_workload_count){
		.workload = key->workload,
		.image = key->image,
		.off = key->off,
		.count = profdb_workload_rows_counts(&w->counts, index),
	};
}

size_t profdb_workloads_nr_minutes(const struct profdb_workloads *w)
{
	return w->minutes.nr;
}

struct profdb_workload_minute profdb_workloads_minute(const struct profdb_workloads *w,
						      size_t index)
{
	const struct profdb_workload_key *key;

	profdb_workload_rows_sort((struct profdb_workload_rows *)&w->minutes);
	key = profdb_workload_rows_key(&w->minutes, index);
	return (struct profdb_workload_minute){
		.minute = key->minute,
		.workload = key->workload,
		.image = key->image,
		.block = key->off,
		.count = profdb_workload_rows_counts(&w->minutes, index),
	};
}

/* ---- merging --------------------------------------------------------------------------------- */

/* The numbers in @to of what is in @from. */
struct map {
	uint32_t *images, *workloads;
	size_t events[PROFDB_NR_EVENTS];
};

static int map_events(struct profdb_workloads *to, const struct profdb_workloads *from,
		      struct map *map)
{
	for (size_t i = 0; i < from->header->nr_events; i++) {
		const struct profdb_event *e = &from->header->events[i];
		int r = profdb_workloads_event_add(to, e->name, e->period);

		if (r < 0)
			return r;
		map->events[i] = (size_t)r;
	}
	return 0;
}

int profdb_workloads_take(struct profdb_workloads *to, const struct profdb_workload *from)
{
	struct profdb_workload k = *from;
	int r = profdb_workloads_workload_add(to, &k);

	if (r != -DCPI_ELIMIT)
		return r;
	k.pid = 0;
	r = profdb_workloads_workload_add(to, &k);
	if (r != -DCPI_ELIMIT)
		return r;
	k.thread = "";
	r = profdb_workloads_workload_add(to, &k);
	if (r != -DCPI_ELIMIT)
		return r;
	k = (struct profdb_workload){ .uid = UINT32_MAX, .processes = from->processes };
	return profdb_workloads_workload_add(to, &k);
}

static int map_workloads(struct profdb_workloads *to, const struct profdb_workloads *from,
			 struct map *map)
{
	map->workloads = calloc(from->nr + 1, sizeof(*map->workloads));
	if (!map->workloads)
		return -ENOMEM;
	for (size_t i = 0; i < from->nr; i++) {
		int r = profdb_workloads_take(to, &from->v[i]);

		if (r < 0)
			return r;
		map->workloads[i] = (uint32_t)r;
	}
	return 0;
}

/* There is room for all. */
static void merge_rows(struct profdb_workload_rows *to, const struct profdb_workload_rows *from,
		       const struct map *map, size_t nr_events)
{
	for (size_t i = 0; i < from->nr; i++) {
		const uint64_t *count = profdb_workload_rows_counts(from, i);
		struct profdb_workload_key key = *profdb_workload_rows_key(from, i);
		uint64_t *sum;

		key.image = map->images[key.image];
		key.workload = map->workloads[key.workload];
		sum = profdb_workload_rows_at(to, &key);
		for (size_t j = 0; j < nr_events; j++)
			sum[map->events[j]] += count[j];
	}
}

int profdb_workloads_merge(struct profdb_workloads *to, const struct profdb_workloads *from)
{
	struct map map = { 0 };
	int r = profdb_profile_merge_check(to->header, from->header);

	if (r >= 0)
		r = map_events(to, from, &map);
	if (r >= 0)
		r = profdb_image_table_merge(&to->images, &from->images, &map.images);
	if (r >= 0)
		r = profdb_workload_rows_reserve(&to->counts, from->counts.nr);
	if (r >= 0 && !to->no_minutes)
		r = profdb_workload_rows_reserve(&to->minutes, from->minutes.nr);
	if (r >= 0)
		r = map_workloads(to, from, &map);
	if (r >= 0)
		r = profdb_notes_merge(to, from);
	if (r >= 0)
		r = profdb_profile_merge(to->header, from->header);
	if (r >= 0) {
		merge_rows(&to->counts, &from->counts, &map, from->header->nr_events);
		to->no_minutes = to->no_minutes || from->no_minutes;
	}
	if (r >= 0 && !to->no_minutes)
		merge_rows(&to->minutes, &from->minutes, &map, from->header->nr_events);
	else if (r >= 0)
		profdb_workload_rows_clear(&to->minutes);
	free(map.images);
	free(map.workloads);
	return r < 0 ? r : 0;
}
