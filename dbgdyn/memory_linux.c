/* SPDX-License-Identifier: BSD-2-Clause */
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
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Kernels from 6.3 log a line, or refuse, where the first flag is missing; older ones refuse it. */
static int make_fd(void)
{
	int fd = memfd_create(DBGDYN_MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0)
		fd = memfd_create(DBGDYN_MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd;
}

int dbgdyn_memory_open(struct dbgdyn_memory *m, size_t len)
{
	struct stat st;

	*m = (struct dbgdyn_memory){ .fd = make_fd(), .base = MAP_FAILED, .len = len };
	if (m->fd >= 0 && ftruncate(m->fd, (off_t)len) == 0 && fstat(m->fd, &st) == 0)
		m->base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	if (m->base == MAP_FAILED) {
		if (m->fd >= 0)
			close(m->fd);
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

	fcntl(m->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	marker = mmap(NULL, WIRE_PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, m->fd, 0);
	if (marker == MAP_FAILED)
		return;
	madvise(marker, WIRE_PAGE, MADV_DONTDUMP);
	madvise(marker, WIRE_PAGE, MADV_DONTFORK);
}

/* One call, and no signal where memory is short; older kernels fill the pages as they are used. */
void dbgdyn_memory_touch(void *base, size_t len)
{
	madvise(base, len, MADV_POPULATE_WRITE);
}

void *dbgdyn_memory_page(size_t len, bool *wiped)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* User-mode emulators take any advice and heed none: ask for what no kernel knows. */
	*wiped = madvise(p, len, MADV_UNKNOWN) < 0 && madvise(p, len, MADV_WIPEONFORK) == 0;
	madvise(p, len, MADV_DONTDUMP);
	return p;
}

void dbgdyn_memory_page_free(void *page, size_t len)
{
	munmap(page, len);
}
