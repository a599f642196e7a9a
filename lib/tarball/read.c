/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An archive is read here. A child without rights decodes it by libarchive; this process compares
 * the names and contents that the child sends with the list.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tarball_internal.h"

/* ---- the child ------------------------------------------------------------------------------- */

static ssize_t on_read(struct archive *a, void *ctx, const void **bytes)
{
	static uint8_t file[TARBALL_CHUNK];
	ssize_t n;

	(void)ctx;
	do
		n = read(STDIN_FILENO, file, sizeof(file));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		archive_set_error(a, errno, "cannot read");
	*bytes = file;
	return n;
}

/* libarchive has no code for an archive that ends early, only texts. */
static int code_of(struct archive *a)
{
	const char *text = archive_error_string(a);
	int code = archive_errno(a);

	if (text && strcasestr(text, "truncated"))
		return -DCPI_ETRUNCATED;
	return code == ENOMEM || code == EIO ? -code : -DCPI_EFORMAT;
}

static int send_frame(int32_t kind, const void *data, size_t len)
{
	const struct tarball_frame f = { .kind = kind, .len = (uint32_t)len };
	int r = base_write_all(STDOUT_FILENO, &f, sizeof(f));

	return r < 0 ? r : base_write_all(STDOUT_FILENO, data, len);
}

static int send_member(struct archive *a, struct archive_entry *e)
{
	static uint8_t bytes[TARBALL_CHUNK];
	const char *path = archive_entry_pathname(e);
	la_ssize_t n = 0;
	int r;

	if (!path || archive_entry_filetype(e) != AE_IFREG || archive_entry_hardlink(e))
		return -DCPI_EFORMAT;
	r = send_frame(TARBALL_NAME, path, strlen(path));
	while (r >= 0 && (n = archive_read_data(a, bytes, sizeof(bytes))) > 0)
		r = send_frame(TARBALL_DATA, bytes, (size_t)n);
	return n < 0 ? code_of(a) : r;
}

static int send_all(struct archive *a)
{
	struct archive_entry *e;
	int r = archive_read_open(a, NULL, NULL, on_read, NULL) == ARCHIVE_OK ? 0 : code_of(a);

	while (r >= 0) {
		int got = archive_read_next_header(a, &e);

		if (got == ARCHIVE_EOF)
			break;
		r = got == ARCHIVE_OK ? send_member(a, e) : code_of(a);
	}
	return r;
}

/* In the child: the archive @file goes as frames to @to. */
static void decode(int file, int to)
{
	static const struct base_jail jail = { .nr_fds = 2, .memory = 1 << 30, .cpu_s = 3600 };
	struct archive *a = archive_read_new();
	int r = -DCPI_EHELPER;

	/* Long names in archives of older versions are UTF-8, for which another locale opens files.
	 */
	uselocale(newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0));
	if (a && archive_read_support_format_tar(a) == ARCHIVE_OK &&
	    archive_read_support_filter_zstd(a) == ARCHIVE_OK &&
	    archive_read_support_filter_gzip(a) == ARCHIVE_OK && dup2(file, STDIN_FILENO) >= 0 &&
	    dup2(to, STDOUT_FILENO) >= 0 && base_jail_enter(&jail, NULL) >= 0)
		r = send_all(a);
	send_frame(r < 0 ? r : TARBALL_END, NULL, 0);
	_exit(BASE_EXIT_OK);
}

/* ---- what the child sends -------------------------------------------------------------------- */

struct tarball_reader {
	int pipe;
	pid_t child;
	char *path;
	struct tarball_list list;
	size_t next;
	struct tarball_frame head; /* the frame whose bytes come next */
	uint8_t buf[TARBALL_CHUNK];
};

static int fail(const char *path, int code, struct base_err *err)
{
	base_fail_errno(err, code, "cannot read archive '%s'", path);
	if (code == -DCPI_EFORMAT)
		base_hint(err, "dcpitar reads what dcpitar wrote, and nothing that was put "
			       "together by others");
	return code;
}

static int get(struct tarball_reader *r, void *to, size_t len)
{
	int e = base_read_all(r->pipe, to, len);

	/* The child says so when it gives up: one that does not was ended. */
	return e == -DCPI_ETRUNCATED ? -DCPI_EHELPER : e;
}

static int next_frame(struct tarball_reader *r)
{
	int e = get(r, &r->head, sizeof(r->head));

	if (e >= 0 && r->head.kind < 0)
		e = r->head.kind > -DCPI_ERROR_END ? r->head.kind : -DCPI_EHELPER;
	return e;
}

/* The next member is @path. */
static int take_name(struct tarball_reader *r, const char *path)
{
	size_t len = strlen(path);
	int e;

	if (r->head.kind == TARBALL_END)
		return -DCPI_ETRUNCATED;
	if (r->head.kind != TARBALL_NAME || r->head.len != len)
		return -DCPI_EFORMAT;
	e = get(r, r->buf, len);
	if (e >= 0 && memcmp(r->buf, path, len) != 0)
		e = -DCPI_EFORMAT;
	return e < 0 ? e : next_frame(r);
}

