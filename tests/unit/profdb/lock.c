/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

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
	/* Whoever can open the file could hold the lock for ever. */
	assert_int_equal(stat(scratch_path(*state, ".lock-box"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	profdb_close(a);
	assert_int_equal(stat(scratch_path(*state, ".lock-box"), &st), -1);
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
	assert_false(profdb_lock_held(db, "box"));
	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	profdb_close(db);
	close(ready[0]);
	close(ready[1]);
	close(hold[0]);
	close(hold[1]);
}

/* ---- other machines: they share nothing with us but the file --------------------------------- */

static const char *touched_while_asleep, *removed_while_asleep;
static long slept_ms;

int __wrap_nanosleep(const struct timespec *t, struct timespec *left);

int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
	(void)left;
	slept_ms += t->tv_sec * 1000 + t->tv_nsec / 1000000;
	if (touched_while_asleep && slept_ms > 9000) {
		const struct timespec at[2] = { { .tv_sec = 4711 }, { .tv_sec = 4711 } };

		utimensat(AT_FDCWD, touched_while_asleep, at, 0);
	}
	if (removed_while_asleep && slept_ms > 9000)
		unlink(removed_while_asleep);
	return 0;
}

static const char theirs[] = "host far.example.org pid 12 machine 0123 boot 4567\n";

static void test_another_machine_lives(void **state)
{
	struct profdb *db = scratch_open(*state, true);
	struct base_err err = { 0 };

	scratch_write(*state, ".lock-box", theirs, strlen(theirs));
	assert_true(profdb_lock_held(db, "box"));
	slept_ms = 0;
	touched_while_asleep = scratch_path(*state, ".lock-box");
	assert_int_equal(profdb_lock(db, "box", &err), -DCPI_EBUSY);
	assert_non_null(strstr(err.text, "host 'far.example.org', pid 12"));
	touched_while_asleep = NULL;
	assert_in_range(slept_ms, 9000, 11000);
	/* Or gives it back. */
	slept_ms = 0;
	removed_while_asleep = scratch_path(*state, ".lock-box");
	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	removed_while_asleep = NULL;
	assert_in_range(slept_ms, 9000, 11000);
	profdb_close(db);
}

static void test_another_machine_is_dead(void **state)
{
	struct profdb *db = scratch_open(*state, true);

	scratch_write(*state, ".lock-box", theirs, strlen(theirs));
	slept_ms = 0;
	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	/* Longer than an owner waits between two touches, four times over; and once more, to see
	 * who won. */
	assert_in_range(slept_ms, 40000, 50000);
	profdb_close(db);
	/* Nonsense is somebody's too. */
	scratch_write(*state, ".lock-box", "", 0);
	slept_ms = 0;
	assert_int_equal(profdb_lock(db = scratch_open(*state, false), "box", NULL), 0);
	assert_true(slept_ms > 40000);
	profdb_close(db);
}

/* Machines of one platform: each has a lock and a folder of its own, each machine one alone. */
static void test_members_of_a_platform(void **state)
{
	struct profdb *a = scratch_open(*state, true), *b = scratch_open(*state, false);
	char name[PROFDB_PLATFORM_MAX + 1] = "box";
	struct base_err err = { 0 };

	scratch_write(*state, ".lock-box", theirs, strlen(theirs));
	slept_ms = 0;
	touched_while_asleep = scratch_path(*state, ".lock-box");
	assert_int_equal(profdb_lock_member(a, name, &err), 0);
	touched_while_asleep = NULL;
	assert_string_equal(name, "box+2");
	assert_int_equal(err.code, 0);
	/* The first one becomes free, and this machine has the second. */
	unlink(scratch_path(*state, ".lock-box"));
	strcpy(name, "box");
	assert_int_equal(profdb_lock_member(b, name, &err), -DCPI_EBUSY);
	assert_non_null(strstr(err.text, "platform 'box+2'"));
	profdb_close(a);
	assert_int_equal(profdb_lock_member(b, name, NULL), 0);
	assert_string_equal(name, "box");
	profdb_close(b);
}

static void test_names_of_members(void **state)
{
	(void)state;
	assert_true(profdb_platform_has("web", "web") && profdb_platform_has("web", "web+2"));
	assert_true(profdb_platform_has("web", "web+10") && profdb_platform_has("web+2", "web+2"));
	assert_false(profdb_platform_has("web", "web2") || profdb_platform_has("web", "web+1") ||
		     profdb_platform_has("web", "web+02") || profdb_platform_has("web", "web+") ||
		     profdb_platform_has("we", "web+2") || profdb_platform_has("web+2", "web"));
}

struct announced {
	char what[400];
	unsigned int nr, slept_ms;
};

static void note_watching(void *ctx, const char *text)
{
	struct announced *t = ctx;

	snprintf(t->what, sizeof(t->what), "%s", strrchr(text, '/') + 1);
	t->slept_ms = slept_ms;
	t->nr++;
}

/* Who waits is told before, whatever he waits for. */
static void test_who_is_watched(void **state)
{
	struct profdb *db = scratch_open(*state, true);
	struct announced t = { .nr = 0 };

	profdb_set_watching(db, note_watching, &t);
	assert_int_equal(profdb_lock(db, "other", NULL), 0);
	assert_int_equal(t.nr, 0);
	profdb_close(db);
	db = scratch_open(*state, false);
	profdb_set_watching(db, note_watching, &t);
	scratch_write(*state, ".lock-box", theirs, strlen(theirs));
	slept_ms = 0;
	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	profdb_close(db);
	assert_int_equal(t.nr, 1);
	assert_string_equal(t.what, ".lock-box' was not given back, and names host "
				    "'far.example.org', pid 12: watching it for up to 47 s, as "
				    "another machine may hold it");
	assert_int_equal(t.slept_ms, 0);
	scratch_write(*state, ".lock-.gc", "", 0);
	db = scratch_open(*state, false);
	profdb_set_watching(db, note_watching, &t);
	assert_int_equal(profdb_keep(db, NULL), 0);
	assert_int_equal(t.nr, 2);
	assert_non_null(strstr(t.what, ".lock-.gc' was not given back, and names nobody: "));
	profdb_close(db);
}

static int pread_error;

ssize_t __real_pread(int fd, void *to, size_t len, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t len, off_t at);
ssize_t __wrap_pread(int fd, void *to, size_t len, off_t at)
{
	if (!pread_error)
		return __real_pread(fd, to, len, at);
	errno = pread_error;
	return -1;
}

/* Whose it is cannot be told: nothing is committed then, and nobody is accused. */
static void test_a_lock_that_cannot_be_read(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct base_err err = { 0 };
	char why[128];

	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	scratch_put(db, "prog", 1, 1);
	pread_error = EIO;
	assert_int_equal(profdb_flush_commit(db, &err), -EIO);
	pread_error = 0;
	snprintf(why, sizeof(why), ".lock-box': %s", strerror(EIO));
	assert_non_null(strstr(err.text, why));
	assert_string_equal(err.hint, "");
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	profdb_close(db);
}

/* Taken while we were suspended: nothing is committed any more, and the other's file stays. */
static void test_a_lock_that_was_taken(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct base_err err = { 0 };
	struct stat st;

	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	scratch_put(db, "prog", 1, 1);
	scratch_write(*state, ".lock-box", theirs, strlen(theirs));
	assert_int_equal(profdb_flush_commit(db, &err), -DCPI_EBUSY);
	assert_non_null(strstr(err.text, "not ours any more"));
	profdb_flush_abort(db);
	assert_int_equal(stat(scratch_path(*state, SCRATCH_EPOCH "/box/prog.file.ab01"), &st), -1);
	profdb_close(db);
	assert_int_equal(stat(scratch_path(*state, ".lock-box"), &st), 0);
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
	struct base_err err = { 0 };

	scratch_write(*state, "victim", "precious", 8);
	assert_int_equal(symlink("victim", scratch_path(*state, ".lock-box")), 0);
	assert_int_equal(profdb_lock(db, "box", NULL), -ELOOP);
	assert_int_equal(mkfifo(scratch_path(*state, ".lock-pipe"), 0600), 0);
	assert_int_equal(profdb_lock(db, "pipe", &err), -EINVAL);
	assert_non_null(strstr(err.text, "/.lock-pipe': not a regular file"));
	profdb_close(db);
}

/* What root leaves, killed (sudo dcpitar -x, dcpid -gc), must not lock out the daemon whose
 * database it is. */
static void test_the_file_is_the_databases_owners(void **state)
{
	struct profdb *db;
	struct stat st;
	int fd;

	scratch_give(*state);
	db = scratch_open(*state, true);
	assert_int_equal(profdb_keep(db, NULL), 0);
	scratch_is_given(*state, ".lock-.gc");
	assert_int_equal(stat(scratch_path(*state, ".lock-.gc"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	fd = profdb_dyn_lock(db, true, 0, NULL);
	assert_true(fd >= 0);
	close(fd);
	scratch_is_given(*state, ".lock.dyn");
	profdb_close(db);
}

/* Root is the first to need it; that of an earlier version is root's. */
static void test_whose_the_indexes_are(void **state)
{
	struct profdb *db;

	scratch_give(*state);
	db = scratch_open(*state, true);
	assert_true(profdb_index_fd(db) >= 0);
	scratch_is_given(*state, "index");
	profdb_close(db);
	assert_int_equal(chown(scratch_path(*state, "index"), 0, 0), 0);
	db = scratch_open(*state, false);
	assert_true(profdb_index_fd(db) >= 0);
	scratch_is_given(*state, "index");
	profdb_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_one_writer_per_platform),
		scratch_test(test_a_killed_owner_owns_nothing),
		scratch_test(test_another_machine_lives),
		scratch_test(test_another_machine_is_dead),
		scratch_test(test_members_of_a_platform),
		cmocka_unit_test(test_names_of_members),
		scratch_test(test_who_is_watched),
		scratch_test(test_a_lock_that_cannot_be_read),
		scratch_test(test_a_lock_that_was_taken),
		scratch_test(test_platform_names),
		scratch_test(test_a_link_in_the_way),
		scratch_test(test_the_file_is_the_databases_owners),
		scratch_test(test_whose_the_indexes_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
