/* SPDX-License-Identifier: BSD-2-Clause */
/* The device and inode of an open file are found here as the kernel tells them of its mappings. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "image_internal.h"

/* The place of our own mapping at @at. */
static int listed(const void *at, uint64_t where[3])
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t start = 0;
	char *line = NULL;
	size_t cap = 0;
	int r = -ENOENT;

	while (maps && r < 0 && getline(&line, &cap, maps) > 0)
		if (sscanf(line, "%" SCNx64 "-%*x %*s %*x %" SCNx64 ":%" SCNx64 " %" SCNu64, &start,
			   &where[0], &where[1], &where[2]) == 4 &&
		    start == (uintptr_t)at)
			r = 0;
	free(line);
	if (maps)
		fclose(maps);
	return r;
}

/* On file systems with several devices, and on stacked ones, stat gives other numbers. */
int image_place(int fd, uint64_t where[3])
{
	void *at = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	int r = at == MAP_FAILED ? -errno : listed(at, where);
	struct stat st;

	if (at != MAP_FAILED)
		munmap(at, 1);
	if (r == 0 || fstat(fd, &st) < 0)
		return r;
	where[0] = major(st.st_dev);
	where[1] = minor(st.st_dev);
	where[2] = st.st_ino;
	return 0;
}
