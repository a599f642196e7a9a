/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads close descriptors whose close may never return. */
#include "closer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base.h"

enum { NR_THREADS = 8, NR_DESCRIPTORS = 16 };

static int pipe_fds[2] = { -1, -1 };
static atomic_int nr_threads;
static atomic_int nr_undone; /* descriptors given to the threads and not closed yet */

static void *run(void *unused)
{
	int fd;

	(void)unused;
	while (read(pipe_fds[0], &fd, sizeof(fd)) == sizeof(fd)) {
		close(fd);
		atomic_fetch_sub(&nr_undone, 1);
	}
	return NULL;
}

/* The daemon's signals are for its main thread. */
static void add_thread(void)
{
	sigset_t all, old;
	pthread_t thread;

	/* Two of our threads may want one at the same time. */
	if (atomic_fetch_add(&nr_threads, 1) >= NR_THREADS) {
		atomic_fetch_sub(&nr_threads, 1);
		return;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&thread, NULL, run, NULL) == 0)
		pthread_detach(thread);
	else
		atomic_fetch_sub(&nr_threads, 1);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

int closer_open(void)
{
	if (pipe_fds[0] >= 0)
		return 0;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	return fcntl(pipe_fds[1], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

void closer_close(int fd)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (fd < 0)
		return;
	if (closer_open() < 0)
		goto stays;
	if (atomic_fetch_add(&nr_undone, 1) >= nr_threads)
		add_thread();
	if (nr_threads && write(pipe_fds[1], &fd, sizeof(fd)) == sizeof(fd))
		return;
	atomic_fetch_sub(&nr_undone, 1);
stays:
	if (!atomic_flag_test_and_set(&said))
		base_log(BASE_LOG_WARN, "a client's descriptor cannot be closed: it stays open");
}

ssize_t closer_recv(int sock, void *data, size_t len)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int) * NR_DESCRIPTORS)];
	} c;
	struct iovec v = { data, len };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)
	};
	ssize_t n = recvmsg(sock, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	for (struct cmsghdr *h = n < 0 ? NULL : CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
		size_t size = h->cmsg_len - CMSG_LEN(0);
		int fd;

		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t off = 0; off + sizeof(fd) <= size; off += sizeof(fd)) {
			memcpy(&fd, CMSG_DATA(h) + off, sizeof(fd));
			closer_close(fd);
		}
	}
	return n;
}
