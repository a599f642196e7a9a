/* SPDX-License-Identifier: BSD-2-Clause */
/* An archive is checked and unpacked into a database. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "tar.h"

/* The most that a file takes on disk beside its bytes. */
enum { BLOCK = 4096 };

int tar_sum(const struct tarball_list *list, struct tar_sum *out, struct base_err *err)
{
	struct profdb_place place;

	*out = (struct tar_sum){ 0 };
	for (size_t i = 0; i < list->nr; i++) {
		if (profdb_place_parse(list->v[i].path, &place) < 0)
			return base_fail(err, -EINVAL,
					 "the archive has '%s', which is no part of a database",
					 list->v[i].path);
		out->nr[place.part]++;
		out->bytes[place.part] += list->v[i].len;
	}
	return 0;
}

static int check_space(struct profdb *db, const struct tarball_list *list, struct base_err *err)
{
	uint64_t need = list->bytes + list->nr * BLOCK, have;
	struct statvfs fs;

	if (fstatvfs(profdb_dir_fd(db), &fs) < 0)
		return 0;
	have = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (need <= have)
		return 0;
	return base_fail(err, -ENOSPC,
			 "the archive's files take %llu MiB, and '%s' has room for %llu",
			 (unsigned long long)((need + (1 << 20) - 1) >> 20), profdb_path(db),
			 (unsigned long long)(have >> 20));
}

struct target {
	struct profdb *db;
	int fd;
};

static int put(void *ctx, const void *data, size_t len)
{
	const struct target *t = ctx;

	profdb_lock_heartbeat(t->db);
	return base_write_all(t->fd, data, len);
}

/* 1: the database has it; it is read all the same, so that its sum is checked. */
static int unpack_file(struct tarball_reader *a, struct profdb *db, struct profdb_import *i,
		       const struct tarball_member *m, struct base_err *err)
{
	struct base_file f = { .fd = -1 };
	int r = profdb_import_file(i, m->path, m->sum, m->mode, &f, err);

	if (r == 1)
		return tarball_read(a, NULL, NULL, err) < 0 ? err->code : 1;
	if (r < 0)
		return r;
	r = tarball_read(a, put, &(struct target){ db, f.fd }, err);
	if (r >= 0)
		r = base_file_commit(&f, err);
	base_file_abort(&f);
	return r < 0 ? base_fail_errno(err, r, "cannot write '%s'", m->path) : 0;
}

static int unpack_files(struct tarball_reader *a, struct profdb *db, struct profdb_import *i,
			uint64_t *kept, struct base_err *err)
{
	const struct tarball_list *list = tarball_members(a);
	int r = 0;

	*kept = 0;
	for (size_t m = 0; r >= 0 && m < list->nr; m++) {
		r = unpack_file(a, db, i, &list->v[m], err);
		*kept += r == 1;
	}
	if (r >= 0)
		r = tarball_end(a, err);
	return r < 0 ? r : profdb_import_commit(i, err);
}

static int begin(struct profdb *db, const struct tarball_list *list, struct profdb_import **out,
		 struct base_err *err)
{
	const char **paths = calloc(list->nr + 1, sizeof(*paths));
	int r;

	if (!paths)
		return base_fail_errno(err, -ENOMEM, "cannot extract");
	for (size_t i = 0; i < list->nr; i++)
		paths[i] = list->v[i].path;
	r = profdb_import_begin(db, paths, list->nr, out, err);
	free(paths);
	return r;
}

static int unpack_into(struct tarball_reader *a, struct profdb *db, uint64_t *kept,
		       struct base_err *err)
{
	struct profdb_import *i = NULL;
	int lock, r = check_space(db, tarball_members(a), err);

	if (r >= 0)
		r = begin(db, tarball_members(a), &i, err);
	if (r < 0)
		return r;
	/* Pseudo-images come before the profiles that refer to them: none may be removed until
	 * then. */
	r = lock = profdb_dyn_lock(db, false, 10000, err);
	if (r >= 0)
		r = unpack_files(a, db, i, kept, err);
	profdb_import_end(i);
	if (lock >= 0)
		close(lock);
	return r;
}

static void say_watching(void *ctx, const char *text)
{
	(void)ctx;
	fprintf(stderr, "dcpitar: %s\n", text);
}

int tar_unpack(const char *file, const char *path, struct tar_sum *sum, uint64_t *kept,
	       struct base_err *err)
{
	struct tarball_reader *a;
	struct profdb *db = NULL;
	int r = tarball_open(file, &a, err);

	if (r < 0)
		return r;
	r = tar_sum(tarball_members(a), sum, err);
	if (r >= 0)
		r = profdb_open(path, true, &db, err);
	if (r >= 0)
		profdb_set_watching(db, say_watching, NULL);
	if (r >= 0)
		r = unpack_into(a, db, kept, err);
	profdb_close(db);
	tarball_close(a);
	return r;
}
