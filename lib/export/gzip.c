/* SPDX-License-Identifier: BSD-2-Clause */
/* A stream that compresses, without the time in its head, so that equal exports are equal files. */
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "export.h"

struct gzip {
	z_stream z;
	FILE *to;
	uint8_t out[1 << 16];
};

enum { GZIP_WRAPPER = 16 };

static int deflate_all(struct gzip *g, int flush)
{
	do {
		size_t n;

		g->z.next_out = g->out;
		g->z.avail_out = sizeof(g->out);
		if (deflate(&g->z, flush) == Z_STREAM_ERROR)
			return -EIO;
		n = sizeof(g->out) - g->z.avail_out;
		if (fwrite(g->out, 1, n, g->to) != n)
			return -EIO;
	} while (!g->z.avail_out);
	return 0;
}

/* As fopencookie wants it: all or, on failure, 0. */
static ssize_t put(void *cookie, const char *data, size_t len)
{
	struct gzip *g = cookie;

	g->z.next_in = (Bytef *)(uintptr_t)data;
	g->z.avail_in = (uInt)len;
	return deflate_all(g, Z_NO_FLUSH) < 0 ? 0 : (ssize_t)len;
}

static int end(void *cookie)
{
	struct gzip *g = cookie;
	int r;

	g->z.avail_in = 0;
	r = deflate_all(g, Z_FINISH);
	deflateEnd(&g->z);
	free(g);
	if (r < 0)
		errno = EIO;
	return r < 0 ? EOF : 0;
}

FILE *export_gzip(FILE *to)
{
	const cookie_io_functions_t io = { .write = put, .close = end };
	struct gzip *g = calloc(1, sizeof(*g));
	FILE *out;

	if (!g)
		return NULL;
	g->to = to;
	if (deflateInit2(&g->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP_WRAPPER, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK) {
		free(g);
		return NULL;
	}
	out = fopencookie(g, "w", io);
	if (!out) {
		deflateEnd(&g->z);
		free(g);
	}
	return out;
}