/* The member's contents go to @put. -DCPI_ELIMIT: there are more than @most bytes. */
static int take_contents(struct tarball_reader *r, uint64_t most,
			 int (*put)(void *ctx, const void *data, size_t len), void *ctx)
{
	int e = 0;

	while (e >= 0 && r->head.kind == TARBALL_DATA) {
		uint32_t len = r->head.len;

		if (!len || len > TARBALL_CHUNK || len > most)
			return -DCPI_ELIMIT;
		most -= len;
		e = get(r, r->buf, len);
		if (e >= 0)
			e = put(ctx, r->buf, len);
		if (e >= 0)
			e = next_frame(r);
	}
	return e;
}

static int gather(void *ctx, const void *data, size_t len)
{
	return base_buf_append(ctx, data, len);
}

static int read_list(struct tarball_reader *r, struct base_err *err)
{
	struct base_buf text = { 0 };
	int e = next_frame(r);

	if (e >= 0)
		e = take_name(r, TARBALL_LIST_NAME);
	if (e == -DCPI_ETRUNCATED)
		e = -DCPI_EFORMAT;
	if (e >= 0)
		e = take_contents(r, TARBALL_LIST_MAX, gather, &text);
	e = e < 0 ? fail(r->path, e, err)
		  : tarball_list_parse(&r->list, (const char *)text.data, text.len, err);
	base_buf_release(&text);
	return e;
}

/* ---- the members ----------------------------------------------------------------------------- */

int tarball_open_frames(const char *path, int pipe, pid_t child, struct tarball_reader **out,
			struct base_err *err)
{
	struct tarball_reader *r = calloc(1, sizeof(*r));
	int e;

	if (!r || !(r->path = strdup(path))) {
		free(r);
		close(pipe);
		return fail(path, -ENOMEM, err);
	}
	r->pipe = pipe;
	r->child = child;
	e = read_list(r, err);
	if (e < 0)
		tarball_close(r);
	else
		*out = r;
	return e;
}

static int start_child(int file, pid_t *child)
{
	int ends[2], r = pipe2(ends, O_CLOEXEC);

	if (r < 0)
		return -errno;
	*child = fork();
	if (*child == 0)
		decode(file, ends[1]);
	r = *child < 0 ? -errno : ends[0];
	close(ends[1]);
	if (r < 0)
		close(ends[0]);
	return r;
}

int tarball_open(const char *path, struct tarball_reader **out, struct base_err *err)
{
	struct stat st;
	int r, file = base_regular_open(AT_FDCWD, path, &st);
	pid_t child = -1;

	if (file == -EINVAL || file == -EISDIR)
		return base_fail(err, file, "cannot read archive '%s': not a regular file", path);
	if (file < 0)
		return fail(path, file, err);
	r = start_child(file, &child);
	close(file);
	return r < 0 ? fail(path, r, err) : tarball_open_frames(path, r, child, out, err);
}

const struct tarball_list *tarball_members(const struct tarball_reader *r)
{
	return &r->list;
}

struct copy {
	int (*put)(void *ctx, const void *data, size_t len);
	void *ctx;
	struct base_sha256 sum;
	int stopped; /* by @put's own failure */
};

static int copy_out(void *ctx, const void *data, size_t len)
{
	struct copy *c = ctx;
	int r = c->put ? c->put(c->ctx, data, len) : 0;

	base_sha256_add(&c->sum, data, len);
	c->stopped = r < 0 ? r : 0;
	return r;
}

int tarball_read(struct tarball_reader *r, int (*put)(void *ctx, const void *data, size_t len),
		 void *ctx, struct base_err *err)
{
	struct copy c = { .put = put, .ctx = ctx };
	const struct tarball_member *m;
	uint8_t sum[32];
	int e;

	if (r->next >= r->list.nr)
		return fail(r->path, -EINVAL, err);
	m = &r->list.v[r->next++];
	base_sha256_init(&c.sum);
	e = take_name(r, m->path);
	if (e >= 0)
		e = take_contents(r, m->len, copy_out, &c);
	if (c.stopped)
		return c.stopped;
	if (e < 0 || c.sum.len != m->len)
		return fail(r->path, e >= 0 || e == -DCPI_ELIMIT ? -DCPI_EFORMAT : e, err);
	base_sha256_end(&c.sum, sum);
	return memcmp(sum, m->sum, sizeof(sum)) == 0
		       ? 0
		       : base_fail_errno(err, -DCPI_ECHECKSUM, "cannot read '%s' in archive '%s'",
					 m->path, r->path);
}

int tarball_end(struct tarball_reader *r, struct base_err *err)
{
	return r->head.kind == TARBALL_END ? 0 : fail(r->path, -DCPI_EFORMAT, err);
}

void tarball_close(struct tarball_reader *r)
{
	if (!r)
		return;
	close(r->pipe);
	if (r->child > 0) {
		kill(r->child, SIGKILL);
		waitpid(r->child, NULL, 0);
	}
	tarball_list_release(&r->list);
	free(r->path);
	free(r);
}
