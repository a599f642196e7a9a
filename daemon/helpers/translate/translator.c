/* SPDX-License-Identifier: BSD-2-Clause */
/* The helper that translates: its life, and one request at a time. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "translator.h"

enum { TIMEOUT_MS = 1000 };

struct translator {
	char program[512];
	pid_t pid; /* 0: none runs */
	int sock;
	unsigned int timeout_ms;
	size_t have; /* bytes of the answer */
	struct {
		struct translator_request head;
		uint8_t code[TRANSLATOR_CODE];
	} request;
	struct {
		struct translator_answer head;
		struct vtrace_code blocks[TRANSLATOR_BLOCKS];
	} answer;
};

int translator_arch(enum vtrace_arch *out)
{
#if defined(__x86_64__)
	*out = VTRACE_X86_64;
	return 0;
#elif defined(__aarch64__)
	*out = VTRACE_AARCH64;
	return 0;
#else
	(void)out;
	return -DCPI_EUNSUPPORTED;
#endif
}

/* ---- the helper's life ----------------------------------------------------------------------- */

/* In the child: only exec and what POSIX allows before it. */
static void become_helper(const char *program, int sock)
{
	char *argv[] = { (char *)(uintptr_t) "dcpid-translate", NULL };
	char *envp[] = { NULL };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	sock = fcntl(sock, F_DUPFD_CLOEXEC, 10);
	if (sock >= 0 && dup2(sock, TRANSLATOR_SOCKET) >= 0)
		execve(program, argv, envp);
	_exit(BASE_EXIT_FAILED);
}

static int spawn(struct translator *t)
{
	int pair[2], e;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	t->pid = fork();
	if (t->pid < 0) {
		e = errno;
		close(pair[0]);
		close(pair[1]);
		t->pid = 0;
		return -e;
	}
	if (t->pid == 0)
		become_helper(t->program, pair[1]);
	close(pair[1]);
	t->sock = pair[0];
	return 0;
}

/* It computes and nothing else: once killed it is gone. */
static void dismiss(struct translator *t)
{
	if (t->sock >= 0)
		close(t->sock);
	t->sock = -1;
	if (t->pid > 0) {
		kill(t->pid, SIGKILL);
		while (waitpid(t->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	t->pid = 0;
}

int translator_open(const char *helper_dir, struct translator **out, struct base_err *err)
{
	struct translator *t = calloc(1, sizeof(*t));

	*out = NULL;
	if (!t)
		return base_fail_errno(err, -ENOMEM, "cannot start 'dcpid-translate'");
	t->sock = -1;
	t->timeout_ms = TIMEOUT_MS;
	snprintf(t->program, sizeof(t->program), "%s/dcpid-translate", helper_dir);
	if (access(t->program, X_OK) < 0) {
		int r = base_fail_errno(err, -errno, "cannot run '%s'", t->program);

		base_hint(err, "the helper programs are installed beside dcpid");
		free(t);
		return r;
	}
	*out = t;
	return 0;
}

void translator_close(struct translator *t)
{
	if (!t)
		return;
	dismiss(t);
	free(t);
}

void translator_set_patience(struct translator *t, unsigned int ms)
{
	t->timeout_ms = ms;
}

pid_t translator_pid(const struct translator *t)
{
	return t->pid;
}

uint64_t translator_cpu_ns(const struct translator *t)
{
	uint64_t own = base_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	clockid_t clock;

	return t->pid && clock_getcpuclockid(t->pid, &clock) == 0 ? own + base_clock_ns(clock)
								  : own;
}

/* ---- one request ----------------------------------------------------------------------------- */

/* One that does not read does not hold us up: a request fits into an empty socket. */
static int send_request(struct translator *t, size_t len)
{
	ssize_t n;

	do
		n = send(t->sock, &t->request, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)len ? 0 : -DCPI_EHELPER;
}

/* Until @want bytes of the answer are there. */
static int receive(struct translator *t, size_t want, unsigned int *left_ms)
{
	while (t->have < want) {
		int r = base_wait_readable(t->sock, left_ms);
		ssize_t n;

		if (r < 0)
			return r;
		n = recv(t->sock, (uint8_t *)&t->answer + t->have, want - t->have, MSG_DONTWAIT);
		if (!n || (n < 0 && errno != EINTR && errno != EAGAIN))
			return -DCPI_EHELPER;
		t->have += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int receive_answer(struct translator *t)
{
	const struct translator_answer *a = &t->answer.head;
	unsigned int left_ms = t->timeout_ms;
	int r;

	t->have = 0;
	r = receive(t, sizeof(*a), &left_ms);
	if (r == 0 && a->nr > TRANSLATOR_BLOCKS)
		r = -DCPI_EHELPER;
	return r < 0 ? r : receive(t, sizeof(*a) + a->nr * sizeof(struct vtrace_code), &left_ms);
}

int translator_call(struct translator *t, const struct translator_request *q, const uint8_t *code,
		    const struct vtrace_code **blocks)
{
	int r = 0;

	if (!q->len || q->len > TRANSLATOR_CODE || q->pc - q->base >= q->len ||
	    q->len - (q->pc - q->base) < vtrace_place_len(q->pc))
		return -EINVAL;
	t->request.head = *q;
	memcpy(t->request.code, code, q->len);
	if (!t->pid)
		r = spawn(t);
	if (r == 0)
		r = send_request(t, sizeof(*q) + q->len);
	if (r == 0)
		r = receive_answer(t);
	if (r == 0)
		r = translator_check(q, code, &t->answer, t->have, blocks);
	if (r < 0)
		dismiss(t);
	return r;
}
