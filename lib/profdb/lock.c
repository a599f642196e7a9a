/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
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

static void wait_a_moment(void)
{
	const struct timespec pause = { .tv_nsec = 5000000 };

	nanosleep(&pause, NULL);
}

/* Whoever asks whether it is held (profdb_lock_held) holds it for as long as that takes. */
static int try_lock(int fd)
{
	int r = 0;

	for (int i = 0; i < 5; i++) {
		r = flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
		if (r != -EWOULDBLOCK)
			break;
		wait_a_moment();
	}
	return r;
}

static int take(struct profdb *db, const char *platform, struct base_err *err)
{
	char name[PROFDB_PLATFORM_MAX + 8];
	int fd, r;

	snprintf(name, sizeof(name), ".lock-%s", platform);
	fd = openat(db->fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0)
		return base_fail_errno(err, -errno, "cannot lock '%s/%s'", db->path, name);
	r = try_lock(fd);
	if (r < 0) {
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

/* ---- who else is there ----------------------------------------------------------------------- */

bool profdb_lock_held(struct profdb *db, const char *platform)
{
	char name[PROFDB_PLATFORM_MAX + 8];
	bool held;
	int fd;

	if (!profdb_platform_name_ok(platform))
		return false;
	snprintf(name, sizeof(name), ".lock-%s", platform);
	fd = openat(db->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno != ENOENT;
	held = flock(fd, LOCK_SH | LOCK_NB) < 0;
	close(fd);
	return held;
}

int profdb_dyn_lock(struct profdb *db, bool exclusive, unsigned int timeout_ms,
		    struct base_err *err)
{
	uint64_t end_ns = base_now_ns() + (uint64_t)timeout_ms * 1000000;
	int r, fd = openat(db->fd, ".lock.dyn",
			   O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

	if (fd < 0)
		return base_fail_errno(err, -errno, "cannot lock '%s/dyn'", db->path);
	while ((r = flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB)) < 0 &&
	       errno == EWOULDBLOCK && base_now_ns() < end_ns)
		wait_a_moment();
	if (r == 0)
		return fd;
	r = errno == EWOULDBLOCK ? -DCPI_EBUSY : -errno;
	close(fd);
	if (r != -DCPI_EBUSY)
		return base_fail_errno(err, r, "cannot lock '%s/dyn'", db->path);
	return base_fail(err, r, "'%s/dyn' is in use: %s", db->path,
			 exclusive ? "pseudo-images are being written"
				   : "pseudo-images are being removed");
}
