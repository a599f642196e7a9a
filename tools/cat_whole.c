/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpicat prints files about all images, as text or JSON: call paths, and workloads. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cat_whole.h"

/* ---- images and counts ----------------------------------------------------------------------- */

char *cat_clean(const char *text)
{
	char *out = malloc(4 * strlen(text) + 1), *to = out;

	while (out && *text) {
		uint32_t c = 0;
		size_t len = base_utf8(text, strlen(text), &c);

		if (len && !base_utf8_acts(c)) {
			memcpy(to, text, len);
			to += len;
		} else {
			to += sprintf(to, "\\x%02x", (unsigned char)*text);
			len = 1;
		}
		text += len;
	}
	if (out)
		*to = '\0';
	return out;
}

/* "image 3 file ab01 /bin/prog" */
static void cat_image_print(const struct profdb_image_ref *i, size_t number)
{
	char id[BASE_ID_TEXT_LEN], *path = cat_clean(i->stem ? i->stem : i->path);

	printf("%-10s %zu %s %s %s\n", "image", number, profdb_kind_name(i->kind),
	       i->id.len ? base_id_text(&i->id, id) : "0", path ? path : "");
	free(path);
}

/* Some event from @first to @end has samples. */
static bool cat_counts_any(const uint64_t *count, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		if (count[i])
			return true;
	return false;
}

static void cat_counts_print(const uint64_t *count, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		printf(" %" PRIu64, count[i]);
	putchar('\n');
}

struct json_object *cat_text_json(const char *text)
{
	char *copy = cat_clean(text);
	struct json_object *o = json_object_new_string(copy ? copy : "");

	free(copy);
	return o;
}

/* A line, or an object. */
static struct json_object *cat_image_json(const struct profdb_image_ref *i)
{
	struct json_object *o = json_object_new_object();
	char id[BASE_ID_TEXT_LEN];

	json_object_object_add(o, "kind", json_object_new_string(profdb_kind_name(i->kind)));
	json_object_object_add(o, "image",
			       i->id.len ? json_object_new_string(base_id_text(&i->id, id)) : NULL);
	json_object_object_add(o, "path", cat_text_json(i->path));
	if (i->stem)
		json_object_object_add(o, "dyn", cat_text_json(i->stem));
	return o;
}

/* Counts of events from @first to @end: the rest of a line, or an array. */
static struct json_object *cat_counts_json(const uint64_t *count, size_t first, size_t end)
{
	struct json_object *counts = json_object_new_array();

	for (size_t i = first; i < end; i++)
		json_object_array_add(counts, json_object_new_uint64(count[i]));
	return counts;
}

/* ---- whose samples are ----------------------------------------------------------------------- */

/* "label ci": what is not known has no line. */
static void print_name(const char *word, const char *text)
{
	char *copy = cat_clean(text);

	if (*text)
		printf("  %-9s %s\n", word, copy ? copy : "");
	free(copy);
}

static void print_who(const struct profdb_workload *k, size_t number)
{
	printf("%-10s %zu\n", "workload", number);
	print_name("comm", k->comm);
	print_name("exe", k->exe);
	print_name("cgroup", k->cgroup);
	print_name("label", k->label);
	print_name("thread", k->thread);
	if (k->uid != UINT32_MAX)
		printf("  %-9s %" PRIu32 "\n", "uid", k->uid);
}

/* A call path's workload has no thread, pid or number of processes. */
static struct json_object *json_who(const struct profdb_workload *k)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "comm", cat_text_json(k->comm));
	json_object_object_add(o, "exe", cat_text_json(k->exe));
	json_object_object_add(o, "cgroup", cat_text_json(k->cgroup));
	json_object_object_add(o, "label", cat_text_json(k->label));
	json_object_object_add(o, "uid",
			       k->uid == UINT32_MAX ? NULL : json_object_new_uint64(k->uid));
	return o;
}

/* ---- call paths: a tree, callers above what they call ---------------------------------------- */

/* Level, image, offset, counts, or a workload; a level is a blank. */
static void print_node(const struct profdb_callpath_node *n, uint32_t level, size_t first,
		       size_t end)
{
	if (n->frame.image == PROFDB_CALLPATH_WORKLOAD) {
		printf("%*sworkload %" PRIu64 "\n", (int)level, "", n->frame.off);
		return;
	}
	printf("%*s%u 0x%012" PRIx64, (int)level, "", n->frame.image, n->frame.off);
	cat_counts_print(n->count, first, end);
}

