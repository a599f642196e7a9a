/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gc.h"

#define YOUNG 100

static bool removes(const struct gc_file *files, size_t nr, const char *names)
{
	char text[64] = "";

	for (size_t i = 0; i < nr; i++)
		if (files[i].remove)
			strcat(text, files[i].name);
	if (strcmp(text, names) != 0)
		print_message("removes '%s', not '%s'\n", text, names);
	return strcmp(text, names) == 0;
}

static void chooses_all_that_may_go(void **state)
{
	struct gc_file files[] = {
		{ .name = (char[]){ "c" }, .len = 1, .time_ns = 30 },
		{ .name = (char[]){ "u" }, .len = 1, .time_ns = 1, .used = true },
		{ .name = (char[]){ "y" }, .len = 1, .time_ns = YOUNG },
		{ .name = (char[]){ "b" }, .len = 1, .time_ns = 10 },
		{ .name = (char[]){ "a" }, .len = 1, .time_ns = 10 },
	};

	(void)state;
	gc_choose(files, 5, YOUNG, 0);
	assert_true(removes(files, 5, "abc"));
	gc_choose(files, 5, 0, 0);
	assert_true(removes(files, 5, ""));
	gc_choose(files, 0, YOUNG, 0);
}

static void chooses_the_oldest_until_there_is_room(void **state)
{
	struct gc_file files[] = {
		{ .name = (char[]){ "new" }, .len = 100, .time_ns = 50 },
		{ .name = (char[]){ "old" }, .len = 10, .time_ns = 10 },
		{ .name = (char[]){ "used" }, .len = 1000, .time_ns = 20, .used = true },
		{ .name = (char[]){ "mid" }, .len = 5, .time_ns = 30 },
	};

	(void)state;
	gc_choose(files, 4, YOUNG, 1115);
	assert_true(removes(files, 4, ""));
	gc_choose(files, 4, YOUNG, 1114);
	assert_true(removes(files, 4, "old"));
	gc_choose(files, 4, YOUNG, 1104);
	assert_true(removes(files, 4, "oldmid"));
	/* It does not suffice: what is referred to stays all the same. */
	gc_choose(files, 4, YOUNG, 1);
	assert_true(removes(files, 4, "oldmidnew"));
}

/* ---- the locks ------------------------------------------------------------------------------- */

static void tells_owned_platforms_and_locks_images(void **state)
{
	char path[] = "/tmp/dcpi-gc-XXXXXX", epoch[PROFDB_EPOCH_LEN + 1], command[64];
	struct profdb *db, *other;
	struct base_err err = { 0 };
	uint64_t len;
	size_t nr;
	int a, b;

	(void)state;
	assert_non_null(mkdtemp(path));
	assert_int_equal(profdb_open(path, true, &db, &err), 0);
	assert_int_equal(profdb_open(path, false, &other, &err), 0);
	assert_false(profdb_lock_held(other, "box"));
	assert_int_equal(profdb_lock(db, "box", &err), 0);
	assert_true(profdb_lock_held(other, "box"));
	assert_false(profdb_lock_held(other, "../box"));
	assert_int_equal(profdb_epoch_written(db, "202311142213", "box"), 0);
	assert_int_equal(profdb_epoch_start(db, 1700000000, epoch, &err), 0);
	assert_int_not_equal(profdb_epoch_written(db, epoch, "box"), 0);

	a = profdb_dyn_lock(db, false, 0, &err);
	b = profdb_dyn_lock(other, false, 0, &err);
	assert_true(a >= 0 && b >= 0);
	assert_int_equal(profdb_dyn_lock(other, true, 0, &err), -DCPI_EBUSY);
	assert_non_null(strstr(err.text, "being written"));
	close(a);
	close(b);
	a = profdb_dyn_lock(other, true, 0, &err);
	assert_true(a >= 0);
	assert_int_equal(profdb_dyn_lock(db, false, 20, NULL), -DCPI_EBUSY);
	close(a);

	assert_int_equal(gc_measure(db, &len, &nr), 0);
	assert_int_equal(nr, 0);
	close(openat(profdb_dyn_fd(db), "x.dyn", O_CREAT | O_WRONLY, 0600));
	assert_int_equal(gc_measure(db, &len, &nr), 0);
	assert_int_equal(nr, 1);
	profdb_close(db);
	assert_false(profdb_lock_held(other, "box"));
	profdb_close(other);
	snprintf(command, sizeof(command), "rm -r %s", path);
	assert_int_equal(system(command), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chooses_all_that_may_go),
		cmocka_unit_test(chooses_the_oldest_until_there_is_room),
		cmocka_unit_test(tells_owned_platforms_and_locks_images),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
