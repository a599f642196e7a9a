/* SPDX-License-Identifier: BSD-2-Clause */
/* Epochs that are old enough go. First their name, at once, so that nobody reads half of one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profdb_internal.h"

enum { WEEK = 7 * 86400, NEWEST = 3 };

bool profdb_epoch_is_old(struct profdb *db, const char *epoch, int64_t before)
{
	char **platforms = profdb_platforms(db, epoch, NULL), name[PROFDB_TIME_LEN + 1];
	bool old = platforms && profdb_epoch_time(before, name) >= 0 && strcmp(epoch, name) < 0;

	for (size_t i = 0; old && platforms[i]; i++) {
		uint64_t written = profdb_epoch_written(db, epoch, platforms[i]) / 1000000000;

		old = (int64_t)written < before && !(profdb_epoch_open(db, epoch, platforms[i]) &&
						     profdb_lock_held(db, platforms[i]));
	}
	free(platforms);
	return old;
}

bool profdb_epoch_finished(struct profdb *db, const char *epoch)
{
	char **platforms = profdb_platforms(db, epoch, NULL);
	bool finished = platforms != NULL;

	for (size_t i = 0; finished && platforms[i]; i++)
		finished = !profdb_epoch_open(db, epoch, platforms[i]);
	free(platforms);
	return finished;
}

static bool is_in_use(struct profdb *db, const char *epoch)
{
	char **platforms = profdb_platforms(db, epoch, NULL);
	bool used = false;

	for (size_t i = 0; !used && platforms && platforms[i]; i++)
		used = profdb_epoch_open(db, epoch, platforms[i]) &&
		       profdb_lock_held(db, platforms[i]);
	free(platforms);
	return used;
}

int profdb_epoch_remove(struct profdb *db, const char *epoch, struct base_err *err)
{
	char gone[PROFDB_EPOCH_LEN + 16];
	int r = profdb_keep_removing(db, err);

	if (r < 0)
		return r;
	if (is_in_use(db, epoch))
		return base_fail(err, -DCPI_EBUSY, "a daemon has opened epoch '%s/%s'", db->path,
				 epoch);
	snprintf(gone, sizeof(gone), PROFDB_GONE_PREFIX "%s", epoch);
	if (renameat(db->fd, epoch, db->fd, gone) < 0)
		r = errno == ENOENT ? 0 : -errno;
	else
		r = profdb_remove_tree(db->fd, gone, PROFDB_DEPTH);
	profdb_lock_heartbeat(db);
	return r < 0 ? base_fail_errno(err, r, "cannot remove epoch '%s/%s'", db->path, epoch) : 0;
}

int profdb_epochs_expire(struct profdb *db, int64_t now, bool dry_run,
			 void (*removed)(void *ctx, const char *epoch), void *ctx,
			 struct base_err *err)
{
	int r = dry_run ? 0 : profdb_keep_removing(db, err), count = 0;
	char **epochs = r < 0 ? NULL : profdb_epochs(db, err);
	size_t nr = 0;

	if (r >= 0 && !epochs)
		r = -EIO;
	while (epochs && epochs[nr])
		nr++;
	for (size_t i = 0; r >= 0 && i + NEWEST < nr; i++) {
		if (!profdb_epoch_is_old(db, epochs[i], now - WEEK))
			continue;
		r = dry_run ? 0 : profdb_epoch_remove(db, epochs[i], err);
		if (r >= 0)
			removed(ctx, epochs[i]);
		count++;
	}
	free(epochs);
	return r < 0 ? base_fail_errno(err, r, "cannot remove old epochs") : count;
}

int profdb_index_expire(struct profdb *db, int64_t now)
{
	struct profdb_names names = { 0 };
	int fd, nr = 0, r = profdb_names_list(&names, db->fd, "index");

	fd = r < 0 ? -1 : profdb_index_fd(db);
	for (size_t i = 0; fd >= 0 && i < names.nr; i++) {
		struct stat st;

		if (fstatat(fd, names.items[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && (int64_t)st.st_mtim.tv_sec < now - WEEK)
			nr += unlinkat(fd, names.items[i], 0) == 0;
	}
	profdb_names_release(&names);
	return r == -ENOENT ? 0 : r < 0 ? r : nr;
}

uint64_t profdb_index_shrink(struct profdb *db, uint64_t excess, bool dry_run)
{
	struct profdb_names names = { 0 };
	int fd, r = profdb_names_list(&names, db->fd, "index");
	uint64_t freed = 0;

	fd = r < 0 ? -1 : profdb_index_fd(db);
	for (size_t i = 0; fd >= 0 && i < names.nr && freed < excess; i++) {
		struct stat st;

		if (fstatat(fd, names.items[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && (dry_run || unlinkat(fd, names.items[i], 0) == 0))
			freed += base_align_up((uint64_t)st.st_size, 4096);
	}
	profdb_names_release(&names);
	return freed;
}
