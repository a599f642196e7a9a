/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A writer's current epoch: it is started, resumed and finished here, alone or as other machines
 * turn it, and its files are known by their keys.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "profdb_internal.h"

/* ---- the current epoch and its files --------------------------------------------------------- */

static void file_free(struct profdb_file *file)
{
	if (file)
		free(file->name);
	free(file);
}

void profdb_epoch_leave(struct profdb *db)
{
	size_t pos = 0;
	void *file;

	while (base_map_next(&db->epoch.files, &pos, &file))
		file_free(file);
	base_map_release(&db->epoch.files);
	profdb_names_release(&db->epoch.endings);
	if (db->epoch.fd >= 0)
		close(db->epoch.fd);
	db->epoch.fd = -1;
	db->epoch.name[0] = '\0';
	db->epoch.closing = NULL;
	db->flush.redo = false;
	profdb_commit_release(&db->flush.commit);
}

static int know_endings(struct profdb *db, const char *key)
{
	char ending[PROFDB_KEY_MAX];
	size_t from = 0, i;
	int r = 0;

	while (r >= 0 && profdb_key_ending(key, &from, ending)) {
		for (i = 0;
		     i < db->epoch.endings.nr && strcmp(db->epoch.endings.items[i], ending) != 0;
		     i++)
			;
		if (i == db->epoch.endings.nr)
			r = profdb_names_add(&db->epoch.endings, ending);
	}
	return r;
}

int profdb_file_rename(struct profdb_file *file, const char *name)
{
	char *copy = strdup(name);

	if (!copy)
		return -ENOMEM;
	free(file->name);
	file->name = copy;
	return 0;
}

struct profdb_file *profdb_epoch_file(struct profdb *db, const char *key, const char *name)
{
	struct profdb_file *file = base_map_get(&db->epoch.files, key, strlen(key));

	if (file)
		return file;
	file = calloc(1, sizeof(*file));
	if (file && profdb_file_rename(file, name) == 0 && know_endings(db, key) >= 0 &&
	    base_map_set(&db->epoch.files, key, strlen(key), file) == 0)
		return file;
	file_free(file);
	return NULL;
}

/* The last of several files with one key is the one to continue. */
static int know_file(struct profdb *db, const char *name)
{
	char key[PROFDB_KEY_MAX];
	struct profdb_file *file;
	unsigned int version;

	profdb_key_of_name(name, key, &version);
	file = profdb_epoch_file(db, key, name);
	if (!file)
		return -ENOMEM;
	if (version < file->version)
		return 0;
	file->version = version;
	return profdb_file_rename(file, name);
}

static int know_files(struct profdb *db)
{
	struct profdb_names all = { 0 };
	int r = profdb_names_list(&all, db->epoch.fd, ".");

	for (size_t i = 0; r >= 0 && i < all.nr; i++) {
		if (profdb_file_name_ok(all.items[i]))
			r = know_file(db, all.items[i]);
	}
	profdb_names_release(&all);
	return r;
}

/* ---- samples that could not be written ------------------------------------------------------- */

/*
 * "lost N" stands behind the first line from the beginning, as long as any number, so that it can
 * be written over on a full disk.
 */
enum { LOST_AT = sizeof("open YYYYMMDDHHMMSS\n") - 1, LOST_LEN = 26 };

static void format_lost(uint64_t nr, char text[LOST_LEN + 1])
{
	snprintf(text, LOST_LEN + 1, "lost %020" PRIu64 "\n", nr);
}

uint64_t profdb_lost_read(int epoch_fd, const char *name)
{
	struct base_buf buf = { 0 };
	uint64_t nr = 0;

	if (base_file_read(epoch_fd, name, 4096, &buf, NULL) < 0 ||
	    base_buf_append(&buf, "", 1) < 0 || buf.len <= LOST_AT ||
	    sscanf((char *)buf.data + LOST_AT, "lost %20" SCNu64, &nr) != 1)
		nr = 0;
	base_buf_release(&buf);
	return nr;
}

int profdb_lost_write(int epoch_fd, const char *began, uint64_t nr, struct base_err *err)
{
	char text[LOST_AT + LOST_LEN + 1];

	snprintf(text, sizeof(text), "open %.*s\n", PROFDB_TIME_LEN, began);
	format_lost(nr, text + LOST_AT);
	return profdb_file_write(epoch_fd, PROFDB_LOST_NAME, text, strlen(text), err);
}

