/* SPDX-License-Identifier: BSD-2-Clause */
/* A file of source text is looked for and opened here, and its lines are found. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image_internal.h"

/* Whether a source stands at that path: negative to look further. */
typedef int image_source_fn(void *ctx, const char *path);

/* ---- where a source may be ------------------------------------------------------------------- */

/* Looks for sources that are not where their compiler read them: in the user's folders, in copies
 * of other machines' files, and where packages put the sources of Rust's and Java's libraries. */

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

/* Call @fn with each path where the source of that @name may be until it returns 0 or more. Returns
 * that, or what it returned for @name itself, or -ENOMEM. */
static int image_source_find(const char *name, image_source_fn *fn, void *ctx)
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

/* ---- a file ---------------------------------------------------------------------------------- */

enum { SOURCE_MAX = 64 << 20 };

struct image_source {
	struct stat file;
	struct base_buf text;
	size_t *starts; /* start of each line; one more at the end of the text */
	size_t nr, cap;
};

static int add_start(struct image_source *src, size_t off)
{
	int r = base_grow(&src->starts, &src->cap, src->nr + 1, sizeof(*src->starts));

	if (r >= 0)
		src->starts[src->nr++] = off;
	return r;
}

static int split(struct image_source *src)
{
	const char *text = (const char *)src->text.data;
	size_t off = 0;
	int r = add_start(src, 0);

	while (r >= 0 && off < src->text.len) {
		const char *end = memchr(text + off, '\n', src->text.len - off);

		off = end ? (size_t)(end - text) + 1 : src->text.len + 1;
		r = add_start(src, off);
	}
	return r;
}

size_t image_source_path_len(const char *name)
{
	static const char word[] = " lines ";
	size_t len = strlen(name), at = len;

	while (at && strchr("0123456789-,", name[at - 1]))
		at--;
	if (at == len || at < sizeof(word) || memcmp(name + at - strlen(word), word, strlen(word)))
		return len;
	return at - strlen(word);
}

struct reading {
	const char *name;
	bool public;
	struct base_buf *out;
	struct stat *file;
	struct base_err *err; /* of the file of that name */
};

static int read_file(void *ctx, const char *path)
{
	const struct reading *x = ctx;
	struct base_err *err = strcmp(path, x->name) == 0 ? x->err : NULL;

	int r;

	base_buf_clear(x->out);
	r = x->public ? base_file_read_public(path, SOURCE_MAX, x->out, err)
		      : base_file_read(AT_FDCWD, path, SOURCE_MAX, x->out, err);
	if (r >= 0 && stat(path, x->file) < 0)
		r = base_fail_errno(err, -errno, "cannot read '%s'", path);
	return r;
}

/* The file of that very name first: some may be called so. */
static int read_text(const char *path, bool public, struct image_source *src, struct base_err *err)
{
	size_t len = image_source_path_len(path);
	char *file = strndup(path, len);
	struct reading x = { file, public, &src->text, &src->file, err };
	int r;

	r = file && path[len] ? read_file(&x, path) : -ENOENT;
	if (r < 0)
		r = file ? image_source_find(file, read_file, &x) : -ENOMEM;
	free(file);
	return r;
}

int image_source_open(const char *path, bool public, struct image_source **out,
		      struct base_err *err)
{
	struct image_source *src = calloc(1, sizeof(*src));
	int r = src ? read_text(path, public, src, err) : -ENOMEM;

	if (r >= 0)
		r = split(src);
	if (r < 0) {
		image_source_close(src);
		return base_fail_errno(err, r, "cannot read source '%s'", path);
	}
	*out = src;
	return 0;
}

/* The daemon's copies are root's, whoever had the file. */
static bool owner_of(const struct image *img, uid_t *owner)
{
	const struct image_process *p = image_process(img);
	struct stat st;

	if (p) {
		*owner = p->uid;
		return true;
	}
	if (img->kind != IMAGE_FILE || strncmp(image_path(img), "/proc/self/fd/", 14) == 0 ||
	    fstat(img->main.fd, &st) < 0)
		return false;
	*owner = st.st_uid;
	return true;
}

bool image_source_trusted(const struct image *img)
{
	uid_t owner;

	return owner_of(img, &owner) && (owner == 0 || owner == geteuid());
}

void image_source_close(struct image_source *src)
{
	if (!src)
		return;
	base_buf_release(&src->text);
	free(src->starts);
	free(src);
}

bool image_source_same(const struct image_source *a, const struct image_source *b)
{
	return a->file.st_dev == b->file.st_dev && a->file.st_ino == b->file.st_ino;
}

const char *image_source_line(const struct image_source *src, unsigned int line, size_t *len)
{
	const char *text = (const char *)src->text.data;

	if (!line || line >= src->nr)
		return NULL;
	*len = src->starts[line] - src->starts[line - 1] - 1;
	text += src->starts[line - 1];
	if (*len && text[*len - 1] == '\r')
		--*len;
	return text;
}
