/* SPDX-License-Identifier: BSD-2-Clause */
/* An archive is written here: its files are collected, listed, and then copied into it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "archive_internal.h"

enum { CHUNK = 128 << 10 };

struct archive_writer {
	char *path;
	enum archive_method method;
	struct archive_list list;
	struct base_map offs; /* path -> where it is in the spool, plus one */
	int spool;
	uint64_t spool_len;
	uint8_t buf[CHUNK];
};

/* A file that has no name, or not for long. */
static int open_spool(const char *path)
{
	char name[4096];
	size_t len = (size_t)(base_path_name(path) - path);
	int fd;

	if (len + sizeof("/.tmp-dcpitar-XXXXXX") > sizeof(name))
		return -ENAMETOOLONG;
	snprintf(name, sizeof(name), "%.*s.tmp-dcpitar-XXXXXX", (int)len, path);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(name);
	return fd;
}

int archive_create(const char *path, struct archive_writer **out, struct base_err *err)
{
	int r = archive_method_of(path);
	struct archive_writer *w;

	if (r < 0) {
		base_fail(err, r, "cannot tell how to compress '%s'", path);
		base_hint(err, "its name must end in .tar.zst, .tar.gz or .tar");
		return r;
	}
	w = calloc(1, sizeof(*w));
	if (!w || !(w->path = strdup(path))) {
		free(w);
		return base_fail_errno(err, -ENOMEM, "cannot write '%s'", path);
	}
	w->method = (enum archive_method)r;
	w->spool = open_spool(path);
	if (w->spool < 0) {
		r = base_fail_errno(err, w->spool, "cannot write '%s'", path);
		archive_discard(w);
		return r;
	}
	*out = w;
	return 0;
}

void archive_discard(struct archive_writer *w)
{
	if (!w)
		return;
	if (w->spool >= 0)
		close(w->spool);
	base_map_release(&w->offs);
	archive_list_release(&w->list);
	free(w->path);
	free(w);
}

bool archive_has(const struct archive_writer *w, const char *path)
{
	return base_map_get(&w->offs, path, strlen(path)) != NULL;
}

