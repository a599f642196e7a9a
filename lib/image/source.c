/* SPDX-License-Identifier: BSD-2-Clause */
/* A file of source text is opened here, and its lines are found. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image_internal.h"

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
