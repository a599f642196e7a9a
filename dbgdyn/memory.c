/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part of memory handling that is the same on all systems: whether a descriptor is still that
 * of a file.
 */
#include "dbgdyn_internal.h"

#include <sys/stat.h>

bool dbgdyn_memory_same(int fd, dev_t dev, ino_t ino)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}
