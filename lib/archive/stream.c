/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of an archive are packed and unpacked here as they go by. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>
#include <zstd.h>

#include "archive_internal.h"

enum { CHUNK = 128 << 10, GZIP_WINDOW = 15 + 16 /* zlib's way to say: a gzip header */ };
enum { ZSTD_LEVEL = 9, GZIP_LEVEL = 6 };

struct archive_stream {
	int fd;
	enum archive_method method;
	bool writes, at_end; /* of the file */
	bool ended;	     /* the compressed stream has its end */
	z_stream z;
	bool z_open;
	ZSTD_CCtx *compress;
	ZSTD_DCtx *expand;
	uint8_t file[CHUNK]; /* what was read from the file, or is to be written */
	size_t pos, len;
};

static bool ends(const char *path, const char *end)
{
	size_t len = strlen(path), n = strlen(end);

	return len > n && strcmp(path + len - n, end) == 0;
}

int archive_method_of(const char *path)
{
	if (ends(path, ".zst") || ends(path, ".tzst"))
		return ARCHIVE_ZSTD;
	if (ends(path, ".gz") || ends(path, ".tgz"))
		return ARCHIVE_GZIP;
	return ends(path, ".tar") ? ARCHIVE_PLAIN : -EINVAL;
}

static struct archive_stream *stream_new(int fd, bool writes)
{
	struct archive_stream *s = calloc(1, sizeof(*s));

	if (s) {
		s->fd = fd;
		s->writes = writes;
	}
	return s;
}

