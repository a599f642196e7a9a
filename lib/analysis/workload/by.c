/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds up the samples of workloads, and puts them into groups by a key. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

/* ---- sums ------------------------------------------------------------------------------------ */

static int visit_minutes(const struct profdb_workloads *w, const struct workload_filter *f,
			 int (*fn)(void *ctx, uint32_t workload, uint32_t image,
				   const uint64_t *count),
			 void *ctx)
{
	int r = 0;

	for (size_t i = 0; i < profdb_workloads_nr_minutes(w) && r >= 0; i++) {
		struct profdb_workload_minute m = profdb_workloads_minute(w, i);

		if (workload_filter_minute(f, m.minute))
			r = fn(ctx, m.workload, m.image, m.count);
	}
	return r < 0 ? r : 0;
}

/*
 * Calls @fn for each count, or where the filter chooses a time each of its minutes' counts: by
 * event of @w. Stops at the first negative, and returns it.
 */
static int workload_visit(const struct profdb_workloads *w, const struct workload_filter *f,
			  int (*fn)(void *ctx, uint32_t workload, uint32_t image,
				    const uint64_t *count),
			  void *ctx)
{
	int r = 0;

	if (workload_filter_has_time(f))
		return visit_minutes(w, f, fn, ctx);
	for (size_t i = 0; i < profdb_workloads_nr_counts(w) && r >= 0; i++) {
		struct profdb_workload_count c = profdb_workloads_count(w, i);

		r = fn(ctx, c.workload, c.image, c.count);
	}
	return r < 0 ? r : 0;
}

struct sum {
	size_t event[PROFDB_NR_EVENTS], nr_events;
	const bool *chosen;
	uint64_t *count;
};

static int add_to_sum(void *ctx, uint32_t workload, uint32_t image, const uint64_t *count)
{
	const struct sum *s = ctx;

	(void)image;
	for (size_t e = 0; e < s->nr_events; e++)
		if ((!s->chosen || s->chosen[workload]) && s->event[e] != SIZE_MAX)
			s->count[s->event[e]] += count[e];
	return 0;
}

void workload_sum(const struct analysis *a, const struct profdb_workloads *w,
		  const struct workload_filter *f, const bool *chosen, uint64_t *count)
{
	struct sum s = { .nr_events = profdb_workloads_nr_events(w),
			 .chosen = chosen,
			 .count = count };

	workload_events(a, w, s.event);
	workload_visit(w, f, add_to_sum, &s);
}

struct by {
	struct analysis *a;
	const struct profdb_workloads *w;
	enum workload_key key;
	struct workload_groups *out;
	bool *chosen;  /* indexed by workload */
	bool *seen;    /* likewise: it has samples in wanted images */
	size_t *group; /* likewise */
	bool *wanted;  /* indexed by image of @w */
	size_t event[PROFDB_NR_EVENTS];
};

/* ---- groups ---------------------------------------------------------------------------------- */

/* @text: as of workload_group_key. */
static int add_group(struct workload_groups *g, const struct profdb_workload *k, const char *text)
{
	int r = base_grow(&g->v, &g->cap, g->nr + 1, sizeof(*g->v));
	struct workload_group *one;

	if (r < 0)
		return r;
	one = &g->v[g->nr++];
	*one = (struct workload_group){ .class = (enum workload_class)text[0] };
	one->name = strdup(text + 1);
	one->comm = strdup(k->comm);
	one->count = calloc(g->nr_events + 1, sizeof(*one->count));
	return one->name && one->comm && one->count ? 0 : -ENOMEM;
}

static int find_group(struct by *b, const struct profdb_workload *k, const struct base_buf *text,
		      size_t *out)
{
	struct workload_groups *g = b->out;
	uintptr_t at = (uintptr_t)base_map_get(&g->by_name, text->data, text->len);
	int r = 0;

	if (!at) {
		r = add_group(g, k, (const char *)text->data);
		at = g->nr;
		if (r >= 0)
			r = base_map_set(&g->by_name, text->data, text->len, (void *)at);
	}
	*out = at - 1;
	return r;
}

static int group_of(struct by *b, const struct profdb_workload *k, struct base_buf *text,
		    size_t *out)
{
	int r;

	base_buf_clear(text);
	r = workload_group_key(k, b->key, text);
	return r < 0 ? r : find_group(b, k, text, out);
}

static int find_groups(struct by *b)
{
	struct base_buf text = { 0 };
	int r = 0;

	for (size_t i = 0; i < profdb_workloads_nr(b->w) && r >= 0; i++)
		if (b->chosen[i])
			r = group_of(b, profdb_workloads_workload(b->w, i), &text, &b->group[i]);
	base_buf_release(&text);
	return r;
}

/* ---- samples --------------------------------------------------------------------------------- */

static int find_images(struct by *b, bool (*wanted)(void *ctx, struct analysis_image *ai),
		       void *ctx)
{
	struct analysis_image *ai;
	int r = 0;

	for (size_t i = 0; i < profdb_workloads_nr_images(b->w) && r >= 0; i++) {
		b->wanted[i] = true;
		if (!wanted)
			continue;
		r = workload_image(b->a, b->w, i, &ai);
		if (r >= 0)
			b->wanted[i] = wanted(ctx, ai);
	}
	return r;
}

