/* SPDX-License-Identifier: BSD-2-Clause */
/* One keeps house at a time, and begins with what one before was killed at. */
#include <errno.h>
#include <fcntl.h>
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

int profdb_epochs_sweep(struct profdb *db)
{
	static const char *const prefixes[] = { PROFDB_GONE_PREFIX, NEW_PREFIX,
						PROFDB_IMPORT_PREFIX };
	struct profdb_names all = { 0 };
	int r = profdb_names_list(&all, db->fd, ".");

	for (size_t i = 0; r >= 0 && i < all.nr; i++) {
		for (int k = 0; r >= 0 && k < 3; k++) {
			if (!strncmp(all.items[i], prefixes[k], strlen(prefixes[k])))
				r = profdb_remove_tree(db->fd, all.items[i], PROFDB_DEPTH);
		}
		profdb_lock_beat(db);
	}
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
