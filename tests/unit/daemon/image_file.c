/* SPDX-License-Identifier: BSD-2-Clause */
/* A call that waits for the disk does not keep the main loop from emptying the rings. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pseudoimg.h"
#include "stand_ins.h"

static atomic_uint nr_meanwhile;

static void count(void *ctx)
{
	assert_ptr_equal(ctx, &nr_meanwhile);
	nr_meanwhile++;
}

static const struct pseudoimg_helper helper = { NULL, count, &nr_meanwhile };

struct work {
	bool waits; /* until it was called meanwhile */
	pthread_t thread;
	sigset_t blocked;
};

static int work(void *arg)
{
	struct work *w = arg;

	w->thread = pthread_self();
	pthread_sigmask(SIG_BLOCK, NULL, &w->blocked);
	for (int i = 0; w->waits && !nr_meanwhile && i < 10000; i++)
		usleep(1000);
	return -ENOSPC;
}

static void waiting(void **state)
{
	struct work w = { .waits = true };

	(void)state;
	assert_int_equal(image_file_wait(&helper, work, &w), -ENOSPC);
	assert_true(nr_meanwhile >= 1);
	assert_false(pthread_equal(w.thread, pthread_self()));
	/* Signals are for the main thread. */
	assert_int_equal(sigismember(&w.blocked, SIGTERM), 1);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &w.blocked), 0);
	assert_int_equal(sigismember(&w.blocked, SIGTERM), 0);
	/* Where nothing is to be done meanwhile, no thread is. */
	w.waits = false;
	assert_int_equal(image_file_wait(NULL, work, &w), -ENOSPC);
	assert_true(pthread_equal(w.thread, pthread_self()));
}

static void files(void **state)
{
	char dir[] = "/tmp/dcpi-image-file-XXXXXX";
	struct base_file file = { 0 };
	struct base_err err = { 0 };
	struct stat st;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(image_file_create(&file, fd, "x.dyn", &helper, NULL, &err), 0);
	assert_int_not_equal(fstatat(fd, "x.dyn", &st, 0), 0);
	assert_int_equal(image_file_commit(&file, &helper, &err), 0);
	assert_int_equal(fstatat(fd, "x.dyn", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(unlinkat(fd, "x.dyn", 0), 0);
	close(fd);
	rmdir(dir);
	assert_int_equal(image_file_create(&file, fd, "x.dyn", &helper, NULL, &err), -EBADF);
	assert_int_equal(err.code, -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(waiting), cmocka_unit_test(files) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
