/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workloads in memory: their keys, their counts by place and by minute, and the daemon's notes
 * beside them: why time has no samples, or twice as many, and for how long the CPUs idled.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

/* ---- rows: counts of a place, a minute and a workload ---------------------------------------- */

enum { KEY_WORDS = sizeof(struct profdb_workload_key) / sizeof(uint64_t) };

static bool key_equal(const struct profdb_workload_key *a, const struct profdb_workload_key *b)
{
	return a->minute == b->minute && a->off == b->off && a->image == b->image &&
	       a->workload == b->workload;
}

static int key_compare(const struct profdb_workload_key *a, const struct profdb_workload_key *b)
{
	if (a->minute != b->minute)
		return a->minute < b->minute ? -1 : 1;
	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	if (a->off != b->off)
		return a->off < b->off ? -1 : 1;
	return a->workload < b->workload ? -1 : a->workload > b->workload;
}

static int grow(struct profdb_workload_rows *t, size_t nr)
{
	size_t words;

	if (!t->stride)
		t->stride = KEY_WORDS + 1;
	if (base_mul_overflow(nr, t->stride, &words))
		return -ENOMEM;
	return base_grow(&t->words, &t->cap_words, words, sizeof(*t->words));
}

int profdb_workload_rows_widen(struct profdb_workload_rows *t, size_t nr_events)
{
	size_t stride = KEY_WORDS + nr_events, old = t->stride;
	int r;

	if (stride <= old)
		return 0;
	t->stride = stride;
	r = grow(t, t->nr);
	if (r < 0) {
		t->stride = old;
		return r;
	}
	/* From the last row down: rows move up, over rows that have moved already. */
	for (size_t i = t->nr; i-- > 0;) {
		memmove(t->words + i * stride, t->words + i * old, old * sizeof(*t->words));
		memset(t->words + i * stride + old, 0, (stride - old) * sizeof(*t->words));
	}
	return 0;
}

/* ---- rows by their keys ---------------------------------------------------------------------- */

static size_t slot_of(const struct profdb_workload_rows *t, const struct profdb_workload_key *key)
{
	size_t mask = t->nr_slots - 1, at = base_hash64_seeded(t->seed, key, sizeof(*key)) & mask;

	while (t->slots[at] && !key_equal(profdb_workload_rows_key(t, t->slots[at] - 1), key))
		at = (at + 1) & mask;
	return at;
}

/* At most half full, so that probes stay short. */
static int make_hash(struct profdb_workload_rows *t, size_t nr)
{
	size_t want = t->nr_slots ? t->nr_slots : 64;
	uint32_t *slots;

	while (want < 2 * nr)
		want *= 2;
	if (want == t->nr_slots)
		return 0;
	slots = calloc(want, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->nr_slots = want;
	/* Keys are chosen by programs: one that knew the hash could have all of them collide. */
	if (!t->seed)
		t->seed = base_hash_seed();
	for (size_t i = 0; i < t->nr; i++)
		t->slots[slot_of(t, profdb_workload_rows_key(t, i))] = (uint32_t)i + 1;
	return 0;
}

/* Room for @more rows, so that as many rows_at cannot fail. 0, -ENOMEM, -DCPI_ELIMIT. */
static int rows_reserve(struct profdb_workload_rows *t, size_t more)
{
	int r;

	if (more > PROFDB_NR_WORKLOAD_ROWS - t->nr)
		return -DCPI_ELIMIT;
	r = grow(t, t->nr + more);
	return r < 0 ? r : make_hash(t, t->nr + more);
}

static uint64_t *new_row(struct profdb_workload_rows *t, const struct profdb_workload_key *key)
{
	size_t row = t->nr++;
	uint64_t *count = profdb_workload_rows_counts(t, row);

	*profdb_workload_rows_key(t, row) = *key;
	memset(count, 0, (t->stride - KEY_WORDS) * sizeof(*count));
	if (row && key_compare(profdb_workload_rows_key(t, row - 1), key) > 0)
		t->unsorted = true;
	return count;
}

/* The counts of a key, made with zeros where missing. */
static uint64_t *rows_at(struct profdb_workload_rows *t, const struct profdb_workload_key *key)
{
	size_t slot = slot_of(t, key);

	if (t->slots[slot])
		return profdb_workload_rows_counts(t, t->slots[slot] - 1);
	t->slots[slot] = (uint32_t)t->nr + 1;
	return new_row(t, key);
}

static void drop_hash(struct profdb_workload_rows *t)
{
	free(t->slots);
	t->slots = NULL;
	t->nr_slots = 0;
}

int profdb_workload_rows_append(struct profdb_workload_rows *t,
				const struct profdb_workload_key *key, uint64_t **count)
{
	int r = t->nr >= PROFDB_NR_WORKLOAD_ROWS ? -DCPI_ELIMIT : grow(t, t->nr + 1);

	if (r < 0)
		return r;
	drop_hash(t);
	*count = new_row(t, key);
	return 0;
}

static void rows_clear(struct profdb_workload_rows *t)
{
	drop_hash(t);
	t->nr = 0;
	t->unsorted = false;
}

int profdb_workload_rows_add(struct profdb_workload_rows *t,
			     const struct profdb_workload_rows *from)
{
	int r = from->nr ? rows_reserve(t, from->nr) : 0;

	for (size_t i = 0; r >= 0 && i < from->nr; i++) {
		const uint64_t *count = profdb_workload_rows_counts(from, i);
		uint64_t *sum = rows_at(t, profdb_workload_rows_key(from, i));

		for (size_t k = 0; k < from->stride - KEY_WORDS; k++)
			sum[k] += count[k];
	}
	return r;
}

/* ---- rows in order --------------------------------------------------------------------------- */

static uint64_t word_of(const struct profdb_workload_key *key, int word)
{
	switch (word) {
	case 0:
		return key->workload;
	case 1:
		return key->off;
	case 2:
		return key->image;
	default:
		return (uint64_t)key->minute;
	}
}

/* False: no memory for that. */
static bool sort_by_digits(struct profdb_workload_rows *t)
{
	struct base_sort_item *order = calloc(2 * t->nr, sizeof(*order)), *sorted = order;
	uint64_t *words = malloc(t->nr * t->stride * sizeof(*words));

	for (size_t i = 0; order && words && i < t->nr; i++)
		order[i].of = profdb_workload_rows_key(t, i);
	for (int word = 0; order && words && word < 4; word++) {
		for (size_t i = 0; i < t->nr; i++)
			sorted[i].key = word_of(sorted[i].of, word);
		sorted = base_sort(sorted, sorted == order ? order + t->nr : order, t->nr);
	}
	for (size_t i = 0; order && words && i < t->nr; i++)
		memcpy(words + i * t->stride, sorted[i].of, t->stride * sizeof(*words));
	free(order);
	if (!order || !words) {
		free(words);
		return false;
	}
	free(t->words);
	t->words = words;
	t->cap_words = t->nr * t->stride;
	return true;
}

static int by_key(const void *a, const void *b)
{
	return key_compare(a, b);
}

void profdb_workload_rows_sort(struct profdb_workload_rows *t)
{
	if (!t->unsorted)
		return;
	drop_hash(t);
	if (!sort_by_digits(t))
		qsort(t->words, t->nr, t->stride * sizeof(*t->words), by_key);
	t->unsorted = false;
}

/* ---- workloads ------------------------------------------------------------------------------- */

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
	r = n ? rows_reserve(&w->counts, 1) : 0;
	if (r >= 0 && n)
		r = rows_reserve(&w->minutes, 1);
	if (r < 0 || !n)
		return r;
	when.minute = minute;
	when.off /= PROFDB_MINUTE_BLOCK;
	rows_at(&w->counts, &at)[event] += n;
	rows_at(&w->minutes, &when)[event] += n;
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

/* ---- notes ----------------------------------------------------------------------------------- */

/* The order is one of all that they hold, so that a file does not depend on how it was merged. */
static int earlier_first(const void *pa, const void *pb)
{
	const struct profdb_note *a = pa, *b = pb;

	if (a->utc != b->utc)
		return a->utc < b->utc ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->n != b->n)
		return a->n < b->n ? -1 : 1;
	return a->of < b->of ? -1 : a->of > b->of;
}

