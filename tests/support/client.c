/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects to the daemon's sockets, and passes descriptors there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client.h"
#include "wire.h"

int client_dial(const char *name, int type)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	const char *dir = getenv("DCPI_RUN");
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s/%s", dir ? dir : WIRE_RUN_DIR, name);
	if (fd >= 0 && connect(fd, (const void *)&to, sizeof(to)) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

ssize_t client_send(int sock, const void *data, size_t len, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec part = { (void *)(uintptr_t)data, len };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *c;

		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(sock, &m, MSG_NOSIGNAL);
}

int client_announce(int fd)
{
	struct wire_doorbell bell = { WIRE_DOORBELL_MAGIC, WIRE_REGISTRY_VERSION,
				      (uint32_t)getpid(), 0 };
	int sock = -1, r;

	for (int i = 0; i < 100 && sock < 0; i++) {
		sock = client_dial(WIRE_DYN_NAME, SOCK_SEQPACKET | SOCK_NONBLOCK);
		if (sock < 0)
			usleep(10000);
	}
	if (sock < 0)
		return -1;
	r = fd < 0 || client_send(sock, &bell, sizeof(bell), fd) < 0 ? -1 : 0;
	close(sock);
	return r;
}
