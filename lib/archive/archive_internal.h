/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside lib/archive: bytes to and from a compressed file, and a member's tar headers. */
#ifndef DCPI_ARCHIVE_INTERNAL_H
#define DCPI_ARCHIVE_INTERNAL_H

#include "archive.h"

#define ARCHIVE_BLOCK 512

/* ---- compressed bytes (stream.c) ----------------------------------------------------------- */

enum archive_method { ARCHIVE_PLAIN, ARCHIVE_GZIP, ARCHIVE_ZSTD };

struct archive_stream; /* opaque; the descriptor stays the caller's */

/* By the end of a file's name, or -EINVAL. */
int archive_method_of(const char *path);
int archive_stream_write_open(int fd, enum archive_method method, struct archive_stream **out);
int archive_stream_put(struct archive_stream *s, const void *data, size_t len);
/* What is still held back. 0 or -errno. */
int archive_stream_finish(struct archive_stream *s);
/* The method is told by the first bytes. */
int archive_stream_read_open(int fd, struct archive_stream **out);
/* Exactly @len bytes: 0, -DCPI_ETRUNCATED, -DCPI_EFORMAT (damaged), -errno. */
int archive_stream_get(struct archive_stream *s, void *data, size_t len);
void archive_stream_close(struct archive_stream *s);

/* ---- tar (tar.c) --------------------------------------------------------------------------- */

/* All that stands before the member's contents, a multiple of ARCHIVE_BLOCK. 0 or -ENOMEM. */
int archive_header(const struct archive_member *m, struct base_buf *to);
/* Of a header as archive_header makes one: the contents' length; -DCPI_EFORMAT: it is none. */
int archive_header_len(const uint8_t block[ARCHIVE_BLOCK], uint64_t *len);

#endif
