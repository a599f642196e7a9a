/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "profdb_internal.h"

/*
 * The lock file stays when its owner goes: removing it would let two daemons lock two files of one
 * name. Mode 0600, because whoever can open it could hold the lock. flock and not lockf: it is the
 * descriptor's, not lost when the process closes another one of the same file; on NFS the kernel
 * makes it a lock that other machines see.
 */

static void name_owner(struct profdb *db, int fd, const char *platform, struct base_err *err)
{
	char text[300] = "", host[256] = "";
	long pid = 0;
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n > 0 && sscanf(text, "host %255s pid %ld", host, &pid) == 2)
		base_fail(err, -DCPI_EBUSY,
			  "platform '%s' of database '%s' is in use by another daemon: host '%s', "
			  "pid %ld",
			  platform, db->path, host, pid);
	else
		base_fail(err, -DCPI_EBUSY,
			  "platform '%s' of database '%s' is in use by another daemon", platform,
			  db->path);
	base_hint(err, "end that daemon (dcpiquit), or give this one another database or platform");
}

/* For the other one's message only: who cannot write it still holds the lock. */
static void sign(int fd)
{
	char host[256] = "unknown", text[300];
	int len;

	if (gethostname(host, sizeof(host) - 1) < 0)
		strcpy(host, "unknown");
	host[sizeof(host) - 1] = '\0';
	len = snprintf(text, sizeof(text), "host %s pid %ld\n", host, (long)getpid());
	if (ftruncate(fd, 0) == 0 && pwrite(fd, text, (size_t)len, 0) < 0)
		return;
}

static int take(struct profdb *db, const char *platform, struct base_err *err)
{
	char name[PROFDB_PLATFORM_MAX + 8];
	int fd;

	snprintf(name, sizeof(name), ".lock-%s", platform);
	fd = openat(db->fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0)
		return base_fail_errno(err, -errno, "cannot lock '%s/%s'", db->path, name);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int r = -errno;

		if (r == -EWOULDBLOCK) {
			name_owner(db, fd, platform, err);
			r = -DCPI_EBUSY;
		} else {
			base_fail_errno(err, r, "cannot lock '%s/%s'", db->path, name);
		}
		close(fd);
		return r;
	}
	sign(fd);
	return fd;
}

int profdb_lock(struct profdb *db, const char *platform, struct base_err *err)
{
	int r;

	if (!profdb_platform_name_ok(platform))
		return base_fail(
			err, -EINVAL,
			"'%.80s' is no platform's name: letters, digits, '.', '_', '-', at "
			"most %d",
			platform, PROFDB_PLATFORM_MAX);
	if (db->lock_fd >= 0)
		return base_fail(err, -EINVAL, "platform '%s' is locked already", db->platform);
	r = take(db, platform, err);
	if (r < 0)
		return r;
	db->lock_fd = r;
	strcpy(db->platform, platform);
	return 0;
}