/* Files have each node behind its parent, in the order of a tree's lines; nodes below an end stand
 * together. */
static void print_nodes(const struct profdb_callpaths *c, uint32_t *level, size_t first, size_t end)
{
	uint32_t last = PROFDB_NR_CALLPATH_ENDS;

	for (size_t i = PROFDB_NR_CALLPATH_ENDS; i < profdb_callpaths_nr_nodes(c); i++) {
		struct profdb_callpath_node n = profdb_callpaths_node(c, i);

		level[i] = level[n.parent] + 1;
		if (n.parent < PROFDB_NR_CALLPATH_ENDS && n.parent != last) {
			last = n.parent;
			printf("%-10s %s\n", "paths",
			       profdb_callpath_end_word((enum profdb_callpath_end)last));
		}
		print_node(&n, level[i], first, end);
	}
}

/* Images, and the tree: of each node the counts of events from @first to @end. */
static int callpaths_print(const void *file, size_t first, size_t end)
{
	const struct profdb_callpaths *c = file;
	uint32_t *level = calloc(profdb_callpaths_nr_nodes(c), sizeof(*level));

	if (!level)
		return -ENOMEM;
	for (size_t i = 0; i < profdb_callpaths_nr_images(c); i++)
		cat_image_print(profdb_callpaths_image(c, i), i);
	for (size_t i = 0; i < profdb_callpaths_nr_workloads(c); i++)
		print_who(profdb_callpaths_workload(c, i), i);
	print_nodes(c, level, first, end);
	free(level);
	return 0;
}

/* The parent is a node's number, from 0 on, or how the path ends. */
static struct json_object *json_node(const struct profdb_callpath_node *n, size_t first, size_t end)
{
	struct json_object *o = json_object_new_object();
	bool outermost = n->parent < PROFDB_NR_CALLPATH_ENDS;

	json_object_object_add(
		o, "parent",
		outermost ? json_object_new_string(
				    profdb_callpath_end_word((enum profdb_callpath_end)n->parent))
			  : json_object_new_uint64(n->parent - PROFDB_NR_CALLPATH_ENDS));
	if (n->frame.image == PROFDB_CALLPATH_WORKLOAD) {
		json_object_object_add(o, "workload", json_object_new_uint64(n->frame.off));
		return o;
	}
	json_object_object_add(o, "image", json_object_new_uint64(n->frame.image));
	json_object_object_add(o, "offset", json_object_new_uint64(n->frame.off));
	json_object_object_add(o, "counts", cat_counts_json(n->count, first, end));
	return o;
}

static void callpaths_json(const void *file, size_t first, size_t end, struct json_object *o)
{
	const struct profdb_callpaths *c = file;
	struct json_object *images = json_object_new_array(), *nodes = json_object_new_array();
	struct json_object *workloads = json_object_new_array();

	for (size_t i = 0; i < profdb_callpaths_nr_images(c); i++)
		json_object_array_add(images, cat_image_json(profdb_callpaths_image(c, i)));
	for (size_t i = 0; i < profdb_callpaths_nr_workloads(c); i++)
		json_object_array_add(workloads, json_who(profdb_callpaths_workload(c, i)));
	for (size_t i = PROFDB_NR_CALLPATH_ENDS; i < profdb_callpaths_nr_nodes(c); i++) {
		struct profdb_callpath_node n = profdb_callpaths_node(c, i);

		json_object_array_add(nodes, json_node(&n, first, end));
	}
	json_object_object_add(o, "images", images);
	json_object_object_add(o, "workloads", workloads);
	json_object_object_add(o, "nodes", nodes);
}

/* ---- workloads, by place and by minute ------------------------------------------------------- */

/* "2026-11-20T07:54Z"; years beyond the calendar's as a number of minutes. */
static const char *minute_text(int64_t minute, char text[32])
{
	time_t t = (time_t)minute;
	struct tm tm;

	if (minute > INT64_MAX / 60 || (t *= 60, !gmtime_r(&t, &tm)) || tm.tm_year > 9999 - 1900)
		snprintf(text, 32, "%" PRId64, minute);
	else
		strftime(text, 32, "%Y-%m-%dT%H:%MZ", &tm);
	return text;
}

