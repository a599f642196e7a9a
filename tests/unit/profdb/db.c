/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "scratch.h"

static int try_open(const char *path, bool create, struct base_err *err)
{
	struct profdb *db = NULL;
	int r;

	*err = (struct base_err){ 0 };
	r = profdb_open(path, create, &db, err);
	assert_true((r < 0) == (db == NULL));
	assert_true((r < 0) == (err->code < 0));
	profdb_close(db);
	return r;
}

static void test_makes_and_finds(void **state)
{
	const char *path = scratch_path(*state, "db");
	struct base_err err;
	struct profdb *db;
	struct stat st;
	char **epochs;

	assert_int_equal(try_open(path, false, &err), -ENOENT);
	assert_non_null(strstr(err.hint, "DCPIDB"));
	assert_int_equal(try_open(path, true, &err), 0);
	assert_int_equal(try_open(path, true, &err), 0);
	db = scratch_open(path, false);
	assert_string_equal(profdb_path(db), path);
	assert_int_equal(fstatat(profdb_dir_fd(db), "dyn", &st, 0), 0);
	assert_true(profdb_dyn_fd(db) >= 0);
	assert_int_equal(profdb_dyn_fd(db), profdb_dyn_fd(db));
	assert_true(profdb_kernel_fd(db) >= 0);
	epochs = profdb_epochs(db, NULL);
	assert_non_null(epochs);
	assert_null(epochs[0]);
	free(epochs);
	profdb_close(db);
	profdb_close(NULL);
}

static void test_an_empty_folder_becomes_one(void **state)
{
	struct base_err err;

	assert_int_equal(try_open(*state, false, &err), -DCPI_ENOTDB);
	assert_int_equal(mkdir(scratch_path(*state, "lost+found"), 0700), 0);
	scratch_write(*state, ".tmp-1-0-x", "", 0);
	assert_int_equal(try_open(*state, true, &err), 0);
	assert_int_equal(try_open(*state, false, &err), 0);
}

static void test_other_folders_are_not_touched(void **state)
{
	struct base_err err;
	struct stat st;

	scratch_write(*state, "precious", "x", 1);
	assert_int_equal(try_open(*state, true, &err), -DCPI_ENOTDB);
	assert_non_null(strstr(err.hint, "empty"));
	assert_int_equal(try_open(*state, false, &err), -DCPI_ENOTDB);
	assert_int_equal(stat(scratch_path(*state, "dyn"), &st), -1);
	assert_int_equal(stat(scratch_path(*state, "dcpi-database"), &st), -1);
	assert_int_equal(try_open(scratch_path(*state, "precious"), false, &err), -ENOTDIR);
	assert_int_equal(try_open(scratch_path(*state, "precious"), true, &err), -ENOTDIR);
	assert_int_equal(try_open(scratch_path(*state, "no/where"), true, &err), -ENOENT);
}

static void test_an_epoch_is_proof_enough(void **state)
{
	struct base_err err;
	struct profdb *db;

	scratch_write(*state, "README", "x", 1);
	assert_int_equal(mkdir(scratch_path(*state, "2026112007"), 0700), 0);
	assert_int_equal(try_open(*state, false, &err), -DCPI_ENOTDB);
	assert_int_equal(mkdir(scratch_path(*state, SCRATCH_EPOCH), 0700), 0);
	db = scratch_open(*state, false);
	assert_int_equal(profdb_dyn_fd(db), -ENOENT);
	profdb_close(db);
	assert_int_equal(try_open(*state, true, &err), 0);
}

static void test_a_newer_layout_is_refused(void **state)
{
	struct base_err err;

	scratch_write(*state, "dcpi-database", "dcpi-database 2\n", 16);
	assert_int_equal(try_open(*state, false, &err), -DCPI_EVERSION);
	assert_int_equal(try_open(*state, true, &err), -DCPI_EVERSION);
}

