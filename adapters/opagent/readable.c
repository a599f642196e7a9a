/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel says whether memory can be read, so that a bad address does not end the program. */
#include "opagent_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define PAGE 4096u

/* The kernel reads a byte of each page into a pipe, and says where it cannot. */
bool opagent_readable(const void *addr, size_t len)
{
	int before = errno, fds[2];
	bool good = true;

	/* Where a sandbox forbids that, the code is taken for what it should be. */
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0) {
		for (size_t at = 0; good && at < len; at += PAGE - ((uintptr_t)addr + at) % PAGE)
			good = write(fds[1], (const char *)addr + at, 1) == 1 || errno != EFAULT;
		close(fds[0]);
		close(fds[1]);
	}
	errno = before;
	return good;
}
