/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile in memory: its header, its events, and its counts by offset and event; and how one is
 * added to another. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

/* ---- counts: rows of an offset and one count for each event ---------------------------------- */

static void counts_init(struct profdb_counts *c)
{
	*c = (struct profdb_counts){ .stride = 2, .sorted = true };
}

static void drop_hash(struct profdb_counts *c)
{
	free(c->slots);
	c->slots = NULL;
	c->nr_slots = 0;
}

static void counts_release(struct profdb_counts *c)
{
	drop_hash(c);
	free(c->words);
	counts_init(c);
}

static void counts_clear(struct profdb_counts *c)
{
	drop_hash(c);
	c->nr = 0;
	c->sorted = true;
}

static int counts_widen(struct profdb_counts *c, size_t nr_events)
{
	size_t stride = c->stride, old = c->stride;
	int r;

	while (stride < nr_events + 1)
		stride = 1 + 2 * (stride - 1);
	if (stride == old)
		return 0;
	r = base_grow(&c->words, &c->cap_words, c->nr * stride, sizeof(*c->words));
	if (r < 0)
		return r;
	/* From the last row down: rows move up, over rows that have moved already. */
	for (size_t i = c->nr; i-- > 0;) {
		memmove(c->words + i * stride, c->words + i * old, old * sizeof(*c->words));
		memset(c->words + i * stride + old, 0, (stride - old) * sizeof(*c->words));
	}
	c->stride = stride;
	return 0;
}

static size_t home_of(const struct profdb_counts *c, uint64_t off)
{
	return base_hash_u64(off) & (c->nr_slots - 1);
}

static size_t slot_of(const struct profdb_counts *c, uint64_t off)
{
	size_t mask = c->nr_slots - 1, at = home_of(c, off);

	while (c->slots[at] && profdb_counts_at(c, c->slots[at] - 1)->off != off)
		at = (at + 1) & mask;
	return at;
}

/* At most half full, so that probes stay short. */
static int make_hash(struct profdb_counts *c, size_t rows)
{
	size_t want = 64;

	if (rows > UINT32_MAX / 4)
		return -ENOMEM;
	while (want < 2 * rows)
		want *= 2;
	if (c->slots && want <= c->nr_slots)
		return 0;
	drop_hash(c);
	c->slots = calloc(want, sizeof(*c->slots));
	if (!c->slots)
		return -ENOMEM;
	c->nr_slots = want;
	for (size_t i = 0; i < c->nr; i++)
		c->slots[slot_of(c, profdb_counts_at(c, i)->off)] = (uint32_t)i + 1;
	return 0;
}

static int reserve_rows(struct profdb_counts *c, size_t more)
{
	size_t rows, words;

	if (base_add_overflow(c->nr, more, &rows) || base_mul_overflow(rows, c->stride, &words))
		return -ENOMEM;
	return base_grow(&c->words, &c->cap_words, words, sizeof(*c->words));
}

/* Room for @more further rows, so that as many counts_row cannot fail. 0 or -ENOMEM. */
static int counts_reserve(struct profdb_counts *c, size_t more)
{
	int r = reserve_rows(c, more);

	return r < 0 ? r : make_hash(c, c->nr + more);
}

static struct profdb_entry *append(struct profdb_counts *c, uint64_t off)
{
	struct profdb_entry *e;

	if (reserve_rows(c, 1) < 0)
		return NULL;
	e = profdb_counts_at(c, c->nr);
	memset(e, 0, c->stride * sizeof(*c->words));
	e->off = off;
	c->nr++;
	return e;
}

/* The row of @off, made with zeros where missing; NULL: no memory. Valid until the next call. */
static struct profdb_entry *counts_row(struct profdb_counts *c, uint64_t off)
{
	uint64_t last = c->nr ? profdb_counts_at(c, c->nr - 1)->off : 0;
	struct profdb_entry *e;
	size_t at;

