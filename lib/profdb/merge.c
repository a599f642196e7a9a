/* SPDX-License-Identifier: BSD-2-Clause */
/* The counts, moves, paths and words of one profile are added to another one here. */
#include <errno.h>
#include <string.h>

#include "profdb_internal.h"

/* All checks of the counts that can fail come here, before anything has changed. */
static int check(const struct profdb_profile *to, const struct profdb_profile *from)
{
	size_t nr = to->nr_events;
	uint64_t sum;

	for (size_t i = 0; i < from->nr_events; i++) {
		int at = profdb_profile_event_find(to, from->events[i].name);

		if (at < 0)
			nr++;
		else if (base_add_overflow(to->events[at].sum, from->events[i].sum, &sum))
			return -DCPI_EOVERFLOW;
	}
	for (int half = 0; half < 2; half++)
		if (base_add_overflow(to->edge_counts.sum[half], from->edge_counts.sum[half], &sum))
			return -DCPI_EOVERFLOW;
	return nr > PROFDB_NR_EVENTS ? -DCPI_ELIMIT : 0;
}

static const struct profdb_section *find_section(const struct profdb_profile *p, const char tag[4])
{
	for (size_t i = 0; i < p->nr_sections; i++) {
		if (!memcmp(p->sections[i].tag, tag, 4))
			return &p->sections[i];
	}
	return NULL;
}

/* Sections of unknown meaning cannot be added up. */
static int check_sections(const struct profdb_profile *to, const struct profdb_profile *from)
{
	for (size_t i = 0; i < from->nr_sections; i++) {
		const struct profdb_section *a = &from->sections[i], *b = find_section(to, a->tag);

		if (b && (a->len != b->len || memcmp(a->data, b->data, a->len)))
			return -DCPI_EVERSION;
	}
	return 0;
}

int profdb_profile_merge_check(const struct profdb_profile *to, const struct profdb_profile *from)
{
	int r = check(to, from);

	return r < 0 ? r : check_sections(to, from);
}

static int merge_sections(struct profdb_profile *to, const struct profdb_profile *from)
{
	for (size_t i = 0; i < from->nr_sections; i++) {
		const struct profdb_section *s = &from->sections[i];
		int r;

		if (find_section(to, s->tag))
			continue;
		r = profdb_profile_add_section(to, s->tag, s->data, s->len);
		if (r < 0)
			return r;
	}
	return 0;
}

static int merge_words(struct profdb_profile *to, const struct profdb_profile *from)
{
	size_t had = to->nr_lines;

	for (size_t i = 0; i < from->nr_lines; i++) {
		const struct profdb_line *line = &from->lines[i];
		bool lacks = true;
		int r;

		for (size_t j = 0; lacks && j < had; j++)
			lacks = strcmp(to->lines[j].word, line->word) != 0;
		if (!lacks)
			continue;
		r = profdb_profile_add_line(to, line->word, line->value);
		if (r < 0)
			return r;
		to->lines[to->nr_lines - 1].blank = line->blank;
	}
	return 0;
}

/* The events that really happened, as far as the samples tell. */
static double happened(const struct profdb_event *e)
{
	double events = (double)e->sum * (e->period ? (double)e->period : 1);

	return e->enabled > 0 ? events / e->enabled : events;
}

/*
 * Periods and fractions that differ: their means are such that samples x period, what was counted,
 * and that by the fraction, what happened, are what they were.
 */
static void merge_event(struct profdb_event *to, const struct profdb_event *from)
{
	double a = (double)to->sum, b = (double)from->sum;
	struct profdb_event sum = { .sum = to->sum + from->sum, .period = to->period };

	if (a + b == 0) {
		a = 0;
		b = 1;
	}
	if (to->period != from->period) {
		double mean = ((double)to->period * a + (double)from->period * b) / (a + b);

		sum.period = mean >= 18446744073709549568.0 ? UINT64_MAX : (uint64_t)(mean + 0.5);
	}
	if (!to->sum)
		to->enabled = from->enabled;
	else if (from->sum && to->enabled != from->enabled)
		to->enabled = happened(&sum) / (happened(to) + happened(from));
	to->enabled = to->enabled <= 1 ? to->enabled : 1;
	to->period = sum.period;
	to->sum = sum.sum;
}

int profdb_profile_add_sum(struct profdb_profile *p, const struct profdb_event *from)
{
	int at = profdb_profile_event_add(p, from->name, from->period);
	uint64_t sum;

	if (at < 0)
		return at;
	if (base_add_overflow(p->events[at].sum, from->sum, &sum))
		return -DCPI_EOVERFLOW;
	merge_event(&p->events[at], from);
	return 0;
}

static int map_events(struct profdb_profile *to, const struct profdb_profile *from,
		      size_t at[PROFDB_NR_EVENTS])
{
	for (size_t i = 0; i < from->nr_events; i++) {
		const struct profdb_event *e = &from->events[i];
		int r = profdb_profile_event_add(to, e->name, e->period);

		if (r < 0)
			return r;
		at[i] = (size_t)r;
	}
	return 0;
}

static void merge_counts(struct profdb_profile *to, const struct profdb_profile *from,
			 const size_t at[PROFDB_NR_EVENTS])
{
	for (size_t i = 0; i < from->counts.nr; i++) {
		const struct profdb_entry *e = profdb_counts_at(&from->counts, i);
		struct profdb_entry *row = profdb_counts_row(&to->counts, e->off);

		for (size_t j = 0; j < from->nr_events; j++)
			row->count[at[j]] += e->count[j];
	}
	for (size_t j = 0; j < from->nr_events; j++)
		merge_event(&to->events[at[j]], &from->events[j]);
}

int profdb_profile_merge(struct profdb_profile *to, const struct profdb_profile *from)
{
	size_t at[PROFDB_NR_EVENTS];
	int r;

	r = profdb_profile_merge_check(to, from);
	if (r >= 0)
		r = map_events(to, from, at);
	if (r >= 0)
		r = profdb_counts_reserve(&to->counts, from->counts.nr);
	if (r >= 0)
		r = profdb_moves_reserve(&to->edge_counts, &from->edge_counts);
	if (r >= 0)
		r = profdb_profile_insns_reserve(to, from->insns.nr);
	for (size_t i = 0; r >= 0 && i < from->nr_paths; i++)
		r = profdb_profile_add_path(to, from->paths[i]);
	if (r >= 0)
		r = merge_words(to, from);
	if (r >= 0)
		r = merge_sections(to, from);
	if (r < 0)
		return r;
	merge_counts(to, from, at);
	/* The order is no part of what a profile says: sorting does not change a const one. */
	profdb_moves_merge(&to->edge_counts, (struct profdb_edges *)&from->edge_counts);
	profdb_insns_merge(to, from, at);
	return 0;
}

struct profdb_profile *profdb_profile_extract(const struct profdb_profile *p, size_t event)
{
	struct profdb_profile *out = profdb_profile_new(p->kind, &p->image, NULL);
	const struct profdb_event *e = &p->events[event];
	int r = out ? merge_words(out, p) : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < p->nr_paths; i++)
		r = profdb_profile_add_path(out, p->paths[i]);
	if (r >= 0)
		r = profdb_profile_event_add(out, e->name, e->period);
	for (size_t i = 0; r >= 0 && i < p->counts.nr; i++) {
		const struct profdb_entry *row = profdb_profile_entry(p, i);

		r = profdb_profile_add(out, row->off, 0, row->count[event]);
	}
	if (r >= 0) {
		out->events[0] = *e;
		return out;
	}
	profdb_profile_free(out);
	return NULL;
}