/* Their order is no part of what they say: sorting does not change const ones. */
static void sort_notes(const struct profdb_workloads *w)
{
	struct profdb_notes *t = (struct profdb_notes *)&w->notes;

	if (!t->sorted && t->nr)
		qsort(t->v, t->nr, sizeof(*t->v), earlier_first);
	t->sorted = true;
}

/* Readers add and subtract times, and none of these runs over. */
#define FARTHEST (INT64_MAX / 4)

static bool is_valid(const struct profdb_note *n)
{
	if (n->utc < 0 || n->utc > FARTHEST || n->n > FARTHEST || n->n < -FARTHEST)
		return false;
	if (n->kind == PROFDB_NOTE_IDLE)
		return n->n >= 0 && n->of <= FARTHEST && (uint64_t)n->n <= n->of;
	return n->kind < PROFDB_NR_NOTE_KINDS && !n->of &&
	       (n->n >= 0 || n->kind == PROFDB_NOTE_CLOCK);
}

int profdb_workloads_note(struct profdb_workloads *w, const struct profdb_note *n)
{
	struct profdb_notes *t = &w->notes;
	int r;

	if (!is_valid(n))
		return -EINVAL;
	if (t->nr >= PROFDB_NR_NOTES)
		return 0;
	r = base_grow(&t->v, &t->cap, t->nr + 1, sizeof(*t->v));
	if (r < 0)
		return r;
	t->v[t->nr++] = *n;
	t->sorted = false;
	return 0;
}

size_t profdb_workloads_nr_notes(const struct profdb_workloads *w)
{
	return w->notes.nr;
}

const struct profdb_note *profdb_workloads_note_at(const struct profdb_workloads *w, size_t index)
{
	sort_notes(w);
	return index < w->notes.nr ? &w->notes.v[index] : NULL;
}

static int merge_notes(struct profdb_workloads *to, const struct profdb_workloads *from)
{
	int r = 0;

	for (size_t i = 0; i < from->notes.nr && r >= 0; i++)
		r = profdb_workloads_note(to, &from->notes.v[i]);
	return r;
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
		sum = rows_at(to, &key);
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
		r = rows_reserve(&to->counts, from->counts.nr);
	if (r >= 0 && !to->no_minutes)
		r = rows_reserve(&to->minutes, from->minutes.nr);
	if (r >= 0)
		r = map_workloads(to, from, &map);
	if (r >= 0)
		r = merge_notes(to, from);
	if (r >= 0)
		r = profdb_profile_merge(to->header, from->header);
	if (r >= 0) {
		merge_rows(&to->counts, &from->counts, &map, from->header->nr_events);
		to->no_minutes = to->no_minutes || from->no_minutes;
	}
	if (r >= 0 && !to->no_minutes)
		merge_rows(&to->minutes, &from->minutes, &map, from->header->nr_events);
	else if (r >= 0)
		rows_clear(&to->minutes);
	free(map.images);
	free(map.workloads);
	return r < 0 ? r : 0;
}
