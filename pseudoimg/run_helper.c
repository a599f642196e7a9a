/* SPDX-License-Identifier: BSD-2-Clause */
/* Start the helper, wait for its answer or the end of its time, and see it gone. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pseudoimg_internal.h"

/* Three descriptors above those that the child gets, so that no dup2 runs over another. */
struct channel {
	int job, out, answer; /* the child's ends */
	int from;	      /* ours */
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void channel_close(struct channel *c)
{
	close_fd(&c->job);
	close_fd(&c->out);
	close_fd(&c->answer);
	close_fd(&c->from);
}

static int channel_open(struct channel *c, int job_fd, int out_fd)
{
	int ends[2], r = 0;

	*c = (struct channel){ -1, -1, -1, -1 };
	if (pipe(ends) < 0)
		return -errno;
	c->from = fcntl(ends[0], F_DUPFD_CLOEXEC, 3);
	c->answer = fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
	c->job = fcntl(job_fd, F_DUPFD_CLOEXEC, 3);
	c->out = fcntl(out_fd, F_DUPFD_CLOEXEC, 3);
	if (c->from < 0 || c->answer < 0 || c->job < 0 || c->out < 0)
		r = -errno;
	close(ends[0]);
	close(ends[1]);
	if (r < 0)
		channel_close(c);
	return r;
}

static int set_actions(posix_spawn_file_actions_t *actions, const struct channel *c)
{
	int r = posix_spawn_file_actions_adddup2(actions, c->job, STDIN_FILENO);

	if (!r)
		r = posix_spawn_file_actions_adddup2(actions, c->out, STDOUT_FILENO);
	return r ? r : posix_spawn_file_actions_adddup2(actions, c->answer, STDERR_FILENO);
}

/* The child begins with no signal blocked or ignored, whatever the daemon does with its own. */
static int set_signals(posix_spawnattr_t *attr)
{
	sigset_t none, all;
	int r;

	sigemptyset(&none);
	sigfillset(&all);
	r = posix_spawnattr_setsigmask(attr, &none);
	if (!r)
		r = posix_spawnattr_setsigdefault(attr, &all);
	return r ? r
		 : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

/* Nothing of our environment: the helper needs none of it. */
static int start(const char *program, const struct channel *c, pid_t *pid)
{
	char name[] = "dcpid-pseudoimg";
	char *const argv[] = { name, NULL }, *const env[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int r = posix_spawn_file_actions_init(&actions);

	if (r)
		return -r;
	r = posix_spawnattr_init(&attr);
	if (!r) {
		r = set_actions(&actions, c);
		if (!r)
			r = set_signals(&attr);
		if (!r)
			r = posix_spawn(pid, program, &actions, &attr, argv, env);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/* The answer, at most @timeout_ms from now. Bytes read, or -ETIMEDOUT, -errno. */
static ssize_t read_answer(int fd, struct pseudoimg_answer *answer, unsigned int timeout_ms)
{
	uint64_t end = base_now_ns() + timeout_ms * UINT64_C(1000000), now;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t got = 0;
	ssize_t n;

	while (got < sizeof(*answer) && (now = base_now_ns()) < end) {
		/* Rounded up, so that the last fraction of a millisecond is not spun away. */
		uint64_t left = (end - now + 999999) / 1000000;
		int ready = poll(&p, 1, left > 1000000 ? 1000000 : (int)left);

		if (ready < 0 && errno != EINTR)
			return -errno;
		if (ready <= 0)
			continue;
		n = read(fd, (char *)answer + got, sizeof(*answer) - got);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (!n)
			return (ssize_t)got;
		got += n > 0 ? (size_t)n : 0;
	}
	return got == sizeof(*answer) ? (ssize_t)got : -ETIMEDOUT;
}

static int take_answer(struct pseudoimg_answer *a, struct pseudoimg_result *result,
		       struct base_err *err)
{
	/* It may say anything: base_fail and base_hint make one line of it, if it has an end. */
	a->text[sizeof(a->text) - 1] = '\0';
	a->hint[sizeof(a->hint) - 1] = '\0';
	if (a->magic != PSEUDOIMG_ANSWER_MAGIC || a->status > 0 || a->status <= -DCPI_ERROR_END)
		return base_fail(err, -DCPI_EHELPER,
				 "cannot write pseudo-image: its helper gave no proper answer");
	*result = a->result;
	if (!a->status)
		return 0;
	base_fail(err, a->status, "%s", a->text[0] ? a->text : "cannot write pseudo-image");
	if (a->hint[0])
		base_hint(err, "%s", a->hint);
	return a->status;
}

static int fail_ended(int status, const char *program, struct base_err *err)
{
	if (WIFSIGNALED(status))
		return base_fail(err, -DCPI_EHELPER,
				 "cannot write pseudo-image: helper '%s' was ended by signal %d",
				 program, WTERMSIG(status));
	return base_fail(
		err, -DCPI_EHELPER,
		"cannot write pseudo-image: helper '%s' ended with status %d and no answer",
		program, WEXITSTATUS(status));
}

int pseudoimg_run_helper(const char *program, int job_fd, int out_fd, unsigned int timeout_ms,
			 struct pseudoimg_result *result, struct base_err *err)
{
	struct pseudoimg_answer answer;
	struct channel c;
	int status = 0, r;
	ssize_t got;
	pid_t pid;

	memset(result, 0, sizeof(*result));
	r = channel_open(&c, job_fd, out_fd);
	if (r < 0)
		return base_fail_errno(err, r, "cannot start helper '%s'", program);
	r = start(program, &c, &pid);
	if (r < 0) {
		base_fail_errno(err, r, "cannot start helper '%s'", program);
		goto out;
	}
	close_fd(&c.answer);
	got = read_answer(c.from, &answer, timeout_ms);
	/* It has answered, or is gone, or will never: in each case nothing of it is to stay. */
	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (got == -ETIMEDOUT)
		r = base_fail(err, -ETIMEDOUT,
			      "cannot write pseudo-image: helper '%s' took more than %u ms",
			      program, timeout_ms);
	else if (got < 0)
		r = base_fail_errno(err, (int)got, "cannot hear helper '%s'", program);
	else if (got < (ssize_t)sizeof(answer))
		r = fail_ended(status, program, err);
	else
		r = take_answer(&answer, result, err);
out:
	channel_close(&c);
	return r;
}
