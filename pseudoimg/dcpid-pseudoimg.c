/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The jailed helper of dcpid: a job on descriptor 0, an image to descriptor 1, the answer (struct
 * pseudoimg_answer) to descriptor 2. With the word 'fold' jobs become one image, by a scratch file
 * on descriptor 3; with 'fold onto', behind the image on descriptor 4.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "pseudoimg_internal.h"

enum { CPU_SECONDS = 120 };
#define MEMORY_BYTES (UINT64_C(4) << 30)
#define FILE_BYTES   (UINT64_C(16) << 30)

#define JOB_MOST (UINT64_C(1) << 30)
#define JOB_STEP ((size_t)1 << 16)

/* Read the job from a pipe, to its end. */
static int read_job(struct base_buf *job, struct base_err *err)
{
	ssize_t n = 1;
	void *space;
	int r;

	while (n > 0) {
		r = base_buf_extend(job, JOB_STEP, &space);
		if (r < 0)
			return base_fail_errno(err, r, "cannot read job");
		do {
			n = read(STDIN_FILENO, space, JOB_STEP);
		} while (n < 0 && errno == EINTR);
		if (n < 0)
			return base_fail_errno(err, -errno, "cannot read job");
		job->len -= JOB_STEP - (size_t)n;
		if (job->len > JOB_MOST)
			return base_fail(err, -DCPI_ELIMIT, "cannot read job: longer than 1 GiB");
	}
	return 0;
}

static int work(struct pseudoimg_result *result, struct base_err *err)
{
	struct base_buf job = { 0 };
	int r;

	if (lseek(STDIN_FILENO, 0, SEEK_END) >= 0)
		return pseudoimg_write_file(STDIN_FILENO, STDOUT_FILENO, result, err);
	r = read_job(&job, err);
	if (r >= 0)
		r = pseudoimg_write(job.data, job.len, STDOUT_FILENO, result, err);
	base_buf_release(&job);
	return r;
}

static int answer_maps(const struct base_buf *maps)
{
	uint64_t len = maps->len;
	int r = base_write_all(STDERR_FILENO, &len, sizeof(len));

	return r < 0 ? r : base_write_all(STDERR_FILENO, maps->data, maps->len);
}

static int merge(int nr_fds, struct pseudoimg_result *result, struct base_buf *maps,
		 struct base_err *err)
{
	const struct pseudoimg_merge fds = { .base_fd = nr_fds > 4 ? 4 : -1,
					     .job_fd = STDIN_FILENO,
					     .scratch_fd = 3,
					     .out_fd = STDOUT_FILENO };

	return pseudoimg_merge(&fds, result, maps, err);
}

/* How many descriptors are ours: 3, or those of a folding. */
static int nr_fds_of(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "fold"))
		return 4;
	return argc == 3 && !strcmp(argv[1], "fold") && !strcmp(argv[2], "onto") ? 5 : 3;
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
	struct base_jail jail = {
		.memory = MEMORY_BYTES, .file = FILE_BYTES, .syncs = true, .cpu_s = CPU_SECONDS
	};
	int r = 0, nr_fds = nr_fds_of(argc, argv);
	struct base_buf maps = { 0 };
	struct base_err err = { 0 };

	if (argc > 1 && nr_fds == 3)
		r = base_opt_parse(&command, &argc, &argv, &err);
	if (r == BASE_OPT_DONE && base_output_end(&err) >= 0)
		return BASE_EXIT_OK;
	if (r != BASE_OPT_RUN) {
		base_err_print(&err, command.name, stderr);
		return err.code == -DCPI_EUSAGE ? BASE_EXIT_USAGE : BASE_EXIT_FAILED;
	}
	jail.nr_fds = (unsigned int)nr_fds;
	r = base_jail_enter(&jail, &err);
	/* It will not be had the next time either: no cause for flushes to wait, as a full disk is.
	 */
	if (r < 0)
		r = -DCPI_EHELPER;
	else
		r = nr_fds > 3 ? merge(nr_fds, &answer.result, &maps, &err)
			       : work(&answer.result, &err);
	if (r >= 0 && maps.len > PSEUDOIMG_MAPS_MOST)
		r = base_fail(&err, -DCPI_ELIMIT, "cannot merge image: its maps are too long");
	/* The helper waits for the disk, so that its parent need not. */
	if (r >= 0 && fdatasync(STDOUT_FILENO) < 0 && errno != EINVAL)
		r = base_fail_errno(&err, -errno, "cannot sync the image");
	answer.status = r;
	memcpy(answer.text, err.text, sizeof(answer.text));
	memcpy(answer.hint, err.hint, sizeof(answer.hint));
	if (base_write_all(STDERR_FILENO, &answer, sizeof(answer)) < 0)
		r = -EIO;
	if (r >= 0 && nr_fds > 3)
		r = answer_maps(&maps);
	/* Not by exit(): nothing that may run there is allowed any more. */
	_exit(r < 0 ? BASE_EXIT_FAILED : BASE_EXIT_OK);
}
