/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of a process is opened once, and its credentials are read afterwards. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reader_memory.h"

/* The last one that was opened: requests of one process follow each other. */
static struct {
	int fd; /* plus 1; 0: none */
	int32_t pid;
	uint32_t uid;
	uint64_t life;
	uint64_t dev, ino; /* of the registry that it has mapped; 0: it was not asked */
} last;

bool reader_memory_good(const struct reader_request *q)
{
	uint64_t life;

	return q->life && registry_process_check(q->pid, q->uid) == 0 &&
	       registry_process_open(q->pid, q->uid) &&
	       registry_process_life(q->pid, NULL, &life) == 0 && life == q->life;
}

ssize_t reader_memory_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	const int *fd = ctx;
	ssize_t n = pread(*fd, to, len, (off_t)addr);

	if (n < 0)
		return -errno;
	return n || !len ? n : -ESRCH;
}

static bool is_last(const struct reader_request *q, const struct stat *file)
{
	return last.fd && last.pid == q->pid && last.uid == q->uid && last.life == q->life &&
	       (!file->st_ino || (last.dev == file->st_dev && last.ino == file->st_ino));
}

int reader_memory_open_any(int32_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void keep(const struct reader_request *q, const struct stat *file, int fd)
{
	if (last.fd)
		close(last.fd - 1);
	last.fd = fd + 1;
	last.pid = q->pid;
	last.uid = q->uid;
	last.life = q->life;
	last.dev = file->st_dev;
	last.ino = file->st_ino;
}

int reader_memory_open(const struct reader_request *q, int registry)
{
	const struct registry_part any = { 0 };
	struct stat file = { 0 };
	int fd;

	if (registry >= 0 && fstat(registry, &file) < 0)
		return -1;
	if (is_last(q, &file))
		return reader_memory_good(q) ? last.fd - 1 : -1;
	fd = q->life ? reader_memory_open_any(q->pid) : -1;
	if (fd < 0)
		return -1;
	if (!reader_memory_good(q) ||
	    (registry >= 0 && !registry_process_maps(q->pid, &file, &any))) {
		close(fd);
		return -1;
	}
	keep(q, &file, fd);
	return fd;
}