static int add(void *ctx, uint32_t workload, uint32_t image, const uint64_t *count)
{
	struct by *b = ctx;

	if (!b->chosen[workload] || !b->wanted[image])
		return 0;
	for (size_t e = 0; e < profdb_workloads_nr_events(b->w); e++)
		if (b->event[e] != SIZE_MAX)
			b->out->v[b->group[workload]].count[b->event[e]] += count[e];
	b->seen[workload] = true;
	return 0;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* All that tells processes apart, in a group: threads of one have workloads of their own. */
static int process_key(size_t group, const struct profdb_workload *k, struct base_buf *key)
{
	const char *const texts[] = { k->comm, k->exe, k->cgroup, k->label };
	int r;

	base_buf_clear(key);
	r = base_buf_append(key, &group, sizeof(group));
	if (r >= 0)
		r = base_buf_append(key, &k->pid, sizeof(k->pid));
	if (r >= 0)
		r = base_buf_append(key, &k->uid, sizeof(k->uid));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && r >= 0; i++)
		r = base_buf_append(key, texts[i], strlen(texts[i]) + 1);
	return r;
}

/*
 * A process whose pid is kept is one, in however many epochs it is, and whatever threads
 * it has. Of others each is counted by one of their workloads.
 */
static int count_processes(struct base_map *known, const struct profdb_workload *k, size_t group,
			   struct base_buf *key, struct workload_group *g)
{
	int r = k->pid ? process_key(group, k, key) : 0;

	if (!k->pid)
		g->processes += k->processes;
	if (!k->pid || r < 0 || base_map_get(known, key->data, key->len))
		return r;
	g->processes++;
	return base_map_set(known, key->data, key->len, g);
}

static int describe(struct by *b)
{
	struct base_map known = { 0 };
	struct base_buf key = { 0 };
	int r = 0;

	for (size_t i = 0; i < profdb_workloads_nr(b->w) && r >= 0; i++) {
		const struct profdb_workload *k = profdb_workloads_workload(b->w, i);
		struct workload_group *g = b->seen[i] ? &b->out->v[b->group[i]] : NULL;

		if (!g)
			continue;
		if (strcmp(g->comm, k->comm) != 0)
			*g->comm = 0;
		if (!workload_is_idle(k))
			r = count_processes(&known, k, b->group[i], &key, g);
	}
	base_map_release(&known);
	base_buf_release(&key);
	return r;
}

/* ---- all together ---------------------------------------------------------------------------- */

static void group_release(struct workload_group *g)
{
	free(g->name);
	free(g->comm);
	free(g->count);
}

static bool is_empty(const struct workload_groups *g, const struct workload_group *one)
{
	for (size_t e = 0; e < g->nr_events; e++)
		if (one->count[e])
			return false;
	return true;
}

static void drop_empty(struct workload_groups *g)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->nr; i++) {
		if (is_empty(g, &g->v[i]))
			group_release(&g->v[i]);
		else
			g->v[kept++] = g->v[i];
	}
	g->nr = kept;
	base_map_release(&g->by_name);
}

static int put_all(struct by *b, const struct workload_filter *f,
		   bool (*wanted)(void *ctx, struct analysis_image *ai), void *ctx)
{
	int r = workload_mark(b->a, b->w, f, WORKLOAD_NR_KEYS, b->chosen);

	if (r >= 0)
		r = find_images(b, wanted, ctx);
	if (r >= 0)
		r = find_groups(b);
	workload_events(b->a, b->w, b->event);
	if (r >= 0)
		r = workload_visit(b->w, f, add, b);
	return r < 0 ? r : describe(b);
}

int workload_by(struct analysis *a, const struct profdb_workloads *w,
		const struct workload_filter *f, enum workload_key key,
		bool (*wanted)(void *ctx, struct analysis_image *ai), void *ctx,
		struct workload_groups *out)
{
	size_t nr = profdb_workloads_nr(w) + 1;
	struct by b = { .a = a, .w = w, .key = key, .out = out };
	int r = -ENOMEM;

	out->nr_events = a->nr_events;
	b.chosen = calloc(nr, sizeof(*b.chosen));
	b.seen = calloc(nr, sizeof(*b.seen));
	b.group = calloc(nr, sizeof(*b.group));
	b.wanted = calloc(profdb_workloads_nr_images(w) + 1, sizeof(*b.wanted));
	if (b.chosen && b.seen && b.group && b.wanted)
		r = put_all(&b, f, wanted, ctx);
	drop_empty(out);
	free(b.chosen);
	free(b.seen);
	free(b.group);
	free(b.wanted);
	return r;
}

struct order {
	uint64_t count;
	struct workload_group group;
};

static int most_first(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return strcmp(x->group.name, y->group.name);
}

int workload_groups_sort(struct workload_groups *g, size_t event)
{
	struct order *o = calloc(g->nr + 1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	for (size_t i = 0; i < g->nr; i++)
		o[i] = (struct order){ g->v[i].count[event], g->v[i] };
	qsort(o, g->nr, sizeof(*o), most_first);
	for (size_t i = 0; i < g->nr; i++)
		g->v[i] = o[i].group;
	free(o);
	return 0;
}

void workload_groups_release(struct workload_groups *g)
{
	for (size_t i = 0; i < g->nr; i++)
		group_release(&g->v[i]);
	free(g->v);
	base_map_release(&g->by_name);
	memset(g, 0, sizeof(*g));
}
