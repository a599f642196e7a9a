/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sys/wait.h>

#include "heartbeats.h"
#include "scratch.h"

/* Whether the folder of this inode was synced. */
static ino_t expected;
static bool synced;

int __real_base_sync_dir(int fd);
int __wrap_base_sync_dir(int fd);
int __wrap_base_sync_dir(int fd)
{
	struct stat st;

	synced = synced || (fstat(fd, &st) == 0 && st.st_ino == expected);
	return __real_base_sync_dir(fd);
}

#define PROFILE SCRATCH_EPOCH "/box/prog.file.ab01"

static void test_places(void **state)
{
	static const char *const good[] = {
		PROFILE, /* NOLINT(bugprone-suspicious-missing-comma): a macro of two parts */
		"202611200754/a.b-c/libc.so.6.file.ab~1",
		"20261120075430/box/prog.file.ab",
		"dyn/hello.1.dyn",
		"kernel/vmlinux-6.1-ab.elf",
		"costs/ab01.cycles",
		"images/.build-id/ab/0123",
		SCRATCH_EPOCH "/box/callpaths",
		SCRATCH_EPOCH "/box/workloads",
	};
	static const char *const bad[] = {
		"",
		"x",
		"dcpi-database",
		"hosts",
		"/etc/passwd",
		"dyn/../x.dyn",
		"dyn/a/b.dyn",
		"dyn/.dyn",
		"dyn/x",
		"dyn/",
		"kernel/.lock",
		"kernel/a b",
		"index/x.sym",
		"202611200754/box/.commit",
		"202611200754/box/.open",
		"202611200754/.turned",
		"202611200754/box/a/b",
		"202611200754/../x.file.ab",
		"202699990754/box/prog.file.ab",
		"20261120075/box/prog.file.ab",
		"20261120075460/box/prog.file.ab",
		"2026112007543/box/prog.file.ab",
		"images/x",
		"images/.build-id/../0123",
		"images/.build-id/ab/../x",
		"images/.build-id/AB/0123",
		"images/.build-id/ab/012",
		"images/.build-id/ab/",
		"images/.build-id/ab",
	};
	struct profdb_place p;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (profdb_place_parse(good[i], &p) < 0)
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (profdb_place_parse(bad[i], &p) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
	assert_int_equal(profdb_place_parse(PROFILE, &p), 0);
	assert_int_equal(p.part, PROFDB_PART_PROFILE);
	assert_string_equal(p.epoch, SCRATCH_EPOCH);
	assert_string_equal(p.platform, "box");
	assert_string_equal(p.name, "prog.file.ab01");
	assert_int_equal(profdb_place_parse(PROFILE ".vp-addr.values", &p), 0);
	assert_int_equal(p.part, PROFDB_PART_VALUES);
	assert_int_equal(profdb_place_parse(SCRATCH_EPOCH "/box/callpaths", &p), 0);
	assert_int_equal(p.part, PROFDB_PART_CALLPATHS);
	assert_int_equal(profdb_place_parse(SCRATCH_EPOCH "/box/workloads", &p), 0);
	assert_int_equal(p.part, PROFDB_PART_WORKLOADS);
	assert_string_equal(p.epoch, SCRATCH_EPOCH);
}

static void sum_of(const char *text, uint8_t sum[32])
{
	struct base_sha256 s;

	base_sha256_init(&s);
	base_sha256_add(&s, text, strlen(text));
	base_sha256_end(&s, sum);
}

/* What profdb_import_file returned. */
static int import(struct profdb_import *i, const char *path, const char *text)
{
	struct base_err err = { 0 };
	struct base_file f;
	uint8_t sum[32];
	int r;

	sum_of(text, sum);
	r = profdb_import_file(i, path, sum, 0640, &f, &err);
	if (r < 0)
		fail_msg("%s", err.text);
	if (r)
		return r;
	assert_int_equal(base_write_all(f.fd, text, strlen(text)), 0);
	assert_int_equal(base_file_commit(&f, &err), 0);
	return 0;
}

static void has(const char *dir, const char *name, const char *text)
{
	struct base_buf b = { 0 };

	if (base_file_read(AT_FDCWD, scratch_path(dir, name), 4096, &b, NULL) < 0)
		fail_msg("no %s", name);
	assert_int_equal(b.len, strlen(text));
	assert_memory_equal(b.data, text, b.len);
	base_buf_release(&b);
}

static struct profdb_import *begin(struct profdb *db)
{
	static const char *const paths[] = { PROFILE, "dyn/hello.dyn" };
	struct base_err err = { 0 };
	struct profdb_import *i;

	if (profdb_import_begin(db, paths, 2, &i, &err) < 0)
		fail_msg("%s", err.text);
	return i;
}

static void test_profiles_come_last(void **state)
{
	struct profdb *db = scratch_open(*state, true);
	struct profdb_import *i = begin(db);

	assert_int_equal(import(i, PROFILE, "profile"), 0);
	assert_int_equal(import(i, PROFILE ".values.values", "secret"), 0);
	assert_int_equal(import(i, "dyn/hello.dyn", "code"), 0);
	assert_int_equal(import(i, "images/.build-id/ab/0123", "elf"), 0);
	has(*state, "dyn/hello.dyn", "code");
	has(*state, "images/.build-id/ab/0123", "elf");
	assert_int_not_equal(access(scratch_path(*state, SCRATCH_EPOCH), F_OK), 0);
	assert_int_equal(profdb_import_commit(i, NULL), 0);
	profdb_import_end(i);
	has(*state, PROFILE, "profile");
	profdb_close(db);
}

/* The rename into the epoch's folder lasts. */
static void test_is_synced(void **state)
{
	struct profdb *db = scratch_open(*state, true);
	struct profdb_import *i = begin(db);
	struct stat st;

	assert_int_equal(mkdir(scratch_path(*state, SCRATCH_EPOCH), 0755), 0);
	assert_int_equal(stat(scratch_path(*state, SCRATCH_EPOCH), &st), 0);
	expected = st.st_ino;
	assert_int_equal(import(i, PROFILE, "profile"), 0);
	assert_false(synced);
	assert_int_equal(profdb_import_commit(i, NULL), 0);
	assert_true(synced);
	profdb_import_end(i);
	profdb_close(db);
}

static void test_given_up(void **state)
{
	struct profdb *db = scratch_open(*state, true);
	struct profdb_import *i = begin(db);
	char waiting[64];

	snprintf(waiting, sizeof(waiting), ".import-%ld", (long)getpid());
	assert_int_equal(import(i, PROFILE, "profile"), 0);
	assert_int_equal(access(scratch_path(*state, waiting), F_OK), 0);
	profdb_import_end(i);
	assert_int_not_equal(access(scratch_path(*state, waiting), F_OK), 0);
	assert_int_not_equal(access(scratch_path(*state, SCRATCH_EPOCH), F_OK), 0);
	profdb_close(db);
}

static bool can_remove(const char *dir)
{
	struct profdb *db = scratch_open(dir, false);
	bool done = profdb_epoch_remove(db, SCRATCH_EPOCH, NULL) == 0;

	profdb_close(db);
	return done;
}

/* Of root's archive, in another user's database: he removes it when it is old. */
static void test_for_another_user(void **state)
{
	struct profdb_import *i;
	struct profdb *db;
	struct stat st;

	scratch_give(*state);
	db = scratch_open(*state, true);
	i = begin(db);
	assert_int_equal(import(i, PROFILE, "profile"), 0);
	assert_int_equal(import(i, PROFILE ".values.values", "secret"), 0);
	assert_int_equal(import(i, "dyn/hello.dyn", "code"), 0);
	assert_int_equal(import(i, "images/.build-id/ab/0123", "elf"), 0);
	assert_int_equal(profdb_import_commit(i, NULL), 0);
	profdb_import_end(i);
	profdb_close(db);
	scratch_is_given(*state, SCRATCH_EPOCH);
	scratch_is_given(*state, SCRATCH_EPOCH "/box");
	scratch_is_given(*state, PROFILE);
	scratch_is_given(*state, "dyn");
	scratch_is_given(*state, "dyn/hello.dyn");
	scratch_is_given(*state, "images/.build-id/ab");
	scratch_is_given(*state, "images/.build-id/ab/0123");
	assert_int_equal(stat(scratch_path(*state, PROFILE ".values.values"), &st), 0);
	assert_int_equal(st.st_uid, 0);
	scratch_as_owner(*state, can_remove);
	assert_int_not_equal(access(scratch_path(*state, SCRATCH_EPOCH), F_OK), 0);
}

/* Whoever keeps house next removes what one was killed at, whose number may be ours now. */
static void test_killed(void **state)
{
	char left[64], ours[64];
	struct profdb *db;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		import(begin(scratch_open(*state, true)), PROFILE, "profile");
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	snprintf(left, sizeof(left), ".import-%ld", (long)pid);
	snprintf(ours, sizeof(ours), ".import-%ld", (long)getpid());
	assert_int_equal(rename(scratch_path(*state, left), scratch_path(*state, ours)), 0);
	db = scratch_open(*state, false);
	assert_int_equal(profdb_keep(db, NULL), 0);
	assert_int_not_equal(access(scratch_path(*state, ours), F_OK), 0);
	profdb_import_end(begin(db));
	profdb_close(db);
}

/* An extraction may take long: other machines see that we live, and who takes the lock all the same
 * is not disturbed. */
static void test_keeps_its_lock(void **state)
{
	static const char theirs[] = "host other pid 1 machine m boot b\n";
	struct profdb *db = scratch_open(*state, true);
	struct profdb_import *i = begin(db);
	struct base_err err = { 0 };

	nr_heartbeats = 0;
	assert_int_equal(import(i, PROFILE, "profile"), 0);
	assert_int_equal(import(i, "dyn/hello.dyn", "code"), 0);
	assert_int_equal(nr_heartbeats, 2);
	scratch_write(*state, ".lock-.gc", theirs, strlen(theirs));
	assert_int_equal(profdb_import_commit(i, &err), -DCPI_EBUSY);
	assert_non_null(strstr(err.text, "not ours any more"));
	profdb_import_end(i);
	assert_int_not_equal(access(scratch_path(*state, SCRATCH_EPOCH), F_OK), 0);
	profdb_close(db);
}

static void test_no_epoch_twice(void **state)
{
	static const char *const paths[] = { "202611200753/box/a.file.ab01", PROFILE };
	struct profdb *db = scratch_writer(*state);
	struct profdb_import *i;
	struct base_err err = { 0 };

	profdb_close(db);
	db = scratch_open(*state, false);
	assert_int_equal(profdb_import_begin(db, paths, 2, &i, &err), -EEXIST);
	assert_non_null(strstr(err.text, SCRATCH_EPOCH "/box"));
	assert_true(err.hint[0]);
	profdb_close(db);
}

static void test_names_taken(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct stat st;
	struct profdb *db = scratch_open(*state, true);
	struct profdb_import *i = begin(db);

	scratch_write(*state, "dyn/hello.dyn", "grown", 5);
	scratch_write(*state, "kernel/vmlinux.code", "theirs", 6);
	assert_int_equal(utimensat(AT_FDCWD, scratch_path(*state, "dyn/hello.dyn"), old, 0), 0);
	assert_int_equal(import(i, "dyn/hello.dyn", "grown"), 1);
	/* Nobody removes it before the profile that refers to it is there. */
	assert_int_equal(stat(scratch_path(*state, "dyn/hello.dyn"), &st), 0);
	assert_int_not_equal(st.st_mtime, 1);
	/* Another pseudo-image of that name: both are kept. SHA-256 of "code": 5694d08a2e53ffca….
	 */
	assert_int_equal(import(i, "dyn/hello.dyn", "code"), 0);
	has(*state, "dyn/hello.dyn", "grown");
	has(*state, "dyn/hello-5694d08a2e53ffca.dyn", "code");
	assert_int_equal(import(i, "dyn/hello.dyn", "code"), 1);
	assert_int_equal(import(i, "kernel/vmlinux.code", "ours"), 1);
	has(*state, "kernel/vmlinux.code", "theirs");
	profdb_import_end(i);
	profdb_close(db);
}

static void plant(const char *dir, const char *name)
{
	assert_int_equal(symlink(scratch_path(dir, "victim"), scratch_path(dir, name)), 0);
}

/* Who owns the database may have planted links that lead out of it, and we may be root. */
static void test_through_no_link(void **state)
{
	static const char *const files[] = {
		"kernel/vmlinux.code",
		"costs/ab01.cycles",
		"images/.build-id/ab/0123",
	};
	struct profdb *db = scratch_open(*state, true);
	struct profdb_import *i = begin(db);
	struct base_err err = { 0 };
	struct base_file f;
	uint8_t sum[32];

	sum_of("code", sum);
	assert_int_equal(mkdir(scratch_path(*state, "victim"), 0700), 0);
	assert_int_equal(mkdir(scratch_path(*state, "images"), 0700), 0);
	assert_int_equal(mkdir(scratch_path(*state, "images/.build-id"), 0700), 0);
	assert_int_equal(rmdir(scratch_path(*state, "kernel")), 0);
	plant(*state, "kernel");
	plant(*state, "costs");
	plant(*state, "images/.build-id/ab");
	plant(*state, SCRATCH_EPOCH);
	for (size_t n = 0; n < sizeof(files) / sizeof(files[0]); n++) {
		err = (struct base_err){ 0 };
		assert_int_equal(profdb_import_file(i, files[n], sum, 0640, &f, &err), -ENOTDIR);
		assert_non_null(strstr(err.hint, "links are not followed"));
	}
	assert_int_equal(import(i, PROFILE, "profile"), 0);
	assert_int_equal(profdb_import_commit(i, &err), -ENOTDIR);
	profdb_import_end(i);
	/* There is nothing in it. */
	assert_int_equal(rmdir(scratch_path(*state, "victim")), 0);
	profdb_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),	    scratch_test(test_profiles_come_last),
		scratch_test(test_given_up),	    scratch_test(test_for_another_user),
		scratch_test(test_killed),	    scratch_test(test_keeps_its_lock),
		scratch_test(test_no_epoch_twice),  scratch_test(test_names_taken),
		scratch_test(test_through_no_link), scratch_test(test_is_synced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