static void print_workload(const struct profdb_workload *k, size_t number)
{
	print_who(k, number);
	if (k->pid)
		printf("  %-9s %" PRId32 "\n", "pid", k->pid);
	printf("  %-9s %" PRIu64 "\n", "processes", k->processes);
}

/* Image, offset, workload, counts. */
static void print_places(const struct profdb_workloads *w, size_t first, size_t end)
{
	puts("counts");
	for (size_t i = 0; i < profdb_workloads_nr_counts(w); i++) {
		struct profdb_workload_count c = profdb_workloads_count(w, i);

		if (!cat_counts_any(c.count, first, end))
			continue;
		printf(" %" PRIu32 " 0x%012" PRIx64 " %" PRIu32, c.image, c.off, c.workload);
		cat_counts_print(c.count, first, end);
	}
}

/* Each minute once; below it image, where its block begins, workload, counts. */
static void print_minutes(const struct profdb_workloads *w, size_t first, size_t end)
{
	int64_t last = -1;
	char text[32];

	for (size_t i = 0; i < profdb_workloads_nr_minutes(w); i++) {
		struct profdb_workload_minute m = profdb_workloads_minute(w, i);

		if (!cat_counts_any(m.count, first, end))
			continue;
		if (m.minute != last)
			printf("%-10s %s\n", "minute", minute_text(m.minute, text));
		last = m.minute;
		printf(" %" PRIu32 " 0x%012" PRIx64 " %" PRIu32, m.image,
		       m.block * PROFDB_MINUTE_BLOCK, m.workload);
		cat_counts_print(m.count, first, end);
	}
}

static const char *const note_kinds[PROFDB_NR_NOTE_KINDS] = {
	[PROFDB_NOTE_START] = "started",
	[PROFDB_NOTE_SUSPEND] = "suspended",
	[PROFDB_NOTE_CLOCK] = "clock",
	[PROFDB_NOTE_IDLE] = "idle",
};

/* "2026-11-20T07:54:03Z"; times beyond the calendar's as a number of seconds. */
static const char *second_text(int64_t utc, char text[32])
{
	time_t t = (time_t)utc;
	struct tm tm;

	if (!gmtime_r(&t, &tm) || tm.tm_year > 9999 - 1900)
		snprintf(text, 32, "%" PRId64, utc);
	else
		strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return text;
}

/* Seconds; of idle CPUs milliseconds, and of how many. */
static void print_notes(const struct profdb_workloads *w)
{
	char text[32];

	for (size_t i = 0; i < profdb_workloads_nr_notes(w); i++) {
		const struct profdb_note *n = profdb_workloads_note_at(w, i);

		printf("%-10s %s %s", "note", second_text(n->utc, text), note_kinds[n->kind]);
		if (n->kind == PROFDB_NOTE_IDLE)
			printf(" %" PRId64 " of %" PRIu64, n->n, n->of);
		else if (n->kind != PROFDB_NOTE_START)
			printf(" %" PRId64, n->n);
		putchar('\n');
	}
}

/* Images, workloads, and of each place and each minute the counts of events from @first to @end. */
static int workloads_print(const void *file, size_t first, size_t end)
{
	const struct profdb_workloads *w = file;

	for (size_t i = 0; i < profdb_workloads_nr_images(w); i++)
		cat_image_print(profdb_workloads_image(w, i), i);
	for (size_t i = 0; i < profdb_workloads_nr(w); i++)
		print_workload(profdb_workloads_workload(w, i), i);
	print_notes(w);
	print_places(w, first, end);
	print_minutes(w, first, end);
	return 0;
}

static struct json_object *json_workload(const struct profdb_workload *k)
{
	struct json_object *o = json_who(k);

	json_object_object_add(o, "thread", cat_text_json(k->thread));
	json_object_object_add(o, "pid", k->pid ? json_object_new_int64(k->pid) : NULL);
	json_object_object_add(o, "processes", json_object_new_uint64(k->processes));
	return o;
}

static struct json_object *json_place(uint32_t image, uint64_t off, uint32_t workload)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "image", json_object_new_uint64(image));
	json_object_object_add(o, "offset", json_object_new_uint64(off));
	json_object_object_add(o, "workload", json_object_new_uint64(workload));
	return o;
}

