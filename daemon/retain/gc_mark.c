/* SPDX-License-Identifier: BSD-2-Clause */
/* Images that profiles refer to are marked, so that they stay. */
#include "gc_mark.h"

#include <string.h>

#include "kernel.h"

/* The map's values are ranks, not addresses; 0 is that of what is not in it. */
static int refer(struct base_map *to, const void *key, size_t len, size_t rank)
{
	uintptr_t had = (uintptr_t)base_map_get(to, key, len);

	return had >= rank ? 0 : base_map_set(to, key, len, (void *)(uintptr_t)rank);
}

static size_t rank_in(const struct base_map *m, const void *key, size_t len)
{
	return (size_t)(uintptr_t)base_map_get(m, key, len);
}

static size_t kernel_len(const struct base_id *id)
{
	return id->len < KERNEL_FILE_ID ? id->len : KERNEL_FILE_ID;
}

int gc_marks_id(struct gc_marks *m, size_t rank, const struct base_id *id)
{
	int r = id->len ? refer(&m->ids, id->bytes, id->len, rank) : 0;

	return r < 0 || !id->len ? r : refer(&m->kernels, id->bytes, kernel_len(id), rank);
}

static int mark_name(struct gc_marks *m, size_t rank, const char *path)
{
	path = base_path_name(path);
	return *path ? refer(&m->names, path, strlen(path), rank) : 0;
}

/* The name too, where nothing else tells: a note holds only so many of the build-ids that its image
 * had, and old profiles may hold none. */
int gc_marks_profile(struct gc_marks *m, size_t rank, const struct profdb_profile *p)
{
	const struct base_id *id = profdb_profile_image(p);
	const char *path;
	int r = gc_marks_id(m, rank, id);

	if (profdb_profile_kind(p) != PROFDB_DYNAMIC && id->len)
		return r;
	for (size_t i = 0; r == 0 && (path = profdb_profile_path(p, i)); i++)
		r = mark_name(m, rank, path);
	return r;
}

/* Traces went where no sample was; who called is no pseudo-image for sure, but may be one. */
int gc_marks_values(struct gc_marks *m, size_t rank, const struct profdb_values *v)
{
	int r = gc_marks_profile(m, rank, profdb_values_header(v));
	struct base_id id;
	const char *path;

	for (size_t i = 1; r == 0 && (path = profdb_values_image(v, i, &id)); i++) {
		r = gc_marks_id(m, rank, &id);
		r = r < 0 ? r : mark_name(m, rank, path);
	}
	return r;
}

int gc_marks_image(struct gc_marks *m, size_t rank, const struct profdb_image_ref *i)
{
	int r = gc_marks_id(m, rank, &i->id);

	if (r == 0 && (i->kind == PROFDB_DYNAMIC || !i->id.len))
		r = mark_name(m, rank, i->path);
	if (r == 0 && i->stem)
		r = mark_name(m, rank, i->stem);
	return r;
}

/*
 * An unreadable file whose name is that of another kind refers to no pseudo-image; values may have
 * callers in one.
 */
static bool is_other(const char *file)
{
	static const char *const kinds[] = { ".file.", ".kernel.", ".vdso.", ".named." };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strstr(file, kinds[i]) && !strstr(file, ".dynamic") && !strstr(file, ".values"))
			return true;
	return false;
}

bool gc_marks_unreadable(struct gc_marks *m, const char *file, const struct base_err *why)
{
	if (!is_other(file))
		return false;
	if (!m->all_costs)
		m->why = *why;
	m->all_costs = true;
	m->all_copies |= strstr(file, ".file.") != NULL;
	m->all_kernels |= strstr(file, ".kernel.") || strstr(file, ".vdso.");
	return true;
}

void gc_marks_release(struct gc_marks *m)
{
	base_map_release(&m->ids);
	base_map_release(&m->names);
	base_map_release(&m->kernels);
}

size_t gc_marks_id_rank(const struct gc_marks *m, const struct base_id *id)
{
	return rank_in(&m->ids, id->bytes, id->len);
}

size_t gc_marks_name_rank(const struct gc_marks *m, const char *name)
{
	return rank_in(&m->names, name, strlen(name));
}

size_t gc_marks_kernel_rank(const struct gc_marks *m, const char *file, size_t stem_len,
			    const struct base_id *id)
{
	size_t a = rank_in(&m->kernels, id->bytes, kernel_len(id)),
	       b = rank_in(&m->names, file, stem_len);

	return a > b ? a : b;
}
