/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "scratch.h"

enum { ALICE = 1000, BOB = 1001 };

struct seen {
	int files, bad, profiles;
	uint64_t values;
	char names[1024], hint[256];
	struct profdb_values *last;
};

static int see(void *ctx, const char *file, struct profdb_values *v)
{
	struct seen *s = ctx;

	s->files++;
	for (size_t i = 0; i < profdb_values_nr(v); i++)
		s->values += profdb_values_at(v, i)->vtot;
	strcat(s->names, file);
	strcat(s->names, " ");
	profdb_values_free(s->last);
	s->last = v;
	return 0;
}

static int see_profile(void *ctx, const char *file, struct profdb_profile *p)
{
	struct seen *s = ctx;

	(void)file;
	s->profiles++;
	profdb_profile_free(p);
	return 0;
}

static void see_bad(void *ctx, const char *file, const struct base_err *err)
{
	struct seen *s = ctx;

	assert_non_null(strstr(err->text, file));
	snprintf(s->hint, sizeof(s->hint), "%s", err->hint);
	s->bad++;
}

static void walk(struct profdb *db, const char *profiler, struct seen *s)
{
	profdb_values_free(s->last);
	*s = (struct seen){ 0 };
	assert_int_equal(
		profdb_walk_values(db, SCRATCH_EPOCH, "box", profiler, see, see_bad, s, NULL), 0);
	assert_int_equal(profdb_walk(db, SCRATCH_EPOCH, "box", see_profile, see_bad, s, NULL), 0);
}

static int put(struct profdb *db, enum profdb_kind kind, const char *stem, const char *profiler,
	       uint32_t uid, uint64_t n)
{
	const struct base_id image = { .len = 2, .bytes = { 0xab, 1 } };
	struct profdb_values *v = profdb_values_new(kind, &image, "/bin/prog", profiler);
	struct base_err err = { 0 };
	int r;

	assert_non_null(v);
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(profdb_values_add(v, 16, NULL, i % 4), 0);
	r = profdb_flush_put_values(db, stem, v, uid, &err);
	if (r < 0)
		fail_msg("%s", err.text);
	profdb_values_free(v);
	return r;
}

static void flush(struct profdb *db, const char *profiler, uint32_t uid, uint64_t n)
{
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(put(db, PROFDB_FILE, "prog", profiler, uid, n), 0);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
}

static void test_merges_with_what_is_stored(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct seen s = { 0 };

	for (uint64_t i = 1; i <= 3; i++) {
		assert_int_equal(profdb_flush_begin(db, NULL), 0);
		put(db, PROFDB_FILE, "prog", PROFDB_VALUES, ALICE, 4 * i);
		put(db, PROFDB_FILE, "prog", PROFDB_VALUES, ALICE, 4); /* twice in one flush */
		scratch_put(db, "prog", 1, 1);
		walk(db, PROFDB_VALUES, &s);
		assert_int_equal(s.values, 4 * ((i - 1) * i / 2 + i - 1));
		assert_int_equal(profdb_flush_commit(db, NULL), 0);
		walk(db, PROFDB_VALUES, &s);
		assert_int_equal(s.values, 4 * (i * (i + 1) / 2 + i));
	}
	assert_string_equal(s.names, "prog.file.ab01.values.values ");
	assert_int_equal(s.profiles, 1);
	assert_int_equal(profdb_values_nr(s.last), 1);
	assert_int_equal(profdb_values_at(s.last, 0)->v[3].counting, 9);
	assert_string_equal(profdb_profile_word(profdb_values_header(s.last), "epoch"),
			    SCRATCH_EPOCH "10");
	assert_string_equal(profdb_profile_path(profdb_values_header(s.last), 0), "/bin/prog");
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	put(db, PROFDB_FILE, "prog", PROFDB_VALUES, ALICE, 4);
	profdb_flush_abort(db);
	walk(db, NULL, &s);
	assert_int_equal(s.values, 36);
	profdb_values_free(s.last);
	profdb_close(db);
}

/* Also for a daemon that comes later, which finds them by their names. */
static void test_each_profiler_has_its_own(void **state)
{
	static const char *const names[] = { "values",
					     "values.replay",
					     "vp-addr",
					     "vp addr",
					     "a-name-that-is-longer-than-a-file's",
					     "dynamic" };
	struct profdb *db = scratch_writer(*state);
	char epoch[PROFDB_EPOCH_LEN + 1];
	struct seen s = { 0 };

	assert_null(profdb_values_new(PROFDB_FILE, NULL, "/a", names[3]));
	for (int round = 1; round <= 2; round++) {
		for (uint64_t i = 0; i < 6; i++)
			if (i != 3)
				flush(db, names[i], ALICE, i + 1);
		for (uint64_t i = 0; i < 6; i++) {
			walk(db, names[i], &s);
			assert_int_equal(s.files, i != 3);
			assert_int_equal(s.values, i == 3 ? 0 : (i + 1) * (uint64_t)round);
			if (i != 3)
				assert_string_equal(profdb_values_profiler(s.last), names[i]);
		}
		walk(db, NULL, &s);
		assert_int_equal(s.files, 5);
		assert_int_equal(s.profiles + s.bad, 0);
		profdb_close(db);
		db = scratch_open(*state, false);
		assert_int_equal(profdb_lock(db, "box", NULL), 0);
		assert_int_equal(profdb_epoch_resume(db, epoch, NULL), 0);
	}
	assert_non_null(strstr(s.names, "prog.file.ab01.values+replay.values "));
	profdb_values_free(s.last);
	profdb_close(db);
}