static struct json_object *json_places(const struct profdb_workloads *w, size_t first, size_t end)
{
	struct json_object *places = json_object_new_array();

	for (size_t i = 0; i < profdb_workloads_nr_counts(w); i++) {
		struct profdb_workload_count c = profdb_workloads_count(w, i);
		struct json_object *o;

		if (!cat_counts_any(c.count, first, end))
			continue;
		o = json_place(c.image, c.off, c.workload);
		json_object_object_add(o, "counts", cat_counts_json(c.count, first, end));
		json_object_array_add(places, o);
	}
	return places;
}

static struct json_object *json_minutes(const struct profdb_workloads *w, size_t first, size_t end)
{
	struct json_object *minutes = json_object_new_array();
	char text[32];

	for (size_t i = 0; i < profdb_workloads_nr_minutes(w); i++) {
		struct profdb_workload_minute m = profdb_workloads_minute(w, i);
		struct json_object *o;

		if (!cat_counts_any(m.count, first, end))
			continue;
		o = json_place(m.image, m.block * PROFDB_MINUTE_BLOCK, m.workload);
		json_object_object_add(o, "minute",
				       json_object_new_string(minute_text(m.minute, text)));
		json_object_object_add(o, "counts", cat_counts_json(m.count, first, end));
		json_object_array_add(minutes, o);
	}
	return minutes;
}

static struct json_object *json_notes(const struct profdb_workloads *w)
{
	struct json_object *notes = json_object_new_array();
	char text[32];

	for (size_t i = 0; i < profdb_workloads_nr_notes(w); i++) {
		const struct profdb_note *n = profdb_workloads_note_at(w, i);
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "at", json_object_new_string(second_text(n->utc, text)));
		json_object_object_add(o, "what", json_object_new_string(note_kinds[n->kind]));
		json_object_object_add(o, "n", json_object_new_int64(n->n));
		if (n->kind == PROFDB_NOTE_IDLE)
			json_object_object_add(o, "of", json_object_new_uint64(n->of));
		json_object_array_add(notes, o);
	}
	return notes;
}

static void workloads_json(const void *file, size_t first, size_t end, struct json_object *o)
{
	const struct profdb_workloads *w = file;
	struct json_object *images = json_object_new_array(), *workloads = json_object_new_array();

	for (size_t i = 0; i < profdb_workloads_nr_images(w); i++)
		json_object_array_add(images, cat_image_json(profdb_workloads_image(w, i)));
	for (size_t i = 0; i < profdb_workloads_nr(w); i++)
		json_object_array_add(workloads, json_workload(profdb_workloads_workload(w, i)));
	json_object_object_add(o, "images", images);
	json_object_object_add(o, "workloads", workloads);
	json_object_object_add(o, "notes", json_notes(w));
	json_object_object_add(o, "places", json_places(w, first, end));
	json_object_object_add(o, "minutes", json_minutes(w, first, end));
}

/* ---- both ------------------------------------------------------------------------------------ */

static int callpaths_parse(const struct base_buf *bytes, void **out)
{
	struct profdb_callpaths *f = NULL;
	int r = profdb_callpaths_parse(bytes->data, bytes->len, &f, NULL);

	*out = f;
	return r;
}

static const struct profdb_profile *callpaths_header(const void *file)
{
	return profdb_callpaths_header(file);
}

static void callpaths_free(void *file)
{
	profdb_callpaths_free(file);
}

static int workloads_parse(const struct base_buf *bytes, void **out)
{
	struct profdb_workloads *f = NULL;
	int r = profdb_workloads_parse(bytes->data, bytes->len, &f, NULL);

	*out = f;
	return r;
}

static const struct profdb_profile *workloads_header(const void *file)
{
	return profdb_workloads_header(file);
}

static void workloads_free(void *file)
{
	profdb_workloads_free(file);
}

const struct cat_whole cat_wholes[CAT_NR_WHOLES] = {
	{ "callpaths", callpaths_parse, callpaths_header, callpaths_print, callpaths_json,
	  callpaths_free },
	{ "workloads", workloads_parse, workloads_header, workloads_print, workloads_json,
	  workloads_free },
};
