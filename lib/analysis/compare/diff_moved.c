/* SPDX-License-Identifier: BSD-2-Clause */
/* A program at one path in one set, and at another in the other: two builds, or one that moved. */
#include <string.h>

#include "diff_moved.h"

/* There are several. */
static const char several[] = "";

static bool is_file(const struct analysis_row *row)
{
	return !row->facility && row->image->kind == PROFDB_FILE;
}

static const char *get(const struct base_map *m, const char *name)
{
	return base_map_get(m, name, strlen(name));
}

static int note_path(struct base_map *paths, const struct analysis_row *row)
{
	const char *path = row->image->name;

	return get(paths, path) ? 0 : base_map_set(paths, path, strlen(path), (void *)path);
}

static int note_alone(struct diff_moved *m, int set, const char *path)
{
	const char *base = base_path_name(path);
	bool first = !get(&m->alone[set], base);

	return get(&m->paths[!set], path) ? 0
					  : base_map_set(&m->alone[set], base, strlen(base),
							 (void *)(first ? path : several));
}

int diff_moved_find(struct diff_moved *m, struct analysis_rows *const rows[2],
		    const size_t event[2])
{
	void *path;
	int r = 0;

	for (int set = 0; set < 2; set++)
		for (size_t i = 0; i < rows[set]->nr && r >= 0; i++)
			if (rows[set]->v[i].count[event[set]] && is_file(&rows[set]->v[i]))
				r = note_path(&m->paths[set], &rows[set]->v[i]);
	for (int set = 0; set < 2; set++)
		for (size_t pos = 0; r >= 0 && base_map_next(&m->paths[set], &pos, &path);)
			r = note_alone(m, set, path);
	return r;
}

bool diff_moved_is(const struct diff_moved *m, const struct analysis_row *row)
{
	const char *base, *a, *b;

	if (!is_file(row))
		return false;
	base = base_path_name(row->image->name);
	a = get(&m->alone[0], base);
	b = get(&m->alone[1], base);
	if (!a || !b || a == several || b == several)
		return false;
	return strcmp(a, row->image->name) == 0 || strcmp(b, row->image->name) == 0;
}

void diff_moved_release(struct diff_moved *m)
{
	for (int set = 0; set < 2; set++) {
		base_map_release(&m->paths[set]);
		base_map_release(&m->alone[set]);
	}
}