	/* Files come in order: no hash needed to append, or to hit the last row again. */
	if (c->nr && last == off)
		return profdb_counts_at(c, c->nr - 1);
	if (!c->slots && c->sorted && (!c->nr || last < off))
		return append(c, off);
	if (make_hash(c, c->nr + 1) < 0)
		return NULL;
	at = slot_of(c, off);
	if (c->slots[at])
		return profdb_counts_at(c, c->slots[at] - 1);
	e = append(c, off);
	if (!e)
		return NULL;
	c->slots[at] = (uint32_t)c->nr;
	c->sorted = c->sorted && (c->nr == 1 || last < off);
	return e;
}

static int by_offset(const void *a, const void *b)
{
	const struct profdb_entry *x = a, *y = b;

	return (x->off > y->off) - (x->off < y->off);
}

/* Their offsets are sorted, and then each row is moved once. False: no memory for that. */
static bool sort_offsets(struct profdb_counts *c)
{
	struct base_sort_item *order = calloc(2 * c->nr, sizeof(*order)), *sorted;
	uint64_t *words = calloc(c->nr * c->stride, sizeof(*words));

	if (!order || !words) {
		free(order);
		free(words);
		return false;
	}
	for (size_t i = 0; i < c->nr; i++)
		order[i] = (struct base_sort_item){ profdb_counts_at(c, i)->off,
						    profdb_counts_at(c, i) };
	sorted = base_sort(order, order + c->nr, c->nr);
	for (size_t i = 0; i < c->nr; i++)
		memcpy(words + i * c->stride, sorted[i].of, c->stride * sizeof(*words));
	free(order);
	free(c->words);
	c->words = words;
	c->cap_words = c->nr * c->stride;
	return true;
}

static void counts_sort(struct profdb_counts *c)
{
	if (c->sorted)
		return;
	if (!sort_offsets(c))
		qsort(c->words, c->nr, c->stride * sizeof(*c->words), by_offset);
	c->sorted = true;
	drop_hash(c);
}

/* ---- profiles -------------------------------------------------------------------------------- */

const struct profdb_detail *const profdb_details[PROFDB_NR_DETAILS] = { &profdb_detail_moves,
									&profdb_detail_insns };

static const char *const kind_names[] = {
	[PROFDB_FILE] = "file", [PROFDB_KERNEL] = "kernel", [PROFDB_DYNAMIC] = "dynamic",
	[PROFDB_VDSO] = "vdso", [PROFDB_NAMED] = "named",
};

enum { NR_KINDS = sizeof(kind_names) / sizeof(kind_names[0]) };

const char *profdb_kind_name(enum profdb_kind kind)
{
	return kind_names[kind];
}

int profdb_kind_find(const char *name)
{
	for (int i = 0; i < NR_KINDS; i++) {
		if (!strcmp(kind_names[i], name))
			return i;
	}
	return -ENOENT;
}

struct profdb_profile *profdb_profile_new(enum profdb_kind kind, const struct base_id *image,
					  const char *path)
{
	struct profdb_profile *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->kind = kind;
	if (image)
		p->image = *image;
	counts_init(&p->counts);
	if (path && profdb_profile_add_path(p, path) < 0) {
		profdb_profile_free(p);
		return NULL;
	}
	return p;
}

static void line_release(struct profdb_line *line)
{
	free(line->word);
	free(line->value);
}

void profdb_profile_free(struct profdb_profile *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->nr_paths; i++)
		free(p->paths[i]);
	for (size_t i = 0; i < p->nr_lines; i++)
		line_release(&p->lines[i]);
	for (size_t i = 0; i < p->nr_sections; i++)
		free(p->sections[i].data);
	free(p->paths);
	free(p->lines);
	free(p->sections);
	counts_release(&p->counts);
	for (size_t i = 0; i < PROFDB_NR_DETAILS; i++)
		profdb_details[i]->release(p);
	free(p);
}

enum profdb_kind profdb_profile_kind(const struct profdb_profile *p)
{
	return p->kind;
}

const struct base_id *profdb_profile_image(const struct profdb_profile *p)
{
	return &p->image;
}

void profdb_profile_set_image(struct profdb_profile *p, const struct base_id *image)
{
	p->image = *image;
}

const char *profdb_profile_path(const struct profdb_profile *p, size_t index)
{
	return index < p->nr_paths ? p->paths[index] : NULL;
}

