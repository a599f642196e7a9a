/* SPDX-License-Identifier: BSD-2-Clause */
/* The helper as dcpid runs it, and programs in its place that do not behave. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "image.h"

enum { LONG_MS = 60000 };

static const char *helper(void)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/dcpid-pseudoimg", getenv("DCPI_BIN"));
	return path;
}

static int job_fd(const struct base_buf *job)
{
	int fd = image_fd();

	assert_int_equal(base_write_all(fd, job->data, job->len), 0);
	return fd; /* at its end: the helper must find the beginning by itself */
}

static void good_job(struct base_buf *job, size_t nr)
{
	static const uint8_t code[64] = { 0x90, 0xc3 };

	job_image(job,
		  &(struct job_image){ .machine = 62, .facility = "j", .host = "h", .exe = "x" });
	job_run(job, 0x100000, 0, nr * 64);
	for (size_t i = 0; i < nr; i++)
		job_routine(job, &(struct job_routine){ .addr = 0x100000 + i * 64,
							.name = "routine",
							.code = code,
							.code_len = sizeof(code) });
}

static void test_same_bytes_as_the_library(void **state)
{
	struct pseudoimg_result result;
	struct image library, jailed = { 0 };
	struct base_buf job = { 0 };
	int in, out = image_fd();

	(void)state;
	good_job(&job, 2000);
	image_write(&library, &job);
	in = job_fd(&job);
	assert_int_equal(pseudoimg_run_helper(&(struct pseudoimg_helper){ .program = helper() }, in,
					      out, LONG_MS, &result, &jailed.err),
			 0);
	image_read(&jailed, out);
	assert_int_equal(result.nr_routines, 2000);
	assert_memory_equal(&result, &library.result, sizeof(result));
	assert_int_equal(jailed.file.len, library.file.len);
	assert_memory_equal(jailed.file.data, library.file.data, library.file.len);
	image_release(&library);
	image_release(&jailed);
	base_buf_release(&job);
	close(in);
	close(out);
}

/* Jobs into one image, and another onto that: in the jail as outside of it. */
static void test_merges_as_the_library(void **state)
{
	struct pseudoimg_merge fds = { .base_fd = -1, .out_fd = image_fd() };
	struct base_buf job = { 0 }, maps[2] = { 0 };
	struct pseudoimg_result result[2];
	struct image images[2] = { 0 };
	struct base_err err = { 0 };

	(void)state;
	good_job(&job, 20);
	good_job(&job, 30);
	fds.job_fd = job_fd(&job);
	for (size_t onto = 0; onto < 2; onto++) {
		fds.base_fd = onto ? fds.out_fd : -1;
		for (size_t i = 0; i < 2; i++) {
			memset(&images[i], 0, sizeof(images[i]));
			base_buf_clear(&maps[i]);
			fds.scratch_fd = image_fd();
			fds.out_fd = image_fd();
			if (i)
				assert_int_equal(pseudoimg_merge(&fds, &result[i], &maps[i], &err),
						 0);
			else
				assert_int_equal(
					pseudoimg_run_merge(
						&(struct pseudoimg_helper){ .program = helper() },
						&fds, LONG_MS, &result[i], &maps[i], &err),
					0);
			image_read(&images[i], fds.out_fd);
			close(fds.scratch_fd);
		}
		assert_memory_equal(&result[0], &result[1], sizeof(result[0]));
		assert_int_equal(maps[0].len, maps[1].len);
		assert_memory_equal(maps[0].data, maps[1].data, maps[0].len);
		assert_int_equal(images[0].file.len, images[1].file.len);
		assert_memory_equal(images[0].file.data, images[1].file.data, images[0].file.len);
		image_release(&images[0]);
		image_release(&images[1]);
	}
	base_buf_clear(&job);
	base_buf_extend(&job, 4096, NULL); /* no image */
	fds.base_fd = job_fd(&job);
	assert_int_equal(pseudoimg_run_merge(&(struct pseudoimg_helper){ .program = helper() },
					     &fds, LONG_MS, result, maps, &err),
			 -DCPI_EFORMAT);
	assert_string_equal(err.text, "cannot read pseudo-image: malformed data");
	base_buf_release(&maps[0]);
	base_buf_release(&maps[1]);
	base_buf_release(&job);
}

static void test_garbage(void **state)
{
	struct base_buf job = { 0 };
	struct pseudoimg_result result;
	struct base_err err = { 0 };
	int in, out = image_fd();

	(void)state;
	base_buf_append(&job, "garbage, not a job", 18);
	in = job_fd(&job);
	assert_int_equal(pseudoimg_run_helper(&(struct pseudoimg_helper){ .program = helper() }, in,
					      out, LONG_MS, &result, &err),
			 -DCPI_EFORMAT);
	assert_string_equal(err.text,
			    "cannot read pseudo-image job: it does not begin with its head");
	base_buf_release(&job);
	close(in);
	close(out);
}

static void count(void *ctx)
{
	++*(unsigned int *)ctx;
}

/* A job that never ends: the time does, and what must not wait is done meanwhile. */
static void test_timeout(void **state)
{
	struct pseudoimg_result result;
	struct base_err err = { 0 };
	unsigned int nr = 0;
	const struct pseudoimg_helper with = { helper(), count, &nr };
	int ends[2], out = image_fd();

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pseudoimg_run_helper(&with, ends[0], out, 500, &result, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "took more than 500 ms"));
	assert_true(nr >= 1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left behind */
	assert_int_equal(errno, ECHILD);
	close(ends[0]);
	close(ends[1]);
	close(out);
}

