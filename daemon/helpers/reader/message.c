/* SPDX-License-Identifier: BSD-2-Clause */
/* One message with at most one descriptor is sent or received; a long answer is written. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "closer.h"
#include "reader_internal.h"

union control {
	struct cmsghdr head;
	char space[CMSG_SPACE(sizeof(int) * CLOSER_NR_SENT)];
};

int reader_send(int sock, const void *data, size_t len, int fd)
{
	union control c = { 0 };
	struct iovec v = { (void *)(uintptr_t)data, len };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	ssize_t n;

	if (fd >= 0) {
		m.msg_control = &c;
		m.msg_controllen = CMSG_SPACE(sizeof(int));
		struct cmsghdr *h = CMSG_FIRSTHDR(&m);

		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	}
	do
		n = sendmsg(sock, &m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n == (ssize_t)len ? 0 : -EIO;
}

static void close_here(int fd, uint32_t uid)
{
	(void)uid;
	close(fd);
}

/* The first descriptor is kept, whatever else came with it is closed. */
static int take_descriptors(struct msghdr *m, void (*close_fd)(int fd, uint32_t uid), uint32_t uid)
{
	int kept = -1, fd;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t off = 0; off + sizeof(fd) <= h->cmsg_len - CMSG_LEN(0);
		     off += sizeof(fd)) {
			memcpy(&fd, CMSG_DATA(h) + off, sizeof(fd));
			if (kept < 0)
				kept = fd;
			else
				close_fd(fd, uid);
		}
	}
	return kept;
}

int reader_peek_fd(int sock)
{
	union control c;
	char byte;
	struct iovec v = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)
	};
	int fd = -1;

	if (recvmsg(sock, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT | MSG_PEEK) == 1)
		fd = take_descriptors(&m, close_here, 0);
	return fd < 0 ? -ENODATA : fd;
}

int reader_receive(int sock, void *data, size_t len, int *fd_out)
{
	return reader_receive_from(sock, data, len, fd_out, close_here, 0);
}

int reader_receive_from(int sock, void *data, size_t len, int *fd_out,
			void (*close_fd)(int fd, uint32_t uid), uint32_t uid)
{
	union control c;
	struct iovec v = { data, len };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)
	};
	ssize_t n;

	*fd_out = -1;
	do
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*fd_out = take_descriptors(&m, close_fd, uid);
	if (n == (ssize_t)len && !(m.msg_flags & MSG_TRUNC))
		return 0;
	if (*fd_out >= 0)
		close_fd(*fd_out, uid);
	*fd_out = -1;
	return n ? -EPROTO : -EPIPE;
}

/* Bytes of the answers' file that are kept from one to the next. */
#define ANSWER_KEPT (REGISTRY_ANSWER_SOFT + (1 << 20))

/* Memory of the usual size is used again: to get and clear it takes longer than to fill it. */
static int write_answer(int fd, const struct base_buf *out)
{
	size_t off = 0;

	if (ftruncate(fd, ANSWER_KEPT) < 0)
		return -errno;
	while (off < out->len) {
		ssize_t n = pwrite(fd, out->data + off, out->len - off, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		off += (size_t)n;
	}
	return 0;
}

void reader_put_answer(int fd, const struct base_buf *out, struct reader_answer *a)
{
	int r = a->status >= 0 && out->len ? write_answer(fd, out) : 0;

	a->len = a->status >= 0 ? out->len : 0;
	a->status = r < 0 ? r : a->status;
}
