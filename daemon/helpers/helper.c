/* SPDX-License-Identifier: BSD-2-Clause */
/* Helper programs are found, started and ended. */
#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"

enum { NR_ARGS = 64, PAUSE_NS = 1000000 };

int helper_find(struct helper *h, const char *dir, const char *name, struct base_err *err)
{
	int r = 0;

	*h = (struct helper){ .name = name, .sock = -1, .effort_fd = -1 };
	snprintf(h->program, sizeof(h->program), "%s/%s", dir, name);
	if (access(h->program, X_OK) < 0) {
		r = base_fail_errno(err, -errno, "cannot run '%s'", h->program);
		base_hint(err, "the helper programs are installed beside dcpid");
	}
	return r;
}

/* ---- its beginning --------------------------------------------------------------------------- */

static int open_effort(pid_t pid)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

int helper_start(struct helper *h, const struct helper_start *how)
{
	char *argv[NR_ARGS + 2] = { (char *)(uintptr_t)h->name };
	int pair[2], fds[1 + HELPER_NR_MORE];
	pid_t pid;

	for (size_t i = 0; how->args && how->args[i]; i++) {
		if (i == NR_ARGS)
			return -E2BIG;
		argv[i + 1] = (char *)(uintptr_t)how->args[i];
	}
	if (socketpair(AF_UNIX, how->socket_type | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	fds[0] = pair[1];
	for (size_t i = 0; i < how->nr_more; i++)
		fds[1 + i] = how->more_fds[i];
	pid = launch_program(h->program, argv, fds, 1 + how->nr_more, how->socket_fd);
	close(pair[1]);
	if (pid < 0) {
		close(pair[0]);
		return pid;
	}
	base_group_join(pid);
	h->pid = pid;
	h->sock = pair[0];
	h->effort_fd = open_effort(pid);
	return 0;
}

/* ---- its end --------------------------------------------------------------------------------- */

size_t helper_reap(struct helper *h)
{
	size_t nr = 0;

	for (size_t i = 0; i < HELPER_NR_ZOMBIES; i++) {
		if (h->zombies[i] && waitpid(h->zombies[i], NULL, WNOHANG) != 0)
			h->zombies[i] = 0;
		nr += h->zombies[i] != 0;
	}
	return nr;
}

static void keep_zombie(struct helper *h)
{
	for (size_t i = 0; i < HELPER_NR_ZOMBIES; i++)
		if (!h->zombies[i]) {
			h->zombies[i] = h->pid;
			return;
		}
}

static bool has_ended(pid_t pid, unsigned int wait_ms, int *status)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	for (unsigned int i = 0; i <= wait_ms; i++) {
		if (waitpid(pid, status, WNOHANG) != 0)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

int helper_end(struct helper *h, bool kill_it, unsigned int wait_ms)
{
	int status = SIGKILL;

	helper_reap(h);
	if (h->sock >= 0)
		close(h->sock);
	if (h->effort_fd >= 0)
		close(h->effort_fd);
	h->sock = h->effort_fd = -1;
	if (!h->pid)
		return 0;
	if (kill_it)
		kill(h->pid, SIGKILL);
	h->held = !has_ended(h->pid, wait_ms, &status);
	if (h->held) {
		/* One that only closed its socket would go on for as long as we do. */
		kill(h->pid, SIGKILL);
		keep_zombie(h);
	}
	h->pid = 0;
	return status;
}

uint64_t helper_cpu_ns(const struct helper *h)
{
	clockid_t clock;

	return h->pid && clock_getcpuclockid(h->pid, &clock) == 0 ? base_clock_ns(clock) : 0;
}
