/* SPDX-License-Identifier: BSD-2-Clause */
/* Says which workloads and minutes a filter chooses. */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "workload.h"

enum { MINUTE = 60 };

/* Seconds of minutes up to here, and their differences, are numbers too. */
#define LAST_MINUTE (INT64_MAX / 4 / MINUTE)

void workload_filter_init(struct workload_filter *f)
{
	*f = (struct workload_filter){ .since = INT64_MIN, .until = INT64_MAX };
}

bool workload_filter_has_time(const struct workload_filter *f)
{
	return f->since != INT64_MIN || f->until != INT64_MAX;
}

bool workload_filter_is_all(const struct workload_filter *f)
{
	for (size_t i = 0; i < WORKLOAD_NR_KEYS; i++)
		if (f->nr[i])
			return false;
	return !workload_filter_has_time(f);
}

bool workload_filter_minute(const struct workload_filter *f, int64_t minute)
{
	return minute >= -LAST_MINUTE && minute <= LAST_MINUTE && minute * MINUTE >= f->since &&
	       minute * MINUTE < f->until;
}

/* A name with brackets in it is found by itself too. */
static bool matches(const char *glob, const char *text)
{
	return strcmp(glob, text) == 0 || fnmatch(glob, text, FNM_NOESCAPE) == 0;
}

static bool matches_one(const struct workload_filter *f, enum workload_key key, const char *text)
{
	for (size_t i = 0; i < f->nr[key]; i++)
		if (matches(f->globs[key][i], text))
			return true;
	return false;
}

/* 1, 0 or -ENOMEM. */
static int pod_matches(const struct workload_filter *f, const struct profdb_workload *k,
		       struct base_buf *text)
{
	int r;

	base_buf_clear(text);
	r = workload_pod(k->cgroup, text);
	if (r < 0 || !text->len)
		return r;
	r = base_buf_printf(text, "%s", "");
	return r < 0 ? r : matches_one(f, WORKLOAD_CONTAINER, (const char *)text->data);
}

/* The same. */
static int key_matches(const struct workload_filter *f, const struct profdb_workload *k,
		       enum workload_key key, struct base_buf *text)
{
	int r;

	if (workload_key_dropped(k, key))
		return 0;
	base_buf_clear(text);
	r = workload_key_of(k, key, text);
	if (r >= 0)
		r = base_buf_printf(text, "%s", "");
	if (r < 0)
		return r;
	if (matches_one(f, key, (const char *)text->data))
		return 1;
	if (key == WORKLOAD_EXE)
		return matches_one(f, key, base_path_name(k->exe));
	return key == WORKLOAD_CONTAINER ? pod_matches(f, k, text) : 0;
}

static bool is_labelled(const struct analysis *a, const struct profdb_workload *k)
{
	for (size_t i = 0; i < a->labels.nr; i++)
		if (strcmp(a->labels.v[i], k->label) == 0)
			return true;
	return !a->labels.nr;
}

static int choose(const struct analysis *a, const struct workload_filter *f, enum workload_key but,
		  const struct profdb_workload *k, struct base_buf *text)
{
	int r = is_labelled(a, k);

	for (size_t i = 0; i < WORKLOAD_NR_KEYS && r > 0; i++)
		if (f->nr[i] && i != but)
			r = key_matches(f, k, (enum workload_key)i, text);
	return r;
}

int workload_mark(const struct analysis *a, const struct profdb_workloads *w,
		  const struct workload_filter *f, enum workload_key but, bool *chosen)
{
	struct base_buf text = { 0 };
	int r = 0;

	for (size_t i = 0; i < profdb_workloads_nr(w) && r >= 0; i++) {
		r = choose(a, f, but, profdb_workloads_workload(w, i), &text);
		chosen[i] = r > 0;
	}
	base_buf_release(&text);
	return r < 0 ? r : 0;
}
