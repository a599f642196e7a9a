/* SPDX-License-Identifier: BSD-2-Clause */
/* Flushes in the old form: a file for each event, and what it cannot hold. */
#include <errno.h>

#include "scratch.h"

struct seen {
	uint64_t cycles, imiss;
	char files[4096];
};

static int see(void *ctx, const char *file, struct profdb_profile *p)
{
	int cycles = profdb_profile_event_find(p, "cycles");
	int imiss = profdb_profile_event_find(p, "i:miss");
	struct seen *s = ctx;

	s->cycles += cycles < 0 ? 0 : profdb_profile_event(p, (size_t)cycles)->sum;
	s->imiss += imiss < 0 ? 0 : profdb_profile_event(p, (size_t)imiss)->sum;
	if (imiss >= 0)
		assert_true(profdb_profile_event(p, (size_t)imiss)->enabled == 0.5);
	strcat(s->files, file);
	strcat(s->files, " ");
	profdb_profile_free(p);
	return 0;
}

static void walk(struct profdb *db, struct seen *s)
{
	*s = (struct seen){ 0 };
	assert_int_equal(profdb_walk(db, SCRATCH_EPOCH, "box", see, NULL, s, NULL), 0);
}

static struct profdb *old_writer(const char *dir)
{
	struct profdb *db = scratch_writer(dir);

	profdb_set_format(db, PROFDB_FORMAT_0_07);
	return db;
}

/* Two events: @cycles at @off, @imiss at 4. */
static struct profdb_profile *two_events(enum profdb_kind kind, uint64_t off, uint64_t cycles,
					 uint64_t imiss)
{
	struct base_id image = { .len = 2, .bytes = { 0xab, 2 } };
	struct profdb_profile *p = profdb_profile_new(kind, &image, "/prog");

	assert_int_equal(profdb_profile_event_add(p, "cycles", 62000), 0);
	assert_int_equal(profdb_profile_event_add(p, "i:miss", 4096), 1);
	profdb_profile_event_set_enabled(p, 1, 0.5);
	assert_int_equal(profdb_profile_add(p, off, 0, cycles), 0);
	assert_int_equal(profdb_profile_add(p, 4, 1, imiss), 0);
	assert_int_equal(profdb_profile_set_word(p, "weather", "fine"), 0);
	return p;
}

/* Frees @p. */
static int flush(struct profdb *db, const char *stem, struct profdb_profile *p,
		 struct base_err *err)
{
	int left;

	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	left = profdb_flush_put(db, stem, p, err);
	assert_true(left >= 0);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	profdb_profile_free(p);
	return left;
}

#define CYCLES_FILE "prog.file.ab02+cycles"
#define IMISS_FILE  "prog.file.ab02+i_miss-" /* and a hash: the name is none for a file */

static void test_a_file_for_each_event(void **state)
{
	struct profdb *db = old_writer(*state);
	struct profdb_profile *p;
	struct seen s;

	for (int i = 0; i < 3; i++)
		flush(db, "prog", two_events(PROFDB_FILE, 16, 5, 7), NULL);
	walk(db, &s);
	assert_int_equal(s.cycles, 15);
	assert_int_equal(s.imiss, 21);
	assert_non_null(strstr(s.files, CYCLES_FILE " " IMISS_FILE));
	assert_int_equal(profdb_profile_read(
				 scratch_path(*state, SCRATCH_EPOCH "/box/" CYCLES_FILE), &p, NULL),
			 0);
	assert_int_equal(profdb_profile_nr_events(p), 1);
	assert_int_equal(profdb_profile_nr_entries(p), 1);
	assert_string_equal(profdb_profile_word(p, "weather"), "fine");
	assert_string_equal(profdb_profile_word(p, "platform"), "box");
	profdb_profile_free(p);
	profdb_close(db);
}

/* The files are found again by who resumes; and stay apart from those of version 1. */
static void test_resumed_in_another_format(void **state)
{
	struct profdb *db = old_writer(*state);
	char epoch[PROFDB_EPOCH_LEN + 1];
	struct seen s;

	for (int i = 0; i < 3; i++) {
		flush(db, "prog", two_events(PROFDB_FILE, 16, 5, 7), NULL);
		profdb_close(db);
		db = scratch_open(*state, false);
		assert_int_equal(profdb_lock(db, "box", NULL), 0);
		assert_int_equal(profdb_epoch_resume(db, epoch, NULL), 0);
		profdb_set_format(db, i ? PROFDB_FORMAT_1 : PROFDB_FORMAT_0_06);
	}
	walk(db, &s);
	assert_int_equal(s.cycles, 15);
	assert_int_equal(s.imiss, 21);
	assert_string_equal(strrchr(s.files, '.'), ".ab02+i_miss-85909935aa71a22b ");
	assert_non_null(strstr(s.files, "prog.file.ab02 " CYCLES_FILE));
	profdb_close(db);
}

