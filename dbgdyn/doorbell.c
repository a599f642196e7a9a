/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's socket: a registry is announced, and its descriptor passed. */
#include "dbgdyn_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static struct wire_doorbell bell(const struct dbgdyn_state *s)
{
	return (struct wire_doorbell){ .magic = WIRE_DOORBELL_MAGIC,
				       .version = WIRE_REGISTRY_VERSION,
				       .pid = s->pid };
}

bool dbgdyn_doorbell(const struct dbgdyn_state *s)
{
	const char *name = secure_getenv("DCPI_QUEUE");
	struct wire_doorbell b = bell(s);
	mqd_t q = mq_open(name ? name : WIRE_QUEUE_NAME, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	if (q == (mqd_t)-1)
		return false;
	/* A full queue does not matter: whoever empties it looks at every client. */
	(void)mq_send(q, (const char *)&b, sizeof(b), 0);
	mq_close(q);
	return true;
}

static bool address_make(struct sockaddr_un *to)
{
	const char *dir = secure_getenv("DCPI_RUN");
	size_t dir_len;

	dir = dir ? dir : WIRE_RUN_DIR;
	dir_len = strlen(dir);
	if (dir_len + 1 + sizeof(WIRE_DYN_NAME) > sizeof(to->sun_path))
		return false;
	*to = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(to->sun_path, dir, dir_len);
	to->sun_path[dir_len] = '/';
	memcpy(to->sun_path + dir_len + 1, WIRE_DYN_NAME, sizeof(WIRE_DYN_NAME));
	return true;
}

static enum dbgdyn_reach reach_of(int error)
{
	switch (error) {
	case 0:
	case EAGAIN: /* its backlog is full */
	case EINPROGRESS:
		return DBGDYN_LIVE;
	case ECONNREFUSED:
		return DBGDYN_REFUSED;
	default:
		return DBGDYN_ABSENT;
	}
}

/* The descriptor goes along while it is still ours: applications close what they do not know. */
static bool send_registry(int sock, const struct dbgdyn_state *s)
{
	const struct dbgdyn_memory *m = &s->memory;
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct wire_doorbell b = bell(s);
	struct iovec part = { .iov_base = &b, .iov_len = sizeof(b) };
	struct msghdr msg = { .msg_iov = &part, .msg_iovlen = 1 };
	bool whole = dbgdyn_memory_same(m->fd, m->dev, m->ino);

	if (whole) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &m->fd, sizeof(int));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(b) && whole;
}

enum dbgdyn_reach dbgdyn_hand_over(struct dbgdyn_state *s)
{
	struct stat st;
	struct sockaddr_un to;
	enum dbgdyn_reach reach;
	int sock;

	/* Where there is no daemon, this saves making a socket: a quarter of what begin would cost.
	 */
	if (!address_make(&to) || stat(to.sun_path, &st) < 0)
		return DBGDYN_ABSENT;
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (sock < 0)
		return DBGDYN_ABSENT;
	reach = reach_of(connect(sock, (void *)&to, sizeof(to)) < 0 ? errno : 0);
	if (reach == DBGDYN_LIVE && send_registry(sock, s) && !dbgdyn_attached(s))
		__atomic_store_n(&s->handed, 1, __ATOMIC_RELAXED);
	close(sock);
	return reach;
}
