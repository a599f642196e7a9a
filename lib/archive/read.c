/* SPDX-License-Identifier: BSD-2-Clause */
/* An archive is read here: its list first, then each file with its checksum. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive_internal.h"

enum { CHUNK = 128 << 10 };

struct archive_reader {
	int fd;
	char *path;
	struct archive_stream *stream;
	struct archive_list list;
	size_t next;
	uint8_t buf[CHUNK];
};

static int fail(const struct archive_reader *r, int code, struct base_err *err)
{
	base_fail_errno(err, code, "cannot read archive '%s'", r->path);
	if (code == -DCPI_EFORMAT)
		base_hint(err, "dcpitar reads what dcpitar wrote, and nothing that was put "
			       "together by others");
	return code;
}

static int skip_padding(struct archive_reader *r, uint64_t len)
{
	uint8_t pad[ARCHIVE_BLOCK];
	size_t n = (size_t)(base_align_up(len, ARCHIVE_BLOCK) - len);
	int e = archive_stream_get(r->stream, pad, n);

	for (size_t i = 0; e >= 0 && i < n; i++)
		if (pad[i])
			e = -DCPI_EFORMAT;
	return e;
}

/* The list grows as its bytes come: what a header says of its length is no reason to take memory.
 */
static int read_text(struct archive_reader *r, uint64_t len, struct base_buf *text)
{
	int e = 0;

	while (e >= 0 && text->len < len) {
		size_t want = len - text->len < CHUNK ? (size_t)(len - text->len) : CHUNK;

		e = archive_stream_get(r->stream, r->buf, want);
		if (e >= 0)
			e = base_buf_append(text, r->buf, want);
	}
	return e < 0 ? e : skip_padding(r, len);
}

static int read_list(struct archive_reader *r, struct base_err *err)
{
	static const char name[] = ARCHIVE_LIST_NAME;
	struct base_buf text = { 0 };
	uint8_t head[ARCHIVE_BLOCK];
	uint64_t len = 0;
	int e = archive_stream_get(r->stream, head, sizeof(head));

	if (e >= 0)
		e = memcmp(head, name, sizeof(name)) != 0 ? -DCPI_EFORMAT
							  : archive_header_len(head, &len);
	if (e >= 0 && len > ARCHIVE_LIST_MAX)
		e = -DCPI_ELIMIT;
	if (e >= 0)
		e = read_text(r, len, &text);
	if (e < 0)
		e = fail(r, e == -DCPI_ETRUNCATED && !text.len ? -DCPI_EFORMAT : e, err);
	else
		e = archive_list_parse(&r->list, (const char *)text.data, text.len, err);
	base_buf_release(&text);
	return e;
}

int archive_open(const char *path, struct archive_reader **out, struct base_err *err)
{
	struct archive_reader *r = calloc(1, sizeof(*r));
	struct stat st;
	int e;

	if (!r || !(r->path = strdup(path))) {
		free(r);
		return base_fail_errno(err, -ENOMEM, "cannot read archive '%s'", path);
	}
	r->fd = base_regular_open(AT_FDCWD, path, &st);
	e = r->fd < 0 ? r->fd : archive_stream_read_open(r->fd, &r->stream);
	if (r->fd == -EINVAL || r->fd == -EISDIR)
		base_fail(err, e, "cannot read archive '%s': not a regular file", path);
	if (e < 0)
		fail(r, e, err);
	else
		e = read_list(r, err);
	if (e < 0) {
		archive_close(r);
		return e;
	}
	*out = r;
	return 0;
}

const struct archive_list *archive_members(const struct archive_reader *r)
{
	return &r->list;
}

/* A member's headers are known: they are compared, not parsed. */
static int check_header(struct archive_reader *r, const struct archive_member *m)
{
	struct base_buf want = { 0 };
	int e = archive_header(m, &want);

	if (e >= 0)
		e = archive_stream_get(r->stream, r->buf, want.len);
	if (e >= 0 && memcmp(want.data, r->buf, want.len) != 0)
		e = -DCPI_EFORMAT;
	base_buf_release(&want);
	return e;
}

/* @put's own failure goes to *@stopped. */
static int copy_out(struct archive_reader *r, const struct archive_member *m,
		    int (*put)(void *ctx, const void *data, size_t len), void *ctx, int *stopped)
{
	struct base_sha256 sum;
	uint8_t got[32];
	int e = 0;

	base_sha256_init(&sum);
	for (uint64_t left = m->len; e >= 0 && !*stopped && left;) {
		size_t want = left < CHUNK ? (size_t)left : CHUNK;

		e = archive_stream_get(r->stream, r->buf, want);
		if (e < 0)
			return e;
		base_sha256_add(&sum, r->buf, want);
		e = put ? put(ctx, r->buf, want) : 0;
		*stopped = e < 0 ? e : 0;
		left -= want;
	}
	base_sha256_end(&sum, got);
	return memcmp(got, m->sum, sizeof(got)) != 0 ? -DCPI_ECHECKSUM : skip_padding(r, m->len);
}

int archive_read(struct archive_reader *r, int (*put)(void *ctx, const void *data, size_t len),
		 void *ctx, struct base_err *err)
{
	const struct archive_member *m = &r->list.v[r->next];
	int e, stopped = 0;

	if (r->next >= r->list.nr)
		return fail(r, -EINVAL, err);
	r->next++;
	e = check_header(r, m);
	if (e >= 0)
		e = copy_out(r, m, put, ctx, &stopped);
	if (stopped)
		return stopped;
	if (e == -DCPI_ECHECKSUM)
		return base_fail_errno(err, e, "cannot read '%s' in archive '%s'", m->path,
				       r->path);
	return e < 0 ? fail(r, e, err) : 0;
}

int archive_end(struct archive_reader *r, struct base_err *err)
{
	static const uint8_t zeros[2 * ARCHIVE_BLOCK];
	uint8_t end[2 * ARCHIVE_BLOCK];
	int e = archive_stream_get(r->stream, end, sizeof(end));

	if (e >= 0 && memcmp(end, zeros, sizeof(end)) != 0)
		e = -DCPI_EFORMAT;
	/* A byte behind the end is one too many; a compressed stream's own end is checked so. */
	if (e >= 0)
		e = archive_stream_get(r->stream, end, 1) == -DCPI_ETRUNCATED ? 0 : -DCPI_EFORMAT;
	return e < 0 ? fail(r, e, err) : 0;
}

void archive_close(struct archive_reader *r)
{
	if (!r)
		return;
	archive_stream_close(r->stream);
	if (r->fd >= 0)
		close(r->fd);
	archive_list_release(&r->list);
	free(r->path);
	free(r);
}
