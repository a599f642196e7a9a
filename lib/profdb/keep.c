/* SPDX-License-Identifier: BSD-2-Clause */
/* One keeps house at a time, and begins with what one before was killed at. */
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

	if (!db->watching)
		return;
	if (nr > 1)
		snprintf(more, sizeof(more), " and %zu more", nr - 1);
	snprintf(said, sizeof(said),
		 "cannot remove '%s/%s'%s: %s; what another user began to remove or to make there "
		 "is his, or root's, to remove",
		 db->path, name, more, base_strerror(why));
	db->watching(db->watching_ctx, said);
}

int profdb_epochs_sweep(struct profdb *db)
{
	struct profdb_names all = { 0 };
	int r = profdb_names_list(&all, db->fd, "."), why = 0;
	size_t nr_left = 0, left = 0;

	profdb_names_sort(&all);
	for (size_t i = 0; r >= 0 && i < all.nr; i++) {
		if (is_rest(all.items[i]))
			r = profdb_remove_tree(db->fd, all.items[i], PROFDB_DEPTH);
		/* Nobody reads it; that it stays must not keep all else from going. */
		if (r == -EACCES || r == -EPERM) {
			why = r;
			left = nr_left++ ? left : i;
			r = 0;
		}
		profdb_lock_beat(db);
	}
	if (r >= 0 && nr_left)
		tell_left(db, all.items[left], nr_left, why);
	profdb_names_release(&all);
	return r;
}

int profdb_keep(struct profdb *db, struct base_err *err)
{
	int r = 0;

	/* Another machine takes it from who seems dead. */
	if (db->keeps)
		return profdb_lock_check(db, err);
	r = profdb_lock_name(db, LOCK_NAME, err);
	if (r < 0)
		return r;
	db->keeps = true;
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
