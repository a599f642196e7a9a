/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several machines, one database: whoever turns the epoch tells the others by a file in its folder.
 * A machine's clock may be wrong by minutes, so a new epoch is named after every other, whatever
 * our own clock says (within a minute by its seconds, so that it is not ahead of the clock); names
 * that are a day ahead were made by hand or by a clock gone wild, and following them would leave no
 * names for the epochs of the time until then.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profdb_internal.h"

enum { DAY = 86400 };

/* The last name that an existing epoch may have: at most a day from now. */
static int last_name(int64_t now, char last[PROFDB_TIME_LEN + 1])
{
	int r = profdb_epoch_time(now + DAY, last);

	last[PROFDB_EPOCH_MINUTE] = '\0';
	return r;
}

static bool written_today(struct profdb *db, const char *epoch, const char *platform, int64_t now)
{
	int64_t at = (int64_t)(profdb_epoch_written(db, epoch, platform) / 1000000000);

	return at > now - DAY && at < now + DAY;
}

/* An epoch that another machine began is not over while we have none. */
static bool is_to_follow(struct profdb *db, const char *epoch, int64_t now)
{
	bool must_be_open = db->epoch.fd < 0, good = false;
	char path[PROFDB_EPOCH_LEN + 16], **platforms;

	snprintf(path, sizeof(path), "%s/%s", epoch, PROFDB_TURNED_NAME);
	if (faccessat(db->fd, path, F_OK, 0) < 0)
		return false;
	platforms = profdb_platforms(db, epoch, NULL);

	for (size_t i = 0; platforms && platforms[i]; i++) {
		if (!strcmp(platforms[i], db->platform)) {
			good = false; /* Ours is finished there: finished ones are not written. */
			break;
		}
		good = good || !must_be_open ||
		       (profdb_epoch_open(db, epoch, platforms[i]) &&
			written_today(db, epoch, platforms[i], now));
	}
	free(platforms);
	return good;
}

int profdb_epoch_follow(struct profdb *db, int64_t now, char epoch[PROFDB_EPOCH_LEN + 1],
			struct base_err *err)
{
	char last[PROFDB_TIME_LEN + 1], **epochs;
	size_t nr = 0;
	int r = last_name(now, last);

	if (r < 0)
		return 0;
	epochs = profdb_epochs(db, err);
	if (!epochs)
		return -EIO;
	while (epochs[nr])
		nr++;
	/* The newest alone: one that began before it is over. */
	while (nr && strcmp(epochs[nr - 1], last) > 0)
		nr--;
	if (nr && strcmp(epochs[nr - 1], db->epoch.name) > 0 &&
	    is_to_follow(db, epochs[nr - 1], now)) {
		r = profdb_epoch_begin(db, now, epochs[nr - 1], epoch, err);
		r = r < 0 ? r : 1;
	}
	free(epochs);
	return r;
}

static int mark_turned(struct profdb *db, struct base_err *err)
{
	char path[PROFDB_EPOCH_LEN + 16];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", db->epoch.name, PROFDB_TURNED_NAME);
	fd = openat(db->fd, path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return base_fail_errno(err, -errno, "cannot make '%s/%s'", db->path, path);
	profdb_give(db->fd, fd);
	close(fd);
	return 0;
}

/* A name at @now that stands behind @newest: never ahead of the clock, unless that one is. */
static int name_behind(int64_t now, const char *newest, char name[PROFDB_EPOCH_LEN + 1])
{
	int r = profdb_epoch_time(now, name);

	if (r < 0)
		return r;
	if (strncmp(name, newest, PROFDB_EPOCH_MINUTE) > 0)
		name[PROFDB_EPOCH_MINUTE] = '\0';
	else if (strcmp(name, newest) <= 0)
		r = profdb_epoch_time(profdb_epoch_begin_time(newest) + 1, name);
	return r;
}

int profdb_epoch_turn(struct profdb *db, int64_t now, char epoch[PROFDB_EPOCH_LEN + 1],
		      struct base_err *err)
{
	char last[PROFDB_TIME_LEN + 1], name[PROFDB_EPOCH_LEN + 1];
	char **epochs = profdb_epochs(db, err);
	const char *newest = "";
	int r = epochs ? last_name(now, last) : -EIO;

	for (size_t i = 0; r >= 0 && epochs[i]; i++)
		newest = strcmp(epochs[i], last) <= 0 ? epochs[i] : newest;
	if (r >= 0)
		r = name_behind(now, newest, name);
	free(epochs);
	if (r < 0)
		return base_fail_errno(err, r, "cannot begin an epoch in '%s'", db->path);
	r = profdb_epoch_begin(db, now, name, epoch, err);
	return r < 0 ? r : mark_turned(db, err);
}