const struct archive_list *archive_added(const struct archive_writer *w)
{
	return &w->list;
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* What was put into the spool since it was so long is the member. */
static int note(struct archive_writer *w, struct archive_member *m, struct base_sha256 *sum,
		uint64_t off, struct base_err *err)
{
	int r;

	base_sha256_end(sum, m->sum);
	m->len = w->spool_len - off;
	m->mode &= 0755;
	m->mtime = m->mtime < 0 ? 0 : m->mtime;
	r = archive_list_add(&w->list, m);
	if (r >= 0)
		r = base_map_set(&w->offs, m->path, strlen(m->path), (void *)(uintptr_t)(off + 1));
	return r < 0 ? base_fail_errno(err, r, "cannot put '%s' into the archive", m->path) : 0;
}

static int spool(struct archive_writer *w, struct base_sha256 *sum, const void *data, size_t len)
{
	int r = base_write_all(w->spool, data, len);

	base_sha256_add(sum, data, len);
	w->spool_len += len;
	return r;
}

static int refuse_twice(const struct archive_writer *w, const char *path, struct base_err *err)
{
	return archive_has(w, path)
		       ? base_fail(err, -EEXIST, "'%s' is in the archive already", path)
		       : 0;
}

int archive_add_data(struct archive_writer *w, const char *path, uint32_t mode, int64_t mtime,
		     const void *data, size_t len, struct base_err *err)
{
	struct archive_member m = { .path = (char *)(uintptr_t)path, .mode = mode, .mtime = mtime };
	uint64_t off = w->spool_len;
	struct base_sha256 sum;
	int r = refuse_twice(w, path, err);

	if (r < 0)
		return r;
	base_sha256_init(&sum);
	r = spool(w, &sum, data, len);
	if (r < 0)
		return base_fail_errno(err, r, "cannot write '%s'", w->path);
	return note(w, &m, &sum, off, err);
}

static int copy_in(struct archive_writer *w, int fd, struct base_sha256 *sum)
{
	ssize_t n;
	int r = 0;

	while (r >= 0 && (n = read(fd, w->buf, CHUNK)) != 0)
		r = n < 0 ? -errno : spool(w, sum, w->buf, (size_t)n);
	return r;
}

int archive_add_file(struct archive_writer *w, const char *path, int dir_fd, const char *file,
		     struct base_err *err)
{
	struct archive_member m = { .path = (char *)(uintptr_t)path };
	uint64_t off = w->spool_len;
	struct base_sha256 sum;
	struct stat st;
	int fd, r = refuse_twice(w, path, err);

	if (r < 0)
		return r;
	r = fd = base_regular_open(dir_fd, file, &st);
	base_sha256_init(&sum);
	if (r >= 0)
		r = copy_in(w, fd, &sum);
	if (fd >= 0)
		close(fd);
	if (r < 0)
		return base_fail_errno(err, r, "cannot put '%s' into the archive", file);
	m.mode = st.st_mode;
	m.mtime = st.st_mtim.tv_sec;
	return note(w, &m, &sum, off, err);
}

/* ---- finishing ------------------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
	const struct archive_member *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static int put_padding(struct archive_stream *s, uint64_t len)
{
	static const uint8_t zeros[2 * ARCHIVE_BLOCK];

	return archive_stream_put(s, zeros, base_align_up(len, ARCHIVE_BLOCK) - len);
}

static int put_header(struct archive_stream *s, const struct archive_member *m)
{
	struct base_buf head = { 0 };
	int r = archive_header(m, &head);

	if (r >= 0)
		r = archive_stream_put(s, head.data, head.len);
	base_buf_release(&head);
	return r;
}

static int put_list(struct archive_writer *w, struct archive_stream *s)
{
	static char name[] = ARCHIVE_LIST_NAME;
	struct archive_member m = { .path = name, .mode = 0644 };
	struct base_buf text = { 0 };
	int r = archive_list_format(&w->list, &text);

	m.len = text.len;
	m.mtime = time(NULL);
	if (r >= 0 && text.len > ARCHIVE_LIST_MAX)
		r = -DCPI_ELIMIT;
	if (r >= 0)
		r = put_header(s, &m);
	if (r >= 0)
		r = archive_stream_put(s, text.data, text.len);
	if (r >= 0)
		r = put_padding(s, text.len);
	base_buf_release(&text);
	return r;
}

static int put_member(struct archive_writer *w, struct archive_stream *s,
		      const struct archive_member *m)
{
	uint64_t off = (uintptr_t)base_map_get(&w->offs, m->path, strlen(m->path)) - 1;
	int r = put_header(s, m);

	for (uint64_t done = 0; r >= 0 && done < m->len;) {
		size_t want = m->len - done < CHUNK ? (size_t)(m->len - done) : CHUNK;
		ssize_t n = pread(w->spool, w->buf, want, (off_t)(off + done));

		r = n <= 0 ? (n < 0 ? -errno : -EIO) : archive_stream_put(s, w->buf, (size_t)n);
		done += n > 0 ? (uint64_t)n : 0;
	}
	return r < 0 ? r : put_padding(s, m->len);
}

static int put_all(struct archive_writer *w, int fd)
{
	static const uint8_t end[2 * ARCHIVE_BLOCK];
	struct archive_stream *s;
	int r = archive_stream_write_open(fd, w->method, &s);

	if (r < 0)
		return r;
	r = put_list(w, s);
	for (size_t i = 0; r >= 0 && i < w->list.nr; i++)
		r = put_member(w, s, &w->list.v[i]);
	if (r >= 0)
		r = archive_stream_put(s, end, sizeof(end));
	if (r >= 0)
		r = archive_stream_finish(s);
	archive_stream_close(s);
	return r;
}

int archive_finish(struct archive_writer *w, struct base_err *err)
{
	uint32_t mode = 0644;
	struct base_file f;
	int r;

	if (w->list.nr)
		qsort(w->list.v, w->list.nr, sizeof(*w->list.v), by_path);
	for (size_t i = 0; i < w->list.nr; i++)
		mode &= w->list.v[i].mode;
	r = base_output_create(&f, w->path, mode | 0600, err);
	if (r < 0)
		return r;
	r = put_all(w, f.fd);
	if (r < 0)
		base_fail_errno(err, r, "cannot write '%s'", w->path);
	else
		r = base_file_commit(&f, err);
	base_file_abort(&f);
	return r;
}
