/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

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
	profdb_counts_init(&p->counts);
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
	profdb_counts_release(&p->counts);
	profdb_moves_release(&p->moves);
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

	/* What is kept was cut there, too. */
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
	line = (struct profdb_line){ strdup(word), strdup(value) };
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

int profdb_profile_take_words(struct profdb_profile *to, const struct profdb_profile *from)
{
	for (size_t i = 0; i < from->nr_lines; i++) {
		const struct profdb_line *line = &from->lines[i];
		int r;

		/* Of a repeated word only the first is the value; the others stay as they are. */
		if (find_line(from, line->word) != line)
			continue;
		r = profdb_profile_set_word(to, line->word, line->value);
		if (r < 0)
			return r;
	}
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
	r = profdb_counts_widen(&p->counts, p->nr_events + 1);
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
	e = profdb_counts_row(&p->counts, off);
	if (!e)
		return -ENOMEM;
	e->count[event] += n;
	p->events[event].sum = sum;
	return 0;
}

void profdb_profile_expect(const struct profdb_profile *p, uint64_t off, unsigned int step)
{
	profdb_counts_expect(&p->counts, off, step);
}

void profdb_profile_clear(struct profdb_profile *p)
{
	profdb_counts_clear(&p->counts);
	profdb_moves_clear(&p->moves);
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
	profdb_counts_sort((struct profdb_counts *)&p->counts);
	return index < p->counts.nr ? profdb_counts_at(&p->counts, index) : NULL;
}
