/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets whose last close lasts an hour, for hostile clients and unit tests. */
#ifndef TESTS_LINGERING_H
#define TESTS_LINGERING_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINGERING_MAX = 253 };

static int lingering_listener(struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 2048;
	socklen_t len = sizeof(*at);

	*at = (struct sockaddr_in){ .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) < 0 ||
	    bind(fd, (struct sockaddr *)at, sizeof(*at)) < 0 || listen(fd, 512) < 0 ||
	    getsockname(fd, (struct sockaddr *)at, &len) < 0)
		return -1;
	return fd;
}

/* A connection with more in it than its other end, which nobody reads, has room for; or -1. */
static int lingering_socket(const struct sockaddr_in *at)
{
	const struct linger hour = { 1, 3600 };
	static const char bytes[4096];
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 2048;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)) < 0 ||
	    connect(fd, (const struct sockaddr *)at, sizeof(*at)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)) < 0)
		return -1;
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
		;
	return fd;
}

/*
 * Send @len bytes with @nr such sockets, which stay open here: their last close must be another
 * one. The end of a process does not linger. The number of bytes, or -1.
 */
static ssize_t lingering_send(int sock, const void *data, size_t len, const struct sockaddr_in *at,
			      int nr)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int) * LINGERING_MAX)];
	} c;
	struct iovec v = { (void *)(uintptr_t)data, len };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = &c };
	int fds[LINGERING_MAX];

	for (int i = 0; i < nr; i++)
		fds[i] = lingering_socket(at);
	memset(&c, 0, sizeof(c));
	m.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)nr);
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)nr);
	memcpy(CMSG_DATA(h), fds, sizeof(int) * (size_t)nr);
	return sendmsg(sock, &m, MSG_NOSIGNAL);
}

#endif
