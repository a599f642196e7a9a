/* SPDX-License-Identifier: BSD-2-Clause */
/* The epochs and platforms of a database are listed and opened here, as of the last record of a
 * join. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profdb_internal.h"

/* ---- the record of joined epochs ------------------------------------------------------------- */

bool profdb_join_pending(struct profdb *db, const struct profdb_commit *c)
{
	char name[256];

	return c->seq && c->files.nr == 1 &&
	       profdb_is_dir(db->fd, profdb_new_name(c->seq, c->files.items[0], name));
}

int profdb_join_load(struct profdb *db)
{
	struct profdb_commit c;
	int r = profdb_commit_read(db->fd, &c, NULL);

	profdb_commit_release(&db->join);
	db->join = c;
	return r;
}

bool profdb_epochs_changed(struct profdb *db)
{
	struct profdb_commit c;
	bool changed;

	profdb_commit_read(db->fd, &c, NULL);
	changed = c.seq != db->join.seq;
	profdb_commit_release(&c);
	return changed;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Open an epoch's folder in the database: a joined epoch has another name until its own is free. */
static int epoch_dir(const struct profdb *db, const char *epoch)
{
	const struct profdb_commit *c = &db->join;
	char name[256];
	int fd = -1;

	if (c->seq && c->files.nr == 1 && !strcmp(c->files.items[0], epoch))
		fd = openat(db->fd, profdb_new_name(c->seq, epoch, name), PROFDB_FOLDER_FLAGS);
	if (fd < 0)
		fd = openat(db->fd, epoch, PROFDB_FOLDER_FLAGS);
	return fd < 0 ? -errno : fd;
}

/* Folders in @dir_fd whose name @ok likes, added to @good. */
static int take_folders(int dir_fd, bool (*ok)(const char *name), struct profdb_names *good)
{
	struct profdb_names all = { 0 };
	int r = profdb_names_list(&all, dir_fd, ".");

	for (size_t i = 0; r >= 0 && i < all.nr; i++) {
		if (ok(all.items[i]) && profdb_is_dir(dir_fd, all.items[i]))
			r = profdb_names_add(good, all.items[i]);
	}
	profdb_names_release(&all);
	return r;
}

static char **pack(struct profdb *db, struct profdb_names *good, const char *in, int r,
		   struct base_err *err)
{
	char **list = NULL;

	if (r >= 0) {
		profdb_names_sort(good);
		list = profdb_names_pack(good, 0, good->nr);
		r = list ? 0 : -ENOMEM;
	}
	if (r < 0)
		base_fail_errno(err, r, "cannot list '%s/%s'", db->path, in);
	profdb_names_release(good);
	return list;
}

static bool is_listed(const struct profdb_names *n, const char *name)
{
	for (size_t i = 0; i < n->nr; i++)
		if (!strcmp(n->items[i], name))
			return true;
	return false;
}

/* As if what was committed had been completed already. */
static int apply_join(const struct profdb_commit *c, struct profdb_names *epochs)
{
	size_t kept = 0;

	for (size_t i = 0; i < epochs->nr; i++) {
		if (is_listed(&c->gone, epochs->items[i]))
			free(epochs->items[i]);
		else
			epochs->items[kept++] = epochs->items[i];
	}
	epochs->nr = kept;
	return profdb_names_add(epochs, c->files.items[0]);
}

char **profdb_epochs(struct profdb *db, struct base_err *err)
{
	struct profdb_names good = { 0 };
	bool pending;
	int r;

	/* Asked before the list is made: what is completed meanwhile may be half in it. */
	profdb_join_load(db);
	pending = profdb_join_pending(db, &db->join);
	r = take_folders(db->fd, profdb_epoch_name_ok, &good);
	if (r >= 0 && pending)
		r = apply_join(&db->join, &good);
	return pack(db, &good, ".", r, err);
}

char **profdb_platforms(struct profdb *db, const char *epoch, struct base_err *err)
{
	struct profdb_names good = { 0 };
	int fd, r;

	if (!profdb_epoch_name_ok(epoch)) {
		base_fail(err, -EINVAL, "'%.40s' is no epoch's name", epoch);
		return NULL;
	}
	fd = r = epoch_dir(db, epoch);
	if (fd >= 0) {
		r = take_folders(fd, profdb_platform_name_ok, &good);
		close(fd);
	}
	return pack(db, &good, epoch, r, err);
}

int profdb_platform_open(const struct profdb *db, const char *epoch, const char *platform)
{
	int dir, fd, r;

	if (!profdb_epoch_name_ok(epoch) || !profdb_platform_name_ok(platform))
		return -EINVAL;
	dir = epoch_dir(db, epoch);
	if (dir < 0)
		return dir;
	fd = openat(dir, platform, PROFDB_FOLDER_FLAGS);
	r = fd < 0 ? -errno : fd;
	close(dir);
	return r;
}

bool profdb_epoch_open(struct profdb *db, const char *epoch, const char *platform)
{
	struct stat st;
	int fd = profdb_platform_open(db, epoch, platform);
	bool open;

	if (fd < 0)
		return false;
	open = fstatat(fd, PROFDB_OPEN_NAME, &st, 0) == 0;
	close(fd);
	return open;
}

uint64_t profdb_epoch_lost(struct profdb *db, const char *epoch, const char *platform)
{
	int fd = profdb_platform_open(db, epoch, platform);
	uint64_t nr;

	if (fd < 0)
		return 0;
	nr = profdb_lost_read(fd, PROFDB_OPEN_NAME);
	nr = nr ? nr : profdb_lost_read(fd, PROFDB_LOST_NAME);
	close(fd);
	return nr;
}

bool profdb_epoch_damaged(struct profdb *db, const char *epoch, const char *platform,
			  struct base_err *why)
{
	struct profdb_commit c = { 0 };
	int r, fd = profdb_platform_open(db, epoch, platform);

	if (fd < 0)
		return false;
	r = profdb_commit_read(fd, &c, why);
	profdb_commit_release(&c);
	close(fd);
	return profdb_error_is_content(r);
}

uint64_t profdb_epoch_written(struct profdb *db, const char *epoch, const char *platform)
{
	static const char *const names[] = { PROFDB_COMMIT_NAME, PROFDB_OPEN_NAME, "." };
	int r = -1, fd = profdb_platform_open(db, epoch, platform);
	struct stat st;

	for (int i = 0; fd >= 0 && r < 0 && i < 3; i++)
		r = fstatat(fd, names[i], &st, 0);
	if (fd >= 0)
		close(fd);
	return r < 0 ? 0 : (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
}
