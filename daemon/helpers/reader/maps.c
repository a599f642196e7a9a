/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies the list of mappings of a process from /proc, whose program chose how long it is. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "reader_maps.h"

/* Far more than the mappings that the kernel lets a process have. */
enum { STEP = 64 << 10, MAPS_MAX = 64 << 20 };

static int read_all(const char *path, struct base_buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), r = 0;
	ssize_t n = 1;
	void *to;

	if (fd < 0)
		return -errno;
	while (r == 0 && n > 0 && out->len < MAPS_MAX) {
		r = base_buf_extend(out, STEP, &to);
		if (r < 0)
			break;
		n = read(fd, to, STEP);
		out->len -= STEP - (n > 0 ? (size_t)n : 0);
		r = n < 0 ? -errno : 0;
	}
	close(fd);
	return r;
}

/* A main thread that has ended shows no mappings; its other threads show them. */
int reader_maps_read(int32_t pid, struct base_buf *out)
{
	char path[64], name[400];
	struct dirent *entry;
	DIR *task;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	r = read_all(path, out);
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	task = r == 0 && !out->len ? opendir(path) : NULL;
	while (task && !out->len && (entry = readdir(task))) {
		snprintf(name, sizeof(name), "%s/%s/maps", path, entry->d_name);
		if (entry->d_name[0] != '.')
			read_all(name, out);
	}
	if (task)
		closedir(task);
	return r;
}
