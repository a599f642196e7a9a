/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where there is no memfd: an unlinked POSIX shared-memory object. No seals, no marker with a name
 * of its own; fork wipes nothing, so that every call compares the process id.
 */
#include "dbgdyn_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int make_fd(void)
{
	struct timespec now = { 0 };
	char name[64];
	int fd;

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(name, sizeof(name), "/%s.%ld.%ld", DBGDYN_MEMFD_NAME, (long)getpid(), now.tv_nsec);
	fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd >= 0)
		shm_unlink(name);
	return fd;
}

int dbgdyn_memory_make(size_t len)
{
	int fd = make_fd();

	if (fd >= 0 && (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || ftruncate(fd, (off_t)len) < 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

bool dbgdyn_memory_seal(int fd)
{
	(void)fd;
	return true;
}

int dbgdyn_memory_accept(int fd, size_t *len)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || st.st_size < 0)
		return -1;
	*len = (size_t)st.st_size;
	return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

int dbgdyn_memory_map(struct dbgdyn_memory *m, int fd, size_t len)
{
	struct stat st;

	*m = (struct dbgdyn_memory){ .fd = fd, .base = MAP_FAILED, .len = len };
	if (fstat(fd, &st) == 0)
		m->base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (m->base == MAP_FAILED) {
		close(fd);
		return DBGDYN_ENOMEM;
	}
	m->dev = st.st_dev;
	m->ino = st.st_ino;
	return DBGDYN_OK;
}

/* The mapping stays for the life of the process, as on Linux. */
void dbgdyn_memory_publish(const struct dbgdyn_memory *m)
{
	(void)mmap(NULL, WIRE_PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, m->fd, 0);
}

void *dbgdyn_memory_page(size_t len, bool *wiped)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*wiped = false;
	return p == MAP_FAILED ? NULL : p;
}
