/* SPDX-License-Identifier: BSD-2-Clause */
/* The process that runs value profilers: its beginnings and ends. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "values_internal.h"

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* In the child: only exec and what POSIX allows before it. */
static void become_helper(const struct values *v, char **argv, int sock)
{
	char *envp[] = { NULL };
	int who = fcntl(v->who, F_DUPFD_CLOEXEC, 10);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* Out of the way of the numbers they are to have. */
	sock = fcntl(sock, F_DUPFD_CLOEXEC, 10);
	if (sock >= 0 && who >= 0 && dup2(sock, VALUES_SOCKET_FD) >= 0 &&
	    dup2(who, VALUES_WHO_FD) >= 0)
		execve(v->program, argv, envp);
	_exit(BASE_EXIT_FAILED);
}

static int spawn(struct values *v, int sock)
{
	char *argv[VALUES_PROFILERS_MAX + 3] = { (char *)(uintptr_t) "dcpid-values" };

	argv[1] = (char *)(uintptr_t)(v->context ? "context" : "-");
	for (uint32_t i = 0; i < v->nr_profilers; i++)
		argv[i + 2] = v->profilers[i].stats.given_up ? (char *)(uintptr_t) "-"
							     : v->profilers[i].given;
	v->pid = fork();
	if (v->pid == 0)
		become_helper(v, argv, sock);
	return v->pid < 0 ? -errno : 0;
}

int values_start(struct values *v)
{
	int pair[2], r;

	v->started_ns = v->looked_ns = base_now_ns();
	v->waited_ns = 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	v->sock = pair[0];
	v->who = memfd_create("dcpid-values", MFD_CLOEXEC);
	r = v->who < 0 || ftruncate(v->who, 1) < 0 ? -errno : spawn(v, pair[1]);
	close(pair[1]);
	if (r < 0) {
		v->pid = 0;
		values_dismiss(v);
		return r;
	}
	v->state = VALUES_STARTING;
	v->stats.starts++;
	return 0;
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void reap(struct values *v)
{
	for (size_t i = 0; i < VALUES_ZOMBIES_MAX; i++)
		if (v->zombies[i] && waitpid(v->zombies[i], NULL, WNOHANG) != 0)
			v->zombies[i] = 0;
}

/* How it ended; one held in the kernel is not waited for long, and counts as killed. */
static int bury(struct values *v)
{
	struct timespec pause = { .tv_nsec = 1000000 };
	int status = SIGKILL;

	reap(v);
	for (int i = 0; i < 20; i++) {
		if (waitpid(v->pid, &status, WNOHANG) != 0)
			return status;
		nanosleep(&pause, NULL);
	}
	/* One that only closed its socket would go on for as long as we do. */
	kill(v->pid, SIGKILL);
	for (size_t i = 0; i < VALUES_ZOMBIES_MAX; i++) {
		if (!v->zombies[i]) {
			v->zombies[i] = v->pid;
			break;
		}
	}
	return status;
}

static int end(struct values *v, bool kill_it)
{
	int status = 0;

	if (v->pid > 0 && kill_it)
		kill(v->pid, SIGKILL);
	if (v->pid > 0)
		status = bury(v);
	close_fd(&v->sock);
	close_fd(&v->who);
	v->pid = 0;
	v->state = VALUES_DEAD;
	if (v->known)
		memset(v->known, 0, v->cap_known * sizeof(*v->known));
	v->nr_known = 0;
	return status;
}

void values_dismiss(struct values *v)
{
	end(v, true);
}

void values_give_up(struct values *v, uint32_t profiler, const char *why)
{
	struct values_profiler *p = &v->profilers[profiler];

	p->stats.given_up = true;
	base_log(BASE_LOG_WARN, "value profiler '%s' is given up: %s",
		 p->name[0] ? p->name : p->given, why);
}

bool values_any_left(const struct values *v)
{
	for (uint32_t i = 0; i < v->nr_profilers; i++)
		if (!v->profilers[i].stats.given_up)
			return true;
	return false;
}

/* Whose work it was; NULL: nobody's. */
static struct values_profiler *at_work(const struct values *v)
{
	uint8_t who = 0;

	if (v->who < 0 || pread(v->who, &who, 1, 0) != 1 || !who || who > v->nr_profilers)
		return NULL;
	return &v->profilers[who - 1];
}

static void note_fault(struct values *v, struct values_profiler *p, const char *what)
{
	const char *name = p ? p->name[0] ? p->name : p->given : "";

	if (!p) {
		base_log(BASE_LOG_WARN, "dcpid-values %s; windows lost: %u", what, v->nr_pending);
		return;
	}
	base_log(BASE_LOG_WARN, "value profiler '%s' %s; windows lost: %u", name, what,
		 v->nr_pending);
	if (p->stats.crashes + p->stats.hangs >= VALUES_FAULTS_MAX)
		values_give_up(v, (uint32_t)(p - v->profilers), "this was the last time");
}

void values_end_hung(struct values *v)
{
	struct values_profiler *p = at_work(v);

	end(v, true);
	if (p)
		p->stats.hangs++;
	note_fault(v, p, "does not answer");
}

void values_end_crashed(struct values *v)
{
	struct values_profiler *p = at_work(v);
	char what[64];
	int status = end(v, false);

	if (WIFSIGNALED(status))
		snprintf(what, sizeof(what), "was ended by signal %d", WTERMSIG(status));
	else
		snprintf(what, sizeof(what), "has ended its process");
	if (p)
		p->stats.crashes++;
	note_fault(v, p, what);
}

ssize_t values_next_message(const struct values *v, void *to)
{
	ssize_t n;

	do
		n = recv(v->sock, to, VALUES_MESSAGE_MAX, MSG_DONTWAIT | MSG_TRUNC);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}
