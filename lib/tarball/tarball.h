/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Archives: files in one compressed tar file, whose first member is the list of all others with
 * their checksums (docs/format/archive.md). Any tar reads them. This reader takes no other: exactly
 * the members that the list names must follow it. libarchive decodes in a child without rights, so
 * the list is all of a hostile archive that this process parses.
 */
#ifndef DCPI_TARBALL_H
#define DCPI_TARBALL_H

#include "base.h"

#define TARBALL_PATH_MAX   600
#define TARBALL_MEMBER_MAX ((UINT64_C(1) << 33) - 1) /* what a tar header can say */
#define TARBALL_LIST_MAX   (UINT64_C(256) << 20)     /* bytes of the list's text */
#define TARBALL_LIST_NAME  "dcpi-archive"

/* ---- the list (list.c) ----------------------------------------------------------------------- */

struct tarball_member {
	char *path; /* relative, no ".", ".." or empty part; bytes above blank, but 0x7f */
	uint64_t len;
	uint32_t mode;	 /* of 0777, nobody but the owner writes */
	int64_t mtime;	 /* UTC seconds, 0 or later */
	uint8_t sum[32]; /* SHA-256 of the contents */
};

/* Ascending by path, each once. Zero-initialize. */
struct tarball_list {
	struct tarball_member *v;
	size_t nr, cap;
	uint64_t bytes; /* of all members */
};

/* At the end, in whatever order. @m's path is copied. 0,
 * -EINVAL: a path that cannot be, -DCPI_ELIMIT, -ENOMEM. */
int tarball_list_add(struct tarball_list *l, const struct tarball_member *m);
/* The list's text; -DCPI_EFORMAT and -DCPI_EVERSION with the line, -DCPI_ECHECKSUM, -ENOMEM. What
 * was read is as ascending, each once, as it must be. Fuzzed. */
int tarball_list_parse(struct tarball_list *l, const char *text, size_t len, struct base_err *err);
int tarball_list_format(const struct tarball_list *l, struct base_buf *to);
void tarball_list_release(struct tarball_list *l);

/* ---- writing (write.c) ----------------------------------------------------------------------- */

struct tarball_writer;

/*
 * Into @path, which appears complete or not at all: compressed as its name ends, .zst (or .tzst),
 * .gz (or .tgz), .tar: not. -EINVAL: none of them. What is added is put into an unnamed file in the
 * same folder first, so that files may change meanwhile.
 */
int tarball_create(const char *path, struct tarball_writer **out, struct base_err *err);
/* -EEXIST: added already. */
int tarball_add_data(struct tarball_writer *w, const char *path, uint32_t mode, int64_t mtime,
		     const void *data, size_t len, struct base_err *err);
/* A regular file with its mode and time. */
int tarball_add_file(struct tarball_writer *w, const char *path, int dir_fd, const char *file,
		     struct base_err *err);
bool tarball_has(const struct tarball_writer *w, const char *path);
/* As of yet, in no order. */
const struct tarball_list *tarball_added(const struct tarball_writer *w);
/* Write it. Who may not read each of the members may not read the archive. */
int tarball_finish(struct tarball_writer *w, struct base_err *err);
void tarball_discard(struct tarball_writer *w); /* after tarball_finish too */

/* ---- reading (read.c) ------------------------------------------------------------------------ */

struct tarball_reader;

/*
 * Start the child and read the list. -DCPI_EFORMAT (not an archive of ours, or damaged),
 * -DCPI_ETRUNCATED, -DCPI_EHELPER (the child was ended), -errno.
 */
int tarball_open(const char *path, struct tarball_reader **out, struct base_err *err);
const struct tarball_list *tarball_members(const struct tarball_reader *r);
/*
 * The next member's contents to @put, piece by piece; -DCPI_ECHECKSUM where they are not those that
 * the list tells (all of them have been put by then), or the first negative of @put. To be called
 * for each member, in the list's order.
 */
int tarball_read(struct tarball_reader *r, int (*put)(void *ctx, const void *data, size_t len),
		 void *ctx, struct base_err *err);
/* After the last: -DCPI_EFORMAT where another member follows. */
int tarball_end(struct tarball_reader *r, struct base_err *err);
void tarball_close(struct tarball_reader *r);

#endif
