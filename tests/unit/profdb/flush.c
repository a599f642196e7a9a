/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "scratch.h"

struct seen {
	int profiles, bad;
	uint64_t samples;
	char files[512];
	struct profdb_profile *last;
};

static int see(void *ctx, const char *file, struct profdb_profile *p)
{
	struct seen *s = ctx;

	s->profiles++;
	for (size_t i = 0; i < profdb_profile_nr_events(p); i++)
		s->samples += profdb_profile_event(p, i)->sum;
	strcat(s->files, file);
	strcat(s->files, " ");
	profdb_profile_free(s->last);
	s->last = p;
	return 0;
}

static void see_bad(void *ctx, const char *file, const struct base_err *err)
{
	struct seen *s = ctx;

	assert_true(err->code < 0);
	assert_non_null(strstr(err->text, file));
	s->bad++;
}

static void walk(struct profdb *db, struct seen *s)
{
	profdb_profile_free(s->last);
	*s = (struct seen){ 0 };
	assert_int_equal(profdb_walk(db, SCRATCH_EPOCH, "box", see, see_bad, s, NULL), 0);
}

static void test_merges_with_what_is_stored(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct seen s = { 0 };

	for (uint64_t i = 1; i <= 3; i++) {
		assert_int_equal(profdb_flush_begin(db, NULL), 0);
		scratch_put(db, "libc.so.6", 1, i);
		scratch_put(db, "prog", 2, 10 * i);
		scratch_put(db, "prog", 2, 1); /* twice in one flush */
		walk(db, &s);
		assert_int_equal(s.samples, 3 * (11 * (i - 1) * i / 2 + i - 1));
		assert_int_equal(profdb_flush_commit(db, NULL), 0);
		walk(db, &s);
		assert_int_equal(s.samples, 3 * (11 * i * (i + 1) / 2 + i));
	}
	assert_int_equal(s.profiles, 2);
	assert_int_equal(s.bad, 0);
	assert_string_equal(s.files, "libc.so.6.file.ab01 prog.file.ab02 ");
	assert_string_equal(profdb_profile_word(s.last, "epoch"), SCRATCH_EPOCH);
	assert_string_equal(profdb_profile_word(s.last, "platform"), "box");
	profdb_profile_free(s.last);
	profdb_close(db);
}

static void test_an_aborted_flush_was_none(void **state)
{
	struct profdb *db = scratch_writer(*state);
	struct seen s = { 0 };

	assert_int_equal(profdb_flush_put(db, "x", NULL, NULL), -EINVAL);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	scratch_put(db, "prog", 2, 1);
	assert_int_equal(profdb_flush_begin(db, NULL), -EINVAL);
	profdb_flush_abort(db);
	assert_int_equal(profdb_flush_commit(db, NULL), -EINVAL);
	walk(db, &s);
	assert_int_equal(s.profiles, 0);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	scratch_put(db, "prog", 2, 5);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	walk(db, &s);
	assert_int_equal(s.samples, 15);
	profdb_profile_free(s.last);
	profdb_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_merges_with_what_is_stored),
		scratch_test(test_an_aborted_flush_was_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
