/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files may lie about their build-id. A file that root alone can place is believed; of any other
 * one the code is hashed, so that those of one build-id that differ are told apart.
 */
#include <errno.h>
#include <string.h>

#include "reader_file.h"

static bool is_of_root(const struct stat *st)
{
	return st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* A file system that a user has mounted may claim any owner: the path must stay on the first. */
bool reader_is_roots(const struct reader_request *q, const struct stat *st)
{
	char path[sizeof(q->path)];
	struct stat at;
	uint64_t dev;

	snprintf(path, sizeof(path), "%s", q->path);
	if (*path != '/' || !is_of_root(st) || lstat("/", &at) < 0 || !is_of_root(&at))
		return false;
	dev = at.st_dev;
	for (char *end = strchr(path + 1, '/'); end; end = strchr(end + 1, '/')) {
		*end = '\0';
		if (lstat(path, &at) < 0 || !S_ISDIR(at.st_mode) || !is_of_root(&at) ||
		    at.st_dev != dev)
			return false;
		*end = '/';
	}
	return lstat(path, &at) == 0 && at.st_dev == st->st_dev && at.st_dev == dev &&
	       at.st_ino == st->st_ino;
}

bool reader_was_roots(const struct stat *st)
{
	struct stat at;

	return is_of_root(st) && lstat("/", &at) == 0 && at.st_dev == st->st_dev;
}

void reader_text_of_file(const struct stat *st, struct base_id *text)
{
	const uint64_t file[] = { st->st_dev, st->st_ino, (uint64_t)st->st_size,
				  (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec };
	struct base_sha256 s;

	base_sha256_init(&s);
	base_sha256_add(&s, file, sizeof(file));
	base_id_of_sha256(text, &s);
	text->len = READER_TEXT_FILE;
}
