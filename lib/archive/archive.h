/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Archives: files in one compressed tar file, whose first member is the list of all others with
 * their checksums (docs/format/archive.md). Any tar reads them. Ours reads no other: what the list
 * says, and nothing else, must stand behind it, so that the list is all of a hostile archive that
 * is parsed.
 */
#ifndef DCPI_ARCHIVE_H
#define DCPI_ARCHIVE_H

#include "base.h"

#define ARCHIVE_PATH_MAX   600
#define ARCHIVE_MEMBER_MAX ((UINT64_C(1) << 33) - 1) /* what a tar header can say */
#define ARCHIVE_LIST_MAX   (UINT64_C(256) << 20)     /* bytes of the list's text */
#define ARCHIVE_LIST_NAME  "dcpi-archive"

/* ---- the list (list.c) --------------------------------------------------------------------- */

struct archive_member {
	char *path; /* relative, no ".", ".." or empty part; bytes above blank, but 0x7f */
	uint64_t len;
	uint32_t mode;	 /* of 0777, nobody but the owner writes */
	int64_t mtime;	 /* UTC seconds, 0 or later */
	uint8_t sum[32]; /* SHA-256 of the contents */
};

/* Ascending by path, each once. Zero-initialize. */
struct archive_list {
	struct archive_member *v;
	size_t nr, cap;
	uint64_t bytes; /* of all members */
};

/* At the end, in whatever order. @m's path is copied. 0,
 * -EINVAL: a path that cannot be, -DCPI_ELIMIT, -ENOMEM. */
int archive_list_add(struct archive_list *l, const struct archive_member *m);
/* The list's text; -DCPI_EFORMAT and -DCPI_EVERSION with the line, -DCPI_ECHECKSUM, -ENOMEM. What
 * was read is as ascending, each once, as it must be. Fuzzed. */
int archive_list_parse(struct archive_list *l, const char *text, size_t len, struct base_err *err);
int archive_list_format(const struct archive_list *l, struct base_buf *to);
void archive_list_release(struct archive_list *l);

/* ---- writing (write.c) --------------------------------------------------------------------- */

struct archive_writer;

/*
 * Into @path, which appears complete or not at all: compressed as its name ends, .zst (or .tzst),
 * .gz (or .tgz), .tar: not. -EINVAL: none of them. What is added is put into an unnamed file in the
 * same folder first, so that files may change meanwhile.
 */
int archive_create(const char *path, struct archive_writer **out, struct base_err *err);
/* -EEXIST: added already. */
int archive_add_data(struct archive_writer *w, const char *path, uint32_t mode, int64_t mtime,
		     const void *data, size_t len, struct base_err *err);
/* A regular file with its mode and time. */
int archive_add_file(struct archive_writer *w, const char *path, int dir_fd, const char *file,
		     struct base_err *err);
bool archive_has(const struct archive_writer *w, const char *path);
/* As of yet, in no order. */
const struct archive_list *archive_added(const struct archive_writer *w);
/* Write it. Who may not read each of the members may not read the archive. */
int archive_finish(struct archive_writer *w, struct base_err *err);
void archive_discard(struct archive_writer *w); /* after archive_finish too */

/* ---- reading (read.c) ---------------------------------------------------------------------- */

struct archive_reader;

/* Reads the list. -DCPI_EFORMAT (not an archive of ours, or damaged), -DCPI_ETRUNCATED, -errno. */
int archive_open(const char *path, struct archive_reader **out, struct base_err *err);
const struct archive_list *archive_members(const struct archive_reader *r);
/*
 * The next member's contents to @put, piece by piece; -DCPI_ECHECKSUM where they are not those that
 * the list tells (all of them have been put by then), or the first negative of @put. To be called
 * for each member, in the list's order.
 */
int archive_read(struct archive_reader *r, int (*put)(void *ctx, const void *data, size_t len),
		 void *ctx, struct base_err *err);
/* After the last: -DCPI_EFORMAT where anything follows. */
int archive_end(struct archive_reader *r, struct base_err *err);
void archive_close(struct archive_reader *r);

#endif
