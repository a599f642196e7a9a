/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpid starts the reader, sends one request at a time, and replaces a reader that fails. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "reader.h"
#include "reader_internal.h"

enum { TIMEOUT_MS = 1000, BURY_MS = 100 };

/* ---- the helper's life --------------------------------------------------------------------- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* In the child: only exec and what POSIX allows before it. */
static void become_helper(const char *program, int sock, int answers)
{
	char *argv[] = { (char *)(uintptr_t) "dcpid-reader", NULL };
	char *envp[] = { NULL };
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	/* Out of the way of the numbers they are to have. */
	sock = fcntl(sock, F_DUPFD_CLOEXEC, 10);
	answers = fcntl(answers, F_DUPFD_CLOEXEC, 10);
	if (sock >= 0 && answers >= 0 && dup2(sock, READER_SOCKET_FD) >= 0 &&
	    dup2(answers, READER_ANSWERS_FD) >= 0)
		execve(program, argv, envp);
	_exit(BASE_EXIT_FAILED);
}

static int spawn(struct reader *r)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	r->answers = memfd_create("dcpid-reader", MFD_CLOEXEC);
	if (r->answers < 0)
		goto fail;
	r->pid = fork();
	if (r->pid < 0)
		goto fail;
	if (r->pid == 0)
		become_helper(r->program, pair[1], r->answers);
	close(pair[1]);
	r->sock = pair[0];
	return 0;
fail:;
	int e = errno;

	close(pair[0]);
	close(pair[1]);
	close_fd(&r->answers);
	r->pid = 0;
	return -e;
}

static void reap(struct reader *r)
{
	for (size_t i = 0; i < READER_NR_ZOMBIES; i++)
		if (r->zombies[i] && waitpid(r->zombies[i], NULL, WNOHANG) != 0)
			r->zombies[i] = 0;
}

/* A helper held in the kernel may outlive its killing for a while: that is not waited for. */
static void bury(struct reader *r, pid_t pid)
{
	struct timespec pause = { .tv_nsec = 1000000 };

	r->held = false;
	for (int i = 0; i < BURY_MS; i++) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return;
		nanosleep(&pause, NULL);
	}
	r->held = true;
	for (size_t i = 0; i < READER_NR_ZOMBIES; i++) {
		if (!r->zombies[i]) {
			r->zombies[i] = pid;
			return;
		}
	}
}

static void dismiss(struct reader *r)
{
	close_fd(&r->sock);
	close_fd(&r->answers);
	if (r->pid > 0) {
		kill(r->pid, SIGKILL);
		bury(r, r->pid);
	}
	r->pid = 0;
}

int reader_open(const char *helper_dir, struct reader **out, struct base_err *err)
{
	struct reader *r = calloc(1, sizeof(*r));

	*out = NULL;
	if (!r)
		return base_fail_errno(err, -ENOMEM, "cannot start 'dcpid-reader'");
	r->sock = r->answers = -1;
	r->timeout_ms = TIMEOUT_MS;
	snprintf(r->program, sizeof(r->program), "%s/dcpid-reader", helper_dir);
	if (access(r->program, X_OK) < 0) {
		int code = base_fail_errno(err, -errno, "cannot run '%s'", r->program);

		base_hint(err, "the helper programs are installed beside dcpid");
		free(r);
		return code;
	}
	*out = r;
	return 0;
}

void reader_close(struct reader *r)
{
	if (!r)
		return;
	dismiss(r);
	reap(r);
	free(r);
}

void reader_trim(struct reader *r)
{
	if (r->answers >= 0 && ftruncate(r->answers, 0) < 0)
		base_log(BASE_LOG_WARN, "the reader's answers stay: %s", base_strerror(errno));
}

/* ---- one request --------------------------------------------------------------------------- */

static int ask(struct reader *r, const struct reader_request *q, int fd, struct reader_answer *a)
{
	int code = 0;

	reap(r);
	*a = (struct reader_answer){ 0 };
	if (!r->pid)
		code = spawn(r);
	return code < 0 ? code : reader_send(r->sock, q, sizeof(*q), fd);
}

static int hear(struct reader *r, int code, struct reader_answer *a, int *fd_out)
{
	unsigned int left_ms = r->timeout_ms;
	int none;

	if (code == 0)
		code = base_wait_readable(r->sock, &left_ms);
	if (code == 0)
		code = reader_receive(r->sock, a, sizeof(*a), fd_out ? fd_out : &none);
	if (code == 0 && !fd_out && none >= 0)
		close(none);
	if (code < 0) {
		dismiss(r);
		return code == -ETIMEDOUT ? code : -DCPI_EHELPER;
	}
	return a->status;
}

int reader_call(struct reader *r, const struct reader_request *q, int fd, struct reader_answer *a,
		int *fd_out)
{
	return hear(r, ask(r, q, fd, a), a, fd_out);
}

/* Ours is closed while the helper has another: its own is the last. */
void reader_release(struct reader *r, int fd)
{
	const struct reader_request q = { .op = READER_CLOSE };
	struct reader_answer a;
	int code = ask(r, &q, fd, &a);

	close(fd);
	hear(r, code, &a, NULL);
}

static bool one_of_ours(uint16_t type)
{
	switch (type) {
	case WIRE_FACILITY:
	case WIRE_RANGE:
	case WIRE_ROUTINE:
	case WIRE_RETIRE:
	case WIRE_MOVE:
	case WIRE_OBJECT:
	case WIRE_LISTED:
	case WIRE_BYTES:
	case WIRE_TIME:
		return true;
	}
	return false;
}

/* The outer shape of what the helper made from an application's bytes, checked once more. */
static int check_answer(const struct base_buf *b, size_t from)
{
	const struct wire_head *h;
	size_t pos = 0, len = b->len - from;

	while (len && (h = wire_next(b->data + from, len, &pos))) {
		if (!one_of_ours(h->type))
			return -DCPI_EFORMAT;
		if (wire_check(h) < 0)
			return -DCPI_EFORMAT;
	}
	return pos == len ? 0 : -DCPI_EFORMAT;
}

static int fetch_answer(const struct reader *r, const struct reader_answer *a,
			reader_check_fn *check, struct base_buf *out)
{
	size_t from = out->len;
	void *to;
	int code;

	if (a->len > READER_ANSWER_MAX)
		return -DCPI_EFORMAT;
	code = base_buf_extend(out, a->len, &to);
	if (code == 0)
		code = base_read_at(r->answers, 0, to, a->len);
	if (code == 0)
		code = check(out, from);
	if (code < 0)
		out->len = from;
	return code;
}

int reader_call_checked(struct reader *r, const struct reader_request *q, int fd,
			struct reader_answer *a, reader_check_fn *check, struct base_buf *out)
{
	int status = reader_call(r, q, fd, a, NULL), code;

	if (status < 0)
		return status;
	code = fetch_answer(r, a, check, out);
	if (code == -DCPI_EFORMAT || code == -DCPI_ETRUNCATED) {
		dismiss(r);
		return -DCPI_EHELPER;
	}
	return code < 0 ? code : status;
}

int reader_call_long(struct reader *r, const struct reader_request *q, int fd,
		     struct reader_answer *a, struct base_buf *out)
{
	return reader_call_checked(r, q, fd, a, check_answer, out);
}

int reader_call_for_fd(struct reader *r, const struct reader_request *q, int fd,
		       struct reader_answer *a)
{
	int opened = -1, code = reader_call(r, q, fd, a, &opened);

	if (code >= 0 && opened < 0)
		code = -DCPI_EHELPER;
	if (code >= 0)
		return opened;
	close_fd(&opened);
	return code;
}
