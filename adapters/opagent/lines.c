/* SPDX-License-Identifier: BSD-2-Clause */
/* The line records of OProfile's agent interface become the lines of libdbgdyn. */
#include "opagent_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void opagent_lines_release(struct opagent_lines *l)
{
	free(l->entries);
	*l = (struct opagent_lines){ 0 };
}

static bool same_file(const struct debug_line_info *a, const struct debug_line_info *b)
{
	return a->filename == b->filename ||
	       (a->filename && b->filename && !strcmp(a->filename, b->filename));
}

/* Room for the names, each once for as long as it goes on. */
static size_t names_len(const struct debug_line_info *entries, size_t nr)
{
	size_t len = 0;

	for (size_t i = 0; i < nr; i++)
		if (entries[i].filename && (!i || !same_file(&entries[i], &entries[i - 1])))
			len += strlen(entries[i].filename) + 1;
	return len;
}

int opagent_lines_set(struct opagent_lines *to, const struct debug_line_info *entries, size_t nr)
{
	struct debug_line_info *copy;
	size_t len;
	char *name;

	if (__builtin_mul_overflow(nr, sizeof(*copy), &len) ||
	    __builtin_add_overflow(len, names_len(entries, nr), &len))
		return -ENOMEM;
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, entries, nr * sizeof(*copy));
	name = (char *)(copy + nr);
	for (size_t i = 0; i < nr; i++) {
		if (i && same_file(&entries[i], &entries[i - 1])) {
			copy[i].filename = copy[i - 1].filename;
		} else if (entries[i].filename) {
			copy[i].filename = name;
			name = stpcpy(name, entries[i].filename) + 1;
		}
	}
	opagent_lines_release(to);
	*to = (struct opagent_lines){ copy, nr };
	return 0;
}

static int by_file(const void *a, const void *b)
{
	const struct dbgdyn_string *x = a, *y = b;

	return strcmp(x->text, y->text);
}

static int by_offset(const void *a, const void *b)
{
	const struct dbgdyn_line *x = a, *y = b;

	return (x->code_off > y->code_off) - (x->code_off < y->code_off);
}

/* All names, each once, sorted. Returns how many. */
static size_t files_put(const struct opagent_lines *l, struct dbgdyn_string *files)
{
	size_t nr = 0, kept = 0;

	for (size_t i = 0; i < l->nr_entries; i++) {
		const char *name = l->entries[i].filename;

		if (name && (!i || name != l->entries[i - 1].filename))
			files[nr++] = (struct dbgdyn_string){ name, strlen(name) };
	}
	if (nr)
		qsort(files, nr, sizeof(*files), by_file);
	for (size_t i = 0; i < nr; i++)
		if (!kept || strcmp(files[i].text, files[kept - 1].text))
			files[kept++] = files[i];
	return kept;
}

/* Where in the code of @c an entry stands; its address may be that of the bytes, too. */
static bool offset_of(const struct opagent_code *c, uint64_t addr, uint32_t *off)
{
	uint64_t base = addr - c->vma < c->code_len ? c->vma : c->code;

	*off = (uint32_t)(addr - base);
	return addr - base < c->code_len;
}

static size_t entries_put(const struct opagent_code *c, struct dbgdyn_line *lines,
			  const struct dbgdyn_string *files, size_t nr_files)
{
	size_t nr = 0;

	for (size_t i = 0; i < c->lines.nr_entries; i++) {
		const struct debug_line_info *e = &c->lines.entries[i];
		struct dbgdyn_string key = { e->filename, 0 }, *file = NULL;

		if (!offset_of(c, e->vma, &lines[nr].code_off))
			continue;
		if (e->filename)
			file = bsearch(&key, files, nr_files, sizeof(*files), by_file);
		lines[nr].line = file ? e->lineno : 0;
		lines[nr++].file = file ? (uint32_t)(file - files) : 0;
	}
	if (nr)
		qsort(lines, nr, sizeof(*lines), by_offset);
	return nr;
}

int opagent_lines_put(const struct opagent_code *c, struct dbgdyn_routine *r, void **space)
{
	size_t nr = c->lines.nr_entries;
	struct dbgdyn_string *files;
	struct dbgdyn_line *lines;

	*space = NULL;
	if (!nr)
		return 0;
	files = calloc(nr, sizeof(*files) + sizeof(*lines));
	if (!files)
		return -ENOMEM;
	lines = (struct dbgdyn_line *)(files + nr);
	r->files = files;
	r->nr_files = files_put(&c->lines, files);
	r->lines = lines;
	r->nr_lines = entries_put(c, lines, files, r->nr_files);
	*space = files;
	return 0;
}
