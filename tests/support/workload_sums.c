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

#include "workload.h"

struct sums {
	uint64_t flat, workloads, minutes;
	char *name;
};

static struct analysis *a;
static struct base_map by_image;

/* The code of processes that ended may be in another pseudo-image by now. */
static struct base_id file_of(struct analysis_image *image)
{
	struct base_id id = *profdb_profile_image(image->profile);
	struct image *opened;

	if (image->kind != PROFDB_DYNAMIC || analysis_image_open(a, image, &opened, NULL) < 0)
		return id;
	id = *image_id(opened);
	image_close(opened);
	return id;
}

static struct sums *sums_of(struct analysis_image *image)
{
	struct base_id id = file_of(image);
	const void *key = id.len ? (const void *)id.bytes : image->name;
	size_t len = id.len ? id.len : strlen(image->name);
	struct sums *s = base_map_get(&by_image, key, len);

	if (s)
		return s;
	s = calloc(1, sizeof(*s));
	if (!s || !(s->name = strdup(image->name)) || base_map_set(&by_image, key, len, s) < 0)
		exit(2);
	return s;
}

/* Indexed by image of @w. */
static struct sums **sums_by_number(const struct profdb_workloads *w)
{
	size_t nr = profdb_workloads_nr_images(w);
	struct sums **sums = calloc(nr + 1, sizeof(struct sums *));
	struct analysis_image *image;

	for (size_t i = 0; i < nr; i++) {
		if (!sums || workload_image(a, w, i, &image) < 0)
			exit(2);
		sums[i] = sums_of(image);
	}
	return sums;
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
	struct sums **sums = sums_by_number(w);

	if (!samples || !sums)
		exit(2);
	for (size_t i = 0; i < profdb_workloads_nr_counts(w); i++) {
		struct profdb_workload_count c = profdb_workloads_count(w, i);

		sums[c.image]->workloads += sum(w, c.count);
		samples[c.workload] += c.count[0];
	}
	for (size_t i = 0; i < profdb_workloads_nr_minutes(w); i++) {
		struct profdb_workload_minute m = profdb_workloads_minute(w, i);

		sums[m.image]->minutes += sum(w, m.count);
	}
	print(w, samples);
	free(samples);
	free(sums);
}

static void add_profiles(void)
{
	for (size_t i = 0; i < a->nr_images; i++)
		for (size_t e = 0; e < a->nr_events; e++)
			sums_of(a->images[i])->flat += a->images[i]->count[e];
}

static bool differ(void)
{
	bool bad = false;
	size_t pos = 0;
	void *value;

	while (base_map_next(&by_image, &pos, &value)) {
		const struct sums *s = value;

		if (s->flat == s->workloads && s->flat == s->minutes)
			continue;
		fprintf(stderr,
			"%s: %" PRIu64 " samples, of workloads %" PRIu64 ", of minutes %" PRIu64
			"\n",
			s->name, s->flat, s->workloads, s->minutes);
		bad = true;
	}
	return bad;
}

int main(int argc, char **argv)
{
	struct analysis_selection sel = { .db = argv[1] };
	struct profdb_workloads *w = NULL;
	struct base_err err = { 0 };
	bool bad;

	if (argc == 4) {
		sel.epoch = argv[2];
		sel.platform = argv[3];
	}
	if (argc != 4 || analysis_open(&sel, &a, &err) < 0 ||
	    workload_load(a, WORKLOAD_MINUTES, &w, &err) < 0) {
		fprintf(stderr, "workload_sums: %s\n", err.text);
		return 2;
	}
	add_profiles();
	add_workloads(w);
	bad = differ();
	profdb_workloads_free(w);
	analysis_close(a);
	return bad;
}
