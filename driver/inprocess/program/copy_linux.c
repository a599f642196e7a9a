/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies through the kernel. process_vm_readv of one's own process is one call and needs no
 * descriptor; where it is not there (user-mode emulation, some sandboxes) a pipe does it, opened
 * anew each time: one kept open could be closed by the program, and its number mean another file.
 * System calls by number, because libc's read and write are cancellation points.
 */
#include "inprocess_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PIPE_STEP = 4096 }; /* length that a pipe accepts without blocking */

static long copied(long n, size_t len)
{
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EFAULT;
}

static int pipe_copy(char *to, const char *from, size_t len)
{
	int fds[2];
	long ret = 0;

	if (syscall(SYS_pipe2, fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	for (size_t at = 0; at < len && !ret; at += PIPE_STEP) {
		size_t step = len - at < PIPE_STEP ? len - at : PIPE_STEP;

		ret = copied(syscall(SYS_write, fds[1], from + at, step), step);
		if (!ret)
			ret = copied(syscall(SYS_read, fds[0], to + at, step), step);
	}
	syscall(SYS_close, fds[0]);
	syscall(SYS_close, fds[1]);
	return (int)ret;
}

static int copy(void *to, const void *from, size_t len, void *own, void *other, long call)
{
	static _Atomic bool refused;
	struct iovec ours = { own, len }, theirs = { other, len };

	if (!atomic_load(&refused)) {
		long n = syscall(call, (long)getpid(), &ours, 1L, &theirs, 1L, 0L);

		if (n >= 0 || (errno != ENOSYS && errno != EPERM))
			return (int)copied(n, len);
		atomic_store(&refused, true);
	}
	return pipe_copy(to, from, len);
}

int inprocess_copy_from(void *to, uint64_t vaddr, size_t len)
{
	void *from = (void *)(uintptr_t)vaddr;

	return copy(to, from, len, to, from, SYS_process_vm_readv);
}

int inprocess_copy_to(uint64_t vaddr, const void *from, size_t len)
{
	void *to = (void *)(uintptr_t)vaddr;

	return copy(to, from, len, (void *)(uintptr_t)from, to, SYS_process_vm_writev);
}
