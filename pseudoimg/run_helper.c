/* SPDX-License-Identifier: BSD-2-Clause */
/* Start the helper, wait for its answer or the end of its time, and see it gone. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"
#include "pseudoimg_internal.h"

enum { MEANWHILE_MS = 40, PAUSE_NS = 1000000 };
enum { NR_FDS = 5 }; /* descriptors of the child: job, image, answer, scratch file, base */

/* @from: where its answer comes from. A process id, or -errno. */
static pid_t start(const char *program, const struct pseudoimg_merge *with, int *from)
{
	char name[] = "dcpid-pseudoimg", merge[] = "fold", onto[] = "onto";
	char *const argv[] = { name, with->scratch_fd >= 0 ? merge : NULL,
			       with->base_fd >= 0 ? onto : NULL, NULL };
	int ends[2],
		fds[NR_FDS] = { with->job_fd, with->out_fd, -1, with->scratch_fd, with->base_fd };
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	fds[STDERR_FILENO] = ends[1];
	pid = launch_program(program, argv, fds, NR_FDS, 0);
	close(ends[1]);
	if (pid < 0)
		close(ends[0]);
	*from = ends[0];
	return pid;
}

/* The answers of a helper: they come from @fd, until @end_ns at the latest. */
struct answers {
	const struct pseudoimg_helper *helper;
	int fd;
	uint64_t end_ns;
};

/* Until there is something to read, or the time is over: as poll. */
static int wait_for_some(const struct answers *a, uint64_t now)
{
	struct pollfd p = { .fd = a->fd, .events = POLLIN };
	/* Rounded up, so that the last fraction of a millisecond is not spun away. */
	uint64_t left_ms = (a->end_ns - now + 999999) / 1000000;
	int ready = poll(&p, 1, left_ms > MEANWHILE_MS ? MEANWHILE_MS : (int)left_ms);

	if (!ready && a->helper->meanwhile)
		a->helper->meanwhile(a->helper->ctx);
	return ready;
}

/* Bytes of the answer. How many were read, or -ETIMEDOUT, -errno. */
static ssize_t read_answer(const struct answers *a, void *answer, size_t len)
{
	size_t got = 0;
	uint64_t now;
	ssize_t n;

	while (got < len && (now = base_now_ns()) < a->end_ns) {
		int ready = wait_for_some(a, now);

		if (ready < 0 && errno != EINTR)
			return -errno;
		if (ready <= 0)
			continue;
		n = read(a->fd, (char *)answer + got, len - got);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (!n)
			return (ssize_t)got;
		got += n > 0 ? (size_t)n : 0;
	}
	return got == len ? (ssize_t)got : -ETIMEDOUT;
}

/* Read the maps behind the answer to a merge: whole and valid records. */
static int read_maps(const struct answers *a, struct base_buf *maps)
{
	const struct wire_head *rec;
	size_t pos = 0;
	uint64_t len;
	void *space;
	ssize_t n = read_answer(a, &len, sizeof(len));

	if (n != sizeof(len))
		return n < 0 ? (int)n : -DCPI_EHELPER;
	if (len > PSEUDOIMG_MAPS_MOST || len % 8)
		return -DCPI_EHELPER;
	base_buf_clear(maps);
	if (base_buf_extend(maps, len, &space) < 0)
		return -ENOMEM;
	n = read_answer(a, space, len);
	if (n != (ssize_t)len)
		return n < 0 ? (int)n : -DCPI_EHELPER;
	while ((rec = wire_next(maps->data, maps->len, &pos)))
		if (rec->type != WIRE_REPLACES || wire_check(rec) < 0)
			return -DCPI_EHELPER;
	return pos == maps->len ? 0 : -DCPI_EHELPER;
}

/*
 * An error of the disk concerns all images, and the caller tries again. The helper has everything
 * else from the job, also its own want of memory: it concerns this image alone.
 */
static int error_of(int status)
{
	bool of_disk = status == -ENOSPC || status == -EDQUOT || status == -EIO;

	return of_disk || status == -EINVAL || status <= -DCPI_ERROR_BASE ? status : -DCPI_EHELPER;
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
	base_fail(err, error_of(a->status), "%s",
		  a->text[0] ? a->text : "cannot write pseudo-image");
	if (a->hint[0])
		base_hint(err, "%s", a->hint);
	return error_of(a->status);
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

static int fail_read(int r, const char *program, unsigned int timeout_ms, struct base_err *err)
{
	if (r == -ETIMEDOUT)
		return base_fail(err, r,
				 "cannot write pseudo-image: helper '%s' took more than %u ms",
				 program, timeout_ms);
	return base_fail_errno(err, r, "cannot hear helper '%s'", program);
}

/*
 * The helper has answered, or has ended, or will never answer: in each case nothing of it stays.
 * The disk may hold it until its image is written.
 */
static int end(const struct pseudoimg_helper *helper, pid_t pid)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int status = 0;

	kill(pid, SIGKILL);
	for (unsigned int i = 1; waitpid(pid, &status, WNOHANG) == 0; i++) {
		nanosleep(&pause, NULL);
		if (helper->meanwhile && i % MEANWHILE_MS == 0)
			helper->meanwhile(helper->ctx);
	}
	return status;
}

/* @maps: NULL where there are none to come. */
static int run(const struct pseudoimg_helper *helper, const struct pseudoimg_merge *fds,
	       unsigned int timeout_ms, struct pseudoimg_result *result, struct base_buf *maps,
	       struct base_err *err)
{
	struct answers from = { .helper = helper,
				.end_ns = base_now_ns() + timeout_ms * UINT64_C(1000000) };
	const char *program = helper->program;
	struct pseudoimg_answer answer;
	int status = 0, r, more = 0;
	ssize_t got;
	pid_t pid;

	memset(result, 0, sizeof(*result));
	pid = start(program, fds, &from.fd);
	if (pid < 0)
		return base_fail_errno(err, pid, "cannot start helper '%s'", program);
	base_group_join(pid);
	got = read_answer(&from, &answer, sizeof(answer));
	if (got == sizeof(answer) && maps && !answer.status)
		more = read_maps(&from, maps);
	status = end(helper, pid);
	if (got < 0)
		r = fail_read((int)got, program, timeout_ms, err);
	else if (got < (ssize_t)sizeof(answer))
		r = fail_ended(status, program, err);
	else
		r = take_answer(&answer, result, err);
	if (r == 0 && more < 0)
		r = fail_read(more, program, timeout_ms, err);
	close(from.fd);
	return r;
}

int pseudoimg_run_helper(const struct pseudoimg_helper *helper, int job_fd, int out_fd,
			 unsigned int timeout_ms, struct pseudoimg_result *result,
			 struct base_err *err)
{
	const struct pseudoimg_merge fds = { -1, job_fd, -1, out_fd };

	return run(helper, &fds, timeout_ms, result, NULL, err);
}

int pseudoimg_run_merge(const struct pseudoimg_helper *helper, const struct pseudoimg_merge *fds,
			unsigned int timeout_ms, struct pseudoimg_result *result,
			struct base_buf *maps, struct base_err *err)
{
	return run(helper, fds, timeout_ms, result, maps, err);
}
