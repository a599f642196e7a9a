/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "scratch.h"

static char epoch[PROFDB_EPOCH_LEN + 1];

static void start(struct profdb *db, int64_t now, const char *want)
{
	struct base_err err = { 0 };

	if (profdb_epoch_start(db, now, epoch, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(epoch, want);
}

static void test_two_epochs_in_one_minute(void **state)
{
	struct profdb *db = scratch_writer(*state), *other;

	assert_true(profdb_epoch_open(db, SCRATCH_EPOCH, "box"));
	/* None is named ahead of the clock. */
	start(db, SCRATCH_NOW + 20, "20261120075430");
	assert_false(profdb_epoch_open(db, SCRATCH_EPOCH, "box"));
	assert_true(profdb_epoch_open(db, "20261120075430", "box"));
	start(db, SCRATCH_NOW + 30, "20261120075440");
	start(db, SCRATCH_NOW + 60, "202611200755");
	start(db, SCRATCH_NOW + 60, "20261120075510");
	/* But within a second. */
	start(db, SCRATCH_NOW + 60, "20261120075511");
	/* Another platform has had none in this minute. */
	other = scratch_open(*state, false);
	assert_int_equal(profdb_lock(other, "other", NULL), 0);
	start(other, SCRATCH_NOW, SCRATCH_EPOCH);
	profdb_close(other);
	profdb_close(db);
}

static void test_names_are_of_the_calendar(void **state)
{
	struct profdb *db = scratch_open(*state, true);

	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	start(db, 0, "197001010000");
	start(db, 951782340, "200002282359");
	start(db, 951782399, "20000228235959");
	start(db, 951782400, "200002290000");
	assert_int_equal(profdb_epoch_start(db, -1, epoch, NULL), -EINVAL);
	assert_int_equal(profdb_epoch_start(db, INT64_MAX, epoch, NULL), -EINVAL);
	profdb_close(db);
}

static void test_resume(void **state)
{
	struct profdb *db = scratch_writer(*state);

	assert_int_equal(profdb_epoch_resume(db, epoch, NULL), -EINVAL);
	profdb_close(db);
	db = scratch_open(*state, false);
	assert_int_equal(profdb_epoch_resume(db, epoch, NULL), -EINVAL);
	assert_int_equal(profdb_lock(db, "other", NULL), 0);
	assert_int_equal(profdb_epoch_resume(db, epoch, NULL), -ENOENT);
	profdb_close(db);
	db = scratch_open(*state, false);
	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	assert_int_equal(profdb_epoch_resume(db, epoch, NULL), 0);
	assert_string_equal(epoch, SCRATCH_EPOCH);
	assert_int_equal(profdb_epoch_finish(db, NULL), 0);
	assert_int_equal(profdb_epoch_finish(db, NULL), -EINVAL);
	assert_int_equal(profdb_epoch_resume(db, epoch, NULL), -ENOENT);
	assert_int_equal(profdb_flush_begin(db, NULL), -EINVAL);
	profdb_close(db);
}

/* A sample of a program's process; NULL: of all of them together. */
static void put_process(struct profdb *db, const char *process)
{
	const struct base_id id = { .len = 2, .bytes = { 1, 2 } };
	struct profdb_profile *p = profdb_profile_new(PROFDB_FILE, &id, "/bin/w.x");

	assert_int_equal(profdb_profile_event_add(p, "cycles", 1), 0);
	assert_int_equal(profdb_profile_add(p, 0x10, 0, 1), 0);
	if (process)
		assert_int_equal(profdb_profile_set_word(p, "process", process), 0);
	assert_int_equal(profdb_flush_put(db, "w.x", p, NULL), 0);
	profdb_profile_free(p);
}

static int is_two(void *ctx, const char *file, struct profdb_profile *p)
{
	(void)file;
	assert_int_equal(profdb_profile_event(p, 0)->sum, 2);
	++*(int *)ctx;
	profdb_profile_free(p);
	return 0;
}

/* A daemon that goes on finds the file of each process again. */
static void test_resume_processes_apart(void **state)
{
	struct profdb *db = scratch_writer(*state);
	int nr = 0;

	for (int life = 0; life < 2; life++) {
		assert_int_equal(profdb_flush_begin(db, NULL), 0);
		put_process(db, NULL);
		put_process(db, "7");
		put_process(db, "7-1000");
		put_process(db, "7-2000");
		/* What is no pid and time does not get into a file's name. */
		put_process(db, "../7~1.file.02");
		put_process(db, "77777777777777777777777777777777");
		assert_int_equal(profdb_flush_commit(db, NULL), 0);
		profdb_close(db);
		if (life)
			break;
		db = scratch_open(*state, false);
		assert_int_equal(profdb_lock(db, "box", NULL), 0);
		assert_int_equal(profdb_epoch_resume(db, epoch, NULL), 0);
	}
	db = scratch_open(*state, false);
	assert_int_equal(
		access(scratch_path(*state, SCRATCH_EPOCH "/box/w.x.file.0102-7-1000"), F_OK), 0);
	assert_int_equal(unlink(scratch_path(*state, SCRATCH_EPOCH "/box/w.x.file.0102")), 0);
	assert_int_equal(profdb_walk(db, SCRATCH_EPOCH, "box", is_two, NULL, &nr, NULL), 0);
	assert_int_equal(nr, 3);
	profdb_close(db);
}

/* And of each label, though the names of files hold but the beginning of a long one. */
static void test_resume_labels_apart(void **state)
{
	static const struct {
		const char *process, *label;
	} of[] = { { NULL, NULL },
		   { NULL, "run-1" },
		   { "7-1000", "run-1" },
		   { NULL, "run.1" },
		   { NULL, "run_1" },
		   { NULL, "a/b@c" },
		   { "7-1000", NULL },
		   { NULL, "a/b@d" },
		   { NULL, "7-1000" },
		   { NULL, "a-long-label-1" },
		   { NULL, "a-long-label-of-many-1" },
		   { NULL, "a-long-label-of-many-2" } };
	enum { N = sizeof(of) / sizeof(of[0]) };
	const struct base_id id = { .len = 2, .bytes = { 1, 2 } };
	struct profdb *db = scratch_writer(*state);
	int nr = 0;

	for (int life = 0; life < 2; life++) {
		assert_int_equal(profdb_flush_begin(db, NULL), 0);
		for (int i = 0; i < N; i++) {
			struct profdb_profile *p = profdb_profile_new(PROFDB_FILE, &id, "/bin/w.x");

			profdb_profile_event_add(p, "cycles", 1);
			profdb_profile_add(p, 0x10, 0, 1);
			profdb_profile_set_word(p, "process", of[i].process);
			profdb_profile_set_word(p, "label", of[i].label);
			assert_int_equal(profdb_flush_put(db, "w.x", p, NULL), 0);
			profdb_profile_free(p);
		}
		assert_int_equal(profdb_flush_commit(db, NULL), 0);
		profdb_close(db);
		if (life)
			break;
		db = scratch_open(*state, false);
		assert_int_equal(profdb_lock(db, "box", NULL), 0);
		assert_int_equal(profdb_epoch_resume(db, epoch, NULL), 0);
	}
	db = scratch_open(*state, false);
	assert_int_equal(
		access(scratch_path(*state, SCRATCH_EPOCH "/box/w.x.file.0102_run-1"), F_OK), 0);
	assert_int_equal(profdb_walk(db, SCRATCH_EPOCH, "box", is_two, NULL, &nr, NULL), 0);
	assert_int_equal(nr, N);
	profdb_close(db);
}

static void test_start_closes_what_was_left_open(void **state)
{
	struct profdb *db = scratch_writer(*state);

	profdb_close(db);
	db = scratch_open(*state, false);
	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	start(db, SCRATCH_NOW + 3600, "202611200854");
	assert_false(profdb_epoch_open(db, SCRATCH_EPOCH, "box"));
	profdb_close(db);
}

static void test_writing_needs_the_lock(void **state)
{
	struct profdb *db = scratch_open(*state, true);

	assert_int_equal(profdb_epoch_start(db, SCRATCH_NOW, epoch, NULL), -EINVAL);
	assert_int_equal(profdb_epoch_finish(db, NULL), -EINVAL);
	profdb_close(db);
}

static void test_no_new_epoch_within_a_flush(void **state)
{
	struct profdb *db = scratch_writer(*state);

	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(profdb_epoch_start(db, SCRATCH_NOW, epoch, NULL), -EINVAL);
	assert_int_equal(profdb_epoch_finish(db, NULL), -EINVAL);
	assert_int_equal(profdb_flush_commit(db, NULL), 0); /* of nothing */
	assert_int_equal(profdb_epoch_finish(db, NULL), 0);
	profdb_close(db);
}

/* Nobody can hide a file behind a name that leads elsewhere. */
static void test_names_that_lead_elsewhere(void **state)
{
	struct profdb *db = scratch_writer(*state);

	assert_false(profdb_epoch_open(db, "../..", "box"));
	assert_false(profdb_epoch_open(db, SCRATCH_EPOCH, "../" SCRATCH_EPOCH "/box"));
	profdb_close(db);
}

/* Made by hand, or planted: an epoch is a folder of the database itself. */
static void test_links_are_no_epochs(void **state)
{
	struct profdb *db = scratch_writer(*state);
	char **names;

	assert_int_equal(symlink(SCRATCH_EPOCH, scratch_path(*state, "202611200800")), 0);
	assert_int_equal(symlink("/", scratch_path(*state, "202611200801")), 0);
	assert_int_equal(symlink("/", scratch_path(*state, SCRATCH_EPOCH "/root")), 0);
	assert_int_equal(mkfifo(scratch_path(*state, "202611200802"), 0600), 0);
	names = profdb_epochs(db, NULL);
	assert_string_equal(names[0], SCRATCH_EPOCH);
	assert_null(names[1]);
	free(names);
	names = profdb_platforms(db, SCRATCH_EPOCH, NULL);
	assert_string_equal(names[0], "box");
	assert_null(names[1]);
	free(names);
	assert_false(profdb_epoch_open(db, "202611200800", "box"));
	assert_null(profdb_platforms(db, "202611200801", NULL));
	profdb_close(db);
}

/* Nothing is made behind a link. */
static void test_a_link_in_the_way(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct base_err err = { 0 };
	struct stat st;

	assert_int_equal(mkdir(scratch_path(*state, "elsewhere"), 0755), 0);
	assert_int_equal(symlink("elsewhere", scratch_path(*state, "202611200755")), 0);
	assert_true(profdb_epoch_start(db, SCRATCH_NOW + 60, epoch, &err) < 0);
	assert_non_null(strstr(err.text, "cannot make epoch '202611200755' in '"));
	assert_int_equal(stat(scratch_path(*state, "elsewhere/box"), &st), -1);
	start(db, SCRATCH_NOW + 120, "202611200756");
	profdb_close(db);
}

static bool can_go_on(const char *dir)
{
	struct profdb *db = scratch_open(dir, false);

	if (profdb_lock(db, "box", NULL) < 0 || profdb_epoch_resume(db, epoch, NULL) < 0 ||
	    profdb_flush_begin(db, NULL) < 0)
		return false;
	scratch_put(db, "prog", 1, 1);
	scratch_put(db, "other", 2, 1);
	if (profdb_flush_commit(db, NULL) < 0 || profdb_epoch_finish(db, NULL) < 0)
		return false;
	profdb_close(db);
	return true;
}

/* A daemon of root's is killed; that of the user whose database it is goes on in its epoch. */
static void test_what_root_left_open(void **state)
{
	mode_t before;
	pid_t child;

	scratch_give(*state);
	before = umask(077);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct profdb *db = scratch_writer(*state);

		if (profdb_flush_begin(db, NULL) < 0)
			_exit(1);
		scratch_put(db, "prog", 1, 1);
		_exit(profdb_flush_commit(db, NULL) < 0);
	}
	umask(before);
	assert_int_equal(waitpid(child, NULL, 0), child);
	scratch_is_given(*state, SCRATCH_EPOCH);
	scratch_is_given(*state, SCRATCH_EPOCH "/box");
	scratch_is_given(*state, SCRATCH_EPOCH "/box/.open");
	scratch_is_given(*state, SCRATCH_EPOCH "/box/.commit");
	scratch_is_given(*state, SCRATCH_EPOCH "/box/prog.file.ab01");
	scratch_as_owner(*state, can_go_on);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_two_epochs_in_one_minute),
		scratch_test(test_names_are_of_the_calendar),
		scratch_test(test_resume),
		scratch_test(test_resume_processes_apart),
		scratch_test(test_resume_labels_apart),
		scratch_test(test_start_closes_what_was_left_open),
		scratch_test(test_writing_needs_the_lock),
		scratch_test(test_no_new_epoch_within_a_flush),
		scratch_test(test_names_that_lead_elsewhere),
		scratch_test(test_links_are_no_epochs),
		scratch_test(test_a_link_in_the_way),
		scratch_test(test_what_root_left_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