static void test_what_does_not_fit_goes_beside(void **state)
{
	struct profdb *db = old_writer(*state);
	struct base_err err = { 0 };
	struct seen s;

	assert_int_equal(flush(db, "prog", two_events(PROFDB_FILE, 16, UINT32_MAX, 1), &err), 0);
	assert_int_equal(err.code, 0);
	/* The sum is full: said once, and nothing wraps. */
	assert_int_equal(flush(db, "prog", two_events(PROFDB_FILE, 16, 5, 1), &err), 1);
	assert_int_equal(err.code, -DCPI_EOVERFLOW);
	assert_non_null(strstr(err.text, "prog.file.ab02"));
	assert_int_equal(flush(db, "prog", two_events(PROFDB_FILE, 16, 6, 1), &err), 0);
	/* So does an offset; and all of it at once. */
	assert_int_equal(flush(db, "prog", two_events(PROFDB_FILE, UINT64_C(1) << 32, 7, 1), &err),
			 0);
	walk(db, &s);
	assert_true(s.cycles == UINT32_MAX + UINT64_C(18));
	assert_int_equal(s.imiss, 4);
	assert_int_equal(strncmp(s.files, "prog.file.ab02 " CYCLES_FILE " ", 37), 0);
	profdb_close(db);
}

static void test_a_pseudo_image_moves(void **state)
{
	struct profdb *db = old_writer(*state);
	struct profdb_profile *stored = NULL;
	struct seen s;

	flush(db, "old.dyn", two_events(PROFDB_DYNAMIC, 16, 5, 7), NULL);
	flush(db, "old.dynamo.dyn", two_events(PROFDB_DYNAMIC, 16, 1, 1), NULL);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(profdb_flush_read(db, "old.dyn", &stored, NULL), 0);
	assert_int_equal(profdb_profile_nr_events(stored), 2);
	assert_int_equal(profdb_flush_put(db, "new.dyn", stored, NULL), 0);
	assert_int_equal(profdb_flush_remove(db, "new.dyn", NULL), -EINVAL);
	assert_int_equal(profdb_flush_remove(db, "old.dyn", NULL), 0);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	profdb_profile_free(stored);
	walk(db, &s);
	assert_int_equal(s.cycles, 6);
	assert_int_equal(s.imiss, 8);
	assert_null(strstr(s.files, "old.dyn+"));
	assert_non_null(strstr(s.files, "new.dyn+cycles.dynamic "));
	assert_non_null(strstr(s.files, "old.dynamo.dyn+cycles.dynamic "));
	profdb_close(db);
}

/* A '+' of the stem is none of an event, nor one of the event's the last. */
static void test_a_pseudo_image_named_with_plus(void **state)
{
	struct profdb *db = old_writer(*state);
	struct profdb_profile *p = two_events(PROFDB_DYNAMIC, 16, 5, 7), *stored = NULL;
	char epoch[PROFDB_EPOCH_LEN + 1];

	assert_int_equal(profdb_profile_event_add(p, "a+b", 1000), 2);
	assert_int_equal(profdb_profile_add(p, 16, 2, 9), 0);
	flush(db, "c++-1.dyn", p, NULL);
	flush(db, "c++.dyn", two_events(PROFDB_DYNAMIC, 16, 1, 1), NULL);
	profdb_close(db);
	db = scratch_open(*state, false);
	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	assert_int_equal(profdb_epoch_resume(db, epoch, NULL), 0);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	assert_int_equal(profdb_flush_read(db, "c.dyn", &stored, NULL), -ENOENT);
	assert_int_equal(profdb_flush_read(db, "c++-1.dyn", &stored, NULL), 0);
	assert_int_equal(profdb_profile_nr_events(stored), 3);
	for (size_t i = 0; i < 3; i++)
		assert_in_range(profdb_profile_event(stored, i)->sum, 5, 9);
	profdb_profile_free(stored);
	profdb_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_a_file_for_each_event),
		scratch_test(test_resumed_in_another_format),
		scratch_test(test_what_does_not_fit_goes_beside),
		scratch_test(test_a_pseudo_image_moves),
		scratch_test(test_a_pseudo_image_named_with_plus),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
