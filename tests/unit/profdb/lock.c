/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "scratch.h"

static void test_one_writer_per_platform(void **state)
{
	struct profdb *a = scratch_open(*state, true), *b = scratch_open(*state, false);
	struct base_err err = { 0 };
	char pid[32];
	struct stat st;

	assert_int_equal(profdb_lock(a, "box", NULL), 0);
	assert_int_equal(profdb_lock(a, "box", NULL), -EINVAL);
	assert_int_equal(profdb_lock(b, "box", &err), -DCPI_EBUSY);
	snprintf(pid, sizeof(pid), "pid %ld", (long)getpid());
	assert_non_null(strstr(err.text, pid));
	assert_non_null(strstr(err.text, "'box'"));
	assert_true(err.hint[0]);
	assert_int_equal(profdb_lock(b, "other", NULL), 0);
	profdb_close(b);
	profdb_close(a);
	/* Whoever can open the file could hold the lock for ever. */
	assert_int_equal(stat(scratch_path(*state, ".lock-box"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	a = scratch_open(*state, false);
	assert_int_equal(profdb_lock(a, "box", NULL), 0);
	profdb_close(a);
}

static void test_a_killed_owner_owns_nothing(void **state)
{
	struct profdb *db = scratch_open(*state, true);
	int ready[2], hold[2];
	char c;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(hold), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct profdb *mine = scratch_open(*state, false);

		if (profdb_lock(mine, "box", NULL) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		/* Ends with us, should nobody kill it. */
		close(hold[1]);
		_exit(read(hold[0], &c, 1) != 0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(profdb_lock(db, "box", NULL), -DCPI_EBUSY);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	profdb_close(db);
	close(ready[0]);
	close(ready[1]);
	close(hold[0]);
	close(hold[1]);
}

static void test_platform_names(void **state)
{
	static const char *const bad[] = { "", ".hidden", "..", "a/b", "a b", "a\nb" };
	struct profdb *db = scratch_open(*state, true);
	char name[PROFDB_PLATFORM_MAX + 2];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(profdb_lock(db, bad[i], NULL), -EINVAL);
	memset(name, 'x', sizeof(name));
	name[PROFDB_PLATFORM_MAX + 1] = '\0';
	assert_int_equal(profdb_lock(db, name, NULL), -EINVAL);
	name[PROFDB_PLATFORM_MAX] = '\0';
	assert_int_equal(profdb_lock(db, name, NULL), 0);
	profdb_close(db);
}

static void test_a_link_in_the_way(void **state)
{
	struct profdb *db = scratch_open(*state, true);

	scratch_write(*state, "victim", "precious", 8);
	assert_int_equal(symlink("victim", scratch_path(*state, ".lock-box")), 0);
	assert_int_equal(profdb_lock(db, "box", NULL), -ELOOP);
	assert_int_equal(mkfifo(scratch_path(*state, ".lock-pipe"), 0600), 0);
	profdb_lock(db, "pipe", NULL); /* whatever it says, it does not block */
	profdb_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_one_writer_per_platform),
		scratch_test(test_a_killed_owner_owns_nothing),
		scratch_test(test_platform_names),
		scratch_test(test_a_link_in_the_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
