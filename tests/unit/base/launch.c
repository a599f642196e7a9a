/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes are started without copies of the descriptors that came after launch_open. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "launch.h"

enum { CLIENTS_FD = 300, EARLY_FD = 200 };

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int null_at(int want)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	assert_int_equal(dup3(fd, want, O_CLOEXEC), want);
	close(fd);
	return want;
}

/* Descriptors above @fd in the table of the thread that calls this. */
static size_t nr_above(int fd)
{
	DIR *dir = opendir("/proc/thread-self/fd");
	const struct dirent *e;
	size_t nr = 0;

	assert_non_null(dir);
	while ((e = readdir(dir)))
		nr += e->d_name[0] != '.' && atoi(e->d_name) > fd && atoi(e->d_name) != dirfd(dir);
	closedir(dir);
	return nr;
}

struct seen {
	pthread_t thread;
	bool clients, early, given;
	size_t nr_above;
	int fds[2];
};

static int look(void *ctx, const int *fds)
{
	struct seen *s = ctx;

	s->thread = pthread_self();
	s->clients = is_open(CLIENTS_FD);
	s->early = is_open(EARLY_FD);
	s->given = is_open(fds[0]);
	s->nr_above = nr_above(STDERR_FILENO);
	memcpy(s->fds, fds, sizeof(s->fds));
	return 4711;
}

static void only_what_is_given_is_there(void **state)
{
	const int none[2] = { null_at(CLIENTS_FD), -1 };
	struct seen here = { 0 }, there = { 0 };

	(void)state;
	null_at(EARLY_FD);
	/* Without the thread. */
	assert_int_equal(launch(look, &here, none, 2), 4711);
	assert_true(here.clients && here.early && pthread_equal(here.thread, pthread_self()));
	close(CLIENTS_FD);

	assert_int_equal(launch_open(), 0);
	null_at(CLIENTS_FD);
	assert_int_equal(launch(look, &there, none, 2), 4711);
	assert_false(pthread_equal(there.thread, pthread_self()));
	assert_false(there.clients || there.early);
	assert_true(there.given);
	assert_true(there.fds[0] >= LAUNCH_FD_MIN);
	assert_int_equal(there.fds[1], -1);
	/* Its end of the pair, what came, and the copy. */
	assert_int_equal(there.nr_above, 3);
	assert_true(is_open(CLIENTS_FD) && is_open(EARLY_FD));

	/* Nothing stays there. */
	there.nr_above = 0;
	assert_int_equal(launch(look, &there, (int[]){ -1, -1 }, 2), 4711);
	assert_int_equal(there.nr_above, 1);
	close(CLIENTS_FD);
	close(EARLY_FD);
}

static void programs_have_their_descriptors(void **state)
{
	char sh[] = "sh", c[] = "-c";
	/* SIGINT ends it only where it is not ignored any more. */
	char text[] = "read line <&5; "
		      "for i in 0 1 2 3 4 5 6 16 17 18 19; do "
		      "[ ! -e /proc/$$/fd/$i ] || line=\"$line $i\"; done; "
		      "echo \"$line\" >&3; kill -INT $$; sleep 9";
	char *const argv[] = { sh, c, text, NULL };
	int in[2], out[2], status;
	char answer[100] = "";
	pid_t pid;

	(void)state;
	signal(SIGINT, SIG_IGN);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	assert_int_equal(write(in[1], "hello\n", 6), 6);
	pid = launch_program("/bin/sh", argv, (int[]){ out[1], -1, in[0] }, 3, 3);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
	signal(SIGINT, SIG_DFL);
	assert_true(read(out[0], answer, sizeof(answer) - 1) > 0);
	assert_string_equal(answer, "hello 0 1 2 3 5\n");
	for (int i = 0; i < 2; i++) {
		close(in[i]);
		close(out[i]);
	}
}

static void what_cannot_be_started_is_told(void **state)
{
	char name[] = "helper";
	char *const argv[] = { name, NULL };
	int many[LAUNCH_NR_FDS + 1] = { 0 };

	(void)state;
	assert_int_equal(launch_program("/nowhere/helper", argv, NULL, 0, 0), -ENOENT);
	assert_int_equal(launch_program("/bin/true", argv, many, LAUNCH_NR_FDS + 1, 0), -E2BIG);
	/* One of them would be run over. */
	assert_int_equal(launch_program("/bin/true", argv, many, 2, LAUNCH_FD_MIN - 1), -E2BIG);
}

static void *start_some(void *bad)
{
	char name[] = "true";
	char *const argv[] = { name, NULL };

	for (int i = 0; i < 20; i++) {
		pid_t pid = launch_program("/bin/true", argv, (int[]){ STDIN_FILENO }, 1, 4);
		int status = -1;

		if (pid <= 0 || waitpid(pid, &status, 0) != pid || status)
			*(bool *)bad = true;
	}
	return NULL;
}

static void all_threads_may_start_programs(void **state)
{
	pthread_t ids[4];
	bool bad[4] = { 0 };

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&ids[i], NULL, start_some, &bad[i]), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(ids[i], NULL);
		assert_false(bad[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_given_is_there),
		cmocka_unit_test(programs_have_their_descriptors),
		cmocka_unit_test(what_cannot_be_started_is_told),
		cmocka_unit_test(all_threads_may_start_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
