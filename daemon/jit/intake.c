/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients hand their registries over by a socket, and ring a doorbell. */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "closer.h"
#include "jit_internal.h"
#include "reader_internal.h"

/* How long a connection may stay silent, and how many messages one look at the queue takes. */
#define SILENCE_NS 1000000000ull
enum { QUEUE_DRAIN_MAX = 1024, QUEUE_MESSAGES = 10, BACKLOG = 4096 };

static int watch(struct dyn_intake *in, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(in->epoll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

/* ---- the socket ------------------------------------------------------------------------------ */

static bool somebody_listens(const struct sockaddr_un *to)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool yes;

	if (fd < 0)
		return false;
	yes = connect(fd, (const void *)to, sizeof(*to)) == 0 || errno == EAGAIN;
	close(fd);
	return yes;
}

static int open_socket(struct dyn_intake *in, const char *run_dir, struct base_err *err)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int r;

	if (snprintf(in->socket_path, sizeof(in->socket_path), "%s/%s", run_dir, WIRE_DYN_NAME) >=
	    (int)sizeof(to.sun_path))
		return base_fail(err, -ENAMETOOLONG, "cannot make a socket in '%s': name too long",
				 run_dir);
	strcpy(to.sun_path, in->socket_path);
	in->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (in->listener < 0)
		return base_fail_errno(err, -errno, "cannot make a socket");
	r = bind(in->listener, (void *)&to, sizeof(to)) < 0 ? -errno : 0;
	if (r == -EADDRINUSE && somebody_listens(&to))
		return base_fail(err, -DCPI_EBUSY, "cannot listen on '%s': another daemon does",
				 in->socket_path);
	if (r == -EADDRINUSE) {
		unlink(in->socket_path);
		r = bind(in->listener, (void *)&to, sizeof(to)) < 0 ? -errno : 0;
	}
	if (r == 0) {
		in->own_socket = true;
		/* Anyone may hand over a registry; who it is, the kernel says. */
		if (chmod(in->socket_path, 0666) < 0 || listen(in->listener, BACKLOG) < 0)
			r = -errno;
	}
	if (r == 0)
		r = watch(in, in->listener);
	if (r < 0)
		base_fail_errno(err, r, "cannot listen on '%s'", in->socket_path);
	return r;
}

/* ---- the queue ------------------------------------------------------------------------------- */

static int open_queue_once(struct dyn_intake *in)
{
	struct mq_attr attr = { .mq_maxmsg = QUEUE_MESSAGES,
				.mq_msgsize = sizeof(struct wire_doorbell) };
	mqd_t q = mq_open(in->queue_name, O_CREAT | O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0622, &attr);
	struct stat st;
	int r = 0;

	if (q == (mqd_t)-1)
		return -errno;
	if (fstat(q, &st) < 0)
		r = -errno;
	else if (st.st_uid != geteuid())
		r = -EEXIST; /* made by somebody who can take it away */
	else if (flock(q, LOCK_EX | LOCK_NB) < 0)
		r = -DCPI_EBUSY;
	/* The umask may have taken from the mode. */
	else if (fchmod(q, 0622) < 0 || mq_getattr(q, &attr) < 0)
		r = -errno;
	if (r < 0) {
		mq_close(q);
		return r;
	}
	in->queue_msg_len = (size_t)attr.mq_msgsize;
	return q;
}

/* The doorbell is a convenience: without it clients are seen by their marker and at each drain. */
static void open_queue(struct dyn_intake *in, const char *name)
{
	int q;

	snprintf(in->queue_name, sizeof(in->queue_name), "%s", name);
	q = open_queue_once(in);
	if ((q == -EEXIST || q == -EACCES) && geteuid() == 0 && mq_unlink(name) == 0)
		q = open_queue_once(in);
	if (q >= 0 && watch(in, q) < 0) {
		mq_close(q);
		q = -EINVAL;
	}
	if (q < 0) {
		base_log(BASE_LOG_WARN, "going on without the message queue '%s': %s", name,
			 q == -EEXIST ? "it belongs to somebody else" : base_strerror(q));
		return;
	}
	in->queue = q;
}

bool dyn_intake_drain_queue(struct dyn_intake *in)
{
	char small[256], *text = small;
	size_t len = sizeof(small);
	bool rang = false;

	if (in->queue < 0)
		return false;
	if (in->queue_msg_len > len) {
		len = in->queue_msg_len;
		text = malloc(len);
	}
	for (int i = 0; text && i < QUEUE_DRAIN_MAX; i++) {
		if (mq_receive(in->queue, text, len, NULL) < 0)
			break;
		rang = true;
	}
	if (text != small)
		free(text);
	return rang;
}

/* ---- both ------------------------------------------------------------------------------------ */

int dyn_intake_open(struct dyn_intake *in, const char *run_dir, const char *queue_name,
		    struct base_err *err)
{
	struct base_err why = { 0 };
	int r;

	*in = (struct dyn_intake){ .epoll = -1, .listener = -1, .queue = -1, .spare = -1 };
	if (!run_dir && !queue_name)
		return 0;
	r = closer_open();
	if (r < 0)
		return base_fail_errno(err, r, "cannot make a pipe");
	in->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (in->epoll < 0)
		return base_fail_errno(err, -errno, "cannot make an epoll descriptor");
	in->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
	r = run_dir ? open_socket(in, run_dir, &why) : 0;
	if (r == -DCPI_EBUSY) {
		base_log(BASE_LOG_WARN, "going on without hand-overs: %s", why.text);
		close(in->listener);
		in->listener = -1;
		r = 0;
	}
	if (r < 0) {
		base_fail(err, r, "%s", why.text);
		dyn_intake_close(in);
		return r;
	}
	if (queue_name)
		open_queue(in, queue_name);
	return 0;
}

