/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of the registry on Linux: a sealed memfd, wiped pages in children of fork. */
#include "dbgdyn_internal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#define MADV_UNKNOWN (-1)

/* Kernels from 6.3 log a line, or refuse, where the first flag is missing; older ones refuse it. */
static int make_fd(void)
{
	int fd = memfd_create(DBGDYN_MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0)
		fd = memfd_create(DBGDYN_MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd;
}

int dbgdyn_memory_make(size_t len)
{
	int fd = make_fd();

	if (fd >= 0 && ftruncate(fd, (off_t)len) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

bool dbgdyn_memory_seal(int fd)
{
	return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
}

/* Unsealed, a page could vanish under our writes. */
int dbgdyn_memory_accept(int fd, size_t *len)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) < 0)
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
	madvise(m->base, len, MADV_DONTDUMP);
	madvise(m->base, len, MADV_DONTFORK);
	return DBGDYN_OK;
}

/* The page is executable only so that an ordinary mmap event shows it; nothing in it is code. */
void dbgdyn_memory_publish(const struct dbgdyn_memory *m)
{
	void *marker;

	dbgdyn_memory_seal(m->fd);
	marker = mmap(NULL, WIRE_PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, m->fd, 0);
	if (marker == MAP_FAILED)
		return;
	madvise(marker, WIRE_PAGE, MADV_DONTDUMP);
	madvise(marker, WIRE_PAGE, MADV_DONTFORK);
}

/* Huge pages would make a few bytes here and there cost megabytes. */
void *dbgdyn_memory_page(size_t len, bool *wiped)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* User-mode emulators take any advice and heed none: ask for what no kernel knows. */
	*wiped = madvise(p, len, MADV_UNKNOWN) < 0 && madvise(p, len, MADV_WIPEONFORK) == 0;
	madvise(p, len, MADV_DONTDUMP);
	madvise(p, len, MADV_NOHUGEPAGE);
	return p;
}