void archive_stream_close(struct archive_stream *s)
{
	if (!s)
		return;
	if (s->z_open && s->writes)
		deflateEnd(&s->z);
	else if (s->z_open)
		inflateEnd(&s->z);
	ZSTD_freeCCtx(s->compress);
	ZSTD_freeDCtx(s->expand);
	free(s);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int start_writing(struct archive_stream *s)
{
	if (s->method == ARCHIVE_GZIP) {
		s->z_open = deflateInit2(&s->z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8,
					 Z_DEFAULT_STRATEGY) == Z_OK;
		return s->z_open ? 0 : -ENOMEM;
	}
	if (s->method == ARCHIVE_PLAIN)
		return 0;
	s->compress = ZSTD_createCCtx();
	if (!s->compress)
		return -ENOMEM;
	ZSTD_CCtx_setParameter(s->compress, ZSTD_c_compressionLevel, ZSTD_LEVEL);
	ZSTD_CCtx_setParameter(s->compress, ZSTD_c_checksumFlag, 1);
	return 0;
}

int archive_stream_write_open(int fd, enum archive_method method, struct archive_stream **out)
{
	struct archive_stream *s = stream_new(fd, true);
	int r = -ENOMEM;

	if (s) {
		s->method = method;
		r = start_writing(s);
	}
	if (r < 0) {
		archive_stream_close(s);
		return r;
	}
	*out = s;
	return 0;
}

static int put_zstd(struct archive_stream *s, const void *data, size_t len, bool last)
{
	ZSTD_inBuffer in = { data, len, 0 };
	size_t left;
	int r;

	do {
		ZSTD_outBuffer out = { s->file, CHUNK, 0 };

		left = ZSTD_compressStream2(s->compress, &out, &in,
					    last ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return -EIO;
		r = base_write_all(s->fd, s->file, out.pos);
	} while (r >= 0 && (in.pos < in.size || (last && left)));
	return r;
}

static int put_gzip(struct archive_stream *s, const void *data, size_t len, bool last)
{
	int r = 0;

	s->z.next_in = (Bytef *)(uintptr_t)data;
	s->z.avail_in = (uInt)len;
	do {
		s->z.next_out = s->file;
		s->z.avail_out = CHUNK;
		if (deflate(&s->z, last ? Z_FINISH : Z_NO_FLUSH) == Z_STREAM_ERROR)
			return -EIO;
		r = base_write_all(s->fd, s->file, CHUNK - s->z.avail_out);
	} while (r >= 0 && !s->z.avail_out);
	return r;
}

static int put(struct archive_stream *s, const void *data, size_t len, bool last)
{
	return s->method == ARCHIVE_ZSTD   ? put_zstd(s, data, len, last)
	       : s->method == ARCHIVE_GZIP ? put_gzip(s, data, len, last)
					   : base_write_all(s->fd, data, len);
}

int archive_stream_put(struct archive_stream *s, const void *data, size_t len)
{
	const uint8_t *p = data;
	int r = 0;

	/* zlib counts in 32 bits. */
	for (size_t part; r >= 0 && len; len -= part, p += part) {
		part = len < CHUNK ? len : CHUNK;
		r = put(s, p, part, false);
	}
	return r;
}

int archive_stream_finish(struct archive_stream *s)
{
	return put(s, "", 0, true);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int fill(struct archive_stream *s)
{
	ssize_t n;

	if (s->pos < s->len || s->at_end)
		return 0;
	do
		n = read(s->fd, s->file, CHUNK);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	s->pos = 0;
	s->len = (size_t)n;
	s->at_end = n == 0;
	return 0;
}

static int start_reading(struct archive_stream *s)
{
	static const uint8_t gzip[] = { 0x1f, 0x8b }, zstd[] = { 0x28, 0xb5, 0x2f, 0xfd };
	int r = fill(s);

	if (r < 0)
		return r;
	if (s->len >= sizeof(zstd) && !memcmp(s->file, zstd, sizeof(zstd))) {
		s->method = ARCHIVE_ZSTD;
		s->expand = ZSTD_createDCtx();
		return s->expand ? 0 : -ENOMEM;
	}
	if (s->len < sizeof(gzip) || memcmp(s->file, gzip, sizeof(gzip)) != 0)
		return 0;
	s->method = ARCHIVE_GZIP;
	s->z_open = inflateInit2(&s->z, GZIP_WINDOW) == Z_OK;
	return s->z_open ? 0 : -ENOMEM;
}

int archive_stream_read_open(int fd, struct archive_stream **out)
{
	struct archive_stream *s = stream_new(fd, false);
	int r = s ? start_reading(s) : -ENOMEM;

	if (r < 0) {
		archive_stream_close(s);
		return r;
	}
	*out = s;
	return 0;
}

/* How many bytes it gave, or negative; 0: it wants more of the file. */
static ssize_t get_plain(struct archive_stream *s, uint8_t *to, size_t len)
{
	size_t n = s->len - s->pos < len ? s->len - s->pos : len;

	memcpy(to, s->file + s->pos, n);
	s->pos += n;
	return (ssize_t)n;
}

static ssize_t get_zstd(struct archive_stream *s, uint8_t *to, size_t len)
{
	ZSTD_inBuffer in = { s->file, s->len, s->pos };
	ZSTD_outBuffer out = { to, len, 0 };
	size_t left = ZSTD_decompressStream(s->expand, &out, &in);

	s->pos = in.pos;
	s->ended = left == 0;
	return ZSTD_isError(left) ? -DCPI_EFORMAT : (ssize_t)out.pos;
}

static ssize_t get_gzip(struct archive_stream *s, uint8_t *to, size_t len)
{
	int r;

	s->z.next_in = s->file + s->pos;
	s->z.avail_in = (uInt)(s->len - s->pos);
	s->z.next_out = to;
	s->z.avail_out = (uInt)(len < CHUNK ? len : CHUNK);
	len = s->z.avail_out;
	r = inflate(&s->z, Z_NO_FLUSH);
	s->pos = s->len - s->z.avail_in;
	s->ended = r == Z_STREAM_END;
	return r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR ? (ssize_t)(len - s->z.avail_out)
								  : -DCPI_EFORMAT;
}

static ssize_t get(struct archive_stream *s, uint8_t *to, size_t len)
{
	return s->method == ARCHIVE_ZSTD   ? get_zstd(s, to, len)
	       : s->method == ARCHIVE_GZIP ? get_gzip(s, to, len)
					   : get_plain(s, to, len);
}

int archive_stream_get(struct archive_stream *s, void *data, size_t len)
{
	uint8_t *to = data;

	while (len) {
		ssize_t n = fill(s);

		if (n < 0)
			return (int)n;
		n = s->ended ? 0 : get(s, to, len);
		if (n < 0)
			return (int)n;
		/* At the file's end the decoder may still hold bytes: only when it gives none is it
		 * over. */
		if (n == 0 && (s->at_end || s->ended))
			return -DCPI_ETRUNCATED;
		to += n;
		len -= (size_t)n;
	}
	return 0;
}
