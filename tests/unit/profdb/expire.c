/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "scratch.h"

/* What making a file fails with, until one is removed. */
static int no_room;

int __real_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...);
int __wrap_openat(int dir, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list args;

	if (flags & O_CREAT) {
		va_start(args, flags);
		mode = va_arg(args, mode_t);
		va_end(args);
		if (no_room) {
			errno = no_room;
			return -1;
		}
	}
	return __real_openat(dir, path, flags, mode);
}

int __real_unlinkat(int dir, const char *path, int flags);
int __wrap_unlinkat(int dir, const char *path, int flags);
int __wrap_unlinkat(int dir, const char *path, int flags)
{
	int r = __real_unlinkat(dir, path, flags);

	if (r == 0)
		no_room = 0;
	return r;
}

enum { DAY = 86400 };

static void touch(const char *dir, const char *name, int64_t at)
{
	const struct timespec times[2] = { { .tv_sec = at }, { .tv_sec = at } };

	assert_int_equal(utimensat(AT_FDCWD, scratch_path(dir, name), times, 0), 0);
}

/* An epoch of platform "box" with a file in it, written last at @at. */
static void make(const char *dir, const char *epoch, int64_t at)
{
	char name[64];

	mkdir(scratch_path(dir, epoch), 0755);
	snprintf(name, sizeof(name), "%s/.turned", epoch);
	scratch_write(dir, name, "", 0);
	snprintf(name, sizeof(name), "%s/box", epoch);
	mkdir(scratch_path(dir, name), 0755);
	snprintf(name, sizeof(name), "%s/box/prog.file.ab01", epoch);
	scratch_write(dir, name, "x", 1);
	snprintf(name, sizeof(name), "%s/box/.commit", epoch);
	scratch_write(dir, name, "x", 1);
	touch(dir, name, at);
}

static void note(void *ctx, const char *epoch)
{
	strcat(ctx, epoch);
	strcat(ctx, " ");
}

