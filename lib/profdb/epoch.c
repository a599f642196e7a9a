/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "profdb_internal.h"

/* ---- the current epoch and its files --------------------------------------------------------- */

void profdb_epoch_leave(struct profdb *db)
{
	size_t pos = 0;
	void *file;

	while (base_map_next(&db->files, &pos, &file))
		free(file);
	base_map_release(&db->files);
	if (db->epoch_fd >= 0)
		close(db->epoch_fd);
	db->epoch_fd = -1;
	db->epoch[0] = '\0';
	db->redo = false;
	profdb_commit_release(&db->commit);
}

/* Of several files of one key the last is the one that goes on. */
static int know_file(struct profdb *db, const char *name)
{
	char key[PROFDB_KEY_MAX];
	struct profdb_file *file;
	unsigned int version;
	int r;

	profdb_key_of_name(name, key, &version);
	file = base_map_get(&db->files, key, strlen(key));
	if (file && version < file->version)
		return 0;
	if (!file) {
		file = calloc(1, sizeof(*file));
		if (!file)
			return -ENOMEM;
		r = base_map_set(&db->files, key, strlen(key), file);
		if (r < 0) {
			free(file);
			return r;
		}
	}
	file->version = version;
	snprintf(file->name, sizeof(file->name), "%s", name);
	return 0;
}

static int know_files(struct profdb *db)
{
	struct profdb_names all = { 0 };
	int r = profdb_names_list(&all, db->epoch_fd, ".");

	for (size_t i = 0; r >= 0 && i < all.nr; i++) {
		if (profdb_file_name_ok(all.items[i]))
			r = know_file(db, all.items[i]);
	}
	profdb_names_release(&all);
	return r;
}

int profdb_epoch_enter(struct profdb *db, const char *epoch, int fd, struct base_err *err)
{
	int r;

	profdb_epoch_leave(db);
	db->epoch_fd = fd;
	strcpy(db->epoch, epoch);
	r = profdb_commit_recover(fd, &db->seq, err);
	if (r >= 0) {
		r = know_files(db);
		if (r < 0)
			base_fail_errno(err, r, "cannot list '%s/%s'", db->path, epoch);
	}
	if (r < 0)
		profdb_epoch_leave(db);
	return r;
}

/* ---- starting, resuming, finishing ----------------------------------------------------------- */

static int needs_lock(const struct profdb *db, struct base_err *err)
{
	if (db->lock_fd < 0)
		return base_fail(err, -EINVAL, "database '%s' is not locked for writing", db->path);
	if (db->flushing)
		return base_fail(err, -EINVAL, "a flush of database '%s' is under way", db->path);
	return 0;
}

static int finish_current(struct profdb *db, struct base_err *err)
{
	int r = profdb_flush_redo(db, err);

	if (r < 0)
		return r;
	if (unlinkat(db->epoch_fd, PROFDB_OPEN_NAME, 0) < 0 && errno != ENOENT)
		return base_fail_errno(err, -errno, "cannot close epoch '%s'", db->epoch);
	r = base_sync_dir(db->epoch_fd);
	if (r < 0)
		return base_fail_errno(err, r, "cannot close epoch '%s'", db->epoch);
	profdb_epoch_leave(db);
	return 0;
}

int profdb_epoch_finish(struct profdb *db, struct base_err *err)
{
	int r = needs_lock(db, err);

	if (r < 0)
		return r;
	if (db->epoch_fd < 0)
		return base_fail(err, -EINVAL, "no epoch is open");
	return finish_current(db, err);
}

