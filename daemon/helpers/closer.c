/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads close descriptors whose close may last. */
#include "closer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base.h"

enum {
	NR_THREADS = 32,
	NR_OWN = 4,	 /* threads of these that do not close what clients sent */
	OF_USER = 2,	 /* threads that close what one user's clients sent */
	HELD_MAX = 8,	 /* descriptors of a user that may wait when one has waited for long */
	SENT_MAX = 4096, /* at any time */
};
/* A signal comes after so long, and again and again as long as that did not help. */
#define LINGER_NS 1000000
#define AGAIN_NS  50000000
#define LONG_NS	  1000000000u
#define SAY_NS	  (60 * 1000000000ull)

struct task {
	int fd;
	bool sent; /* by a client, of this user */
	uint32_t uid;
	uint64_t since_ns;
	struct task *next;
};

static struct thread {
	struct task *task; /* NULL: it waits for one */
} threads[NR_THREADS];
static size_t nr_threads;
static struct task *waiting, **last = &waiting;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;

/* ---- under the lock -------------------------------------------------------------------------- */

static size_t nr_busy(bool of_all, uint32_t uid)
{
	size_t nr = 0;

	for (size_t i = 0; i < nr_threads; i++)
		nr += threads[i].task && threads[i].task->sent &&
		      (of_all || threads[i].task->uid == uid);
	return nr;
}

static bool is_next(const struct task *t)
{
	return !t->sent ||
	       (nr_busy(true, 0) < NR_THREADS - NR_OWN && nr_busy(false, t->uid) < OF_USER);
}

/* The first one that a thread may begin with, or NULL. */
static struct task *take(void)
{
	for (struct task **at = &waiting; *at; at = &(*at)->next) {
		struct task *t = *at;

		if (!is_next(t))
			continue;
		*at = t->next;
		if (last == &t->next)
			last = at;
		return t;
	}
	return NULL;
}

/* ---- threads --------------------------------------------------------------------------------- */

/* As Linux has it; not in every libc's headers. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* A close that lingers ends when a signal comes. */
static void on_signal(int sig)
{
	(void)sig;
}

static bool make_timer(timer_t *timer)
{
	struct sigevent to = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG };

	to.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	return timer_create(CLOCK_MONOTONIC, &to, timer) == 0;
}

static void close_soon(int fd, timer_t timer)
{
	const struct itimerspec none = { 0 }, soon = { .it_value.tv_nsec = LINGER_NS,
						       .it_interval.tv_nsec = AGAIN_NS };

	timer_settime(timer, 0, &soon, NULL);
	close(fd);
	timer_settime(timer, 0, &none, NULL);
}

static void *run(void *ctx)
{
	struct thread *self = ctx;
	timer_t timer;
	bool timed = make_timer(&timer);

	pthread_mutex_lock(&lock);
	for (;;) {
		struct task *t = take();

		if (!t) {
			pthread_cond_wait(&more, &lock);
			continue;
		}
		self->task = t;
		pthread_mutex_unlock(&lock);
		if (timed)
			close_soon(t->fd, timer);
		else
			close(t->fd);
		pthread_mutex_lock(&lock);
		self->task = NULL;
		free(t);
	}
	return NULL;
}

/* The daemon's signals are for its main thread. */
static void add_thread(void)
{
	const struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	sigset_t most, old;
	pthread_t id;

	if (nr_threads == NR_THREADS || (!nr_threads && sigaction(SIGURG, &act, NULL) < 0))
		return;
	sigfillset(&most);
	sigdelset(&most, SIGURG);
	pthread_sigmask(SIG_SETMASK, &most, &old);
	if (pthread_create(&id, NULL, run, &threads[nr_threads]) == 0) {
		pthread_detach(id);
		nr_threads++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* An idle thread begins with a task, or a new thread does. */
static void begin(const struct task *t)
{
	bool idle = false;

	for (size_t i = 0; i < nr_threads; i++)
		idle |= !threads[i].task;
	if (!idle && is_next(t))
		add_thread();
	pthread_cond_signal(&more);
}

/* ---- what they get --------------------------------------------------------------------------- */

static void add(int fd, bool sent, uint32_t uid)
{
	static bool said;
	struct task *t = fd < 0 ? NULL : malloc(sizeof(*t));

	if (fd < 0)
		return;
	if (!t) {
		if (!said)
			base_log(BASE_LOG_WARN,
				 "a client's descriptor stays open: no memory to close it");
		said = true;
		return;
	}
	*t = (struct task){ .fd = fd, .sent = sent, .uid = uid, .since_ns = base_now_ns() };
	pthread_mutex_lock(&lock);
	*last = t;
	last = &t->next;
	begin(t);
	pthread_mutex_unlock(&lock);
}

void closer_close(int fd)
{
	add(fd, false, 0);
}

void closer_close_sent(int fd, uint32_t uid)
{
	add(fd, true, uid);
}

static void say(uint32_t uid)
{
	static uint64_t said_ns;
	uint64_t now = base_now_ns();

	if (said_ns && now - said_ns < SAY_NS)
		return;
	said_ns = now;
	base_log(BASE_LOG_WARN,
		 "files that user %u has sent cannot be closed: its programs are not heard until "
		 "they are",
		 uid);
}

static void count(const struct task *t, uint32_t uid, size_t *nr, uint64_t *first_ns)
{
	if (!t || !t->sent || t->uid != uid)
		return;
	(*nr)++;
	*first_ns = t->since_ns < *first_ns ? t->since_ns : *first_ns;
}

bool closer_is_held(uint32_t uid)
{
	uint64_t now = base_now_ns(), first_ns = now;
	size_t nr = 0;
	bool held;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < nr_threads; i++)
		count(threads[i].task, uid, &nr, &first_ns);
	for (const struct task *t = waiting; t; t = t->next)
		count(t, uid, &nr, &first_ns);
	held = nr >= SENT_MAX || (nr >= HELD_MAX && now - first_ns > LONG_NS);
	if (held)
		say(uid);
	pthread_mutex_unlock(&lock);
	return held;
}

ssize_t closer_recv(int sock, void *data, size_t len, uint32_t uid)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int) * CLOSER_NR_SENT)];
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
			closer_close_sent(fd, uid);
		}
	}
	return n;
}
