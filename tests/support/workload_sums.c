/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * workload_sums DB EPOCH PLATFORM: a line for each workload, its samples of the first event first:
 * SAMPLES PROCESSES PID UID COMM EXE CGROUP LABEL THREAD, with tabs between them. Fails where the
 * sums by image of workloads, or of minutes, are not those of the profiles.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profdb.h"

struct sums {
	uint64_t flat, workloads, minutes;
	char *key;
};

static struct base_map by_image;

static struct sums *sums_of(enum profdb_kind kind, const struct base_id *id, const char *path)
{
	char word[BASE_ID_TEXT_LEN], *key = NULL;
	struct sums *s;

	if (asprintf(&key, "%s %s", profdb_kind_name(kind),
		     id->len ? base_id_text(id, word) : path) < 0)
		exit(2);
	s = base_map_get(&by_image, key, strlen(key));
	if (s) {
		free(key);
		return s;
	}
	s = calloc(1, sizeof(*s));
	if (!s || base_map_set(&by_image, key, strlen(key), s) < 0)
		exit(2);
	s->key = key;
	return s;
}

static int add_profile(void *ctx, const char *file, struct profdb_profile *p)
{
	struct sums *s =
		sums_of(profdb_profile_kind(p), profdb_profile_image(p), profdb_profile_path(p, 0));

	(void)ctx;
	(void)file;
	for (size_t i = 0; i < profdb_profile_nr_events(p); i++)
		s->flat += profdb_profile_event(p, i)->sum;
	profdb_profile_free(p);
	return 0;
}

static struct sums *of_image(const struct profdb_workloads *w, uint32_t image)
{
	const struct profdb_image_ref *i = profdb_workloads_image(w, image);

	return sums_of(i->kind, &i->id, i->path);
}

static uint64_t sum(const struct profdb_workloads *w, const uint64_t *count)
{
	uint64_t n = 0;

	for (size_t e = 0; e < profdb_workloads_nr_events(w); e++)
		n += count[e];
	return n;
}

static void print(const struct profdb_workloads *w, const uint64_t *samples)
{
	for (size_t i = 0; i < profdb_workloads_nr(w); i++) {
		const struct profdb_workload *k = profdb_workloads_workload(w, i);

		printf("%" PRIu64 "\t%" PRIu64 "\t%" PRId32 "\t%" PRId64 "\t%s\t%s\t%s\t%s\t%s\n",
		       samples[i], k->processes, k->pid,
		       k->uid == UINT32_MAX ? -1 : (int64_t)k->uid, k->comm, k->exe, k->cgroup,
		       k->label, k->thread);
	}
}

static void add_workloads(const struct profdb_workloads *w)
{
	uint64_t *samples = calloc(profdb_workloads_nr(w) + 1, sizeof(*samples));

	if (!samples)
		exit(2);
	for (size_t i = 0; i < profdb_workloads_nr_counts(w); i++) {
		struct profdb_workload_count c = profdb_workloads_count(w, i);

		of_image(w, c.image)->workloads += sum(w, c.count);
		samples[c.workload] += c.count[0];
	}
	for (size_t i = 0; i < profdb_workloads_nr_minutes(w); i++) {
		struct profdb_workload_minute m = profdb_workloads_minute(w, i);

		of_image(w, m.image)->minutes += sum(w, m.count);
	}
	print(w, samples);
	free(samples);
}

int main(int argc, char **argv)
{
	struct profdb_workloads *w = NULL;
	struct base_err err = { 0 };
	struct profdb *db = NULL;
	void *value;
	int bad = 0;

	if (argc != 4 || profdb_open(argv[1], false, &db, &err) < 0 ||
	    profdb_walk(db, argv[2], argv[3], add_profile, NULL, NULL, &err) < 0 ||
	    profdb_workloads_load(db, argv[2], argv[3], &w, &err) < 0) {
		fprintf(stderr, "workload_sums: %s\n", err.text);
		return 2;
	}
	add_workloads(w);
	for (size_t pos = 0; base_map_next(&by_image, &pos, &value);) {
		const struct sums *s = value;

		if (s->flat == s->workloads && s->flat == s->minutes)
			continue;
		fprintf(stderr,
			"%s: %" PRIu64 " samples, of workloads %" PRIu64 ", of minutes %" PRIu64
			"\n",
			s->key, s->flat, s->workloads, s->minutes);
		bad = 1;
	}
	profdb_workloads_free(w);
	profdb_close(db);
	return bad;
}
