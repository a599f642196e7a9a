/* SPDX-License-Identifier: BSD-2-Clause */
/* A file of source text is looked for and opened here, and its lines are found. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image_internal.h"
#include "zip.h"

/* Whether a source stands at that path, or is that member of the archive there (NULL: it is no
 * archive): negative to look further. */
typedef int image_source_fn(void *ctx, const char *path, const char *member);

/* ---- where a source may be ------------------------------------------------------------------- */

/* Looks for sources that are not where their compiler read them: in the user's folders, in copies
 * of other machines' files, and where packages put the sources of Rust's and Java's libraries. */

const char *image_source_path;

struct search {
	const char *name;
	const char *program;
	image_source_fn *fn;
	void *ctx;
};

enum { MANIFEST_MAX = 16 << 20, VERSION_MAX = 4096 };

/* Folders whose sources have their own names below them: of Rust's from "library" on. */
static const char *const rust_folders[] = { "/usr/lib/rustlib/src/rust", "/usr/src/rustc-*" };
/* The JDK's by module; old ones have none. */
static const char *const java_folders[] = { "/usr/lib/jvm/*/lib/src", "/usr/lib/jvm/*/lib/src/*",
					    "/usr/lib/jvm/*/src", "/usr/lib/jvm/*/src/*" };

static int try_in(const struct search *s, const char *dir, const char *name)
{
	struct base_buf path = { 0 };
	int r = base_buf_printf(&path, "%s/%s", dir, name + strspn(name, "/"));

	if (r >= 0)
		r = s->fn(s->ctx, (const char *)path.data, NULL);
	base_buf_release(&path);
	return r;
}

/* The archive of the very JDK whose java ran the code, in the places that packages and its own
 * build give it. Another JDK's lines may be others. */