void dyn_intake_close(struct dyn_intake *in)
{
	for (size_t i = 0; i < in->nr_waiting; i++)
		closer_close(in->waiting[i].fd);
	if (in->own_socket)
		unlink(in->socket_path);
	/* Connections that were not accepted are closed with it. */
	closer_close(in->listener);
	if (in->queue >= 0) {
		mq_unlink(in->queue_name);
		mq_close(in->queue);
	}
	if (in->spare >= 0)
		close(in->spare);
	if (in->epoll >= 0)
		close(in->epoll);
	*in = (struct dyn_intake){ .epoll = -1, .listener = -1, .queue = -1, .spare = -1 };
}

int dyn_intake_check(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS), flags = fcntl(fd, F_GETFL);

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || flags < 0 || (flags & O_ACCMODE) != O_RDWR)
		return -EPERM;
	return 0;
}

/* Since Linux 6.5; not in every libc's headers. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/*
 * The process that connected, and no other that has its number since. An older kernel tells the
 * number alone: the process that has it now is that one, or it is not as @who says.
 */
static int peer_pidfd(int sock, const struct ucred *who)
{
	socklen_t len = sizeof(int);
	int fd = -1;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0)
		return fd;
	return errno == ENOPROTOOPT ? (int)syscall(SYS_pidfd_open, who->pid, 0) : -1;
}

/* Take the message of a connection: a descriptor; -EAGAIN: nothing yet; else it is of no use. */
static int hear(int sock, struct dyn_peer *peer)
{
	struct wire_doorbell bell;
	struct ucred who;
	socklen_t len = sizeof(who);
	int fd, r = reader_receive_from(sock, &bell, sizeof(bell), &fd, closer_close);

	if (r < 0)
		return r;
	if (fd < 0)
		return -ENODATA;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0 || who.pid <= 0 ||
	    bell.magic != WIRE_DOORBELL_MAGIC || dyn_intake_check(fd) < 0) {
		closer_close(fd);
		return -EPERM;
	}
	*peer = (struct dyn_peer){ who.pid, who.uid, peer_pidfd(sock, &who) };
	return fd;
}

static void drop_waiting(struct dyn_intake *in, size_t i)
{
	epoll_ctl(in->epoll, EPOLL_CTL_DEL, in->waiting[i].fd, NULL);
	closer_close(in->waiting[i].fd);
	in->waiting[i] = in->waiting[--in->nr_waiting];
}

/* Those that said nothing at first. */
static int next_waiting(struct dyn_intake *in, struct dyn_peer *peer)
{
	uint64_t now = base_now_ns();

	for (size_t i = 0; i < in->nr_waiting;) {
		int fd = hear(in->waiting[i].fd, peer);

		if (fd == -EAGAIN && now - in->waiting[i].since_ns < SILENCE_NS) {
			i++;
			continue;
		}
		drop_waiting(in, i);
		if (fd >= 0 || fd == -ENODATA)
			return fd;
		in->nr_refused++;
	}
	return -EAGAIN;
}

static size_t nr_waiting_of(const struct dyn_intake *in, uint32_t uid)
{
	size_t nr = 0;

	for (size_t i = 0; i < in->nr_waiting; i++)
		nr += in->waiting[i].uid == uid;
	return nr;
}

/* One of the user who has the most. */
static size_t least_missed(const struct dyn_intake *in)
{
	size_t found = 0, most = 0;

	for (size_t i = 0; i < in->nr_waiting; i++) {
		size_t nr = nr_waiting_of(in, in->waiting[i].uid);

		found = nr > most ? i : found;
		most = nr > most ? nr : most;
	}
	return found;
}

static void keep_waiting(struct dyn_intake *in, int sock)
{
	struct ucred who = { .uid = UINT32_MAX };
	socklen_t len = sizeof(who);

	if (in->nr_waiting == DYN_NR_WAITING) {
		drop_waiting(in, least_missed(in));
		in->nr_refused++;
	}
	getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &len);
	in->waiting[in->nr_waiting].fd = sock;
	in->waiting[in->nr_waiting].uid = who.uid;
	in->waiting[in->nr_waiting++].since_ns = base_now_ns();
	watch(in, sock);
}

/* The descriptor that took its place may only now be closed. */
static void keep_spare(struct dyn_intake *in)
{
	if (in->spare < 0)
		in->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Without a descriptor for it a connection would stay in the backlog, and wake us for ever. */
static bool turn_away(struct dyn_intake *in)
{
	int sock;

	if ((errno != EMFILE && errno != ENFILE) || in->spare < 0)
		return false;
	close(in->spare);
	sock = accept4(in->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	closer_close(sock);
	in->spare = -1;
	keep_spare(in);
	in->nr_refused += sock >= 0;
	return sock >= 0;
}

bool dyn_intake_is_quiet(const struct dyn_intake *in)
{
	struct epoll_event ev;

	return in->epoll < 0 || (!in->nr_waiting && epoll_wait(in->epoll, &ev, 1, 0) == 0);
}

int dyn_intake_next(struct dyn_intake *in, struct dyn_peer *peer)
{
	int sock, fd;

	if (in->listener < 0)
		return -EAGAIN;
	keep_spare(in);
	sock = accept4(in->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (sock < 0)
		return turn_away(in) ? -EMFILE : next_waiting(in, peer);
	fd = hear(sock, peer);
	if (fd == -EAGAIN) {
		keep_waiting(in, sock);
		return -EINPROGRESS;
	}
	closer_close(sock);
	in->nr_refused += fd < 0 && fd != -ENODATA;
	return fd;
}