/* Newest first: what a daemon before us left open. -ENOENT: nothing. */
static int enter_left_open(struct profdb *db, struct base_err *err)
{
	char **epochs = profdb_epochs(db, err);
	size_t nr = 0;
	int r = -ENOENT;

	if (!epochs)
		return -EIO;
	while (epochs[nr])
		nr++;
	while (r == -ENOENT && nr-- > 0) {
		if (!profdb_epoch_open(db, epochs[nr], db->platform))
			continue;
		r = profdb_platform_open(db, epochs[nr], db->platform);
		if (r >= 0)
			r = profdb_epoch_enter(db, epochs[nr], r, err);
		else
			base_fail_errno(err, r, "cannot open epoch '%s'", epochs[nr]);
		break;
	}
	free(epochs);
	return r;
}

static int close_left_open(struct profdb *db, struct base_err *err)
{
	int r;

	if (db->epoch_fd >= 0) {
		r = finish_current(db, err);
		if (r < 0)
			return r;
	}
	while ((r = enter_left_open(db, err)) >= 0) {
		r = finish_current(db, err);
		if (r < 0)
			return r;
	}
	return r == -ENOENT ? 0 : r;
}

static int epoch_name(int64_t now, char name[PROFDB_EPOCH_LEN + 1])
{
	time_t t = (time_t)now;
	struct tm tm;

	if (now < 0 || !gmtime_r(&t, &tm) || tm.tm_year > 9999 - 1900)
		return -EINVAL;
	snprintf(name, PROFDB_EPOCH_LEN + 1, "%04u%02u%02u%02u%02u", tm.tm_year + 1900u,
		 tm.tm_mon + 1u, tm.tm_mday + 0u, tm.tm_hour + 0u, tm.tm_min + 0u);
	return 0;
}

/* 1: it is ours, 0: this platform has such an epoch, negative. */
static int make_folders(struct profdb *db, const char *epoch)
{
	char path[PROFDB_EPOCH_LEN + PROFDB_PLATFORM_MAX + 2];
	int fd, r;

	if (mkdirat(db->fd, epoch, 0755) < 0 && errno != EEXIST)
		return -errno;
	snprintf(path, sizeof(path), "%s/%s", epoch, db->platform);
	if (mkdirat(db->fd, path, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	fd = openat(db->fd, epoch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = base_sync_dir(fd);
	close(fd);
	if (r >= 0)
		r = base_sync_dir(db->fd);
	return r < 0 ? r : 1;
}

static int make_epoch(struct profdb *db, int64_t now, char epoch[PROFDB_EPOCH_LEN + 1])
{
	int r;

	for (;; now += 60) {
		r = epoch_name(now, epoch);
		if (r >= 0)
			r = make_folders(db, epoch);
		if (r != 0)
			return r;
	}
}

int profdb_epoch_start(struct profdb *db, int64_t now, char epoch[PROFDB_EPOCH_LEN + 1],
		       struct base_err *err)
{
	int fd, r = needs_lock(db, err);

	if (r < 0)
		return r;
	r = close_left_open(db, err);
	if (r < 0)
		return r;
	r = make_epoch(db, now, epoch);
	if (r < 0)
		return base_fail_errno(err, r, "cannot make an epoch in '%s'", db->path);
	fd = profdb_platform_open(db, epoch, db->platform);
	if (fd < 0)
		return base_fail_errno(err, fd, "cannot open epoch '%s'", epoch);
	r = base_file_write(fd, PROFDB_OPEN_NAME, 0644, "open\n", 5, err);
	if (r < 0) {
		close(fd);
		return r;
	}
	return profdb_epoch_enter(db, epoch, fd, err);
}

int profdb_epoch_resume(struct profdb *db, char epoch[PROFDB_EPOCH_LEN + 1], struct base_err *err)
{
	int r = needs_lock(db, err);

	if (r < 0)
		return r;
	if (db->epoch_fd >= 0)
		return base_fail(err, -EINVAL, "epoch '%s' is open already", db->epoch);
	r = enter_left_open(db, err);
	if (r < 0)
		return r == -ENOENT ? base_fail(err, r, "no epoch was left open") : r;
	strcpy(epoch, db->epoch);
	return 0;
}