static int in_jdk(const struct search *s, const char *root)
{
	static const char *const places[] = { "lib/src.zip", "src.zip", "../src.zip" };
	struct base_buf path = { 0 };
	const char *bin = s->program ? strstr(s->program, "/bin/") : NULL;
	int r = -ENOENT;

	for (const char *next; bin && (next = strstr(bin + 1, "/bin/"));)
		bin = next;
	for (size_t i = 0; bin && i < sizeof(places) / sizeof(*places) && r < 0 && r != -ENOMEM;
	     i++) {
		base_buf_clear(&path);
		r = base_buf_printf(&path, "%s%.*s/%s", root, (int)(bin - s->program), s->program,
				    places[i]);
		if (r >= 0)
			r = s->fn(s->ctx, (const char *)path.data, s->name);
	}
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

/* Are the sources in a folder those of the name? */
typedef bool fits_fn(const struct search *s, const char *dir);

static bool fits_always(const struct search *s, const char *dir)
{
	(void)s;
	(void)dir;
	return true;
}

/* Names have the commit or the version of a compiler behind "/rustc/". Sources that tell theirs are
 * of that one alone: the lines of others are others. */
static bool fits_rust(const struct search *s, const char *dir)
{
	static const char *const told[] = { "git-commit-hash", "src/version" };
	const char *own = s->name + strlen("/rustc/");
	size_t len = strcspn(own, "/");
	struct base_buf path = { 0 }, text = { 0 };
	int r = -ENOENT;

	for (size_t i = 0; i < sizeof(told) / sizeof(*told) && r < 0; i++) {
		base_buf_clear(&path);
		r = base_buf_printf(&path, "%s/%s", dir, told[i]);
		if (r >= 0)
			r = base_file_read(AT_FDCWD, (const char *)path.data, VERSION_MAX, &text,
					   NULL);
	}
	if (r >= 0)
		r = text.len >= len && memcmp(text.data, own, len) == 0 &&
		    (text.len == len || text.data[len] == '\n');
	base_buf_release(&path);
	base_buf_release(&text);
	return r;
}

/* The folders of @patterns, below @root, that @fits takes. The name is no pattern: it is from
 * outside. */
static int in_folders(const struct search *s, const char *root, const char *const *patterns,
		      size_t nr, fits_fn *fits, const char *name)
{
	int r = -ENOENT;

	for (size_t i = 0; i < nr && r < 0 && r != -ENOMEM; i++) {
		struct base_buf pattern = { 0 };
		glob_t found = { 0 };

		if (base_buf_printf(&pattern, "%s%s", root, patterns[i]) >= 0 &&
		    glob((const char *)pattern.data, GLOB_ONLYDIR, NULL, &found) == 0)
			for (size_t k = 0; k < found.gl_pathc && r < 0; k++)
				if (fits(s, found.gl_pathv[k]))
					r = try_in(s, found.gl_pathv[k], name);
		globfree(&found);
		base_buf_release(&pattern);
	}
	return r;
}

/* The manifest has versions such as "1.97.0 (e50aa6fba 2026-05-19)". */
static int in_toolchain(const struct search *s, const char *dir, const char *commit,
			const char *library)
{
	struct base_buf path = { 0 }, text = { 0 };
	char version[16];
	int r = base_buf_printf(&path, "%s/multirust-channel-manifest.toml", dir);

	snprintf(version, sizeof(version), "(%.9s ", commit);
	if (r >= 0)
		r = base_file_read(AT_FDCWD, (const char *)path.data, MANIFEST_MAX, &text, NULL);
	if (r >= 0)
		r = memmem(text.data, text.len, version, strlen(version)) ? 0 : -ENOENT;
	base_buf_clear(&path);
	if (r >= 0)
		r = base_buf_printf(&path, "%s/src/rust", dir);
	if (r >= 0)
		r = try_in(s, (const char *)path.data, library);
	base_buf_release(&path);
	base_buf_release(&text);
	return r;
}

/* Sources that rustup has installed: of the toolchain that has the commit in the name, which its
 * manifest tells, as there may be many. */
static int in_rustup(const struct search *s, const char *library)
{
	const char *home = getenv("RUSTUP_HOME"), *user = getenv("HOME");
	size_t len = strlen("/rustc/"), end = len + strcspn(s->name + len, "/");
	struct base_buf pattern = { 0 };
	glob_t found = { 0 };
	int r = -ENOENT;

	if (end - len != 40 || (!home && !user))
		return r;
	if (base_buf_printf(&pattern, "%s%s/toolchains/*/lib/rustlib", home ? home : user,
			    home ? "" : "/.rustup") >= 0 &&
	    glob((const char *)pattern.data, GLOB_ONLYDIR, NULL, &found) == 0)
		for (size_t i = 0; i < found.gl_pathc && r < 0 && r != -ENOMEM; i++)
			r = in_toolchain(s, found.gl_pathv[i], s->name + len, library);
	globfree(&found);
	base_buf_release(&pattern);
	return r;
}

static int in_rust(const struct search *s, const char *root, const char *library)
{
	int r = *root ? -ENOENT : in_rustup(s, library);

	return r >= 0 || r == -ENOMEM ? r
				      : in_folders(s, root, rust_folders,
						   sizeof(rust_folders) / sizeof(*rust_folders),
						   fits_rust, library);
}

static int in_java(const struct search *s, const char *root)
{
	int r = in_jdk(s, root);

	return r >= 0 || r == -ENOMEM ? r
				      : in_folders(s, root, java_folders,
						   sizeof(java_folders) / sizeof(*java_folders),
						   fits_always, s->name);
}

static int in_packages(const struct search *s, const char *root)
{
	const char *end = s->name + strlen(s->name);
	const char *library = strncmp(s->name, "/rustc/", 7) ? NULL : strstr(s->name, "/library/");

	if (has_up(s->name))
		return -ENOENT;
	if (library)
		return in_rust(s, root, library);
	if (*s->name != '/' && end - s->name > 5 && strcmp(end - 5, ".java") == 0)
		return in_java(s, root);
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
static int image_source_find(const char *name, const char *program, image_source_fn *fn, void *ctx)
{
	struct search s = { name, program, fn, ctx };
	int r = by_tails(&s), own = 0;

	if (r < 0 && r != -ENOMEM)
		r = own = fn(ctx, name, NULL);
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
	uint64_t member; /* where in that file, if it is an archive */
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
	struct image_source *src;
	struct base_err *err; /* of the file of that name */
};

static int read_archive(const struct reading *x, const char *path, const char *member)
{
	struct image_source *src = x->src;
	int r, fd = x->public ? base_public_open(path, &src->file)
			      : base_regular_open(AT_FDCWD, path, &src->file);

	if (fd < 0)
		return fd;
	r = zip_read(fd, (uint64_t)src->file.st_size, member, SOURCE_MAX, &src->text, &src->member);
	close(fd);
	return r;
}

static int read_file(void *ctx, const char *path, const char *member)
{
	const struct reading *x = ctx;
	struct base_err *err = strcmp(path, x->name) == 0 ? x->err : NULL;
	int r;

	base_buf_clear(&x->src->text);
	if (member)
		return read_archive(x, path, member);
	r = x->public ? base_file_read_public(path, SOURCE_MAX, &x->src->text, err)
		      : base_file_read(AT_FDCWD, path, SOURCE_MAX, &x->src->text, err);
	if (r >= 0 && stat(path, &x->src->file) < 0)
		r = base_fail_errno(err, -errno, "cannot read '%s'", path);
	return r;
}

/* The file of that very name first: some may be called so. */
static int read_text(const char *path, const char *program, bool public, struct image_source *src,
		     struct base_err *err)
{
	size_t len = image_source_path_len(path);
	char *file = strndup(path, len);
	struct reading x = { file, public, src, err };
	int r;

	r = file && path[len] ? read_file(&x, path, NULL) : -ENOENT;
	if (r < 0)
		r = file ? image_source_find(file, program, read_file, &x) : -ENOMEM;
	free(file);
	return r;
}

int image_source_open(const char *path, const char *program, bool public, struct image_source **out,
		      struct base_err *err)
{
	struct image_source *src = calloc(1, sizeof(*src));
	int r = src ? read_text(path, program, public, src, err) : -ENOMEM;

	if (r >= 0)
		r = split(src);
	if (r < 0) {
		image_source_close(src);
		return base_fail_errno(err, r, "cannot read source '%s'", path);
	}
	*out = src;
	return 0;
}

const char *image_program(const struct image *img)
{
	const struct image_process *p = image_process(img);

	return p ? p->exe : NULL;
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
	return a->file.st_dev == b->file.st_dev && a->file.st_ino == b->file.st_ino &&
	       a->member == b->member;
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
