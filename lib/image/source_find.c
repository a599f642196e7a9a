/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks for sources that are not where their compiler read them: in the user's folders, in copies
 * of other machines' files, and where packages put the sources of Rust's and Java's libraries. */
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "image_internal.h"

const char *image_source_path;

struct search {
	const char *name;
	image_source_fn *fn;
	void *ctx;
};

/* Folders whose sources have their own names below them: of Rust's from "library" on. */
static const char *const rust_folders[] = { "/usr/lib/rustlib/src/rust", "/usr/src/rustc-*" };
/* The JDK's by module; old ones have none. An archive (src.zip) is not read. */
static const char *const java_folders[] = { "/usr/lib/jvm/*/lib/src", "/usr/lib/jvm/*/lib/src/*",
					    "/usr/lib/jvm/*/src", "/usr/lib/jvm/*/src/*" };

static int try_in(const struct search *s, const char *dir, const char *name)
{
	struct base_buf path = { 0 };
	int r = base_buf_printf(&path, "%s/%s", dir, name + strspn(name, "/"));

	if (r >= 0)
		r = s->fn(s->ctx, (const char *)path.data);
	base_buf_release(&path);
	return r;
}

/* Does a component of it lead out of its folder? */
static bool has_up(const char *name)
{
	for (const char *at = name; *at; at += strcspn(at, "/")) {
		at += strspn(at, "/");
		if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || !at[2]))
			return true;
	}
	return false;
}

/* The end @tail of the name in each of the user's folders. */
static int in_user_folders(const struct search *s, const char *tail)
{
	const char *at = has_up(tail) ? NULL : image_source_path;
	int r = -ENOENT;

	while (at && *at && r < 0 && r != -ENOMEM) {
		size_t len = strcspn(at, ":");
		char *dir = strndup(at, len);

		if (!dir)
			return -ENOMEM;
		if (*dir)
			r = try_in(s, dir, tail);
		free(dir);
		at += len + (at[len] == ':');
	}
	return r;
}

/* The whole name first, then without its first folder, and so on: the longest is the surest. The
 * base name alone counts too: a folder that the user names is meant to have the sources. */
static int by_tails(const struct search *s)
{
	const char *tail = s->name + strspn(s->name, "/");
	int r = *tail ? in_user_folders(s, tail) : -ENOENT;

	for (;;) {
		tail += strcspn(tail, "/");
		tail += strspn(tail, "/");
		if (r >= 0 || r == -ENOMEM || !*tail)
			return r;
		r = in_user_folders(s, tail);
	}
}

/* The folders of @patterns, below @root. The name is no pattern: it is from outside. */
static int in_folders(const struct search *s, const char *root, const char *const *patterns,
		      size_t nr, const char *name)
{
	int r = -ENOENT;

	for (size_t i = 0; i < nr && r < 0 && r != -ENOMEM; i++) {
		struct base_buf pattern = { 0 };
		glob_t found = { 0 };

		if (base_buf_printf(&pattern, "%s%s", root, patterns[i]) >= 0 &&
		    glob((const char *)pattern.data, GLOB_ONLYDIR, NULL, &found) == 0)
			for (size_t k = 0; k < found.gl_pathc && r < 0; k++)
				r = try_in(s, found.gl_pathv[k], name);
		globfree(&found);
		base_buf_release(&pattern);
	}
	return r;
}

static int in_packages(const struct search *s, const char *root)
{
	const char *end = s->name + strlen(s->name);
	const char *library = strncmp(s->name, "/rustc/", 7) ? NULL : strstr(s->name, "/library/");

	if (has_up(s->name))
		return -ENOENT;
	if (library)
		return in_folders(s, root, rust_folders,
				  sizeof(rust_folders) / sizeof(*rust_folders), library);
	if (*s->name != '/' && end - s->name > 5 && strcmp(end - 5, ".java") == 0)
		return in_folders(s, root, java_folders,
				  sizeof(java_folders) / sizeof(*java_folders), s->name);
	return -ENOENT;
}

/* In a folder of $DCPI_DEBUG_PATH, which holds files of another machine under their paths. */
static int in_copies(const char *dir, void *ctx)
{
	const struct search *s = ctx;
	int r = *s->name == '/' ? try_in(s, dir, s->name) : -ENOENT;

	if (r < 0 && r != -ENOMEM)
		r = in_packages(s, dir);
	return r < 0 && r != -ENOMEM ? -ENOENT : r;
}

int image_source_find(const char *name, image_source_fn *fn, void *ctx)
{
	struct search s = { name, fn, ctx };
	int r = by_tails(&s), own = 0;

	if (r < 0 && r != -ENOMEM)
		r = own = fn(ctx, name);
	if (r < 0 && r != -ENOMEM)
		r = image_debug_dirs(in_copies, &s);
	if (r < 0 && r != -ENOMEM)
		r = in_packages(&s, "");
	return r < 0 && own < 0 ? own : r;
}
