/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that everybody may read are told from others here, and read. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"

/* @path has no links. */
static bool may_be_reached(char *path)
{
	struct stat st;

	for (char *end = strrchr(path, '/'); end; end = strrchr(path, '/')) {
		*end = '\0';
		if (stat(*path ? path : "/", &st) < 0 || !(st.st_mode & S_IXOTH))
			return false;
	}
	return true;
}

/* Where a file is, rather than what it was opened by, which another may change meanwhile. */
static bool is_public(int fd, const char *link)
{
	char path[PATH_MAX];
	ssize_t len = readlink(link, path, sizeof(path) - 1);
	struct stat st;

	if (len <= 0 || *path != '/' || fstat(fd, &st) < 0 || !(st.st_mode & S_IROTH))
		return false;
	path[len] = '\0';
	return may_be_reached(path);
}

/* A link to it that others cannot change; @fd to be closed behind. 0 or negative. */
static int public_link(const char *path, char link[32], int *fd)
{
	*fd = open(path, O_PATH | O_CLOEXEC);
	if (*fd < 0)
		return -errno;
	snprintf(link, 32, "/proc/self/fd/%d", *fd);
	if (is_public(*fd, link))
		return 0;
	close(*fd);
	return -EACCES;
}

int base_public_open(const char *path, struct stat *st)
{
	char link[32];
	int fd, r = public_link(path, link, &fd);

	if (r < 0)
		return r;
	r = base_regular_open(AT_FDCWD, link, st);
	close(fd);
	return r;
}

int base_file_read_public(const char *path, size_t max, struct base_buf *out, struct base_err *err)
{
	char link[32];
	int fd, r = public_link(path, link, &fd);

	if (r == -EACCES)
		return base_fail_errno(err, r, "not everybody may read '%s'", path);
	if (r < 0)
		return base_fail_errno(err, r, "cannot open '%s'", path);
	r = base_file_read(AT_FDCWD, link, max, out, err);
	close(fd);
	return r;
}