int profdb_profile_add_path(struct profdb_profile *p, const char *path)
{
	char *copy;

	/* The kept names were cut in the same way. */
	for (size_t i = 0; i < p->nr_paths; i++) {
		if (!strncmp(p->paths[i], path, PROFDB_PATH_MAX))
			return 0;
	}
	if (!*path || p->nr_paths >= PROFDB_NR_PATHS)
		return 0;
	if (base_grow(&p->paths, &p->cap_paths, p->nr_paths + 1, sizeof(*p->paths)) < 0)
		return -ENOMEM;
	copy = strndup(path, PROFDB_PATH_MAX);
	if (!copy)
		return -ENOMEM;
	p->paths[p->nr_paths++] = copy;
	return 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

static struct profdb_line *find_line(const struct profdb_profile *p, const char *word)
{
	for (size_t i = 0; i < p->nr_lines; i++) {
		if (!strcmp(p->lines[i].word, word))
			return &p->lines[i];
	}
	return NULL;
}

const char *profdb_profile_word(const struct profdb_profile *p, const char *word)
{
	const struct profdb_line *line = find_line(p, word);

	return line ? line->value : NULL;
}

const char *profdb_profile_line(const struct profdb_profile *p, size_t index, const char **word)
{
	if (index >= p->nr_lines)
		return NULL;
	*word = p->lines[index].word;
	return p->lines[index].value;
}

int profdb_profile_add_line(struct profdb_profile *p, const char *word, const char *value)
{
	struct profdb_line line;
	int r = profdb_word_check(word, value);

	if (r < 0)
		return r;
	if (p->nr_lines >= PROFDB_NR_LINES)
		return -DCPI_ELIMIT;
	if (base_grow(&p->lines, &p->cap_lines, p->nr_lines + 1, sizeof(*p->lines)) < 0)
		return -ENOMEM;
	line = (struct profdb_line){ strdup(word), strdup(value), ' ' };
	if (!line.word || !line.value) {
		line_release(&line);
		return -ENOMEM;
	}
	p->lines[p->nr_lines++] = line;
	return 0;
}

static void remove_lines(struct profdb_profile *p, const char *word)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->nr_lines; i++) {
		if (!strcmp(p->lines[i].word, word))
			line_release(&p->lines[i]);
		else
			p->lines[kept++] = p->lines[i];
	}
	p->nr_lines = kept;
}

int profdb_profile_set_word(struct profdb_profile *p, const char *word, const char *value)
{
	struct profdb_line *line = find_line(p, word);
	char *copy;
	int r;

	if (!value) {
		remove_lines(p, word);
		return 0;
	}
	if (!line)
		return profdb_profile_add_line(p, word, value);
	r = profdb_word_check(word, value);
	if (r < 0)
		return r;
	copy = strdup(value);
	if (!copy)
		return -ENOMEM;
	free(line->value);
	line->value = copy;
	return 0;
}

int profdb_profile_add_section(struct profdb_profile *p, const char tag[4], const void *data,
			       size_t len)
{
	struct profdb_section s = { .len = len };

	if (p->nr_sections >= PROFDB_NR_SECTIONS)
		return -DCPI_ELIMIT;
	if (base_grow(&p->sections, &p->cap_sections, p->nr_sections + 1, sizeof(s)) < 0)
		return -ENOMEM;
	memcpy(s.tag, tag, sizeof(s.tag));
	s.data = malloc(len ? len : 1);
	if (!s.data)
		return -ENOMEM;
	memcpy(s.data, data, len);
	p->sections[p->nr_sections++] = s;
	return 0;
}

/* ---- events and counts ----------------------------------------------------------------------- */

size_t profdb_profile_nr_events(const struct profdb_profile *p)
{
	return p->nr_events;
}

const struct profdb_event *profdb_profile_event(const struct profdb_profile *p, size_t index)
{
	return index < p->nr_events ? &p->events[index] : NULL;
}

int profdb_profile_event_find(const struct profdb_profile *p, const char *name)
{
	for (size_t i = 0; i < p->nr_events; i++) {
		if (!strcmp(p->events[i].name, name))
			return (int)i;
	}
	return -ENOENT;
}

