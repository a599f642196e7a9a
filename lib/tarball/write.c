/* SPDX-License-Identifier: BSD-2-Clause */
/* An archive is written here: its files are collected, listed, and then copied into it. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tarball.h"

enum { CHUNK = 128 << 10 };

/* The end of the file's name says how it is compressed. */
static const struct method {
	const char *end;
	int (*add)(struct archive *a);
	const char *options;
} methods[] = {
	{ ".tar", archive_write_add_filter_none, NULL },
	{ ".zst", archive_write_add_filter_zstd, "zstd:compression-level=9" },
	{ ".tzst", archive_write_add_filter_zstd, "zstd:compression-level=9" },
	{ ".gz", archive_write_add_filter_gzip, "gzip:!timestamp" },
	{ ".tgz", archive_write_add_filter_gzip, "gzip:!timestamp" },
};

struct tarball_writer {
	char *path;
	const struct method *method;
	struct tarball_list list;
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

static const struct method *method_of(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		size_t end = strlen(methods[i].end);

		if (len > end && !strcmp(path + len - end, methods[i].end))
			return &methods[i];
	}
	return NULL;
}

int tarball_create(const char *path, struct tarball_writer **out, struct base_err *err)
{
	const struct method *method = method_of(path);
	struct tarball_writer *w;
	int r;

	if (!method) {
		base_fail(err, -EINVAL, "cannot tell how to compress '%s'", path);
		base_hint(err, "its name must end in .tar.zst, .tar.gz or .tar");
		return -EINVAL;
	}
	w = calloc(1, sizeof(*w));
	if (!w || !(w->path = strdup(path))) {
		free(w);
		return base_fail_errno(err, -ENOMEM, "cannot write '%s'", path);
	}
	w->method = method;
	w->spool = open_spool(path);
	if (w->spool < 0) {
		r = base_fail_errno(err, w->spool, "cannot write '%s'", path);
		tarball_discard(w);
		return r;
	}
	*out = w;
	return 0;
}

void tarball_discard(struct tarball_writer *w)
{
	if (!w)
		return;
	if (w->spool >= 0)
		close(w->spool);
	base_map_release(&w->offs);
	tarball_list_release(&w->list);
	free(w->path);
	free(w);
}

bool tarball_has(const struct tarball_writer *w, const char *path)
{
	return base_map_get(&w->offs, path, strlen(path)) != NULL;
}

const struct tarball_list *tarball_added(const struct tarball_writer *w)
{
	return &w->list;
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* What was put into the spool since it was so long is the member. */
static int note(struct tarball_writer *w, struct tarball_member *m, struct base_sha256 *sum,
		uint64_t off, struct base_err *err)
{
	int r;

	base_sha256_end(sum, m->sum);
	m->len = w->spool_len - off;
	m->mode &= 0755;
	m->mtime = m->mtime < 0 ? 0 : m->mtime;
	r = tarball_list_add(&w->list, m);
	if (r >= 0)
		r = base_map_set(&w->offs, m->path, strlen(m->path), (void *)(uintptr_t)(off + 1));
	return r < 0 ? base_fail_errno(err, r, "cannot put '%s' into the archive", m->path) : 0;
}

static int spool(struct tarball_writer *w, struct base_sha256 *sum, const void *data, size_t len)
{
	int r = base_write_all(w->spool, data, len);

	base_sha256_add(sum, data, len);
	w->spool_len += len;
	return r;
}

static int refuse_twice(const struct tarball_writer *w, const char *path, struct base_err *err)
{
	return tarball_has(w, path)
		       ? base_fail(err, -EEXIST, "'%s' is in the archive already", path)
		       : 0;
}

int tarball_add_data(struct tarball_writer *w, const char *path, uint32_t mode, int64_t mtime,
		     const void *data, size_t len, struct base_err *err)
{
	struct tarball_member m = { .path = (char *)(uintptr_t)path, .mode = mode, .mtime = mtime };
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

static int copy_in(struct tarball_writer *w, int fd, struct base_sha256 *sum)
{
	ssize_t n;
	int r = 0;

	while (r >= 0 && (n = read(fd, w->buf, CHUNK)) != 0)
		r = n < 0 ? -errno : spool(w, sum, w->buf, (size_t)n);
	return r;
}

int tarball_add_file(struct tarball_writer *w, const char *path, int dir_fd, const char *file,
		     struct base_err *err)
{
	struct tarball_member m = { .path = (char *)(uintptr_t)path };
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
	const struct tarball_member *x = a, *y = b;

	return strcmp(x->path, y->path);
}

static int code_of(struct archive *a)
{
	int code = archive_errno(a);

	return code > 0 ? -code : -EIO;
}

static int put_header(struct archive *a, const struct tarball_member *m)
{
	struct archive_entry *e = archive_entry_new2(a);
	int r;

	if (!e)
		return -ENOMEM;
	archive_entry_copy_pathname(e, m->path);
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, m->mode);
	archive_entry_set_mtime(e, m->mtime, 0);
	archive_entry_set_size(e, (la_int64_t)m->len);
	r = archive_write_header(a, e) == ARCHIVE_OK ? 0 : code_of(a);
	archive_entry_free(e);
	return r;
}

static int put_data(struct archive *a, const void *data, size_t len)
{
	return archive_write_data(a, data, len) == (la_ssize_t)len ? 0 : code_of(a);
}

static int put_list(struct tarball_writer *w, struct archive *a)
{
	static char name[] = TARBALL_LIST_NAME;
	struct tarball_member m = { .path = name, .mode = 0644, .mtime = time(NULL) };
	struct base_buf text = { 0 };
	int r = tarball_list_format(&w->list, &text);

	m.len = text.len;
	if (r >= 0 && text.len > TARBALL_LIST_MAX)
		r = -DCPI_ELIMIT;
	if (r >= 0)
		r = put_header(a, &m);
	if (r >= 0)
		r = put_data(a, text.data, text.len);
	base_buf_release(&text);
	return r;
}

static int put_member(struct tarball_writer *w, struct archive *a, const struct tarball_member *m)
{
	uint64_t off = (uintptr_t)base_map_get(&w->offs, m->path, strlen(m->path)) - 1;
	int r = put_header(a, m);

	for (uint64_t done = 0; r >= 0 && done < m->len;) {
		size_t len = m->len - done < CHUNK ? (size_t)(m->len - done) : CHUNK;

		r = base_read_at(w->spool, off + done, w->buf, len);
		if (r >= 0)
			r = put_data(a, w->buf, len);
		done += len;
	}
	return r;
}

/* GNU's tar format: it has names of any length and bytes, and depends on no locale. */
static int begin(struct tarball_writer *w, struct archive *a, int fd)
{
	if (archive_write_set_format_gnutar(a) == ARCHIVE_OK && w->method->add(a) == ARCHIVE_OK &&
	    archive_write_set_options(a, w->method->options) == ARCHIVE_OK &&
	    archive_write_open_fd(a, fd) == ARCHIVE_OK)
		return 0;
	return code_of(a);
}

static int put_all(struct tarball_writer *w, int fd)
{
	struct archive *a = archive_write_new();
	int r = a ? begin(w, a, fd) : -ENOMEM;

	if (r >= 0)
		r = put_list(w, a);
	for (size_t i = 0; r >= 0 && i < w->list.nr; i++)
		r = put_member(w, a, &w->list.v[i]);
	if (r >= 0 && archive_write_close(a) != ARCHIVE_OK)
		r = code_of(a);
	archive_write_free(a);
	return r;
}

int tarball_finish(struct tarball_writer *w, struct base_err *err)
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
