/* SPDX-License-Identifier: BSD-2-Clause */
/* A fresh folder for each test of files, removed after it. */
#ifndef TEST_BASE_FOLDER_H
#define TEST_BASE_FOLDER_H

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"

static char dir[256];
static int dir_fd;
static struct base_err err;

static inline int make_dir(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	memset(&err, 0, sizeof(err));
	snprintf(dir, sizeof(dir), "%s/dcpi-file-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return -1;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir_fd < 0 ? -1 : 0;
}

static inline int count_or_clear(bool clear)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY), nr = 0;
	DIR *d = fdopendir(fd);
	struct dirent *e;

	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		nr++;
		if (clear && unlinkat(dir_fd, e->d_name, 0) < 0)
			unlinkat(dir_fd, e->d_name, AT_REMOVEDIR);
	}
	closedir(d);
	return nr;
}

static inline int remove_dir(void **state)
{
	(void)state;
	fchmod(dir_fd, 0755);
	count_or_clear(true);
	close(dir_fd);
	return rmdir(dir);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

#endif
