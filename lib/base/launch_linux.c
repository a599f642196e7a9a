/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes are started by a thread that has its own descriptors. */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A process to be started; launch waits until it is. */
struct order {
	int (*fn)(void *ctx, const int *fds);
	void *ctx;
	const int *fds; /* in the caller's table, or -1; the others go along in this order */
	size_t nr;
};

/* Ours, and the thread's, in its table. Orders go one way, results the other. */
static int pair[2] = { -1, -1 };
static pthread_mutex_t one_order = PTHREAD_MUTEX_INITIALIZER;

/* The room for what goes along with an order. */
union rights {
	struct cmsghdr head;
	char space[CMSG_SPACE(sizeof(int) * LAUNCH_NR_FDS)];
};

static void close_all(int *fds, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Call it with copies of @fds. */
static int carry_out(const struct order *o, const int *fds)
{
	int own[LAUNCH_NR_FDS], r = 0;

	for (size_t i = 0; i < o->nr; i++) {
		own[i] = r < 0 || fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD_CLOEXEC, LAUNCH_FD_MIN);
		if (fds[i] >= 0 && r == 0 && own[i] < 0)
			r = -errno;
	}
	if (r == 0)
		r = o->fn(o->ctx, own);
	close_all(own, o->nr);
	return r;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/*
 * From here on its table of descriptors is another one: of those that the process has at this
 * moment, the standard ones and its end of the pair. Nothing above is ever copied into it.
 */
static int take_own_table(void)
{
	unsigned int end = (unsigned int)pair[1];

	if (close_range(end + 1, ~0u, CLOSE_RANGE_UNSHARE) < 0 ||
	    (end > STDERR_FILENO + 1u && close_range(STDERR_FILENO + 1, end - 1, 0) < 0))
		return -errno;
	return 0;
}

static void spread(const struct order *o, struct msghdr *m, int *fds)
{
	const struct cmsghdr *h = CMSG_FIRSTHDR(m);
	int come[LAUNCH_NR_FDS];
	size_t next = 0, nr = 0;

	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS) {
		nr = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(come, CMSG_DATA(h), nr * sizeof(int));
	}
	for (size_t i = 0; i < o->nr; i++)
		fds[i] = o->fds[i] >= 0 && next < nr ? come[next++] : -1;
}

static void *run(void *unused)
{
	union rights c;
	struct order *o;
	struct iovec v = { &o, sizeof(o) };
	int fds[LAUNCH_NR_FDS], r = take_own_table();

	while (send(pair[1], &r, sizeof(r), MSG_NOSIGNAL) == sizeof(r)) {
		struct msghdr m = { .msg_iov = &v,
				    .msg_iovlen = 1,
				    .msg_control = &c,
				    .msg_controllen = sizeof(c) };

		if (recvmsg(pair[1], &m, MSG_CMSG_CLOEXEC) != sizeof(o))
			break;
		spread(o, &m, fds);
		r = m.msg_flags & MSG_CTRUNC ? -EMFILE : carry_out(o, fds);
		close_all(fds, o->nr);
	}
	return unused;
}

static int hear_result(void)
{
	ssize_t n;
	int r;

	do
		n = recv(pair[0], &r, sizeof(r), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == sizeof(r) ? r : -EPIPE; /* the thread has ended */
}

int launch_open(void)
{
	sigset_t all, old;
	pthread_t id;
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = -pthread_create(&id, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r == 0) {
		pthread_detach(id);
		r = hear_result();
	}
	/* The thread has its own. */
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		pair[0] = -1;
	}
	return r;
}

/* ---- its callers ----------------------------------------------------------------------------- */

static int send_order(struct order *o)
{
	union rights c = { { 0 } };
	struct iovec v = { &o, sizeof(o) };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	int go[LAUNCH_NR_FDS];
	size_t nr = 0;

	for (size_t i = 0; i < o->nr; i++)
		if (o->fds[i] >= 0)
			go[nr++] = o->fds[i];
	if (nr) {
		m.msg_control = &c;
		m.msg_controllen = CMSG_SPACE(sizeof(int) * nr);
		c.head.cmsg_level = SOL_SOCKET;
		c.head.cmsg_type = SCM_RIGHTS;
		c.head.cmsg_len = CMSG_LEN(sizeof(int) * nr);
		memcpy(CMSG_DATA(&c.head), go, sizeof(int) * nr);
	}
	return sendmsg(pair[0], &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int launch(int (*fn)(void *ctx, const int *fds), void *ctx, const int *fds, size_t nr)
{
	struct order o = { fn, ctx, fds, nr };
	int r;

	if (nr > LAUNCH_NR_FDS)
		return -E2BIG;
	if (pair[0] < 0)
		return carry_out(&o, fds);
	pthread_mutex_lock(&one_order);
	r = send_order(&o);
	if (r == 0)
		r = hear_result();
	pthread_mutex_unlock(&one_order);
	return r;
}

/* ---- programs -------------------------------------------------------------------------------- */

struct start {
	const char *program;
	char *const *argv;
	size_t nr;
	int first;
};

static int set_actions(posix_spawn_file_actions_t *actions, const struct start *s, const int *fds)
{
	int r = 0;

	for (size_t i = 0; !r && i < s->nr; i++)
		if (fds[i] >= 0)
			r = posix_spawn_file_actions_adddup2(actions, fds[i], s->first + (int)i);
	return r;
}

static int set_signals(posix_spawnattr_t *attr)
{
	sigset_t none, most;
	int r;

	sigemptyset(&none);
	sigfillset(&most);
	sigdelset(&most, SIGPIPE);
	r = posix_spawnattr_setsigmask(attr, &none);
	if (!r)
		r = posix_spawnattr_setsigdefault(attr, &most);
	return r ? r
		 : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn(void *ctx, const int *fds)
{
	const struct start *s = ctx;
	char *const env[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	pid_t pid = 0;
	int r = posix_spawn_file_actions_init(&actions);

	if (r)
		return -r;
	r = posix_spawnattr_init(&attr);
	if (!r) {
		r = set_actions(&actions, s, fds);
		if (!r)
			r = set_signals(&attr);
		if (!r)
			r = posix_spawn(&pid, s->program, &actions, &attr, s->argv, env);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&actions);
	return r ? -r : pid;
}

int launch_program(const char *program, char *const *argv, const int *fds, size_t nr, int first)
{
	struct start s = { program, argv, nr, first };

	return first + (int)nr > LAUNCH_FD_MIN ? -E2BIG : launch(spawn, &s, fds, nr);
}