/* Whose writes, and removals, would be somebody else's. */
static void test_folders_are_no_links(void **state)
{
	static const char *const names[] = { "dyn", "kernel" };
	struct profdb *db = scratch_writer(*state);
	struct base_err err;

	assert_int_equal(mkdir(scratch_path(*state, "elsewhere"), 0700), 0);
	assert_int_equal(symlink("elsewhere", scratch_path(*state, "index")), 0);
	assert_true(profdb_index_fd(db) < 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_int_equal(rmdir(scratch_path(*state, names[i])), 0);
		assert_int_equal(symlink("elsewhere", scratch_path(*state, names[i])), 0);
		assert_int_equal(try_open(*state, true, &err), -ENOTDIR);
		assert_non_null(strstr(err.text, names[i]));
		assert_int_equal(unlink(scratch_path(*state, names[i])), 0);
		assert_int_equal(try_open(*state, true, &err), 0);
	}
	profdb_close(db);
}

static void test_lists(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct base_err err = { 0 };
	char **list;

	assert_int_equal(mkdir(scratch_path(*state, "199901010000"), 0700), 0);
	assert_int_equal(mkdir(scratch_path(*state, SCRATCH_EPOCH "/abc"), 0700), 0);
	scratch_write(*state, "200001010000", "", 0);				/* no folder */
	assert_int_equal(mkdir(scratch_path(*state, "200013010000"), 0700), 0); /* no month */
	assert_int_equal(mkdir(scratch_path(*state, "202602300000"), 0700), 0); /* no day */
	assert_int_equal(mkdir(scratch_path(*state, "202602282500"), 0700), 0); /* no hour */
	list = profdb_epochs(db, NULL);
	assert_string_equal(list[0], "199901010000");
	assert_string_equal(list[1], SCRATCH_EPOCH);
	assert_null(list[2]);
	free(list);
	list = profdb_platforms(db, SCRATCH_EPOCH, NULL);
	assert_string_equal(list[0], "abc");
	assert_string_equal(list[1], "box");
	assert_null(list[2]);
	free(list);
	assert_null(profdb_platforms(db, "200201010000", &err));
	assert_int_equal(err.code, -ENOENT);
	assert_null(profdb_platforms(db, "../../etc", NULL));
	profdb_close(db);
}

static void test_what_was_removed_is_gone(void **state)
{
	struct profdb *db = scratch_open(*state, true);
	char epoch[PROFDB_EPOCH_LEN + 1], moved[300];

	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	assert_int_equal(profdb_epoch_start(db, 1700000000, epoch, NULL), 0);
	assert_false(profdb_is_gone(db));
	/* Elsewhere is not gone. */
	snprintf(moved, sizeof(moved), "%s-moved", (const char *)*state);
	assert_int_equal(rename(*state, moved), 0);
	assert_false(profdb_is_gone(db));
	assert_int_equal(rename(moved, *state), 0);
	assert_int_equal(unlink(scratch_path(*state, "202311142213/box/.open")), 0);
	assert_int_equal(rmdir(scratch_path(*state, "202311142213/box")), 0);
	assert_true(profdb_is_gone(db));
	profdb_close(db);
}

