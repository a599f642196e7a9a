/* SPDX-License-Identifier: BSD-2-Clause */
/* One process at a time does maintenance. It begins by completing the work of one that was killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "profdb_internal.h"

/* No platform's name begins so. */
#define LOCK_NAME  ".gc"
#define NEW_PREFIX ".new-"

int profdb_remove_tree(int dir_fd, const char *name, int depth)
{
	struct profdb_names all = { 0 };
	int fd, r = 0;

	if (unlinkat(dir_fd, name, 0) == 0)
		return 0;
	if ((errno != EISDIR && errno != EPERM) || !depth)
		return errno == ENOENT ? 0 : -errno;
	fd = openat(dir_fd, name, PROFDB_FOLDER_FLAGS);
	if (fd < 0)
		return -errno;
	r = profdb_names_list(&all, fd, ".");
	for (size_t i = 0; r >= 0 && i < all.nr; i++)
		r = profdb_remove_tree(fd, all.items[i], depth - 1);
	profdb_names_release(&all);
	close(fd);
	return r < 0 ? r : unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static bool is_rest(const char *name)
{
	static const char *const prefixes[] = { PROFDB_GONE_PREFIX, NEW_PREFIX,
						PROFDB_IMPORT_PREFIX };

	for (int k = 0; k < 3; k++)
		if (!strncmp(name, prefixes[k], strlen(prefixes[k])))
			return true;
	return false;
}

/* One line, however many. */
static void tell_left(const struct profdb *db, const char *name, size_t nr, int why)
{
	char said[PATH_MAX + 320], more[40] = "";

	if (!db->lock.watching)
		return;
	if (nr > 1)
		snprintf(more, sizeof(more), " and %zu more", nr - 1);
	snprintf(said, sizeof(said),
		 "cannot remove '%s/%s'%s: %s; what another user began to remove or to make there "
		 "is his, or root's, to remove",
		 db->path, name, more, base_strerror(why));
	db->lock.watching(db->lock.watching_ctx, said);
}

static int sweep(struct profdb *db)
{
	struct profdb_names all = { 0 };
	int r = profdb_names_list(&all, db->fd, "."), why = 0;
	size_t nr_left = 0, left = 0;

	profdb_names_sort(&all);
	for (size_t i = 0; r >= 0 && i < all.nr; i++) {
		if (is_rest(all.items[i]))
			r = profdb_remove_tree(db->fd, all.items[i], PROFDB_DEPTH);
		/* A file that cannot be read here must not keep the others from being removed. */
		if (r == -EACCES || r == -EPERM) {
			why = r;
			left = nr_left++ ? left : i;
			r = 0;
		}
		profdb_lock_heartbeat(db);
	}
	if (r >= 0 && nr_left)
		tell_left(db, all.items[left], nr_left, why);
	profdb_names_release(&all);
	return r;
}

/* Can be repeated: once the new epoch has its name nothing is to be done. */
static int complete(struct profdb *db)
{
	const struct profdb_commit *c = &db->join;
	char name[256], gone[PROFDB_NAME_MAX + 16];
	int r;

	if (!profdb_join_pending(db, c))
		return 0;
	for (size_t i = 0; i < c->gone.nr; i++) {
		snprintf(gone, sizeof(gone), PROFDB_GONE_PREFIX "%.200s", c->gone.items[i]);
		if (renameat(db->fd, c->gone.items[i], db->fd, gone) < 0 && errno != ENOENT)
			return -errno;
	}
	r = base_sync_dir(db->fd);
	if (r < 0)
		return r;
	if (renameat(db->fd, profdb_new_name(c->seq, c->files.items[0], name), db->fd,
		     c->files.items[0]) < 0)
		return -errno;
	return base_sync_dir(db->fd);
}

int profdb_join_recover(struct profdb *db, struct base_err *err)
{
	int r = profdb_join_load(db);

	if (r < 0) {
		base_fail_errno(err, r, "cannot read '%s/" PROFDB_COMMIT_NAME "'", db->path);
		base_hint(err, "move it, and '.new-' and '.gone-' folders beside it, out of the "
			       "database first");
	}
	if (r >= 0)
		r = complete(db);
	if (r >= 0)
		r = sweep(db);
	return r < 0 ? base_fail_errno(err, r, "cannot go on in '%s' where somebody was killed",
				       db->path)
		     : 0;
}

int profdb_keep(struct profdb *db, struct base_err *err)
{
	int r = 0;

	/* Another machine takes it from who seems dead. */
	if (db->lock.keeps)
		return profdb_lock_check(db, err);
	r = profdb_lock_name(db, LOCK_NAME, err);
	if (r < 0)
		return r;
	db->lock.keeps = true;
	return profdb_join_recover(db, err);
}

int profdb_keep_removing(struct profdb *db, struct base_err *err)
{
	struct base_err why = { 0 };
	int r = profdb_keep(db, &why);

	if (r == -ENOSPC || r == -EDQUOT)
		return 0;
	if (r < 0) {
		base_fail(err, r, "%s", why.text);
		base_hint(err, "%s", why.hint);
	}
	return r;
}
