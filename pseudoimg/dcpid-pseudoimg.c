/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The jailed helper of dcpid: a job on descriptor 0, an image to descriptor 1, the answer (struct
 * pseudoimg_answer) to descriptor 2.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pseudoimg_internal.h"

#define JOB_MOST (UINT64_C(1) << 30)
#define JOB_STEP ((size_t)1 << 16)

/*
 * From the start where it can be told where that is; a pipe is read to its end. The end is seen
 * with the room that the first step leaves, without a buffer twice as long.
 */
static int read_job(struct base_buf *job, struct base_err *err)
{
	off_t len = lseek(STDIN_FILENO, 0, SEEK_END);
	size_t step = (len > 0 ? (size_t)len : 0) + JOB_STEP;
	ssize_t n = 1;
	void *room;
	int r;

	if (len > (off_t)JOB_MOST)
		return base_fail(err, -DCPI_ELIMIT, "cannot read job: longer than 1 GiB");
	if (len >= 0)
		lseek(STDIN_FILENO, 0, SEEK_SET);
	while (n > 0) {
		r = base_buf_extend(job, step, &room);
		if (r < 0)
			return base_fail_errno(err, r, "cannot read job");
		do {
			n = read(STDIN_FILENO, room, step);
		} while (n < 0 && errno == EINTR);
		if (n < 0)
			return base_fail_errno(err, -errno, "cannot read job");
		job->len -= step - (size_t)n;
		step = JOB_STEP;
		if (job->len > JOB_MOST)
			return base_fail(err, -DCPI_ELIMIT, "cannot read job: longer than 1 GiB");
	}
	return 0;
}

static int work(struct pseudoimg_result *result, struct base_err *err)
{
	struct base_buf job = { 0 };
	int r = read_job(&job, err);

	if (r >= 0)
		r = pseudoimg_write(job.data, job.len, STDOUT_FILENO, result, err);
	base_buf_release(&job);
	return r;
}

static const struct base_cmd command = {
	.name = "dcpid-pseudoimg",
	.summary = "write a pseudo-image (run by dcpid, not by hand)",
	.operands = "<JOB >IMAGE 2>ANSWER",
	.opts = (const struct base_opt[]){ { 0 } },
	.examples = (const struct base_example[]){ { 0 } },
};

int main(int argc, char **argv)
{
	struct pseudoimg_answer answer = { .magic = PSEUDOIMG_ANSWER_MAGIC };
	struct base_err err = { 0 };
	int r = 0;

	if (argc > 1)
		r = base_opt_parse(&command, &argc, &argv, &err);
	if (r != BASE_OPT_RUN) {
		if (r < 0)
			base_err_print(&err, command.name, stderr);
		return r < 0 ? BASE_EXIT_USAGE : BASE_EXIT_OK;
	}
	r = pseudoimg_jail_enter(&err);
	if (r >= 0)
		r = work(&answer.result, &err);
	answer.status = r;
	memcpy(answer.text, err.text, sizeof(answer.text));
	memcpy(answer.hint, err.hint, sizeof(answer.hint));
	if (base_write_all(STDERR_FILENO, &answer, sizeof(answer)) < 0)
		r = -EIO;
	/* Not by exit(): nothing that may run there is allowed any more. */
	_exit(r < 0 ? BASE_EXIT_FAILED : BASE_EXIT_OK);
}
