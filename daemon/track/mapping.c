/* SPDX-License-Identifier: BSD-2-Clause */
/* The name of a mapping tells what kind of memory it is. */
#include <string.h>

#include "track.h"

static const char deleted[] = " (deleted)";

/* It is asked of each mapping, and most paths differ in the first bytes: @start has two. */
static bool starts_with(const char *text, const char *start)
{
	return text[0] == start[0] && text[1] == start[1] &&
	       strncmp(text, start, strlen(start)) == 0;
}

/* @name has two bytes at least. */
static bool is_named(const char *text, const char *name)
{
	return text[0] == name[0] && text[1] == name[1] && strcmp(text, name) == 0;
}

bool mapping_is_deleted(const char *path, size_t *len)
{
	size_t all = strlen(path), tail = sizeof(deleted) - 1;
	bool is = all > tail && strcmp(path + all - tail, deleted) == 0;

	if (len)
		*len = is ? all - tail : all;
	return is;
}

static bool is_marker(const char *path)
{
	static const char name[] = "/memfd:" WIRE_MEMFD_NAME;

	return starts_with(path, name) &&
	       (!path[sizeof(name) - 1] || strcmp(path + sizeof(name) - 1, deleted) == 0);
}

/*
 * A file that has no name in any folder is taken for an image only when it has a build-id (programs
 * run from a memfd have).
 */
static bool is_code(const struct driver_load *l, bool event)
{
	const char *path = l->path;

	if (!mapping_is_of_file(path))
		return true;
	if (l->id.len)
		return false;
	return starts_with(path, "/memfd:") || starts_with(path, "/dev/zero") ||
	       starts_with(path, "/SYSV") || starts_with(path, "/anon_hugepage") ||
	       (event && mapping_is_deleted(path, NULL));
}

enum mapping_kind mapping_kind(const struct driver_load *l, bool event)
{
	if (is_named(l->path, "[vsyscall]"))
		return MAPPING_VSYSCALL;
	if (is_marker(l->path))
		return MAPPING_MARKER;
	if (is_named(l->path, "[vdso]"))
		return MAPPING_VDSO;
	return is_code(l, event) ? MAPPING_CODE : MAPPING_FILE;
}
