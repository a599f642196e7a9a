/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Epochs that are old enough go. First their name, at once, so that nobody reads half of one; what
 * a run before us left of that is removed too.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profdb_internal.h"

#define GONE_PREFIX ".gone-"

enum { WEEK = 7 * 86400, NEWEST = 3, DEPTH = 3 /* epoch, platform, profile */ };

int profdb_remove_tree(int dir_fd, const char *name, int depth)
{
	struct profdb_names all = { 0 };
	int fd, r = 0;

	if (unlinkat(dir_fd, name, 0) == 0)
		return 0;
	if ((errno != EISDIR && errno != EPERM) || !depth)
		return errno == ENOENT ? 0 : -errno;
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = profdb_names_list(&all, fd, ".");
	for (size_t i = 0; r >= 0 && i < all.nr; i++)
		r = profdb_remove_tree(fd, all.items[i], depth - 1);
	profdb_names_release(&all);
	close(fd);
	return r < 0 ? r : unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static int remove_rest(struct profdb *db)
{
	struct profdb_names all = { 0 };
	int r = profdb_names_list(&all, db->fd, ".");

	for (size_t i = 0; r >= 0 && i < all.nr; i++) {
		if (!strncmp(all.items[i], GONE_PREFIX, strlen(GONE_PREFIX)))
			r = profdb_remove_tree(db->fd, all.items[i], DEPTH);
	}
	profdb_names_release(&all);
	return r;
}

/* Begun before @before and not written since, by nobody who may still do so. */
static bool is_old(struct profdb *db, const char *epoch, const char *before_name, int64_t before)
{
	char **platforms = profdb_platforms(db, epoch, NULL);
	bool old = platforms && strcmp(epoch, before_name) < 0;

	for (size_t i = 0; old && platforms[i]; i++) {
		uint64_t written = profdb_epoch_written(db, epoch, platforms[i]) / 1000000000;

		old = (int64_t)written < before && !(profdb_epoch_open(db, epoch, platforms[i]) &&
						     profdb_lock_held(db, platforms[i]));
	}
	free(platforms);
	return old;
}

static int expire(struct profdb *db, const char *epoch)
{
	char gone[PROFDB_EPOCH_LEN + 16];

	snprintf(gone, sizeof(gone), GONE_PREFIX "%s", epoch);
	if (renameat(db->fd, epoch, db->fd, gone) < 0)
		return errno == ENOENT ? 0 : -errno;
	return profdb_remove_tree(db->fd, gone, DEPTH);
}

int profdb_epochs_expire(struct profdb *db, int64_t now, bool dry_run,
			 void (*removed)(void *ctx, const char *epoch), void *ctx,
			 struct base_err *err)
{
	char before[PROFDB_TIME_LEN + 1], **epochs = profdb_epochs(db, err);
	int r = epochs ? profdb_epoch_time(now - WEEK, before) : -EIO, count = 0;
	size_t nr = 0;

	while (epochs && epochs[nr])
		nr++;
	if (r >= 0 && !dry_run)
		r = remove_rest(db);
	for (size_t i = 0; r >= 0 && i + NEWEST < nr; i++) {
		if (!is_old(db, epochs[i], before, now - WEEK))
			continue;
		r = dry_run ? 0 : expire(db, epochs[i]);
		if (r < 0)
			base_fail_errno(err, r, "cannot remove epoch '%s/%s'", db->path, epochs[i]);
		else
			removed(ctx, epochs[i]);
		count++;
	}
	free(epochs);
	return r < 0 ? base_fail_errno(err, r, "cannot remove old epochs") : count;
}