static void remove_all(const char *path)
{
	assert_int_equal(nftw(path, scratch_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static void begin_epoch(struct profdb *db)
{
	char epoch[PROFDB_EPOCH_LEN + 1];
	struct base_err err = { 0 };

	if (profdb_epoch_start(db, SCRATCH_NOW, epoch, &err) < 0)
		fail_msg("%s", err.text);
}

static int add_sum(void *ctx, const char *file, struct profdb_profile *p)
{
	(void)file;
	*(uint64_t *)ctx += profdb_profile_event(p, 0)->sum;
	profdb_profile_free(p);
	return 0;
}

/* Samples in the epoch, as a reader sees it. */
static uint64_t nr_put(const char *dir)
{
	struct profdb *db = scratch_open(dir, false);
	uint64_t sum = 0;

	assert_int_equal(profdb_walk(db, SCRATCH_EPOCH, "box", add_sum, NULL, &sum, NULL), 0);
	profdb_close(db);
	return sum;
}

static void put_one(struct profdb *db, uint64_t n)
{
	struct base_err err = { 0 };

	assert_int_equal(profdb_flush_begin(db, &err), 0);
	scratch_put(db, "a", 1, n);
	if (profdb_flush_commit(db, &err) < 0)
		fail_msg("%s", err.text);
}

/* Its folder is not made; one that stands there, or a copy that was put back, is gone on with. */
static void test_goes_on_where_it_was_removed(void **state)
{
	struct profdb *db = scratch_writer(*state), *other;
	struct base_err err = { 0 };

	put_one(db, 10);
	remove_all(*state);
	assert_true(profdb_is_gone(db));
	assert_int_equal(profdb_reopen(db, NULL), -ENOENT);
	assert_int_not_equal(access(*state, F_OK), 0);
	/* Another one was faster. */
	other = scratch_open(*state, true);
	assert_int_equal(profdb_lock(other, "box", NULL), 0);
	assert_int_equal(profdb_reopen(db, &err), -DCPI_EBUSY);
	assert_true(profdb_is_gone(db));
	profdb_close(other);
	/* Somebody else's folder. */
	remove_all(*state);
	assert_int_equal(mkdir(*state, 0755), 0);
	scratch_write(*state, "letter", "x", 1);
	assert_int_equal(profdb_reopen(db, NULL), -DCPI_ENOTDB);
	assert_int_equal(unlink(scratch_path(*state, "letter")), 0);
	assert_int_equal(profdb_reopen(db, NULL), 1);
	assert_false(profdb_is_gone(db));
	assert_string_equal(profdb_path(db), *state);
	assert_int_equal(access(scratch_path(*state, "dyn"), F_OK), 0);
	assert_true(profdb_lock_held(db, "box"));
	begin_epoch(db);
	put_one(db, 2);
	assert_int_equal(nr_put(*state), 6);
	profdb_close(db);
	assert_int_not_equal(access(scratch_path(*state, ".lock-box"), F_OK), 0);
}

/* What stays of it is used on: an epoch is begun, folders are made. */
static void test_goes_on_without_a_part(void **state)
{
	struct profdb *db = scratch_writer(*state);

	assert_true(profdb_dyn_fd(db) >= 0);
	put_one(db, 10);
	remove_all(scratch_path(*state, SCRATCH_EPOCH));
	assert_int_equal(profdb_reopen(db, NULL), 0);
	begin_epoch(db);
	put_one(db, 2);
	assert_int_equal(nr_put(*state), 6);
	remove_all(scratch_path(*state, "dyn"));
	assert_true(profdb_is_gone(db));
	assert_int_equal(profdb_reopen(db, NULL), 1);
	assert_false(profdb_is_gone(db));
	assert_int_equal(faccessat(profdb_dyn_fd(db), ".", F_OK, 0), 0);
	/* The lock is taken again where it went, too. */
	remove_all(scratch_path(*state, SCRATCH_EPOCH));
	assert_int_equal(unlink(scratch_path(*state, ".lock-box")), 0);
	begin_epoch(db);
	remove_all(scratch_path(*state, SCRATCH_EPOCH));
	assert_int_equal(profdb_reopen(db, NULL), 0);
	begin_epoch(db);
	put_one(db, 1);
	assert_int_equal(nr_put(*state), 3);
	profdb_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_makes_and_finds),
		scratch_test(test_an_empty_folder_becomes_one),
		scratch_test(test_other_folders_are_not_touched),
		scratch_test(test_an_epoch_is_proof_enough),
		scratch_test(test_a_newer_layout_is_refused),
		scratch_test(test_folders_are_no_links),
		scratch_test(test_lists),
		scratch_test(test_what_was_removed_is_gone),
		scratch_test(test_goes_on_where_it_was_removed),
		scratch_test(test_goes_on_without_a_part),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