static void expires(struct profdb *db, bool dry_run, const char *want)
{
	char got[256] = "";
	struct base_err err = { 0 };

	if (profdb_epochs_expire(db, SCRATCH_NOW, dry_run, note, got, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(got, want);
}

static bool is_there(const char *dir, const char *name)
{
	return access(scratch_path(dir, name), F_OK) == 0;
}

static void test_old_ones_go(void **state)
{
	struct profdb *db = scratch_open(*state, true);
	int64_t old = SCRATCH_NOW - 8 * DAY;

	make(*state, "202611010000", old);
	make(*state, "202611020000", SCRATCH_NOW - 6 * DAY); /* written since */
	make(*state, "202611030000", old);
	make(*state, "202611140000", old); /* begun since */
	make(*state, "202611150000", old);
	make(*state, "202611160000", old);
	/* A link leads out of the database; the rest of a run that was killed. */
	scratch_write(*state, "precious", "x", 1);
	assert_int_equal(
		symlink("../../precious", scratch_path(*state, "202611010000/box/link.file.ab02")),
		0);
	mkdir(scratch_path(*state, ".gone-202610010000"), 0755);
	expires(db, true, "202611010000 202611030000 ");
	assert_true(is_there(*state, "202611010000/box/prog.file.ab01"));
	expires(db, false, "202611010000 202611030000 ");
	expires(db, false, "");
	assert_false(is_there(*state, "202611010000"));
	assert_false(is_there(*state, ".gone-202611010000"));
	assert_false(is_there(*state, ".gone-202610010000"));
	assert_true(is_there(*state, "202611020000/box/prog.file.ab01"));
	assert_true(is_there(*state, "precious"));
	profdb_close(db);
}

/* What makes room does not need any; it is alone again as soon as there is some. */
static void test_a_full_disk(void **state)
{
	struct profdb *db = scratch_open(*state, true), *other = scratch_open(*state, false);
	int64_t old = SCRATCH_NOW - 8 * DAY;
	struct base_err err = { 0 };

	for (char name[] = "202611010000"; name[7] < '9'; name[7]++)
		make(*state, name, old);
	no_room = ENOSPC;
	assert_int_equal(profdb_keep(other, NULL), -ENOSPC);
	expires(db, false, "202611010000 202611020000 202611030000 202611040000 202611050000 ");
	assert_int_equal(no_room, 0);
	assert_int_equal(profdb_keep(other, NULL), -DCPI_EBUSY);
	profdb_close(db);
	/* One alone; then somebody is at it. */
	db = scratch_open(*state, false);
	no_room = EDQUOT;
	assert_int_equal(profdb_epoch_remove(db, "202611060000", NULL), 0);
	assert_false(is_there(*state, "202611060000"));
	assert_int_equal(profdb_keep(other, NULL), 0);
	assert_int_equal(profdb_epoch_remove(db, "202611070000", &err), -DCPI_EBUSY);
	assert_non_null(strstr(err.text, "removes or joins"));
	assert_string_not_equal(err.hint, "");
	assert_true(is_there(*state, "202611070000"));
	profdb_close(other);
	profdb_close(db);
}

/* What can be made anew goes when it has not been for a week; nothing is followed. */
static void test_old_indexes_go(void **state)
{
	const struct timespec old[2] = { { .tv_sec = SCRATCH_NOW - 8 * DAY },
					 { .tv_sec = SCRATCH_NOW - 8 * DAY } };
	const struct timespec recent[2] = { { .tv_sec = SCRATCH_NOW - 6 * DAY },
					    { .tv_sec = SCRATCH_NOW - 6 * DAY } };
	struct profdb *db = scratch_open(*state, true);
	struct stat st;

	assert_int_equal(profdb_index_expire(db, SCRATCH_NOW), 0);
	assert_true(profdb_index_fd(db) >= 0);
	scratch_write(*state, "index/aa.sym", "x", 1);
	scratch_write(*state, "index/bb.sym", "x", 1);
	assert_int_equal(symlink("bb.sym", scratch_path(*state, "index/link.sym")), 0);
	assert_int_equal(utimensat(profdb_dir_fd(db), "index/aa.sym", old, 0), 0);
	assert_int_equal(utimensat(profdb_dir_fd(db), "index/bb.sym", recent, 0), 0);
	assert_int_equal(utimensat(profdb_dir_fd(db), "index/link.sym", old, AT_SYMLINK_NOFOLLOW),
			 0);
	assert_int_equal(profdb_index_expire(db, SCRATCH_NOW), 1);
	assert_false(is_there(*state, "index/aa.sym"));
	assert_true(is_there(*state, "index/bb.sym"));
	assert_true(is_there(*state, "index/link.sym"));
	/* As many as it takes, in blocks; the link is none of ours. */
	scratch_write(*state, "index/cc.sym", "x", 1);
	assert_int_equal(profdb_index_shrink(db, 0, false), 0);
	assert_int_equal(profdb_index_shrink(db, 4097, true), 8192);
	assert_int_equal(profdb_index_shrink(db, 4096, false), 4096);
	assert_true(is_there(*state, "index/bb.sym") != is_there(*state, "index/cc.sym"));
	assert_int_equal(profdb_index_shrink(db, UINT64_MAX, false), 4096);
	assert_int_equal(profdb_index_shrink(db, UINT64_MAX, false), 0);
	assert_int_equal(fstatat(profdb_dir_fd(db), "index/link.sym", &st, AT_SYMLINK_NOFOLLOW), 0);
	profdb_close(db);
}

static void note_left(void *ctx, const char *text)
{
	strcat(ctx, strstr(text, "/.gone-"));
}

static bool can_keep_house(const char *dir)
{
	static const char want[] = "/.gone-202610020000' and 1 more: Permission denied; ";
	struct profdb *db = scratch_open(dir, false);
	char said[1024] = "";

	profdb_set_watching(db, note_left, said);
	if (profdb_keep(db, NULL) < 0 || strncmp(said, want, strlen(want)) != 0)
		return false;
	profdb_close(db);
	return !is_there(dir, ".gone-202610010000") && is_there(dir, ".gone-202610020000/file");
}

/* What is another user's stays, and is told; the rest goes. */
static void test_what_may_not_be_removed(void **state)
{
	scratch_give(*state);
	profdb_close(scratch_open(*state, true));
	for (char name[] = ".gone-202610010000"; name[13] < '4'; name[13]++) {
		char file[64];

		snprintf(file, sizeof(file), "%s/file", name);
		assert_int_equal(mkdir(scratch_path(*state, name), 0755), 0);
		scratch_write(*state, file, "", 0);
	}
	assert_int_equal(
		chown(scratch_path(*state, ".gone-202610010000"), SCRATCH_OWNER, SCRATCH_GROUP), 0);
	scratch_as_owner(*state, can_keep_house);
}

static void test_the_newest_and_open_ones_stay(void **state)
{
	struct profdb *db = scratch_open(*state, true), *daemon;
	int64_t old = SCRATCH_NOW - 8 * DAY;

	make(*state, "202610010000", old);
	make(*state, "202610020000", old);
	make(*state, "202610030000", old);
	expires(db, false, "");
	make(*state, "202610040000", old);
	/* A daemon is in the oldest, and has had nothing to write for a week. */
	scratch_write(*state, "202610010000/box/.open", "", 0);
	touch(*state, "202610010000/box/.commit", old);
	daemon = scratch_open(*state, false);
	assert_int_equal(profdb_lock(daemon, "box", NULL), 0);
	expires(db, false, "");
	profdb_close(daemon);
	expires(db, false, "202610010000 ");
	profdb_close(db);
}

/* Another machine took us for dead, and keeps house now. */
static void test_a_lost_lock(void **state)
{
	static const char theirs[] = "host other pid 1 machine m boot b\n";
	struct profdb *db = scratch_open(*state, true);
	struct base_err err = { 0 };

	make(*state, "202611010000", SCRATCH_NOW - 8 * DAY);
	assert_int_equal(profdb_keep(db, NULL), 0);
	scratch_write(*state, ".lock-.gc", theirs, strlen(theirs));
	assert_int_equal(profdb_epoch_remove(db, "202611010000", &err), -DCPI_EBUSY);
	assert_non_null(strstr(err.text, "not ours any more"));
	assert_true(is_there(*state, "202611010000"));
	profdb_close(db);
	assert_true(is_there(*state, ".lock-.gc"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_old_ones_go),
		scratch_test(test_a_full_disk),
		scratch_test(test_old_indexes_go),
		scratch_test(test_what_may_not_be_removed),
		scratch_test(test_the_newest_and_open_ones_stay),
		scratch_test(test_a_lost_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
