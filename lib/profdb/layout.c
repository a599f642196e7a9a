/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layout of a database on disk: its folders and files are made and opened here, through no
 * link, and belong to the owner of the database.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profdb_internal.h"

bool profdb_is_dir(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* A further member's number, from 2 on, behind the platform's name; NULL: it has none. */
static const char *member_of(const char *name)
{
	const char *plus = strchr(name, '+');

	return plus && plus[1] != '0' && strcmp(plus, "+1") != 0 &&
			       strspn(plus + 1, "0123456789") == strlen(plus + 1) && plus[1]
		       ? plus
		       : NULL;
}

bool profdb_platform_name_ok(const char *name)
{
	const char *member = member_of(name);
	size_t len = strlen(name), end = member ? (size_t)(member - name) : len;

	for (size_t i = 0; i < end; i++) {
		bool letter = (name[i] | 32) >= 'a' && (name[i] | 32) <= 'z';

		if (!letter && !(name[i] >= '0' && name[i] <= '9') && !strchr("._-", name[i]))
			return false;
	}
	return end && len <= PROFDB_PLATFORM_MAX && *name != '.';
}

bool profdb_platform_has(const char *platform, const char *name)
{
	const char *member = member_of(name);
	size_t len = strlen(platform);

	return !strcmp(platform, name) ||
	       (member && (size_t)(member - name) == len && !memcmp(platform, name, len));
}

/* ---- whose it is ----------------------------------------------------------------------------- */

/* Only what root made, and of files only what has one name: another may lead out of the database.
 */
static void give(int fd, const struct stat *folder)
{
	struct stat st;

	if (geteuid() != 0 || folder->st_uid == 0 || fstat(fd, &st) < 0 || st.st_uid != 0 ||
	    (!S_ISDIR(st.st_mode) && st.st_nlink != 1))
		return;
	if (fchown(fd, folder->st_uid, folder->st_gid) < 0)
		return;
}

void profdb_give(int dir_fd, int fd)
{
	struct stat st;

	if (fstat(dir_fd, &st) == 0)
		give(fd, &st);
}

int profdb_make_folder(int dir_fd, const char *path)
{
	struct stat st;
	int fd;

	if (mkdirat(dir_fd, path, 0755) < 0)
		return -errno;
	fd = geteuid() == 0 ? openat(dir_fd, path, PROFDB_FOLDER_FLAGS) : -1;
	if (fd < 0)
		return 0;
	if (fstatat(fd, "..", &st, 0) == 0)
		give(fd, &st);
	close(fd);
	return 0;
}

int profdb_folder_open(int dir_fd, const char *path)
{
	int r, next, fd = openat(dir_fd, ".", PROFDB_FOLDER_FLAGS);
	char name[256];

	r = fd < 0 ? -errno : 0;
	for (size_t len; r == 0 && *path; path += len + (path[len] == '/')) {
		len = strcspn(path, "/");
		snprintf(name, sizeof(name), "%.*s", (int)len, path);
		r = profdb_make_folder(fd, name);
		r = r == -EEXIST ? 0 : r;
		next = r < 0 ? -1 : openat(fd, name, PROFDB_FOLDER_FLAGS);
		if (r == 0 && next < 0)
			r = -errno;
		close(fd);
		fd = next;
	}
	return r < 0 ? r : fd;
}

int profdb_file_write(int dir_fd, const char *name, const void *data, size_t len,
		      struct base_err *err)
{
	struct base_file f;
	int r = base_file_create(&f, dir_fd, name, 0644, err);

	if (r < 0)
		return r;
	profdb_give(dir_fd, f.fd);
	r = base_write_all(f.fd, data, len);
	if (r < 0)
		base_fail_errno(err, r, "cannot write '%s'", name);
	else
		r = base_file_commit(&f, err);
	base_file_abort(&f);
	return r;
}

int profdb_make_private(int fd, uint32_t uid)
{
	int r = base_reader_clear(fd);

	if (r >= 0 && uid != UINT32_MAX && uid != geteuid())
		(void)base_reader_set(fd, uid, false);
	return r;
}

/* ---- folders --------------------------------------------------------------------------------- */

const char *profdb_path(const struct profdb *db)
{
	return db->path;
}

int profdb_dir_fd(const struct profdb *db)
{
	return db->fd;
}

static int folder_fd(struct profdb *db, const char *name, int *fd)
{
	if (*fd < 0)
		*fd = openat(db->fd, name, PROFDB_FOLDER_FLAGS);
	return *fd < 0 ? -errno : *fd;
}

int profdb_dyn_fd(struct profdb *db)
{
	return folder_fd(db, "dyn", &db->folders.dyn);
}

int profdb_kernel_fd(struct profdb *db)
{
	return folder_fd(db, "kernel", &db->folders.kernel);
}

int profdb_costs_fd(struct profdb *db)
{
	return folder_fd(db, "costs", &db->folders.costs);
}

int profdb_index_fd(struct profdb *db)
{
	bool first = db->folders.index < 0;
	int fd;

	mkdirat(db->fd, "index", 0755);
	fd = folder_fd(db, "index", &db->folders.index);
	/* That of an earlier version is root's still. */
	if (first && fd >= 0)
		profdb_give(db->fd, fd);
	return fd;
}