int profdb_profile_event_add(struct profdb_profile *p, const char *name, uint64_t period)
{
	struct profdb_event *e;
	int r = profdb_profile_event_find(p, name);

	if (r >= 0)
		return r;
	if (!profdb_event_name_ok(name))
		return -EINVAL;
	if (p->nr_events == PROFDB_NR_EVENTS)
		return -DCPI_ELIMIT;
	r = counts_widen(&p->counts, p->nr_events + 1);
	if (r < 0)
		return r;
	e = &p->events[p->nr_events];
	*e = (struct profdb_event){ .period = period, .enabled = 1 };
	strcpy(e->name, name);
	return (int)p->nr_events++;
}

int profdb_profile_event_set_period(struct profdb_profile *p, size_t index, uint64_t period)
{
	if (index >= p->nr_events)
		return -EINVAL;
	p->events[index].period = period;
	return 0;
}

int profdb_profile_event_set_enabled(struct profdb_profile *p, size_t index, double enabled)
{
	if (index >= p->nr_events || !(enabled >= 0 && enabled <= 1))
		return -EINVAL;
	p->events[index].enabled = enabled;
	return 0;
}

int profdb_profile_add(struct profdb_profile *p, uint64_t off, size_t event, uint64_t n)
{
	struct profdb_entry *e;
	uint64_t sum;

	if (event >= p->nr_events)
		return -EINVAL;
	/* No count exceeds the sum, so the sum alone tells of an overflow. */
	if (base_add_overflow(p->events[event].sum, n, &sum))
		return -DCPI_EOVERFLOW;
	if (!n)
		return 0;
	e = counts_row(&p->counts, off);
	if (!e)
		return -ENOMEM;
	e->count[event] += n;
	p->events[event].sum = sum;
	return 0;
}

void profdb_profiles_add(struct profdb_add *v, size_t nr)
{
	/* The row of another offset may stand first: that of this one is not prefetched then. */
	for (unsigned int step = 0; step < 2; step++)
		for (size_t i = 0; i < nr; i++) {
			const struct profdb_counts *c = &v[i].to->counts;
			const uint32_t *slot = c->slots ? &c->slots[home_of(c, v[i].off)] : NULL;

			if (slot && !step)
				base_prefetch(slot);
			else if (slot && *slot)
				base_prefetch(profdb_counts_at(c, *slot - 1));
		}
	for (size_t i = 0; i < nr; i++)
		if (v[i].r >= 0)
			v[i].r = profdb_profile_add(v[i].to, v[i].off, v[i].event, v[i].n);
}

void profdb_profile_details_clear(struct profdb_profile *p)
{
	for (size_t i = 0; i < PROFDB_NR_DETAILS; i++)
		profdb_details[i]->clear(p);
}

void profdb_profile_clear(struct profdb_profile *p)
{
	counts_clear(&p->counts);
	profdb_profile_details_clear(p);
	for (size_t i = 0; i < p->nr_events; i++)
		p->events[i].sum = 0;
}

size_t profdb_profile_nr_entries(const struct profdb_profile *p)
{
	return p->counts.nr;
}

const struct profdb_entry *profdb_profile_entry(const struct profdb_profile *p, size_t index)
{
	/* The order is no part of what a profile says: sorting does not change a const one. */
	counts_sort((struct profdb_counts *)&p->counts);
	return index < p->counts.nr ? profdb_counts_at(&p->counts, index) : NULL;
}

/* ---- adding one profile to another ----------------------------------------------------------- */

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
		struct profdb_entry *row = counts_row(&to->counts, e->off);

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
		r = counts_reserve(&to->counts, from->counts.nr);
	for (size_t i = 0; r >= 0 && i < PROFDB_NR_DETAILS; i++)
		r = profdb_details[i]->reserve(to, from);
	for (size_t i = 0; r >= 0 && i < from->nr_paths; i++)
		r = profdb_profile_add_path(to, from->paths[i]);
	if (r >= 0)
		r = merge_words(to, from);
	if (r >= 0)
		r = merge_sections(to, from);
	if (r < 0)
		return r;
	merge_counts(to, from, at);
	for (size_t i = 0; i < PROFDB_NR_DETAILS; i++)
		profdb_details[i]->merge(to, from, at);
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