static void test_no_such_program(void **state)
{
	struct pseudoimg_result result;
	struct base_err err = { 0 };
	int out = image_fd();

	(void)state;
	assert_int_equal(
		pseudoimg_run_helper(&(struct pseudoimg_helper){ .program = "/nowhere/helper" },
				     out, out, LONG_MS, &result, &err),
		-ENOENT);
	assert_string_equal(err.text,
			    "cannot start helper '/nowhere/helper': No such file or directory");
	close(out);
}

/* A script in the helper's place. */
static int run_script(const char *text, uint32_t ms, struct base_err *err)
{
	char name[] = "/tmp/dcpi-helper-XXXXXX";
	int fd = mkstemp(name), out = image_fd(), r;
	struct pseudoimg_result result;

	assert_true(fd >= 0);
	assert_int_equal(base_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, 0700), 0);
	close(fd);
	r = pseudoimg_run_helper(&(struct pseudoimg_helper){ .program = name }, out, out, ms,
				 &result, err);
	unlink(name);
	close(out);
	return r;
}

static void test_helpers_that_misbehave(void **state)
{
	static const struct {
		const char *script;
		uint32_t ms;
		int result;
		const char *text;
	} cases[] = {
		{ "#!/bin/sh\nexit 3\n", LONG_MS, -DCPI_EHELPER,
		  "ended with status 3 and no answer" },
		{ "#!/bin/sh\nkill -SYS $$\n", LONG_MS, -DCPI_EHELPER, "ended by signal 31" },
		{ "#!/bin/sh\nhead -c 5000 /dev/zero >&2\n", LONG_MS, -DCPI_EHELPER,
		  "no proper answer" },
		{ "#!/bin/sh\necho short >&2\n", LONG_MS, -DCPI_EHELPER, "" },
		{ "#!/bin/sh\nexec sleep 60\n", 300, -ETIMEDOUT, "took more than 300 ms" },
		/* Closes its end and stays: it must not keep us waiting. */
		{ "#!/bin/sh\nexec sleep 60 2>&-\n", LONG_MS, -DCPI_EHELPER, "ended by signal 9" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct base_err err = { 0 };

		assert_int_equal(run_script(cases[i].script, cases[i].ms, &err), cases[i].result);
		assert_non_null(strstr(err.text, cases[i].text));
	}
}

/* What a taken-over helper says is shown on one line, and its status believed only as an error. */
static void test_answers_are_cleaned(void **state)
{
	/* Status -5, an empty result, a text and a hint without an end. */
	static const char script[] =
		"#!/bin/sh\n"
		"{ printf 'PIMG\\373\\377\\377\\377'; head -c 40 /dev/zero\n"
		"printf 'a\\nb\\033[1m\\177'; yes x | tr -d '\\n' | head -c 472\n"
		"yes | head -c 240; } | head -c 768 >&2\n";
	char text[480] = "a?b?[1m?", hint[240];
	struct base_err err = { 0 };

	(void)state;
	memset(text + 8, 'x', sizeof(text) - 9);
	text[sizeof(text) - 1] = '\0';
	for (size_t i = 0; i < sizeof(hint); i++)
		hint[i] = i % 2 ? '?' : 'y';
	hint[sizeof(hint) - 1] = '\0';
	assert_int_equal(run_script(script, LONG_MS, &err), -5);
	assert_string_equal(err.text, text);
	assert_string_equal(err.hint, hint);
}

static void test_an_answer_may_say_nothing(void **state)
{
	static const char script[] =
		"#!/bin/sh\n"
		"{ printf 'PIMG\\373\\377\\377\\377'; head -c 760 /dev/zero; } >&2\n";
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(run_script(script, LONG_MS, &err), -5);
	assert_string_equal(err.text, "cannot write pseudo-image");
	assert_string_equal(err.hint, "");
}

/* The disk's errors are the daemon's; the others are of this one image. */
static void test_errors_of_the_image(void **state)
{
	static const struct {
		const char *status;
		int result;
	} cases[] = {
		{ "\\373", -EIO },	    { "\\344", -ENOSPC },	{ "\\206", -EDQUOT },
		{ "\\364", -DCPI_EHELPER }, { "\\376", -DCPI_EHELPER }, { "\\367", -DCPI_EHELPER },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct base_err err = { 0 };
		char script[160];

		snprintf(script, sizeof(script),
			 "#!/bin/sh\n"
			 "{ printf 'PIMG%s\\377\\377\\377'; head -c 760 /dev/zero; } >&2\n",
			 cases[i].status);
		assert_int_equal(run_script(script, LONG_MS, &err), cases[i].result);
	}
}

/* Signals blocked or ignored in the daemon are not so in the helper. */
static void test_inherits_nothing(void **state)
{
	static const char script[] = "#!/bin/sh\nkill -TERM $$\nexit 0\n";
	struct base_err blocked = { 0 }, ignored = { 0 };
	void (*handler)(int);
	sigset_t all, old;

	(void)state;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	assert_int_equal(run_script(script, LONG_MS, &blocked), -DCPI_EHELPER);
	sigprocmask(SIG_SETMASK, &old, NULL);
	assert_non_null(strstr(blocked.text, "ended by signal 15"));
	handler = signal(SIGTERM, SIG_IGN);
	assert_int_equal(run_script(script, LONG_MS, &ignored), -DCPI_EHELPER);
	signal(SIGTERM, handler);
	assert_non_null(strstr(ignored.text, "ended by signal 15"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_bytes_as_the_library),
		cmocka_unit_test(test_merges_as_the_library),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_no_such_program),
		cmocka_unit_test(test_helpers_that_misbehave),
		cmocka_unit_test(test_answers_are_cleaned),
		cmocka_unit_test(test_an_answer_may_say_nothing),
		cmocka_unit_test(test_errors_of_the_image),
		cmocka_unit_test(test_inherits_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