int profdb_epoch_lose(struct profdb *db, uint64_t nr)
{
	char text[LOST_LEN + 1];
	int fd = openat(db->epoch.fd, PROFDB_OPEN_NAME, O_WRONLY | O_NOFOLLOW | O_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	format_lost(nr + profdb_lost_read(db->epoch.fd, PROFDB_OPEN_NAME), text);
	r = pwrite(fd, text, LOST_LEN, LOST_AT) == LOST_LEN && fdatasync(fd) == 0 ? 0
	    : errno								  ? -errno
										  : -EIO;
	close(fd);
	return r;
}

/* An epoch that lost samples keeps its mark under another name. */
static int unmark(int epoch_fd)
{
	int r = profdb_lost_read(epoch_fd, PROFDB_OPEN_NAME)
			? renameat(epoch_fd, PROFDB_OPEN_NAME, epoch_fd, PROFDB_LOST_NAME)
			: unlinkat(epoch_fd, PROFDB_OPEN_NAME, 0);

	return r < 0 && errno != ENOENT ? -errno : 0;
}

/* "open YYYYMMDDHHMMSS"; where that is missing the name tells the minute. */
static void read_began(struct profdb *db)
{
	struct base_buf buf = { 0 };
	char time[PROFDB_TIME_LEN + 1];

	strcpy(db->epoch.began, db->epoch.name);
	if (base_file_read(db->epoch.fd, PROFDB_OPEN_NAME, 4096, &buf, NULL) >= 0 &&
	    base_buf_append(&buf, "", 1) >= 0 &&
	    sscanf((char *)buf.data, "open %14[0-9]", time) == 1 && profdb_epoch_time_ok(time))
		strcpy(db->epoch.began, time);
	base_buf_release(&buf);
}

/* Make @fd (owned from here on) the current epoch, recovered where a daemon left it half-way. */
static int enter(struct profdb *db, const char *epoch, int fd, struct base_err *err)
{
	struct base_err why = { 0 };
	int r;

	profdb_epoch_leave(db);
	db->epoch.fd = fd;
	strcpy(db->epoch.name, epoch);
	read_began(db);
	r = profdb_commit_recover(fd, &db->flush.seq, &why);
	if (r < 0) {
		base_fail(err, r, "cannot go on in '%s/%s/%s': %s", db->path, epoch, db->platform,
			  why.text);
		base_hint(err, "%s", why.hint);
	} else {
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
	if (db->lock.fd < 0)
		return base_fail(err, -EINVAL, "database '%s' is not locked for writing", db->path);
	if (db->flush.under_way)
		return base_fail(err, -EINVAL, "a flush of database '%s' is under way", db->path);
	return 0;
}

static int finish_current(struct profdb *db, struct base_err *err)
{
	int r;

	if (db->epoch.closing)
		db->epoch.closing(db);
	r = profdb_commit_redo(db, err);
	if (r < 0)
		return r;
	r = unmark(db->epoch.fd);
	if (r < 0)
		return base_fail_errno(err, r, "cannot close epoch '%s'", db->epoch.name);
	r = base_sync_dir(db->epoch.fd);
	if (r < 0)
		return base_fail_errno(err, r, "cannot close epoch '%s'", db->epoch.name);
	profdb_epoch_leave(db);
	return 0;
}

int profdb_epoch_finish(struct profdb *db, struct base_err *err)
{
	int r = needs_lock(db, err);

	if (r < 0)
		return r;
	if (db->epoch.fd < 0)
		return base_fail(err, -EINVAL, "no epoch is open");
	return finish_current(db, err);
}

/* Newest first: what a daemon before us left open, but for @except. -ENOENT: nothing. */
static int enter_left_open(struct profdb *db, const char *except, struct base_err *err)
{
	char **epochs = profdb_epochs(db, err);
	size_t nr = 0;
	int r = -ENOENT;

	if (!epochs)
		return -EIO;
	while (epochs[nr])
		nr++;
	while (r == -ENOENT && nr-- > 0) {
		if (!strcmp(epochs[nr], except) || !profdb_epoch_open(db, epochs[nr], db->platform))
			continue;
		r = profdb_platform_open(db, epochs[nr], db->platform);
		if (r >= 0)
			r = enter(db, epochs[nr], r, err);
		else
			base_fail_errno(err, r, "cannot open epoch '%s'", epochs[nr]);
		break;
	}
	free(epochs);
	return r;
}

static int close_left_open(struct profdb *db, const char *except, struct base_err *err)
{
	int r;

	if (db->epoch.fd >= 0) {
		r = finish_current(db, err);
		if (r < 0)
			return r;
	}
	while ((r = enter_left_open(db, except, err)) >= 0) {
		r = finish_current(db, err);
		if (r < 0)
			return r;
	}
	return r == -ENOENT ? 0 : r;
}

/* 1: it is ours, 0: this platform has such an epoch, negative. */
static int make_folders(struct profdb *db, const char *epoch)
{
	int fd, r = profdb_make_folder(db->fd, epoch);

	if (r < 0 && r != -EEXIST)
		return r;
	/* Through no link out of the database. */
	fd = openat(db->fd, epoch, PROFDB_FOLDER_FLAGS);
	if (fd < 0)
		return -errno;
	r = profdb_make_folder(fd, db->platform);
	if (r == -EEXIST)
		r = 0;
	else if (r >= 0)
		r = base_sync_dir(fd) < 0 || base_sync_dir(db->fd) < 0 ? -EIO : 1;
	close(fd);
	return r;
}

/* As make_folders, for the first @len digits of the time. */
static int make_at(struct profdb *db, int64_t now, int len, char epoch[PROFDB_EPOCH_LEN + 1])
{
	char time[PROFDB_TIME_LEN + 1];
	int r = profdb_epoch_time(now, time);

	if (r < 0)
		return r;
	snprintf(epoch, PROFDB_EPOCH_LEN + 1, "%.*s", len, time);
	return make_folders(db, epoch);
}

static int make_epoch(struct profdb *db, int64_t now, const char *name,
		      char epoch[PROFDB_EPOCH_LEN + 1])
{
	int r;

	if (name) {
		snprintf(epoch, PROFDB_EPOCH_LEN + 1, "%s", name);
		r = make_folders(db, epoch);
		return r == 0 ? -EEXIST : r;
	}
	r = make_at(db, now, PROFDB_EPOCH_MINUTE, epoch);
	while (r == 0)
		r = make_at(db, now++, PROFDB_EPOCH_LEN, epoch);
	return r;
}

/* Its folder and its mark; a descriptor. What could not be marked is no epoch. */
static int make_open(struct profdb *db, int64_t now, const char *name,
		     char epoch[PROFDB_EPOCH_LEN + 1], struct base_err *err)
{
	char time[PROFDB_TIME_LEN + 1], text[LOST_AT + LOST_LEN + 1],
		path[PROFDB_EPOCH_LEN + PROFDB_PLATFORM_MAX + 2];
	int r = make_epoch(db, now, name, epoch), fd;

	if (r >= 0)
		r = profdb_epoch_time(now, time);
	if (r < 0)
		return base_fail_errno(err, r, "cannot make epoch '%s' in '%s'", epoch, db->path);
	fd = profdb_platform_open(db, epoch, db->platform);
	if (fd < 0)
		return base_fail_errno(err, fd, "cannot open epoch '%s'", epoch);
	snprintf(text, sizeof(text), "open %s\n", time);
	format_lost(0, text + LOST_AT);
	r = profdb_file_write(fd, PROFDB_OPEN_NAME, text, strlen(text), err);
	if (r >= 0)
		return fd;
	close(fd);
	snprintf(path, sizeof(path), "%s/%s", epoch, db->platform);
	unlinkat(db->fd, path, AT_REMOVEDIR);
	unlinkat(db->fd, epoch, AT_REMOVEDIR);
	return r;
}

/* Begins an epoch that must have this @name, or (NULL) that of @now; the one before is closed. */
static int begin(struct profdb *db, int64_t now, const char *name, char epoch[PROFDB_EPOCH_LEN + 1],
		 struct base_err *err)
{
	char made[PROFDB_EPOCH_LEN + 1];
	int r = needs_lock(db, err), fd;

	if (r < 0)
		return r;
	/* Made before the one before is closed: a full disk must not leave us without any. */
	fd = make_open(db, now, name, made, err);
	if (fd < 0)
		return fd;
	r = close_left_open(db, made, err);
	if (r < 0) {
		unlinkat(fd, PROFDB_OPEN_NAME, 0);
		close(fd);
		return r;
	}
	strcpy(epoch, made);
	return enter(db, made, fd, err);
}

int profdb_epoch_start(struct profdb *db, int64_t now, char epoch[PROFDB_EPOCH_LEN + 1],
		       struct base_err *err)
{
	return begin(db, now, NULL, epoch, err);
}

int profdb_epoch_resume(struct profdb *db, char epoch[PROFDB_EPOCH_LEN + 1], struct base_err *err)
{
	int r = needs_lock(db, err);

	if (r < 0)
		return r;
	if (db->epoch.fd >= 0)
		return base_fail(err, -EINVAL, "epoch '%s' is open already", db->epoch.name);
	r = enter_left_open(db, "", err);
	if (r < 0)
		return r == -ENOENT ? base_fail(err, r, "no epoch was left open") : r;
	strcpy(epoch, db->epoch.name);
	return 0;
}

/* ---- with other machines --------------------------------------------------------------------- */

/*
 * Several machines, one database: whoever turns the epoch tells the others by a file in its folder.
 * A machine's clock may be wrong by minutes, so a new epoch is named after every other, whatever
 * our own clock says (within a minute by its seconds, so that it is not ahead of the clock); names
 * that are a day ahead were made by hand or by a clock gone wild, and following them would leave no
 * names for the epochs of the time until then.
 */
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
		r = begin(db, now, epochs[nr - 1], epoch, err);
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
	r = begin(db, now, name, epoch, err);
	return r < 0 ? r : mark_turned(db, err);
}