static struct stat file_stat(const char *dir, uint32_t *reader)
{
	int fd = open(scratch_path(dir, SCRATCH_EPOCH "/box/prog.file.ab01.values.values"),
		      O_RDONLY);
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	*reader = base_reader_get(fd);
	close(fd);
	return st;
}

static void test_for_one_user_while_alone(void **state)
{
	struct profdb *db = scratch_writer(*state);
	bool readers = scratch_has_readers(*state);
	uint32_t reader;

	flush(db, PROFDB_VALUES, ALICE, 1);
	flush(db, PROFDB_VALUES, ALICE, 1);
	assert_int_equal(file_stat(*state, &reader).st_mode & 07, 0);
	assert_true(reader == (readers ? ALICE : UINT32_MAX));
	flush(db, PROFDB_VALUES, BOB, 1);
	assert_int_equal(file_stat(*state, &reader).st_mode & 0777, 0600);
	assert_true(reader == UINT32_MAX);
	/* What was not hers alone never becomes so. */
	flush(db, PROFDB_VALUES, ALICE, 1);
	file_stat(*state, &reader);
	assert_true(reader == UINT32_MAX);
	profdb_close(db);
}

static void test_within_one_flush_too(void **state)
{
	struct profdb *db = scratch_writer(*state);
	uint32_t reader;

	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	put(db, PROFDB_FILE, "prog", PROFDB_VALUES, ALICE, 1);
	put(db, PROFDB_FILE, "prog", PROFDB_VALUES, UINT32_MAX, 1);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	assert_int_equal(file_stat(*state, &reader).st_mode & 0777, 0600);
	assert_true(reader == UINT32_MAX);
	profdb_close(db);
}

static void test_who_may_not_read_is_told(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct seen s = { 0 };

	flush(db, PROFDB_VALUES, UINT32_MAX, 1);
	assert_int_equal(chmod(*state, 0755), 0);
	if (geteuid() == 0)
		assert_int_equal(seteuid(65534), 0);
	else
		chmod(scratch_path(*state, SCRATCH_EPOCH "/box/prog.file.ab01.values.values"), 0);
	walk(db, PROFDB_VALUES, &s);
	assert_int_equal(s.bad, 1);
	assert_int_equal(s.files, 0);
	assert_non_null(strstr(s.hint, "secrets"));
	if (getuid() == 0)
		assert_int_equal(seteuid(0), 0);
	profdb_close(db);
}

static void test_a_damaged_file_stays(void **state)
{
	static const char text[] = "version dcpi-dynamic 1\n";
	struct profdb *db = scratch_writer(*state);
	struct seen s = { 0 };

	flush(db, PROFDB_VALUES, ALICE, 5);
	scratch_write(*state, SCRATCH_EPOCH "/box/prog.file.ab01.values.values", text,
		      strlen(text));
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(put(db, PROFDB_FILE, "prog", PROFDB_VALUES, ALICE, 3), 1);
	assert_int_equal(put(db, PROFDB_FILE, "prog", PROFDB_VALUES, ALICE, 3), 0);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	walk(db, PROFDB_VALUES, &s);
	assert_int_equal(s.bad, 1);
	assert_string_equal(s.names, "prog.file.ab01.values.values~1 ");
	assert_int_equal(s.values, 6);
	profdb_values_free(s.last);
	profdb_close(db);
}

static uint64_t moved(void *ctx, uint64_t off)
{
	return off + *(uint64_t *)ctx;
}

static void test_values_follow_their_pseudo_image(void **state)
{
	struct profdb *db = scratch_writer(*state);
	const struct base_id image = { .len = 2, .bytes = { 0xcd, 1 } };
	uint64_t by = 0x40;
	const struct profdb_moved to = {
		.stem = "all.dyn", .image = &image, .path = "all", .off = moved, .ctx = &by
	};
	struct seen s = { 0 };

	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	put(db, PROFDB_DYNAMIC, "one.dyn", PROFDB_VALUES, ALICE, 4);
	put(db, PROFDB_DYNAMIC, "one.dyn", PROFDB_VALUES_REPLAY, ALICE, 5);
	put(db, PROFDB_DYNAMIC, "one.dyn2", PROFDB_VALUES, ALICE, 6);
	put(db, PROFDB_DYNAMIC, "all.dyn", PROFDB_VALUES, ALICE, 7);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	assert_int_equal(profdb_flush_move_values(db, "one.dyn", &to, NULL), -EINVAL);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(profdb_flush_move_values(db, "one.dyn", &to, NULL), 0);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	walk(db, NULL, &s);
	assert_string_equal(s.names, "all.dyn.dynamic.values+replay.values "
				     "all.dyn.dynamic.values.values "
				     "one.dyn2.dynamic.values.values ");
	assert_int_equal(s.values, 4 + 5 + 6 + 7);
	walk(db, PROFDB_VALUES_REPLAY, &s);
	assert_int_equal(profdb_values_at(s.last, 0)->off, 0x50);
	assert_true(base_id_equal(profdb_profile_image(profdb_values_header(s.last)), &image));
	/* Nothing is left to be moved. */
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(profdb_flush_move_values(db, "one.dyn", &to, NULL), 0);
	profdb_flush_abort(db);
	profdb_values_free(s.last);
	profdb_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_merges_with_what_is_stored),
		scratch_test(test_each_profiler_has_its_own),
		scratch_test(test_for_one_user_while_alone),
		scratch_test(test_within_one_flush_too),
		scratch_test(test_who_may_not_read_is_told),
		scratch_test(test_a_damaged_file_stays),
		scratch_test(test_values_follow_their_pseudo_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
